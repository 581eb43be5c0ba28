//! The efficiency that a level lost, divided.

use super::seen::Seen;
use std::collections::BTreeMap;
use tare_model::scaling::LostPart;

/// Less than this is too little to divide: ln of 3 %.
const LOST_LN_MIN: f64 = 0.03;
/// Parts smaller than this share are one together.
const PART_SHARE_MIN: f64 = 0.01;
/// With fewer working threads than CPUs by this much, threads are what is missing.
const THREADS_SHORT: f64 = 0.5;
/// A program that was stopped for this many CPUs has a quota.
const THROTTLED_MIN: f64 = 0.02;
/// and so much of the CPUs that are missing.
const THROTTLED_OF_MISSING: f64 = 0.3;
/// A number of CPUs that is no further from a whole one may be a number of threads.
const WHOLE: f64 = 0.1;
/// Where less of its CPU entitlement than this is needed, CPU time is not what holds it.
const SPARE_MAX: f64 = 0.8;
/// A unit that costs more by this, most of it in the kernel, costs more in the kernel.
const KERNEL_GROWTH_MIN: f64 = 0.5;

/// What took efficiency from `level` in comparison with `lowest`, the largest first; its shares sum to 1. Empty where no efficiency was lost, or
/// less than 3 %.
pub fn lost(lowest: &Seen, level: &Seen) -> Vec<LostPart> {
    let lost_ln = lost_ln(lowest, level);
    if lost_ln.is_none_or(|lost| lost < LOST_LN_MIN) {
        return Vec::new();
    }
    let lost_ln = lost_ln.unwrap_or_default();
    let Some(parts) = divided(lowest, level) else {
        let evidence = "the CPU time of what was measured is not known".to_owned();
        return vec![LostPart { part: "not known".to_owned(), share: 1.0, evidence }];
    };
    let shares = parts.into_iter().map(|part| LostPart { share: part.ln / lost_ln, ..part.named() });
    in_order(shares.collect())
}

/// −ln of the efficiency; `None` where one of the figures is nothing.
pub(super) fn lost_ln(lowest: &Seen, level: &Seen) -> Option<f64> {
    let lost = (level.n / lowest.n).ln() - (level.x / lowest.x).ln();
    lost.is_finite().then_some(lost)
}

/// A part before it is a share.
struct Part {
    name: String,
    ln: f64,
    evidence: String,
}

impl Part {
    fn new(name: &str, ln: f64, evidence: String) -> Part {
        Part { name: name.to_owned(), ln, evidence }
    }

    fn named(&self) -> LostPart {
        LostPart { part: self.name.clone(), share: 0.0, evidence: self.evidence.clone() }
    }
}

/// Largest first, the small ones together.
fn in_order(parts: Vec<LostPart>) -> Vec<LostPart> {
    let (mut parts, small): (Vec<LostPart>, Vec<LostPart>) =
        parts.into_iter().partition(|part| part.share.abs() >= PART_SHARE_MIN);
    parts.sort_by(|one, other| other.share.total_cmp(&one.share));
    let share: f64 = small.iter().map(|part| part.share).sum();
    if !small.is_empty() && share != 0.0 {
        let names: Vec<&str> = small.iter().map(|part| part.part.as_str()).collect();
        parts.push(LostPart { part: "the rest".to_owned(), share, evidence: names.join(", ") });
    }
    parts
}

/// All parts; they sum to −ln of the efficiency. `None` where the CPU time is not known.
fn divided(lowest: &Seen, level: &Seen) -> Option<Vec<Part>> {
    let (busy_1, busy) = (lowest.accounting.cpus_busy?, level.accounting.cpus_busy?);
    let wanted = busy_1 * level.n / lowest.n;
    // Steps of the kernel's counters may make it busy a hair more than it may be.
    let entitled = level.accounting.cpus_entitled.unwrap_or(f64::INFINITY).max(busy);
    if wanted < SPARE_MAX * entitled
        && let Some(parts) = of_time(lowest, level, wanted)
    {
        return Some(parts);
    }
    let usable = wanted.min(entitled);
    let mut parts = vec![beyond(level, wanted, usable)];
    parts.extend(kept_off(lowest, level, wanted, usable));
    parts.extend(cost(lowest, level)?);
    parts.iter().all(|part| part.ln.is_finite()).then_some(parts)
}

/// Where CPUs are to spare: all that is lost, divided by how much time each took, the CPU time that a unit needs more among it. A unit that
/// needs less does not make up for a lock there. `None` where no time is known.
fn of_time(lowest: &Seen, level: &Seen, wanted: f64) -> Option<Vec<Part>> {
    let ln = lost_ln(lowest, level)?;
    let (cost_1, cost) = (lowest.accounting.cpu_s_per_unit?, level.accounting.cpu_s_per_unit?);
    let more_cpus = ((cost - cost_1) * level.x).max(0.0);
    let weights = beyond_own(lowest, level, wanted);
    let sum = more_cpus + weights.values().sum::<f64>();
    if sum <= 0.0 {
        return None;
    }
    let part = |(loss, cpus): (&str, f64)| waited(loss, cpus, ln * cpus / sum, level);
    let mut parts: Vec<Part> = weights.into_iter().filter(|(_, cpus)| *cpus > 0.0).map(part).collect();
    if more_cpus > 0.0 {
        let evidence = format!("{more_cpus:.2} CPUs: {}", grew(cost_1, cost, level));
        parts.push(unsplit_cost(lowest, level, ln * more_cpus / sum, evidence));
    }
    Some(parts)
}

