//! What `tare tune` says: how settings stand, what would be done, what was done.

use crate::failure::{Ended, Failure};
use crate::terminal;
use std::fmt::Write;
use std::process::ExitCode;
use tare_machine::Root;
use tare_machine::journal;
use tare_machine::settings::{self, Applied, Planned, SETTINGS, Setting, Wanted};
use tare_model::tuning::{self, State, TuneReport, Tuning};
use tare_model::{Missing, Reading};
use tare_report::Style;

/// Where the text of a setting begins.
const INDENT: usize = 18;
/// And that of a text that is nobody's.
const INDENT_UNNAMED: usize = 4;
/// Settings of one setting that are listed one by one; the rest is counted.
const LISTED_MAX: usize = 4;

/// Exit code of a plan that cannot be carried out; that of bad usage.
const IMPOSSIBLE: u8 = 2;

/// The value of every setting, and what tare has applied.
pub fn status(root: &Root, as_json: bool, style: Style) -> Ended {
    let held = journal::tunings(&crate::commands::state_dir()?, &Root::live());
    let text = match as_json {
        true => {
            let settings = SETTINGS.iter().map(|setting| standing(root, *setting)).collect();
            pretty(&TuneReport { settings, applied: Some(held) })?
        }
        false => {
            let mut text = String::from("Settings\n");
            let mut not_here = NotHere::default();
            for setting in SETTINGS {
                match setting.now(root) {
                    Ok(now) => text += &paragraph(setting.name(), &now, style),
                    Err(missing) => not_here.add(setting.name(), &missing),
                }
            }
            text + &not_here.text(style) + &turned_by(&held, style)
        }
    };
    terminal::print(&text).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}

/// What `--apply` would do; what is named and cannot be done ends as it does there.
pub fn plan(root: &Root, named: &Wanted, wanted: &Wanted, as_json: bool, style: Style) -> Ended {
    let plan = settings::plan(root, wanted);
    let is_possible = settings::plan(root, named).iter().all(|planned| planned.change.is_ok());
    let text = match as_json {
        true => {
            let settings = plan.iter().map(|one| planned(root, one)).collect();
            pretty(&TuneReport { settings, applied: None })?
        }
        false => {
            let mut text = String::from("--apply would do this; nothing was changed\n");
            let mut not_here = NotHere::default();
            for planned in &plan {
                if let Err(missing) = &planned.change {
                    not_here.add(planned.setting.name(), missing);
                }
                for (at, line) in steps(planned).iter().enumerate() {
                    text += &paragraph(if at == 0 { planned.setting.name() } else { " " }, line, style);
                }
            }
            text + &not_here.text(style)
        }
    };
    terminal::print(&text).map_err(Failure::underway)?;
    Ok(if is_possible { ExitCode::SUCCESS } else { ExitCode::from(IMPOSSIBLE) })
}

/// A line for each setting that was applied, on standard error.
pub fn applied(plan: &[Planned], applied: &Applied<'_>) {
    for planned in plan {
        let Ok(change) = &planned.change else { continue };
        let what = match (change.steps.first(), change.steps.len()) {
            (None, _) => "stands so already".to_string(),
            (Some(step), 1) => arrow(step.before.as_deref(), &step.wanted),
            (Some(_), count) => format!("{count} settings applied"),
        };
        terminal::say(&format!("{}: {what}", planned.setting.name()));
    }
    applied.notes().iter().for_each(|note| terminal::say(note));
}

/// What would change of one setting, and what is to be known of it.
fn steps(planned: &Planned) -> Vec<String> {
    let Ok(change) = &planned.change else { return Vec::new() };
    if change.steps.is_empty() {
        return vec!["stands so already".to_string()];
    }
    let shown = change
        .steps
        .iter()
        .take(LISTED_MAX)
        .map(|step| format!("{}   {}", arrow(step.before.as_deref(), &step.wanted), step.path.display()));
    let more = change.steps.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("and {more} more like these"));
    shown.chain(more).chain(change.notes.clone()).collect()
}

