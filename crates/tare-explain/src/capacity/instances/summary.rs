//! An instance's loss in a line: how busy it still is, how much of its work it still does, and why.

use super::taken::time;
use crate::capacity::efficiency::Seen;
use tare_model::instances::{Taken, TakenBy};
use tare_model::{Missing, Reading};

/// CPU time that differs by less is still the same.
const SAME_CPU: f64 = 0.05;
/// A figure within this of one alone, or of its half, is called so.
const ABOUT: f64 = 0.03;

/// `CPU still 390 %, half the work: IPC 0.58 → 0.29`; `taken` is what took it. Missing where the CPU time is not known.
pub fn summary(alone: &Seen, together: &Seen, taken: &[Taken]) -> Reading<String> {
    let kept = together.x / alone.x;
    let busy = alone.accounting.cpus_busy.zip(together.accounting.cpus_busy);
    let Some((busy_a, busy_t)) = busy.filter(|_| kept.is_finite()) else {
        return Reading::Missing(Missing::new("the CPU time of what was measured is not known"));
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let cpu = match (busy_t / busy_a - 1.0).abs() <= SAME_CPU {
        true => format!("CPU still {}", percent(busy_t)),
        false => format!("CPU {} → {}", percent(busy_a), percent(busy_t)),
    };
    let work = match kept {
        kept if (kept - 0.5).abs() <= ABOUT => "half the work".to_owned(),
        kept if (kept - 1.0).abs() <= ABOUT => "the same work".to_owned(),
        kept => format!("{} of the work", percent(kept)),
    };
    let why = taken.first().map(|first| why(first, alone, together));
    Reading::Measured(match why {
        Some(why) => format!("{cpu}, {work}: {why}"),
        None => format!("{cpu}, {work}"),
    })
}

/// The figure that shows it best.
fn why(first: &Taken, alone: &Seen, together: &Seen) -> String {
    let (before, now) = (&alone.accounting, &together.accounting);
    let costs = before.cpu_s_per_unit.zip(now.cpu_s_per_unit);
    match (first.by, before.ipc.zip(now.ipc), costs) {
        (TakenBy::Memory, Some((ipc_a, ipc_t)), _) => format!("IPC {ipc_a:.2} → {ipc_t:.2}"),
        (TakenBy::Memory | TakenBy::NetworkStack, _, Some((cost_a, cost_t))) => {
            let per = together.counted;
            format!("{}: CPU time of a {per} {} → {}", first.by.words(), time(cost_a), time(cost_t))
        }
        (TakenBy::Clock, ..) => format!("{}: {}", first.by.words(), first.evidence),
        _ => first.by.words().to_owned(),
    }
}