/// ln(B/U): CPUs that it would need beyond those that it may use.
fn beyond(level: &Seen, wanted: f64, usable: f64) -> Part {
    let ln = (wanted / usable).ln();
    let few = level.cpus_there.is_some_and(|there| usable + THREADS_SHORT <= there);
    // A short stop is no reason for CPUs that are missing all the time.
    let missing = level.cpus_there.map_or(0.0, |there| wanted.min(there) - usable);
    let least = THROTTLED_MIN.max(THROTTLED_OF_MISSING * missing);
    let throttled = level.accounting.cpus_throttled.is_some_and(|cpus| cpus >= least);
    // Threads are whole: a part of one is a quota, or launches that differ.
    let is_whole = (usable - usable.round()).abs() <= WHOLE;
    let (name, why) = match few {
        true if throttled => (
            "held back by a CPU quota",
            format!("it may use {usable:.2} CPUs at once, and a quota stopped it"),
        ),
        true if !is_whole => (
            "a CPU quota, or too few threads at work",
            format!(
                "it can use {usable:.2} CPUs at once, of the {:.0} that it may run on",
                level.cpus_there.unwrap_or_default()
            ),
        ),
        true => (
            "too few threads at work",
            format!(
                "its working threads can use {usable:.2} CPUs at once, of the {:.0} that it may run on",
                level.cpus_there.unwrap_or_default()
            ),
        ),
        false => ("no more CPUs to use", format!("it may use {usable:.2} CPUs")),
    };
    Part::new(name, ln, format!("{why}; in proportion to the lowest level it would need {wanted:.2}"))
}

/// ln(U/b), divided among what kept it off CPUs that it may use.
fn kept_off(lowest: &Seen, level: &Seen, wanted: f64, usable: f64) -> Vec<Part> {
    let busy = level.accounting.cpus_busy.unwrap_or(usable);
    let ln = (usable / busy).ln();
    if ln <= 0.0 {
        let evidence = format!("it ran on {busy:.2} CPUs, in proportion it would be {wanted:.2}");
        return vec![Part::new("more CPUs at work", ln, evidence)];
    }
    let weights = weights(lowest, level, wanted);
    let sum: f64 = weights.values().sum();
    if sum <= 0.0 {
        let evidence =
            format!("it ran on {busy:.2} of {usable:.2} CPUs, and what it waited for is not known");
        return vec![Part::new("CPUs left idle, not known why", ln, evidence)];
    }
    let part = |(loss, cpus): (&str, f64)| waited(loss, cpus, ln * cpus / sum, level);
    weights.into_iter().filter(|(_, cpus)| *cpus > 0.0).map(part).collect()
}

/// A loss as a part.
fn waited(loss: &str, cpus: f64, ln: f64, level: &Seen) -> Part {
    let (name, what) = words(loss, level);
    Part::new(name, ln, format!("{cpus:.2} CPUs: {what}"))
}

/// CPUs of each loss: those beyond what it has to be at this level, or where none is, all.
fn weights<'a>(lowest: &Seen, level: &'a Seen, wanted: f64) -> BTreeMap<&'a str, f64> {
    let beyond = beyond_own(lowest, level, wanted);
    match beyond.values().sum::<f64>() > 0.0 {
        true => beyond,
        false => level.losses_cpus.iter().map(|(loss, cpus)| (loss.as_str(), cpus.max(0.0))).collect(),
    }
}

/// CPUs of each loss that are more than it has to be at this level: what it sleeps for each unit of work at the lowest level too, and CPUs
/// that are idle since fewer than all are needed, hold nothing back.
fn beyond_own<'a>(lowest: &Seen, level: &'a Seen, wanted: f64) -> BTreeMap<&'a str, f64> {
    let entitled = level.accounting.cpus_entitled.unwrap_or(wanted);
    let spare = (entitled - wanted).max(0.0);
    let grown = level.x / lowest.x;
    let own = |loss: &str| match loss {
        "no-work" => spare,
        loss if is_sleep(loss) => lowest.losses_cpus.get(loss).copied().unwrap_or(0.0) * grown,
        _ => 0.0,
    };
    let beyond = |(loss, cpus): (&'a String, &f64)| (loss.as_str(), (cpus - own(loss)).max(0.0));
    level.losses_cpus.iter().map(beyond).collect()
}

/// Whether it is the program's own sleep.
fn is_sleep(loss: &str) -> bool {
    ["lock", "disk", "downstream", "downstream-cpu", "timer", "fault"].contains(&loss)
}

