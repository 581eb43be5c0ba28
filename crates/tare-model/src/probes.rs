//! What the probes of a machine found: short measurements of what it does to everything that runs on it.
//!
//! Every probe says on which CPU it ran, how far its figures spread, and how long it took. What could not be
//! probed is missing, with the reason.

use crate::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_stats::quantile;

/// Rates of two clocks that differ by more than this are not explained by time synchronisation, which slews
/// by 500 parts in a million at most (`adjtimex(2)`, `MAXFREQ`).
pub const SLEW_PPM_MAX: f64 = 500.0;

/// Everything that one round of probes found.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Probes {
    /// The CPUs that were probed one by one, ascending.
    pub cpus: Vec<u32>,
    /// How many CPUs this process may use: more than `cpus` where only some were probed.
    pub cpus_allowed: u32,
    /// The effective clock of each probed CPU, sampled between the other probes, so over the whole round.
    pub clock: Probed<Vec<CpuReading<EffectiveClock>>>,
    /// How late a sleeping thread wakes up, once for each setting asked for.
    pub wakeup: Probed<Vec<Wakeup>>,
    /// Time that went missing under a thread that never slept, on each probed CPU at the same time.
    pub gaps: Probed<Vec<CpuReading<Gaps>>>,
    /// How long a dependent load takes, from the innermost cache outwards.
    pub memory: Probed<Vec<MemoryLatency>>,
    /// What a second hardware thread of a core is worth.
    pub smt: Probed<Smt>,
    /// Whether somebody else computes on the core.
    pub company: Probed<Company>,
    /// Handing over between two threads on one CPU.
    pub switch: Probed<Handover>,
    /// Handing over between two threads on two CPUs that share no core.
    pub cross_wakeup: Probed<Handover>,
    /// How far the same two are apart.
    pub transfer: Probed<Transfer>,
    /// How long an instruction takes that a hypervisor must answer.
    pub exit: Probed<Exit>,
    /// How long the cheapest system call takes.
    pub syscall: Probed<Syscall>,
    /// Whether the clocks go at the same rate.
    pub clock_audit: Probed<ClockAudit>,
    /// How long the round took, nanoseconds.
    pub took_ns: u64,
}

/// One probe: what it found, and how long it took.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Probed<T> {
    /// What it found, or why it found nothing.
    pub found: Reading<T>,
    /// How long it took, nanoseconds.
    pub took_ns: u64,
}

/// What a probe found on one CPU.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CpuReading<T> {
    /// The CPU.
    pub cpu: u32,
    /// What it found there.
    pub found: Reading<T>,
}

/// A figure that was taken several times: the median of the samples, and the range of their middle half.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// A quarter of the samples are below.
    pub low: f64,
    /// A quarter of the samples are above.
    pub high: f64,
    /// How many samples.
    pub samples: u32,
}

impl Spread {
    /// Of at least one finite sample.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        Some(Spread {
            median: quantile(samples, 0.5)?,
            low: quantile(samples, 0.25)?,
            high: quantile(samples, 0.75)?,
            samples: u32::try_from(samples.len()).ok()?,
        })
    }

    /// Each figure times `factor`; a negative one would turn low and high about.
    pub fn scaled(self, factor: f64) -> Spread {
        let scale = |value: f64| value * factor;
        Spread { median: scale(self.median), low: scale(self.low), high: scale(self.high), ..self }
    }
}

/// Many durations, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Durations {
    /// How many.
    pub count: u32,
    /// The shortest.
    pub min_ns: f64,
    /// The median.
    pub p50_ns: f64,
    /// One in a hundred is longer.
    pub p99_ns: f64,
    /// The longest.
    pub max_ns: f64,
}

impl Durations {
    /// Of at least one finite sample, nanoseconds.
    pub fn of(samples_ns: &[f64]) -> Option<Durations> {
        Some(Durations {
            count: u32::try_from(samples_ns.len()).ok()?,
            min_ns: quantile(samples_ns, 0.0)?,
            p50_ns: quantile(samples_ns, 0.5)?,
            p99_ns: quantile(samples_ns, 0.99)?,
            max_ns: quantile(samples_ns, 1.0)?,
        })
    }
}

