//! What took efficiency from an instance, divided.

use crate::capacity::efficiency::Seen;
use std::collections::BTreeMap;
use tare_model::instances::{Taken, TakenBy};

/// Less than this is too little to divide: ln of 3 %.
const LOST_LN_MIN: f64 = 0.03;
/// Parts smaller than this share are not listed for themselves.
const SHARE_MIN: f64 = 0.01;
/// Own code that is a smaller share of the CPU time than this says nothing of how much slower memory is.
const OWN_CODE_MIN: f64 = 0.05;
/// A wait for a CPU that grows by more than this share of the busy CPUs may have cost more than time: caches are cold afterwards, and threads
/// may have spun meanwhile.
const WAITS: f64 = 0.1;

/// Who else uses an instance's CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// Other instances run on the same CPUs.
    pub shares_cpus: bool,
    /// Other instances run on SMT siblings of its CPUs.
    pub shares_cores: bool,
}

/// What took efficiency from an instance when the others ran too, the largest first; the shares sum to 1. Empty where it lost less than 3 %, or
/// a figure is nothing.
pub fn taken(alone: &Seen, together: &Seen, beside: Beside) -> Vec<Taken> {
    let ln = (alone.x / together.x).ln();
    if !ln.is_finite() || ln < LOST_LN_MIN {
        return Vec::new();
    }
    let Some(parts) = parts(alone, together, beside) else {
        let evidence = "the CPU time of what was measured is not known".to_owned();
        return vec![Taken { by: TakenBy::NotExplained, share: 1.0, evidence }];
    };
    in_order(parts, ln)
}

/// A part before it is a share.
struct Part {
    by: TakenBy,
    ln: f64,
    evidence: String,
}

fn part(by: TakenBy, ln: f64, evidence: String) -> Part {
    Part { by, ln, evidence }
}

/// One for each cause, the largest first; the small ones are in what is not explained.
fn in_order(parts: Vec<Part>, whole_ln: f64) -> Vec<Taken> {
    let mut all: Vec<Taken> = Vec::new();
    let mut small = 0.0;
    for Part { by, ln, evidence } in parts {
        let share = ln / whole_ln;
        match all.iter_mut().find(|taken| taken.by == by) {
            _ if share == 0.0 => {}
            _ if share.abs() < SHARE_MIN => small += share,
            Some(taken) => {
                taken.share += share;
                taken.evidence = format!("{}; {evidence}", taken.evidence);
            }
            None => all.push(Taken { by, share, evidence }),
        }
    }
    match all.iter_mut().find(|taken| taken.by == TakenBy::NotExplained) {
        Some(taken) => taken.share += small,
        None if small != 0.0 => {
            let evidence = "parts below 1 %".to_owned();
            all.push(Taken { by: TakenBy::NotExplained, share: small, evidence });
        }
        None => {}
    }
    all.sort_by(|one, other| other.share.total_cmp(&one.share));
    all
}

/// All parts; they sum to ln(alone/together). `None` where the CPU time is not known.
fn parts(alone: &Seen, together: &Seen, beside: Beside) -> Option<Vec<Part>> {
    let (busy_a, busy_t) = (alone.accounting.cpus_busy?, together.accounting.cpus_busy?);
    let (cost_a, cost_t) = (alone.accounting.cpu_s_per_unit?, together.accounting.cpu_s_per_unit?);
    let mut parts = off_cpus(alone, together, busy_a, busy_t);
    parts.extend(cost(alone, together, [cost_a, cost_t], beside));
    parts.iter().all(|part| part.ln.is_finite()).then_some(parts)
}

