//! The scheduler: how long a thread runs before the next one may run, and between whom CPU time is shared.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::root::Root;
use crate::value::{self, Step};
use tare_model::Missing;

/// Where the slice is, newest kernels first, and the period that has to grow with it where there is one.
const SLICES: [(&str, Option<&str>); 3] = [
    ("/sys/kernel/debug/sched/base_slice_ns", None),
    ("/sys/kernel/debug/sched/min_granularity_ns", Some("/sys/kernel/debug/sched/latency_ns")),
    ("/proc/sys/kernel/sched_min_granularity_ns", Some("/proc/sys/kernel/sched_latency_ns")),
];

/// What the kernel takes: 0.1 ms to 1 s.
const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=1_000_000_000;

/// The shortest time on a CPU.
#[derive(Debug)]
pub(super) struct BaseSlice;

fn found(root: &Root) -> Result<(&'static str, Option<&'static str>, u64), Missing> {
    let there = SLICES.into_iter().find(|(path, _)| root.exists(path));
    let Some((path, period)) = there else {
        return Err(Missing::with_remedy(
            format!("{} is not there", SLICES[0].0),
            "mount -t debugfs none /sys/kernel/debug (the kernel needs CONFIG_SCHED_DEBUG)",
        ));
    };
    let slice_ns = value::number(root, path).map_err(|missing| {
        Missing::with_remedy(
            missing.why,
            "needs root; a kernel that is locked down (secure boot) keeps debugfs shut",
        )
    })?;
    if SLICE_NS.contains(&slice_ns) {
        Ok((path, period, slice_ns))
    } else {
        Err(Missing::new(format!("{path} holds {slice_ns}")))
    }
}

impl Setting for BaseSlice {
    fn name(&self) -> &'static str {
        "base-slice"
    }

    fn about(&self) -> &'static str {
        "shortest time on a CPU before another thread may run; longer: fewer switches, longer waits"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        found(root).map(|(_, _, slice_ns)| format!("{} ms", slice_ns as f64 / 1e6))
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let wanted_ns = wanted.base_slice_ns?;
        Some(found(root).and_then(|(path, period, slice_ns)| {
            if !SLICE_NS.contains(&wanted_ns) {
                return Err(Missing::new("a slice is between 0.1 ms and 1 s"));
            }
            let slice = Step::change(path, slice_ns.to_string(), wanted_ns.to_string());
            let Some(period) = period else { return Ok(Change::of([slice])) };
            // Below the period over the number of runnable threads the slice would not be felt.
            let period_ns = value::number(root, period)?;
            let scaled = u128::from(period_ns) * u128::from(wanted_ns) / u128::from(slice_ns);
            let scaled = scaled.clamp(u128::from(*SLICE_NS.start()), u128::from(*SLICE_NS.end()));
            Ok(Change::of([Step::change(period, period_ns.to_string(), scaled.to_string()), slice]))
        }))
    }
}

/// Whether sessions share CPU time, and not threads.
#[derive(Debug)]
pub(super) struct Autogroup;

const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";

impl Setting for Autogroup {
    fn name(&self) -> &'static str {
        "autogroup"
    }

    fn about(&self) -> &'static str {
        "CPU time is shared between sessions (setsid), not between threads; no effect on a program in a control group of its own"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        if !root.exists(AUTOGROUP) {
            return Err(Missing::with_remedy(
                format!("{AUTOGROUP} is not there"),
                "the kernel needs CONFIG_SCHED_AUTOGROUP",
            ));
        }
        match value::number(root, AUTOGROUP)? {
            0 => Ok("off".to_owned()),
            1 => Ok("on".to_owned()),
            other => Err(Missing::new(format!("{AUTOGROUP} holds {other}"))),
        }
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let on = wanted.autogroup?;
        Some(self.now(root).and_then(|_| {
            let before = value::read(root, AUTOGROUP)?;
            Ok(Change::of([Step::change(AUTOGROUP, before, if on { "1" } else { "0" })]))
        }))
    }
}
