//! Two machines, core by core.

use super::table::{self, is_clear};
use crate::format::with_unit;
use tare_model::why::{Change, Part, Why};

/// `B is 1.8 × slower per core (…): clock 1.2 × slower, ipc 1.5 × slower.`
pub(super) fn sentence(change: &Change, why: &Why) -> String {
    let unit = format!("{} of a busy CPU", change.unit);
    let figures = format!("{} after {}", with_unit(change.to, &change.unit), with_unit(change.from, &unit));
    let shown = match change.ci95 {
        Some(ci95) if !is_clear(ci95) => ", which trials alone may differ by",
        _ => "",
    };
    let parts = why.parts.value().into_iter().flatten().filter(|part| part.is_per_core());
    let parts: Vec<String> = parts.map(part).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("Per core B is {} ({figures}){shown}{parts}.", times(change.ln))
}

fn part(part: &Part) -> String {
    let is_shown = part.ci95.is_none_or(is_clear);
    let by = if is_shown { times(part.ln) } else { "shows no difference".to_owned() };
    format!("{} ({}) {by}", part.id, table::meaning(&part.id))
}

/// `1.8 × slower`, `1.2 × faster`; as fast up to a half percent.
fn times(ln: f64) -> String {
    let factor = ln.abs().exp();
    match (factor < 1.005, ln < 0.0) {
        (true, _) => "as fast".to_owned(),
        (false, true) => format!("{factor:.2} × slower"),
        (false, false) => format!("{factor:.2} × faster"),
    }
}