/// The effective clock of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct EffectiveClock {
    /// Hertz; each sample is itself the median of short undisturbed ones.
    pub hz: Spread,
    /// The slowest sample, hertz.
    pub min_hz: f64,
    /// The fastest sample, hertz.
    pub max_hz: f64,
}

/// How late a thread wakes up that sleeps until a given time, as `cyclictest` measures it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Wakeup {
    /// The CPU that it slept and woke on.
    pub cpu: u32,
    /// How it was scheduled, and what idle states were allowed.
    pub setting: WakeupSetting,
    /// From one intended wake-up to the next, nanoseconds.
    pub interval_ns: u64,
    /// How late it was, or why this setting could not be had.
    pub late: Reading<Lateness>,
}

/// How late the wake-ups were.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Lateness {
    /// From the intended to the actual wake-up.
    pub latency: Durations,
    /// The timer jitter: nine in ten wake-ups lie within ± this around the middle of their range, nanoseconds.
    pub jitter_ns: f64,
    /// Intended wake-ups that had passed before the thread slept again, and were left out.
    pub overruns: u32,
}

/// What a wake-up depends on besides the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct WakeupSetting {
    /// Scheduling policy.
    pub policy: Policy,
    /// How much later than asked the kernel may let a timer fire (`PR_SET_TIMERSLACK`), nanoseconds; it does
    /// not apply to real-time policies.
    pub slack_ns: u64,
    /// Whether deep idle states were forbidden meanwhile (`/dev/cpu_dma_latency` held at 0).
    pub idle_held: bool,
}

/// A scheduling policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_OTHER`: what servers have.
    Other,
    /// `SCHED_FIFO` with this priority (1–99).
    Fifo(u8),
}

/// Time that went missing under a thread that read the clock without pause.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Gaps {
    /// How long it read, nanoseconds.
    pub window_ns: u64,
    /// Shorter gaps are not counted, nanoseconds.
    pub threshold_ns: u64,
    /// Gaps in which the thread was never switched away from: interrupts, the hypervisor, firmware.
    pub unseen: Lost,
    /// Gaps in which the kernel let another thread run.
    pub switched: Lost,
}

/// Gaps of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
pub struct Lost {
    /// How many.
    pub count: u32,
    /// Their total length, nanoseconds.
    pub lost_ns: u64,
    /// Their share of the window, 0–1.
    pub lost_ratio: f64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
}

/// How long a load takes whose address is the result of the load before.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MemoryLatency {
    /// Where the data were.
    pub place: MemoryPlace,
    /// The CPU that loaded.
    pub cpu: u32,
    /// Size of the buffer that it went through, bytes.
    pub buffer_bytes: u64,
    /// Nanoseconds a load, or why there are none.
    pub load_ns: Reading<Spread>,
    /// What the figure does not show, where there is something ("the buffer is no larger than the cache").
    pub warning: Option<String>,
}

/// A level of the memory hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPlace {
    /// A data or unified cache of this level (1 is the innermost).
    Cache(u8),
    /// Behind all caches.
    Memory,
}

/// Two hardware threads of one core, together and alone.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Smt {
    /// The two.
    pub cpus: [u32; 2],
    /// Rounds of arithmetic per second of one alone.
    pub alone_hz: Spread,
    /// Rounds of arithmetic per second of both together.
    pub together_hz: Spread,
    /// What the second thread adds, in cores: together / alone − 1. About 0 where it adds nothing, 1 if it were
    /// a core of its own. For arithmetic; other work differs.
    pub second_thread_cores: f64,
}

/// How often a loop that takes all units of a core was slowed by who else computes there.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Company {
    /// The CPU it ran on.
    pub cpu: u32,
    /// Samples that were taken, interrupted ones left out.
    pub samples: u32,
    /// Share of them in which the core was oversubscribed, 0–1: half as slow again, or slower, as in the fastest hundredth. 0 as well where it was
    /// oversubscribed in all of them.
    pub oversubscribed_ratio: f64,
    /// How many times as long the loop took in the middle one of these; `None`: there were none.
    pub slower_by: Option<f64>,
}

