//! Where threads of the SUT were when they did not run: asleep, and why; waiting for a CPU, and behind whom.
//!
//! Measured from scheduler tracepoints, switch by switch, or estimated from samples of what each thread was doing. All
//! times are nanoseconds within the window; a thread's parts (run, wait, blocked, unknown) sum to its life in it.

use crate::Missing;
use crate::outcome::Judged;
use crate::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was learned of the SUT's threads in one window.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Schedule {
    /// How.
    pub source: ScheduleSource,
    /// Why it is not from tracepoints, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_traced: Option<Missing>,
    /// Events that had no room in a ring: what they said is missing in the sums.
    #[serde(default)]
    pub events_lost: u64,
    /// Events that were read.
    #[serde(default)]
    pub events: u64,
    /// Threads of the SUT; none where the source is samples, whose counts are columns.
    #[serde(default)]
    pub threads: Vec<ThreadSchedule>,
    /// For each CPU, how long a thread of the SUT was held back on it though nobody ran there.
    #[serde(default)]
    pub held: Vec<Held>,
    /// Locks of the program that its threads slept for, those that took most time first; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<ProgramLock>,
    /// Contended locks of the kernel, those that took most time first; at most 32.
    #[serde(default)]
    pub kernel_locks: Vec<KernelLock>,
    /// Why contention for them was not seen though switches were traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks_not_traced: Option<Missing>,
    /// Sockets to other servers that threads slept on, by address; at most 64.
    #[serde(default)]
    pub downstream: Vec<Downstream>,
    /// Samples by how many threads of the SUT were running or ready in them: entry i counts those with i; the last one, those
    /// with at least 256. Empty in records from before this was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_once: Vec<u64>,
}

/// Where a schedule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleSource {
    /// `sched_switch`, `sched_waking`, `sched_wakeup` and `lock:contention_*` through perf_event rings; a sleep's
    /// reason from the kernel's call chain at the switch. Needs root or `CAP_PERFMON` with readable kallsyms.
    Tracepoints,
    /// Samples of `/proc/PID/task/TID/syscall` (needs ptrace rights): a hundred a second of a thread that goes to sleep
    /// and wakes, twenty of one that sleeps on or runs nearly all the time, fewer where there are hundreds of threads.
    Samples,
}

/// Why a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sleep {
    /// For events, or for a socket that it accepted.
    Event,
    /// For a lock: a futex whose word says that somebody has it, a file's, or one of the kernel's own that sleep.
    Lock,
    /// In a futex that is not known to be a lock's, or a semaphore: for work, for a hand-over, for another thread to end.
    Parked,
    /// For a disk.
    Disk,
    /// For a socket that it connected: another server.
    Downstream,
    /// For a time to pass.
    Timer,
    /// For a page of its memory to be brought in.
    Fault,
    /// For anything else.
    Other,
}

impl Sleep {
    /// All of them.
    pub const ALL: [Sleep; 8] = [
        Sleep::Event,
        Sleep::Lock,
        Sleep::Parked,
        Sleep::Disk,
        Sleep::Downstream,
        Sleep::Timer,
        Sleep::Fault,
        Sleep::Other,
    ];

    /// Its name in data.
    pub fn name(self) -> &'static str {
        match self {
            Sleep::Event => "event",
            Sleep::Lock => "lock",
            Sleep::Parked => "parked",
            Sleep::Disk => "disk",
            Sleep::Downstream => "downstream",
            Sleep::Timer => "timer",
            Sleep::Fault => "fault",
            Sleep::Other => "other",
        }
    }
}

