//! What a role executed, and what each request took of it. Without a PMU, cycles are CPU time × the effective clock, and what needs
//! instructions is missing.

use crate::accounting::{COUNTED_SHARE_MIN, Closed};
use std::collections::BTreeMap;
use tare_model::metric::Descriptor;
use tare_model::metrics::pmu;
use tare_model::observation::Role;
use tare_model::outcome::{CyclesFrom, Execution};
use tare_model::{Missing, Reading};

/// What a role executed in a window, and what each request took of it.
pub(crate) fn of(closed: &Closed, role: Role) -> Execution {
    let events = match role {
        Role::Sut => closed.hardware.sut.as_ref(),
        Role::Load => closed.hardware.load.as_ref(),
        Role::Downstream | Role::Tare | Role::Other => None,
    };
    let Some(events) = events else { return without_pmu(closed, role) };
    let counted = events.counted();
    let per_request = |count: f64| -> Reading<f64> {
        if counted < COUNTED_SHARE_MIN {
            return Reading::missing(format!("only {:.0} % of its run was counted", 100.0 * counted));
        }
        closed.per_request(count / counted).ok_or_else(no_requests).into()
    };
    let core = [&pmu::CYCLES, &pmu::INSTRUCTIONS];
    let of_metric = |metric: &Descriptor| match events.count(metric) {
        Some(count) => per_request(count),
        None => Reading::missing(format!("{} were not counted", metric.id.trim_start_matches("pmu."))),
    };
    let others = events.counts().filter(|(metric, _)| core.iter().all(|core| core.id != *metric));
    let other = |(metric, count): (&str, f64)| {
        let name = metric.trim_start_matches("pmu.").to_owned();
        per_request(count).ok().ok().map(|count| (name, count))
    };
    Execution {
        ipc: events.ipc().ok_or_else(|| Missing::new("cycles and instructions were not both counted")).into(),
        instructions_per_request: of_metric(&pmu::INSTRUCTIONS),
        cycles_per_request: of_metric(&pmu::CYCLES),
        cycles_from: CyclesFrom::Pmu,
        on_pmu: events.on_pmu(),
        events_per_request: others.filter_map(other).collect(),
    }
}

/// Cycles are what is left: run × clock, where the clock of the role's CPUs was measured.
fn without_pmu(closed: &Closed, role: Role) -> Execution {
    let unknown = || Missing::new("no hardware event was counted");
    let reason = || closed.hardware.no_events.clone().unwrap_or_else(unknown);
    let run_s = closed.sut.as_ref().filter(|_| role == Role::Sut).map(|sut| sut.run_s);
    let cycles = match (run_s, closed.clock_hz()) {
        (Some(run_s), Some(clock_hz)) => closed.per_request(run_s * clock_hz).ok_or_else(no_requests),
        (None, _) => Err(Missing::new("the clock is measured on the server's CPUs alone")),
        (_, None) => Err(reason()),
    };
    Execution {
        ipc: Reading::Missing(reason()),
        instructions_per_request: Reading::Missing(reason()),
        cycles_per_request: cycles.into(),
        cycles_from: CyclesFrom::Clock,
        on_pmu: None,
        events_per_request: BTreeMap::new(),
    }
}

fn no_requests() -> Missing {
    Missing::new("the requests could not be counted")
}
