//! A program beside the reference server: both were loaded interleaved, so that what the machine did to both cancels.

use crate::capacity::levels::Accounting;
use tare_model::outcome::TareCause;
use tare_model::plan::{Level, Purpose};
use tare_stats::{Jackknife, jackknife, mean};

/// A program that has nothing to do for more of its CPU time than this is not at saturation.
const NO_WORK_MAX: f64 = 0.05;

/// What a run knows of a request of the program against one of the reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    /// ln of the CPU time of a request of the program at saturation over that of one of the reference, in the same windows.
    pub demand_ln: Jackknife,
    /// ln of the CPU seconds of a request of the reference.
    pub reference_ln: Jackknife,
    /// Whether the asked load leaves the program no time to spare, so that its rate follows the service demand.
    pub is_full: bool,
    /// Whether it is the load of those windows too: with fewer connections a request costs something else.
    pub is_same_load: bool,
}

impl Beside {
    /// `None` where the two were not interleaved, or in one block alone; and where a lock, a full thread or sleeps decide what the program
    /// could do: the ratio of the nets is none of CPU times then.
    pub fn of(accounting: &Accounting) -> Option<Beside> {
        let against = accounting.net_estimate.as_ref().ok()?.against?;
        if !against.corrected || !against.is_of_cpus {
            return None;
        }
        let ratio_ln = against.ratio_ln?;
        let costs_s = accounting.interleaved_costs_s(Purpose::Reference);
        let costs_ln: Vec<f64> = costs_s.into_iter().flatten().map(f64::ln).collect();
        let without = |skip: Option<usize>| {
            let kept = costs_ln.iter().enumerate().filter(|(place, _)| Some(*place) != skip);
            Some(vec![mean(&kept.map(|(_, ln)| *ln).collect::<Vec<_>>())?])
        };
        let reference_ln = jackknife(costs_ln.len(), without)?.into_iter().next()?;
        let sut = accounting.asked.pool.sut.as_ref()?;
        let load = |level: &Level| (level.connections, level.pipeline, level.rate_hz, level.stage);
        let is_full = sut.tare_share(TareCause::NoWork) <= NO_WORK_MAX;
        Some(Beside {
            demand_ln: Jackknife { value: -ratio_ln.value, ..ratio_ln },
            reference_ln,
            is_full,
            is_same_load: is_full
                && accounting.asked_level().map(load) == accounting.saturating_level.map(load),
        })
    }
}
