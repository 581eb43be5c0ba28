//! What `tare tune` says: how settings stand, what would be done, what was done.

use crate::cli::output::OutputArgs;
use crate::failure::{Ended, Failure};
use crate::terminal;
use std::process::ExitCode;
use tare_machine::Root;
use tare_machine::journal;
use tare_machine::settings::{self, Applied, Planned, SETTINGS, Setting, Wanted};
use tare_model::tuning::{self, TuneReport};
use tare_model::{Missing, Reading};
use tare_report::{Style, tune as report};

/// Exit code of a plan that cannot be carried out; that of bad usage.
const IMPOSSIBLE: u8 = 2;

/// The value of every setting, and what tare has applied.
pub fn status(root: &Root, exports: &OutputArgs, style: Style) -> Ended {
    let held = journal::tunings(&crate::commands::state_dir()?, &Root::live());
    let settings = SETTINGS.iter().map(|setting| standing(root, *setting)).collect();
    emit(&TuneReport { settings, applied: Some(held) }, exports, style)?;
    Ok(ExitCode::SUCCESS)
}

/// What `--apply` would do; what is named and cannot be done ends as it does there.
pub fn plan(root: &Root, named: &Wanted, wanted: &Wanted, exports: &OutputArgs, style: Style) -> Ended {
    let is_possible = settings::plan(root, named).iter().all(|planned| planned.change.is_ok());
    let settings = settings::plan(root, wanted).iter().map(|one| planned(root, one)).collect();
    emit(&TuneReport { settings, applied: None }, exports, style)?;
    Ok(if is_possible { ExitCode::SUCCESS } else { ExitCode::from(IMPOSSIBLE) })
}

fn emit(tuned: &TuneReport, exports: &OutputArgs, style: Style) -> Result<(), Failure> {
    let (shown, json) = (report::report(tuned), report::json(tuned).map_err(Failure::underway)?);
    crate::commands::emit_report(&shown, &shown, &json, exports, style)
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
}

/// Why, and what to do instead.
pub fn why(missing: &Missing) -> String {
    if missing.remedy.is_empty() {
        return missing.why.clone();
    }
    format!("{}. Instead: {}", missing.why, missing.remedy)
}
