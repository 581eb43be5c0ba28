//! Record and outcome to terminal, HTML, Markdown, CSV and JSON.
//!
//! ```text
//! (Record, Outcome) ──▶ sections ──▶ blocks ──▶ a renderer ──▶ String
//! ```
//!
//! A section picks figures and puts them into words; a renderer lays blocks out for its medium. Renderers never
//! compute a figure, sections never know the medium, and neither reads a file or prints.
//!
//! To add a section: its file in `sections/` and one line in [`sections`]' registry.
//!
//! ```
//! use tare_model::{Record, outcome::Outcome};
//!
//! fn shown(record: &Record, outcome: &Outcome, is_terminal: bool, width: usize) -> String {
//!     let style = tare_report::Style { color: is_terminal, width, unicode: true };
//!     tare_report::terminal(record, outcome, style)
//! }
//! ```

mod block;
pub mod calibration;
pub mod cause_page;
pub mod ceiling;
pub mod comparison;
pub mod doctor;
mod figures;
pub mod flame;
mod format;
pub mod gate;
pub mod load;
mod metric_changes;
mod plot;
pub mod probing;
mod render;
mod report;
mod roofline;
pub mod scaling;
mod sections;
mod series;
mod stages;
pub mod steady;
pub mod study;
pub mod tool;
pub mod tool_comparison;
pub mod topology;
pub mod tune;
pub mod why;
mod words;
pub mod zoo;

use sections::{Medium, Source};
use tare_model::Record;
use tare_model::outcome::Outcome;

pub use render::terminal::Style;
pub use report::Report;

/// The result for a terminal: the bottleneck in one sentence first, then gross, tare and net, then the accounting.
pub fn terminal(record: &Record, outcome: &Outcome, style: Style) -> String {
    render::terminal::render(&sections::build(&Source { record, outcome }, Medium::Terminal), style)
}

/// What was run, and when, in one line.
pub fn origin(record: &Record) -> String {
    sections::origin(record)
}

/// The result in Markdown: for http the measuring and the trials, for commands the table that hyperfine's users
/// know.
pub fn markdown(record: &Record, outcome: &Outcome) -> String {
    render::markdown::render(&sections::build(&Source { record, outcome }, Medium::Markdown))
}

/// The result as one HTML page that needs nothing but itself: no network, no fonts, no scripts.
pub fn html(record: &Record, outcome: &Outcome) -> String {
    render::html::render(&sections::build(&Source { record, outcome }, Medium::Page))
}

/// The result as CSV: for http one row per trial, then gross and net; for commands the columns of hyperfine's
/// export (seconds).
pub fn csv(outcome: &Outcome) -> String {
    render::csv::render(outcome)
}

/// The result as the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(outcome: &Outcome) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(outcome)
}