/// One thread of the SUT.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ThreadSchedule {
    /// Thread.
    pub tid: u32,
    /// On a CPU, by the switches; for one that was woken and pushed another (or the idle task) off, from the wake-up on,
    /// as the kernel counts it.
    pub run_ns: u64,
    /// Not covered by any event.
    #[serde(default)]
    pub unknown_ns: u64,
    /// Asleep, by reason.
    #[serde(default)]
    pub blocked: Vec<Blocked>,
    /// Runnable without a CPU, by who ran there meanwhile; at most 8, the rest as one of each role.
    #[serde(default)]
    pub behind: Vec<Behind>,
    /// Runnable while nobody ran on its CPU, for so long that only a quota explains it.
    #[serde(default)]
    pub held_ns: u64,
    /// Runnable while nobody ran on its CPU, as long as waking a CPU takes.
    #[serde(default)]
    pub delay_ns: u64,
    /// The kernel counts a wait for a CPU when it is over. To be added to what its count grew by in the window: waits
    /// that went on at the end, less what of those at the beginning was before it. `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_edges_ns: Option<i64>,
    /// Waits for a CPU by length: entry i counts those of 2^i to 2^(i+1) ns.
    #[serde(default)]
    pub waits: Vec<u32>,
    /// From the wake-up call to running, by length, as `waits`.
    #[serde(default)]
    pub wakes: Vec<u32>,
    /// How often it ran on another CPU than before.
    #[serde(default)]
    pub migrations: u32,
    /// Who woke it.
    #[serde(default)]
    pub woken_by: Wakers,
}

/// Sleep for one reason.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Blocked {
    /// Why.
    pub why: Sleep,
    /// How long.
    pub ns: u64,
    /// How often it went to sleep.
    pub count: u64,
}

/// Somebody who ran while a thread waited.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Behind {
    /// Its name; empty for all the rest of a role.
    pub name: String,
    /// The thread; 0 for all the rest of a role.
    pub tid: u32,
    /// Whose it is.
    pub role: Role,
    /// How long the thread waited meanwhile.
    pub ns: u64,
}

/// Wake-ups by who made them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Wakers {
    /// Another thread of the SUT, no interrupt being served.
    pub sut: u64,
    /// The generator.
    pub load: u64,
    /// An interrupt: packets, timers, disks.
    pub interrupt: u64,
    /// Anybody else.
    pub other: u64,
    /// Of all these, those from another CPU than the one it is then put on.
    pub cross_cpu: u64,
}

/// Time that threads of the SUT were held on a CPU that nobody used.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Held {
    /// The CPU.
    pub cpu: u32,
    /// How long at least one was.
    pub ns: u64,
}

/// A lock of the program, known by its word: a futex whose value says that somebody has it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramLock {
    /// The variable and its file (`cache_lock in /srv/app`), or the kind of memory that it is in, with its address (`heap at 0x55d0c01a2f10`).
    pub at: String,
    /// Sleeps for it.
    pub count: u64,
    /// How long they took in sum.
    pub ns: u64,
    /// Times that it was held by a thread that had slept for it before, which is when its beginning is known: from running to waking the next.
    pub holds: u64,
    /// How long they took in sum.
    pub held_ns: u64,
    /// Threads that had it until they woke another one; most often first, at most 8.
    pub holders: Vec<LockHolder>,
}

/// A thread that had a lock while others slept for it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LockHolder {
    /// Its name.
    pub name: String,
    /// The thread.
    pub tid: u32,
    /// How often it let go of the lock and woke another one.
    pub count: u64,
}

/// A lock of the kernel that threads of the SUT contended for.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct KernelLock {
    /// The function that asked for it (`lock_sock_nested`), or its address.
    pub at: String,
    /// Waiting was spinning: run time, not sleep.
    pub spins: bool,
    /// While an interrupt was served on top of the thread.
    pub in_interrupt: bool,
    /// Different locks that were contended for there, at most 64 distinguished.
    pub locks: u32,
    /// How often.
    pub count: u64,
    /// How long in sum.
    pub ns: u64,
}

/// A server that threads of the SUT slept on.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Downstream {
    /// `address:port`.
    pub peer: String,
    /// How long threads slept on it in sum; 0 where the source is samples.
    pub ns: u64,
    /// How often; where the source is samples, samples that found a thread so.
    pub count: u64,
}

/// With a larger share of wake-ups unseen, waits and wake-ups are lower bounds; those at a window's edges are fewer.
pub const UNSEEN_WAKE_SHARE_MAX: f64 = 0.05;