/// What a loss is called, and what it was.
fn words(loss: &str, level: &Seen) -> (&'static str, String) {
    let (name, what) = match loss {
        "throttled" => ("held back by a CPU quota", "a quota stopped it"),
        "preempted" => ("waiting for CPUs that others use", "other programs ran there while it was ready"),
        "placement" if level.counted != "request" => {
            ("waiting for CPUs that tare uses", "tare's own threads ran there while it was ready")
        }
        "placement" => {
            ("waiting for CPUs that the load generator uses", "the generator ran there while it was ready")
        }
        "steal" => ("CPUs taken by the host", "the host of this VM ran others"),
        "irq" => ("interrupts", "interrupts ran there"),
        "scheduler" => ("late on a free CPU", "the CPU was free while a thread was ready"),
        "self-contention" => {
            ("its own threads on one CPU", "its threads waited for each other with CPUs free elsewhere")
        }
        "lock" => ("waiting for locks", "its working threads waited for locks"),
        "disk" => ("waiting for the disk", "its working threads waited for the disk"),
        "downstream" | "downstream-cpu" => {
            ("waiting for programs that it calls", "its working threads waited for them")
        }
        "timer" => ("sleeping in a timer", "its working threads slept by themselves"),
        "fault" => ("waiting for memory pages", "its working threads waited for pages of memory"),
        "no-work" if level.generator_limits => {
            let cpus = level.accounting.generator_cpus;
            let ran = cpus.map_or(String::new(), |cpus| format!(", which ran on {cpus:.2} CPUs"));
            return (
                "the load generator gave no more",
                format!("idle, and the bottleneck is the generator{ran}"),
            );
        }
        "no-work" if level.counted != "request" => {
            ("no thread ready", "idle: its threads waited for each other, or had ended")
        }
        "no-work" => ("nothing to do", "idle, its threads waited for work"),
        _ => ("waiting for something else", "its working threads waited"),
    };
    (name, what.to_owned())
}

/// ln(C/C₁): what a unit of work costs more. With IPC by instructions, IPC and clock, else by cycles and clock.
fn cost(lowest: &Seen, level: &Seen) -> Option<Vec<Part>> {
    let (before, now) = (&lowest.accounting, &level.accounting);
    let (cost_1, cost) = (before.cpu_s_per_unit?, now.cpu_s_per_unit?);
    let ln = (cost / cost_1).ln();
    let grew = grew(cost_1, cost, level);
    let clocks = before.clock_hz.zip(now.clock_hz);
    let clock_ln = clocks.map_or(0.0, |(clock_1, clock)| (clock_1 / clock).ln());
    let clock = clocks.map(|(clock_1, clock)| {
        let evidence = format!("{:.2} GHz instead of {:.2} GHz", clock / 1e9, clock_1 / 1e9);
        Part::new("the clock", clock_ln, evidence)
    });
    let mut parts: Vec<Part> = clock.into_iter().collect();
    match before.ipc.zip(now.ipc) {
        Some((ipc_1, ipc)) => {
            let ipc_ln = (ipc_1 / ipc).ln();
            let evidence = format!("{ipc:.2} instructions in a cycle instead of {ipc_1:.2}; {grew}");
            parts.push(Part::new("memory, caches or shared cores (IPC)", ipc_ln, evidence));
            parts.push(Part::new("more instructions", ln - clock_ln - ipc_ln, grew));
        }
        None => parts.push(unsplit_cost(lowest, level, ln - clock_ln, grew)),
    }
    Some(parts)
}

fn grew(cost_1: f64, cost: f64, level: &Seen) -> String {
    format!("{} instead of {} of CPU time for a {}", time(cost), time(cost_1), level.counted)
}

/// The cost without a PMU: of a program the kernel's part can be known, and nothing beyond that.
fn unsplit_cost(lowest: &Seen, level: &Seen, ln: f64, grew: String) -> Part {
    // Of a growth that is next to none no share can be taken.
    let costs = lowest.accounting.cpu_s_per_unit.zip(level.accounting.cpu_s_per_unit);
    let costs = costs.filter(|(cost_1, cost)| *cost > 1.01 * *cost_1);
    let kernel = lowest.kernel_share.zip(level.kernel_share);
    let of_kernel = costs
        .zip(kernel)
        .map(|((cost_1, cost), (share_1, share))| (cost * share - cost_1 * share_1) / (cost - cost_1));
    match of_kernel {
        _ if ln <= 0.0 => Part::new(&format!("CPU time of a {}", level.counted), ln, grew),
        Some(share) if share >= KERNEL_GROWTH_MIN => Part::new(
            "more CPU time in the kernel",
            ln,
            format!("{grew}, {:.0} % of the growth in the kernel", 100.0 * share.min(1.0)),
        ),
        Some(_) => {
            let evidence = format!("{grew}, in its own code; which of the two is not measured: no PMU");
            Part::new("memory and caches, or more instructions", ln, evidence)
        }
        None => Part::new(
            &format!("CPU time of a {}", level.counted),
            ln,
            format!("{grew}; why is not measured: no PMU"),
        ),
    }
}

/// A time in a unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", 1e3 * s),
        s => format!("{:.2} µs", 1e6 * s),
    }
}