fn turned_by(held: &[Tuning], style: Style) -> String {
    if held.is_empty() {
        return "\nNothing is applied by tare.\n".to_string();
    }
    let mut text = String::new();
    for Tuning { by, state, settings } in held {
        let state = match state {
            State::Standing => "stands until 'tare tune --restore'",
            State::Held => "held until its end",
            State::Left => "left by a tare that was killed; 'tare recover' or the next run puts it back",
        };
        // Writing to a string cannot fail.
        writeln!(text, "\nTurned by '{}' (pid {}), {state}", by.command, by.pid).ok();
        for setting in settings {
            let changed =
                if setting.now == setting.applied { String::new() } else { format!(", now {}", setting.now) };
            let line =
                format!("{} → {}{changed}   {}", setting.before, setting.applied, setting.path.display());
            text += &paragraph(&setting.setting, &line, style);
        }
    }
    text
}

fn standing(root: &Root, setting: &dyn Setting) -> tuning::Setting {
    tuning::Setting {
        name: setting.name().to_owned(),
        about: setting.about().to_owned(),
        now: setting.now(root).map_or_else(Reading::Missing, Reading::Measured),
        steps: None,
        notes: None,
        not_here: None,
    }
}

fn planned(root: &Root, planned: &Planned) -> tuning::Setting {
    let standing = standing(root, planned.setting);
    match &planned.change {
        Err(missing) => tuning::Setting { not_here: Some(missing.clone()), ..standing },
        Ok(change) => {
            let step = |step: &settings::Step| tuning::Step {
                path: step.path.clone(),
                before: step.before.clone(),
                wanted: step.wanted.clone(),
            };
            let steps = Some(change.steps.iter().map(step).collect());
            tuning::Setting { steps, notes: Some(change.notes.clone()), ..standing }
        }
    }
}

fn pretty(report: &TuneReport) -> Result<String, Failure> {
    serde_json::to_string_pretty(report).map(|text| text + "\n").map_err(Failure::underway)
}

/// What was and what is; the kernel shows some values with tabs between.
fn arrow(before: Option<&str>, wanted: &str) -> String {
    match before {
        Some(before) => format!("{} → {}", before.replace('\t', " "), wanted.replace('\t', " ")),
        None => "once, nothing to put back".to_string(),
    }
}

/// Settings that are not here; those with one reason are named together.
#[derive(Default)]
pub struct NotHere(Vec<(Vec<&'static str>, Missing)>);

impl NotHere {
    /// Adds a setting.
    pub fn add(&mut self, setting: &'static str, missing: &Missing) {
        match self.0.iter_mut().find(|(_, known)| known == missing) {
            Some((settings, _)) => settings.push(setting),
            None => self.0.push((vec![setting], missing.clone())),
        }
    }

    /// A line for each reason.
    pub fn lines(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(settings, missing)| format!("not here: {}: {}", settings.join(", "), why(missing)))
            .collect()
    }

    fn text(&self, style: Style) -> String {
        let paragraphs = self.0.iter().map(|(settings, missing)| {
            paragraph("", &format!("{}: {}", settings.join(", "), why(missing)), style)
        });
        if self.0.is_empty() {
            String::new()
        } else {
            format!("\nNot here\n{}", paragraphs.collect::<String>())
        }
    }
}

/// Why, and what to do instead.
pub fn why(missing: &Missing) -> String {
    if missing.remedy.is_empty() {
        return missing.why.clone();
    }
    format!("{}. Instead: {}", missing.why, missing.remedy)
}

/// A name and its text, wrapped beside it.
fn paragraph(name: &str, text: &str, style: Style) -> String {
    let indent = if name.is_empty() { INDENT_UNNAMED } else { INDENT };
    let width = style.width.saturating_sub(indent).max(20);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full = lines
            .last()
            .is_some_and(|line| !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let label = if at == 0 { name } else { "" };
        writeln!(out, "{:<indent$}{line}", format!("  {label}").trim_end()).ok();
    }
    out
}