/// What the accounting says of sleeps and waits, over all windows of the asked level: part of the outcome.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SwitchAccounting {
    /// Where sleeps come from; `null` where nothing was sampled.
    pub blocked_source: Option<ScheduleSource>,
    /// Why it is not tracepoints, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_traced: Option<Missing>,
    /// Share of the serving threads' time, 0..=1, that was traced but is known from samples, because the switches left more
    /// than a twentieth of the thread's window open.
    #[serde(default)]
    pub sampled_share: f64,
    /// Events that had no room in a ring.
    pub events_lost: u64,
    /// Who ran while threads of the SUT were ready, longest first; the SUT's own threads and the generator among them.
    /// Empty unless traced.
    pub preempted_by: Vec<Preemptor>,
    /// How long threads of the SUT waited for a CPU, each time; `null` unless traced.
    pub run_queue_ns: Option<Quantiles>,
    /// From the call that wakes a thread of the SUT to when it runs; `null` unless traced.
    pub wake_up_ns: Option<Quantiles>,
    /// Share of the SUT's sleeps, 0..=1, whose end had no wake-up event: some virtual machines get none of what an idle CPU
    /// does. Then waits and wake-ups are lower bounds; `null` unless traced, or where nobody slept.
    #[serde(default)]
    pub unseen_wake_share: Option<f64>,
    /// How often the SUT's threads changed CPUs, per second; `null` unless traced.
    pub migrations_hz: Option<f64>,
    /// Who woke the SUT's threads, per second; `null` unless traced.
    pub woken_hz: Option<WakerRates>,
    /// Locks of the program that its threads slept for, those that took most time first; empty unless traced.
    #[serde(default)]
    pub locks: Vec<ProgramLockShare>,
    /// Locks of the kernel that the SUT contended for, those that took most time first; empty unless traced.
    pub kernel_locks: Vec<LockShare>,
    /// Servers that the SUT slept on.
    pub downstream: Vec<PeerShare>,
    /// What may hold back a server that shares nothing but the kernel, and how each of it stands; empty in older results.
    #[serde(default)]
    pub hypotheses: Vec<Judged>,
}

/// Somebody who ran while the SUT was ready.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Preemptor {
    /// Its name; "(others)" for all that are not distinguished.
    pub name: String,
    /// The thread; 0 for all that are not distinguished.
    pub pid: u32,
    /// Whose it is.
    pub role: Role,
    /// Share of all that the SUT's threads waited behind others, 0..=1.
    pub share: f64,
    /// How long they waited behind it, seconds.
    pub wait_s: f64,
}

/// Quantiles from counts by powers of two: each is the upper end of its power, so exact to a factor of two.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are the quantiles
pub struct Quantiles {
    pub count: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
    /// The counts themselves: entry i is of 2^i to 2^(i+1) ns; empty in older results.
    #[serde(default)]
    pub powers: Vec<f64>,
}

/// Wake-ups per second by who made them.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WakerRates {
    /// Another thread of the SUT.
    pub sut: f64,
    /// The generator.
    pub load: f64,
    /// An interrupt: packets, timers, disks.
    pub interrupt: f64,
    /// Anybody else.
    pub other: f64,
    /// Of all these, from another CPU.
    pub cross_cpu: f64,
}

/// A lock of the program that its threads slept for.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramLockShare {
    /// The variable and its file, or the kind of memory and the address.
    pub at: String,
    /// Sleeps for it per second.
    pub contended_hz: f64,
    /// Share of the SUT's serving threads' time that was slept for it; 0..=1.
    pub share: f64,
    /// How long it was held on average, in ns, by threads that had slept for it before; `null` where none had.
    pub held_ns: Option<f64>,
    /// Who had it while others slept for it, most often first.
    pub holders: Vec<HolderShare>,
}

/// A thread that had a lock while others slept for it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct HolderShare {
    /// Its name.
    pub name: String,
    /// The thread.
    pub tid: u32,
    /// Of all times that somebody was woken for the lock, those by this thread; 0..=1.
    pub share: f64,
}

/// A place in the kernel where the SUT contended for locks.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LockShare {
    /// The function that asked.
    pub at: String,
    /// By spinning, which is run time.
    pub spins: bool,
    /// While an interrupt was served.
    pub in_interrupt: bool,
    /// Different locks.
    pub locks: u32,
    /// How often per second.
    pub contended_hz: f64,
    /// Share of the SUT's serving threads' time.
    pub share: f64,
}

/// Another server that the SUT slept on.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PeerShare {
    /// `address:port`.
    pub peer: String,
    /// Of all sleep on other servers.
    pub share: f64,
}