/// ln(b_a/b_t), divided among the waits that grew. CPUs that no wait grew by are not explained: a small wait is no reason for a large loss.
fn off_cpus(alone: &Seen, together: &Seen, busy_a: f64, busy_t: f64) -> Vec<Part> {
    let ln = (busy_a / busy_t).ln();
    if ln <= 0.0 {
        let evidence = format!("it ran on {busy_t:.2} CPUs instead of {busy_a:.2}");
        return vec![part(TakenBy::Program, ln, evidence)];
    }
    let mut grown: BTreeMap<&'static str, (TakenBy, f64)> = BTreeMap::new();
    for (loss, cpus) in &together.losses_cpus {
        let before = alone.losses_cpus.get(loss).copied().unwrap_or(0.0);
        let more = cpus - before;
        let Some((by, words)) = named(loss, together).filter(|_| more > 0.0) else { continue };
        grown.entry(words).or_insert((by, 0.0)).1 += more;
    }
    let seen: f64 = grown.values().map(|(_, cpus)| cpus).sum();
    let whole = seen.max(busy_a - busy_t);
    let each = |(words, (by, cpus)): (&str, (TakenBy, f64))| {
        part(by, ln * cpus / whole, format!("{cpus:.2} CPUs more: {words}"))
    };
    let mut parts: Vec<Part> = grown.into_iter().map(each).collect();
    let unseen = whole - seen;
    if unseen > 0.0 {
        let idle = more_idle(alone, together);
        let evidence = format!(
            "it ran on {busy_t:.2} CPUs instead of {busy_a:.2}, and {unseen:.2} of them are in no wait that was seen{idle}"
        );
        parts.push(part(TakenBy::NotExplained, ln * unseen / whole, evidence));
    }
    parts
}

fn more_idle(alone: &Seen, together: &Seen) -> &'static str {
    let idle = |seen: &Seen| seen.losses_cpus.get("no-work").copied().unwrap_or(0.0);
    match idle(together) > idle(alone) {
        true if together.counted == "request" => ": its threads waited for requests",
        true => ": no thread of it was ready",
        false => "",
    }
}

/// Whose a wait is, and what it was. Idle CPUs are the generator's where that is the bottleneck, and nobody's otherwise.
fn named(loss: &str, together: &Seen) -> Option<(TakenBy, &'static str)> {
    Some(match loss {
        "throttled" => (TakenBy::Quota, "a quota stopped it"),
        "preempted" => (TakenBy::Cpu, "others ran there while it was ready"),
        "placement" if together.counted != "request" => {
            (TakenBy::Cpu, "threads of tare ran there while it was ready")
        }
        "placement" => (TakenBy::Generator, "its own load generator ran there while it was ready"),
        "steal" => (TakenBy::Host, "the host ran others"),
        "irq" => (TakenBy::NetworkStack, "interrupts ran there"),
        "scheduler" => (TakenBy::Cpu, "a thread was ready, and the scheduler was late to start it"),
        "self-contention" => (TakenBy::Program, "its own threads waited for each other's CPU"),
        "lock" => (TakenBy::Program, "its threads waited for locks"),
        "timer" => (TakenBy::Program, "its threads slept by themselves"),
        "disk" => (TakenBy::Disk, "its threads waited for the disk"),
        "fault" => (TakenBy::Disk, "its threads waited for pages of memory"),
        "downstream" | "downstream-cpu" => {
            (TakenBy::Downstream, "its threads waited for programs that it calls")
        }
        "no-work" if together.generator_limits => {
            (TakenBy::Generator, "idle, and its load generator is the bottleneck")
        }
        _ => return None,
    })
}

/// ln(C_t/C_a): what a unit of work costs more.
fn cost(alone: &Seen, together: &Seen, [cost_a, cost_t]: [f64; 2], beside: Beside) -> Vec<Part> {
    let (before, now) = (&alone.accounting, &together.accounting);
    let clocks = before.clock_hz.zip(now.clock_hz);
    let clock_ln = clocks.map_or(0.0, |(clock_a, clock_t)| (clock_a / clock_t).ln());
    let ln = (cost_t / cost_a).ln() - clock_ln;
    let grew = grew(cost_a, cost_t, together.counted);
    let clock = clocks.map(|(clock_a, clock_t)| {
        let evidence = format!("{:.2} GHz instead of {:.2} GHz", clock_t / 1e9, clock_a / 1e9);
        part(TakenBy::Clock, clock_ln, evidence)
    });
    let mut parts: Vec<Part> = clock.into_iter().collect();
    // Who spins or polls executes more instructions, in its own code or in the kernel, and at another IPC: then none of these says anything.
    if let Some(doubt) = doubt(alone, together).filter(|_| ln > 0.0) {
        let evidence = format!("{grew}; it is not known whether {doubt}");
        parts.push(part(TakenBy::NotExplained, ln, evidence));
        return parts;
    }
    match before.ipc.zip(now.ipc) {
        Some((ipc_a, ipc_t)) => {
            let ipc_ln = (ipc_a / ipc_t).ln();
            let evidence = format!(
                "{ipc_t:.2} instructions in a cycle instead of {ipc_a:.2}: {grew}{}",
                neighbours(beside)
            );
            parts.push(part(TakenBy::Memory, ipc_ln, evidence));
            parts.extend(code(alone, together, [cost_a, cost_t], ln - ipc_ln, true, beside));
        }
        None => parts.extend(code(alone, together, [cost_a, cost_t], ln, false, beside)),
    }
    parts
}

