//! Where the host had the two CPUs when a cell was measured.
//!
//! A request passes cache lines between server and generator. What that costs is the same time for both servers, so that it changes
//! their ratio: a host that moves the CPUs of its guest to other cores makes another machine of it.

use crate::cell::Cell;
use tare_stats::median;

/// So many times as far or as near is another place.
const ELSEWHERE: f64 = 2.0;
/// Fewer cells do not tell which place is the usual one.
const CELLS_MIN: usize = 6;

/// Whether a cell was measured with the CPUs where they are for most of `cells`; one that does not tell counts as that.
pub fn is_usual(cell: &Cell, cells: &[Cell]) -> bool {
    let known: Vec<f64> = cells.iter().filter_map(|cell| cell.transfer_ns).collect();
    let usual_ns = median(&known).filter(|_| known.len() >= CELLS_MIN);
    let Some((usual_ns, ns)) = usual_ns.zip(cell.transfer_ns) else { return true };
    ns < ELSEWHERE * usual_ns && usual_ns < ELSEWHERE * ns
}
