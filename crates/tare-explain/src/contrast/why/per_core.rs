//! Two machines, core by core: what one busy CPU does in a second. By the iron law X / b = f · IPC / I, so that its difference is the sum of
//! the parts that are not CPU time.

use super::split::Split;
use tare_model::why::{Change, Part};

/// The rate over the CPUs that were busy; `None` where no CPU was.
pub(super) fn per_core(split: &Split, parts: &[Part], unit: &str) -> Option<Change> {
    let [from, to] = [split.from_hz / split.busy[0], split.to_hz / split.busy[1]];
    let ends =
        parts.iter().filter(|part| part.is_per_core()).map(|part| part.ci95).collect::<Option<Vec<_>>>();
    let ln = (to / from).ln();
    ln.is_finite().then(|| Change {
        from,
        to,
        unit: unit.to_owned(),
        ln,
        ci95: ends.filter(|ends| !ends.is_empty()).map(|ends| {
            ends.iter()
                .fold([0.0, 0.0], |[low, high], [part_low, part_high]| [low + part_low, high + part_high])
        }),
    })
}