/// What is left, by where the CPU time grew: in the program's own code or in the kernel. With a PMU it is instructions, else time.
fn code(
    alone: &Seen,
    together: &Seen,
    [cost_a, cost_t]: [f64; 2],
    ln: f64,
    is_instructions: bool,
    beside: Beside,
) -> Vec<Part> {
    let grew = grew(cost_a, cost_t, together.counted);
    if ln <= 0.0 {
        return vec![part(TakenBy::Program, ln, grew)];
    }
    let Some((kernel_a, kernel_t)) = alone.kernel_share.zip(together.kernel_share) else {
        let by = if is_instructions { TakenBy::Program } else { TakenBy::NotExplained };
        let why =
            if is_instructions { "more instructions" } else { "neither IPC nor the kernel's part is known" };
        return vec![part(by, ln, format!("{grew}: {why}"))];
    };
    let own = [cost_a * (1.0 - kernel_a), cost_t * (1.0 - kernel_t)];
    let kernel = [cost_a * kernel_a, cost_t * kernel_t];
    let own_ln = (own[1] / own[0]).ln();
    // Of next to no code of its own no factor can be taken: then all of it is where the time is.
    let is_known = 1.0 - kernel_a >= OWN_CODE_MIN && own_ln.is_finite();
    let own_ln = if is_known { own_ln.clamp(0.0, ln) } else { 0.0 };
    let mut parts = vec![own_code(together.counted, own, own_ln, is_instructions, beside)];
    let evidence = format!(
        "{} instead of {} of CPU time in the kernel for a {}",
        time(kernel[1]),
        time(kernel[0]),
        together.counted
    );
    // Of a program that is no server it is as well page faults, which memory makes slow.
    let by = if together.counted == "request" { TakenBy::NetworkStack } else { TakenBy::Kernel };
    parts.push(part(by, ln - own_ln, evidence));
    parts
}

/// The program's own code needs more CPU time for the same work.
fn own_code(counted: &str, [own_a, own_t]: [f64; 2], ln: f64, is_instructions: bool, beside: Beside) -> Part {
    let grew = format!("its own code needs {} instead of {} for a {counted}", time(own_t), time(own_a));
    if is_instructions {
        return part(TakenBy::Program, ln, format!("{grew}: more instructions"));
    }
    part(TakenBy::Memory, ln, format!("{grew} (no PMU counts instructions){}", neighbours(beside)))
}

/// What else than slower memory makes own code need more CPU time for the same work, where it cannot be ruled out.
fn doubt(alone: &Seen, together: &Seen) -> Option<&'static str> {
    let grew = |of: &dyn Fn(&Seen) -> Option<f64>, against: Option<f64>| {
        let (before, now) = (of(alone).unwrap_or(0.0), of(together).unwrap_or(0.0));
        now - before > WAITS * against.unwrap_or(f64::INFINITY)
    };
    let waits = |seen: &Seen| seen.accounting.cpus_waited_for;
    if grew(&waits, together.accounting.cpus_busy) {
        return Some("caches are cold after each wait for a CPU, or threads spin while others of it wait");
    }
    let generator = |seen: &Seen| seen.generator_waits_cpus;
    (together.generator_limits || grew(&generator, together.accounting.generator_cpus))
        .then_some("memory is slower, or it polls while its load generator gives it less")
}

fn neighbours(beside: Beside) -> &'static str {
    match beside {
        Beside { shares_cores: true, .. } => "; other instances run on its cores (SMT)",
        Beside { shares_cpus: true, .. } => "; other instances run on its CPUs",
        _ => "",
    }
}

fn grew(cost_a: f64, cost_t: f64, counted: &str) -> String {
    format!("{} instead of {} of CPU time for a {counted}", time(cost_t), time(cost_a))
}

/// A time in a unit that suits it.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", 1e3 * s),
        s => format!("{:.2} µs", 1e6 * s),
    }
}
