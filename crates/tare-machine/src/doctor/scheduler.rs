//! How threads take turns, and how late they wake up.

use super::draft::{Draft, Examined, Topic, each, note, ok, several, unknown, warn};
use super::words::{percent, time};
use tare_model::check::Area;
use tare_model::probes::{Policy, Probes, Wakeup};
use tare_model::survey::{Discipline, Survey};
use tare_model::{CpuSet, Reading};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Scheduler,
    ids: &[
        "tick",
        "base-slice",
        "preemption",
        "sched-ext",
        "autogroup",
        "isolated",
        "nohz-full",
        "wait-times",
        "wake-up",
        "switch",
    ],
    look,
};

/// Threads on one CPU in the example that the tick's check computes.
const EXAMPLE_THREADS: u32 = 8;
/// Ticks below this make turns of 10 ms.
const SLOW_HZ: u32 = 200;
/// Later wake-ups than this show in anybody's p99.
const LATE_NS: f64 = 100_000.0;

fn look(examined: &Examined) -> Vec<Draft> {
    let survey = examined.survey;
    let mut drafts = each("tick", &survey.machine.tick_hz, |hz| tick(*hz, survey));
    if let Reading::Missing(missing) = &survey.machine.base_slice_ns {
        drafts.push(
            unknown("base-slice", missing)
                .effect("how long a thread keeps its CPU is then known to the tick only"),
        );
    }
    drafts.extend(each("preemption", &survey.scheduler.preemption, |model| preemption(model)));
    if let Some(name) = survey.scheduler.sched_ext.value() {
        drafts.push(
            warn("sched-ext", format!("a scheduler that was loaded as a program ({name}) has taken over from the kernel's own"))
                .effect("who runs where and for how long is its affair: base slice, weights and quotas may mean nothing")
                .fix("stop its service, or measure with it and say so"),
        );
    }
    if survey.scheduler.autogroup.value() == Some(&true) {
        drafts.push(
            note("autogroup", "each session counts as one against the others (sched_autogroup)")
                .effect("server and generator from two terminals share a CPU half and half, whatever their threads and nice values")
                .fix("sysctl kernel.sched_autogroup_enabled=0"),
        );
    }
    drafts.extend(apart(
        "isolated",
        "isolated",
        &examined.topology.isolated,
        "threads on them stay where they were put: spread a server by hand",
    ));
    drafts.extend(apart(
        "nohz-full",
        "without a tick",
        &examined.topology.nohz_full,
        "good for one thread each; system calls there cost more",
    ));
    drafts.extend(each("wait-times", &survey.scheduler.schedstats, |on| match on {
        true => ok("wait-times", "the kernel tells how long threads wait for a CPU"),
        false => warn(
            "wait-times",
            "the kernel does not count waits for a CPU (/proc/PID/schedstat holds zeros)",
        )
        .effect("the accounting of a run does not close: preempted, throttled and idle (no work) cannot be distinguished")
        .fix("a kernel with CONFIG_SCHED_INFO"),
    }));
    drafts.extend(examined.probes.map_or_else(Vec::new, probed));
    drafts
}

/// A thread's turn: whole ticks that cover its slice; then the next has its own.
fn turn_ns(hz: u32, slice_ns: Option<u64>) -> u64 {
    let tick_ns = 1_000_000_000 / u64::from(hz.max(1));
    slice_ns.unwrap_or(tick_ns).div_ceil(tick_ns).max(1).saturating_mul(tick_ns)
}

fn tick(hz: u32, survey: &Survey) -> Draft {
    let slice_ns = survey.machine.base_slice_ns.value().copied();
    let turn = turn_ns(hz, slice_ns);
    let wait = turn.saturating_mul(u64::from(EXAMPLE_THREADS - 1));
    let kind = match survey.scheduler.discipline.value() {
        Some(Discipline::Cfs) => ", CFS",
        Some(Discipline::Eevdf) => ", EEVDF",
        None => "",
    };
    let slice = slice_ns.map_or_else(String::new, |ns| format!(", slice {}", time(ns as f64)));
    let found = format!("HZ={hz}{kind}{slice}");
    let effect = format!(
        "{EXAMPLE_THREADS} busy threads on one CPU: each waits {} {} for its turn ({} turns of {})",
        if slice_ns.is_some() { "up to" } else { "about" },
        time(wait as f64),
        EXAMPLE_THREADS - 1,
        time(turn as f64)
    );
    let draft = if hz < SLOW_HZ { warn("tick", found) } else { note("tick", found) };
    draft.effect(effect).fix("no more busy threads than CPUs").setting("base-slice")
}

fn preemption(model: &str) -> Draft {
    let found = format!("preemption: {model}");
    match model {
        "rt" => note("preemption", found)
            .effect("interrupts are threads and locks may sleep: throughput is lower than on a server's kernel, p99 tighter"),
        "full" => note("preemption", found)
            .effect("a thread that wakes may interrupt one in the kernel: a few per cent of throughput for shorter waits")
            .fix("preempt=none or lazy on the kernel's command line, as servers have it"),
        _ => ok("preemption", found),
    }
}

fn apart(id: &str, what: &str, cpus: &Reading<CpuSet>, effect: &str) -> Option<Draft> {
    let cpus = cpus.value().filter(|cpus| !cpus.is_empty())?;
    Some(note(id, format!("CPUs {cpus} are {what}")).effect(effect))
}

fn probed(probes: &Probes) -> Vec<Draft> {
    let mut drafts = several("wake-up", &probes.wakeup.found, |wakeups| wake_up(wakeups));
    drafts.extend(each("switch", &probes.switch.found, |handover| {
        let cross =
            probes.cross_wakeup.found.value().map_or_else(String::new, |cross| {
                format!(", {} to another CPU", time(cross.handover_ns.median))
            });
        let found = format!(
            "a switch between two threads takes {}, a hand-over {}{cross}",
            time(handover.switch_ns),
            time(handover.handover_ns.median)
        );
        ok("switch", found)
    }));
    drafts
}

/// As servers are scheduled; real-time settings are there to compare with other tools.
fn wake_up(wakeups: &[Wakeup]) -> Vec<Draft> {
    let Some(wakeup) = wakeups.iter().find(|wakeup| wakeup.setting.policy == Policy::Other) else {
        return Vec::new();
    };
    each("wake-up", &wakeup.late, |late| {
        let latency = late.latency;
        let found = format!(
            "a sleeping thread wakes up {} late (p99 {}, at most {})",
            time(latency.p50_ns),
            time(latency.p99_ns),
            time(latency.max_ns)
        );
        if latency.p99_ns <= LATE_NS {
            return ok("wake-up", found);
        }
        let share = percent((latency.p99_ns / 1e6).min(1.0));
        note("wake-up", found)
            .effect(format!(
                "at low load this is in every latency: of a p99 of 1 ms up to {share} is the machine's"
            ))
            .fix("compare latencies at a load that keeps the CPUs awake; --busy-poll for the generator")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_whole_ticks() {
        assert_eq!(turn_ns(100, None), 10_000_000);
        assert_eq!(turn_ns(100, Some(3_000_000)), 10_000_000);
        assert_eq!(turn_ns(1000, Some(2_800_000)), 3_000_000);
        assert_eq!(turn_ns(250, Some(4_000_001)), 8_000_000);
        assert_eq!(turn_ns(0, Some(0)), 1_000_000_000);
    }
}
