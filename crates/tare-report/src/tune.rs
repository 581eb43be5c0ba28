//! The settings of a machine: how they stand and what tare has applied, or what it would do.

use crate::Report;
use crate::block::{Block, Field, Rows, Text};
use crate::sections::Part;
use tare_model::Missing;
use tare_model::tuning::{Changed, Setting, State, Step, TuneReport, Tuning};

/// Files of one setting that are listed one by one; the rest is counted.
const LISTED_MAX: usize = 4;
/// What is said where nothing would change.
const STANDS: &str = "stands so already";

/// The settings, laid out: how they stand, or, of a plan, what would be done.
pub fn report(tuned: &TuneReport) -> Report {
    let settings = &tuned.settings;
    let parts = match &tuned.applied {
        Some(applied) => vec![
            pairs("Settings", settings.iter().filter_map(standing).collect()),
            not_here(settings),
            Some(applied_by(applied)),
        ],
        None => {
            let lead = Text::strong("--apply would do this; nothing was changed");
            vec![
                Part::of("", vec![Block::Headline(lead)]),
                pairs("Settings", settings.iter().flat_map(planned).collect()),
                not_here(settings),
            ]
        }
    };
    Report { parts: parts.into_iter().flatten().collect(), rows: rows(tuned) }
}

/// As the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known: every key is a string.
pub fn json(tuned: &TuneReport) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(tuned).map(|text| text + "\n")
}

fn pairs(title: &'static str, pairs: Vec<(String, String)>) -> Option<Part> {
    (!pairs.is_empty()).then(|| Part { title, blocks: vec![Block::Pairs(pairs)] })
}

fn standing(setting: &Setting) -> Option<(String, String)> {
    Some((setting.name.clone(), plain(setting.now.value()?)))
}

/// What would change of one setting, and what is to be known of it: its name stands before the first line.
fn planned(setting: &Setting) -> Vec<(String, String)> {
    let lines = match setting.steps.as_deref() {
        None => Vec::new(),
        Some([]) => vec![STANDS.to_owned()],
        Some(steps) => {
            let shown = steps.iter().take(LISTED_MAX).map(step);
            let more = steps.len().saturating_sub(LISTED_MAX);
            let more = (more > 0).then(|| format!("and {more} more like these"));
            let notes = setting.notes.iter().flatten().cloned();
            shown.chain(more).chain(notes).collect()
        }
    };
    let label = |at: usize| if at == 0 { setting.name.clone() } else { String::new() };
    lines.into_iter().enumerate().map(|(at, line)| (label(at), line)).collect()
}

fn step(step: &Step) -> String {
    let path = step.path.display();
    match &step.before {
        Some(before) => format!("{} → {} ({path})", plain(before), plain(&step.wanted)),
        None => format!("once, nothing to put back ({path})"),
    }
}

/// The kernel shows some values with tabs between.
fn plain(value: &str) -> String {
    value.replace('\t', " ")
}

/// Why a setting is not on this machine, or cannot be changed here.
fn missing(setting: &Setting) -> Option<Missing> {
    let of_now = || setting.now.clone().ok().err().filter(|_| setting.steps.is_none());
    setting.not_here.clone().or_else(of_now)
}

/// Settings that are not here; those with one reason are named together.
fn not_here(settings: &[Setting]) -> Option<Part> {
    let mut reasons: Vec<(Missing, Vec<&str>)> = Vec::new();
    for setting in settings {
        let Some(missing) = missing(setting) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == missing) {
            Some((_, names)) => names.push(&setting.name),
            None => reasons.push((missing, vec![setting.name.as_str()])),
        }
    }
    let pair = |(missing, names): (Missing, Vec<&str>)| (names.join(", "), why(&missing));
    pairs("Not here", reasons.into_iter().map(pair).collect())
}

/// Why, and what to do instead.
fn why(missing: &Missing) -> String {
    match missing.remedy.as_str() {
        "" => missing.why.clone(),
        remedy => format!("{}. Instead: {remedy}", missing.why),
    }
}

fn applied_by(applied: &[Tuning]) -> Part {
    if applied.is_empty() {
        let text = Text::plain("Nothing is applied by tare.");
        return Part { title: "", blocks: vec![Block::Line(text)] };
    }
    let mut blocks = Vec::new();
    for Tuning { by, state, settings } in applied {
        let state = match state {
            State::Standing => "stands until 'tare tune --restore'",
            State::Held => "held until its end",
            State::Left => "left by a tare that was killed; 'tare recover' or the next run puts it back",
        };
        blocks.push(Block::Line(Text::plain(format!("by '{}' (pid {}), {state}", by.command, by.pid))));
        blocks.push(Block::Pairs(settings.iter().map(changed).collect()));
    }
    Part { title: "Applied by tare", blocks }
}

fn changed(changed: &Changed) -> (String, String) {
    let Changed { setting, path, before, applied, now } = changed;
    let since = if now == applied { String::new() } else { format!(", now {}", plain(now)) };
    let text = format!("{} → {}{since} ({})", plain(before), plain(applied), path.display());
    (setting.clone(), text)
}

/// A row for each setting, of a plan for each file; then one for each file that tare has changed.
fn rows(tuned: &TuneReport) -> Rows {
    let settings = tuned.settings.iter().flat_map(fields);
    let applied = tuned.applied.iter().flatten().flat_map(|tuning| &tuning.settings);
    let applied = applied.map(|changed| {
        let Changed { setting, path, before, applied, .. } = changed;
        row(setting, "applied", [&path.display().to_string(), before, applied])
    });
    let header = &["setting", "state", "path", "before", "value"];
    Rows { header, rows: settings.chain(applied).collect() }
}

fn fields(setting: &Setting) -> Vec<Vec<Field>> {
    let name = &setting.name;
    if let Some(missing) = missing(setting) {
        return vec![row(name, "not-here", ["", "", &missing.why])];
    }
    match setting.steps.as_deref() {
        None | Some([]) => {
            let now = setting.now.value().map_or("", String::as_str);
            vec![row(name, "stands", ["", "", now])]
        }
        Some(steps) => {
            let step = |step: &Step| {
                let before = step.before.as_deref().unwrap_or_default();
                row(name, "would-be", [&step.path.display().to_string(), before, &step.wanted])
            };
            steps.iter().map(step).collect()
        }
    }
}

fn row(setting: &str, state: &str, [path, before, value]: [&str; 3]) -> Vec<Field> {
    [setting, state, path, before, value].map(Field::from).into()
}