/// Two threads that wake each other in turn through pipes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Handover {
    /// The CPUs of the two threads; equal when they share one.
    pub cpus: [u32; 2],
    /// From one thread's write to the other's return from its read: half a round trip, nanoseconds.
    pub handover_ns: Spread,
    /// The same without the write and the read, which were timed without a switch, nanoseconds.
    pub switch_ns: f64,
}

/// What a cache line takes from one CPU to another.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Transfer {
    /// The CPUs.
    pub cpus: [u32; 2],
    /// One way: half of a round trip, nanoseconds.
    pub transfer_ns: Spread,
}

/// An instruction that a hypervisor must answer (`CPUID`).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Exit {
    /// The CPU it ran on.
    pub cpu: u32,
    /// Whether a hypervisor says that it is there; without one this is the bare instruction, some 100 cycles.
    pub hypervisor: bool,
    /// How long it took.
    pub latency: Durations,
}

/// A system call that does next to nothing (`getppid`).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Syscall {
    /// The CPU it ran on.
    pub cpu: u32,
    /// Nanoseconds a call.
    pub call_ns: Spread,
}

/// The clocks of the machine against each other.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ClockAudit {
    /// How long they were watched, nanoseconds.
    pub window_ns: u64,
    /// Readings of all clocks in that time.
    pub readings: u32,
    /// The rate of the time stamp counter by `CLOCK_MONOTONIC_RAW`, hertz.
    pub tsc_hz: Reading<f64>,
    /// Each clock against another.
    pub pairs: Vec<ClockPair>,
}

/// How much faster one clock went than another.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ClockPair {
    /// The one.
    pub clock: ClockId,
    /// The other.
    pub against: ClockId,
    /// By how much, or why they cannot be compared.
    pub drift: Reading<Drift>,
}

/// A difference of rate.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Drift {
    /// Rate of the one over that of the other, less one, parts per million; positive: the one is faster.
    pub ppm: f64,
    /// The true value lies within ± this, from the length of the window and of the readings.
    pub error_ppm: f64,
    /// How far the one was set against the other at once, beyond what slewing can do: the largest such jump,
    /// nanoseconds, negative when set back; 0 where none was.
    pub step_ns: f64,
}

impl Drift {
    /// Whether the rates certainly differ by more than time synchronisation can make them.
    pub fn is_suspect(&self) -> bool {
        self.ppm.abs() - self.error_ppm > SLEW_PPM_MAX
    }
}

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockId {
    /// `CLOCK_MONOTONIC`: slewed by time synchronisation.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: never slewed.
    MonotonicRaw,
    /// `CLOCK_REALTIME`: slewed and set.
    Realtime,
    /// The time stamp counter, by the frequency that the processor or the hypervisor states for it.
    Tsc,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_suspect_beyond_doubt_only() {
        let drift = |ppm, error_ppm| Drift { ppm, error_ppm, step_ns: 0.0 };
        assert!(drift(70_000.0, 1.0).is_suspect() && drift(-600.0, 50.0).is_suspect());
        assert!(!drift(480.0, 1.0).is_suspect() && !drift(600.0, 200.0).is_suspect());
    }

    #[test]
    fn what_was_found_and_what_was_not_read_back() {
        let wakeup = Wakeup {
            cpu: 1,
            setting: WakeupSetting { policy: Policy::Fifo(80), slack_ns: 50_000, idle_held: true },
            interval_ns: 1_000_000,
            late: Reading::missing("not permitted"),
        };
        let probed = Probed { found: Reading::Measured(vec![wakeup]), took_ns: 5 };
        let text = serde_json::to_string(&probed).unwrap();
        assert_eq!(serde_json::from_str::<Probed<Vec<Wakeup>>>(&text).unwrap(), probed);
    }
}
