//! The files and counters of all CPUs, opened once.

use super::idle_task::{IdleTask, Idled};
use crate::observed::refused;
use crate::rights;
use crate::scene::Scene;
use crate::tape::Tape;
use std::fmt::Write;
use std::fs::File;
use std::sync::OnceLock;
use tare_model::Missing;
use tare_sys::perf::{Counter, Tracepoint};
use tare_sys::time::{monotonic_ns, thread_cpu_ns};

/// CPUs whose switches are counted, at most.
const COUNTED_CPUS_MAX: usize = 64;
pub(super) const RUN: u32 = 0;
pub(super) const STAT: u32 = 1;
pub(super) const TIMERS: u32 = 2;
/// Idle tasks: a CPU, its idle time and its idle periods, for each of them.
pub(super) const IDLE_TASK: u32 = 3;
/// Sources from here on are counters: two for each CPU in [`Sources::counters`].
pub(super) const COUNTERS: u32 = 16;

/// The kernel prints every armed timer into that file, and walks to each from the first one: with thousands of sleeping threads a reading
/// takes a tenth of a second. One that takes longer than the first of these twice in a row is not read again, nor one that takes longer
/// than the second once: losing the CPU hardly takes so long.
const TIMERS_NS_MAX: u64 = 2_000_000;
const TIMERS_ONCE_NS_MAX: u64 = 50_000_000;

/// What was found of that by this process: later observers need not find out again.
static TOO_MANY_TIMERS: OnceLock<Missing> = OnceLock::new();

/// The list of timers, unless it is known to take too long.
pub(super) fn open_timers(scene: &Scene) -> Result<File, Missing> {
    const PATH: &str = "/proc/timer_list";
    match TOO_MANY_TIMERS.get() {
        Some(missing) => Err(missing.clone()),
        None => File::open(scene.root.path(PATH)).map_err(|error| refused(PATH, &error)),
    }
}

/// What is read, opened once.
pub(super) struct Sources {
    pub(super) run: Result<File, Missing>,
    pub(super) stat: Result<File, Missing>,
    pub(super) timers: Result<File, Missing>,
    /// The last reading of them was slow.
    pub(super) timers_were_slow: bool,
    pub(super) counters: Result<Vec<CpuCounters>, Missing>,
    pub(super) idle_task: Result<IdleTask, Missing>,
}

impl Sources {
    pub(super) fn read_all(&mut self, tape: &mut Tape) {
        // Asking for our own CPU time makes the kernel bring this CPU's run up to date; other busy CPUs' steps
        // at ticks.
        thread_cpu_ns();
        read(tape, RUN, &mut self.run);
        self.read_timers(tape);
        self.read_idle_task(tape);
        read(tape, STAT, &mut self.stat);
        for (at, counters) in (0u32..).zip(self.counters.iter().flatten()) {
            for (which, counter) in [(0, Some(&counters.switches)), (1, counters.idle_exits.as_ref())] {
                if let Some(Ok(value)) = counter.map(Counter::read) {
                    tape.put(COUNTERS + 2 * at + which, monotonic_ns(), value);
                }
            }
        }
    }
}

impl Sources {
    fn read_idle_task(&mut self, tape: &mut Tape) {
        let Ok(idle_task) = &mut self.idle_task else { return };
        let idled = match idle_task.read() {
            Ok(idled) => idled,
            Err(reason) => return self.idle_task = Err(reason),
        };
        let at_ns = monotonic_ns();
        let mut text = String::new();
        for (cpu, idled) in idled {
            // Writing to a string cannot fail.
            let Idled { ran_ns, periods, unseen_ns, unseen_open_ns } = idled;
            let _ = writeln!(text, "{cpu} {ran_ns} {periods} {unseen_ns} {unseen_open_ns}");
        }
        tape.keep(IDLE_TASK, at_ns, text.as_bytes());
    }

    pub(super) fn read_timers(&mut self, tape: &mut Tape) {
        let begin_ns = monotonic_ns();
        read(tape, TIMERS, &mut self.timers);
        let took_ns = monotonic_ns().saturating_sub(begin_ns);
        let is_slow = took_ns > TIMERS_NS_MAX;
        if is_slow && (self.timers_were_slow || took_ns > TIMERS_ONCE_NS_MAX) {
            let why = format!(
                "so many timers are armed that reading them takes {:.0} ms: idle time is known in steps of 10 ms",
                took_ns as f64 / 1e6
            );
            self.timers = Err(TOO_MANY_TIMERS.get_or_init(|| Missing::new(why)).clone());
        }
        self.timers_were_slow = is_slow;
    }
}

pub(super) fn read(tape: &mut Tape, source: u32, file: &mut Result<File, Missing>) {
    if let Some(Err(error)) = file.as_ref().ok().map(|file| tape.record_all(source, file)) {
        *file = Err(refused("a file of the CPUs", &error));
    }
}

pub(super) struct CpuCounters {
    pub(super) cpu: u32,
    pub(super) switches: Counter,
    /// `None` where the idle task's own account counts them.
    pub(super) idle_exits: Option<Counter>,
}

pub(super) fn open_counters(cpus: &[u32], with_idle_exits: bool) -> Result<Vec<CpuCounters>, Missing> {
    let switch = match with_idle_exits {
        true => Some(Tracepoint::find("sched", "sched_switch").map_err(|error| rights::tracefs(&error))?),
        false => None,
    };
    let open = |&cpu: &u32| {
        let switches = Counter::context_switches(cpu)?;
        // A period that begins also ends. Its end is the idle task's own event, and on Linux 6.18 we saw a CPU
        // that counts none of those.
        let idle_exits = match &switch {
            Some(switch) => Some(Counter::tracepoint(cpu, switch, "next_pid==0")?),
            None => None,
        };
        Ok(CpuCounters { cpu, switches, idle_exits })
    };
    let counters: std::io::Result<Vec<_>> = cpus.iter().take(COUNTED_CPUS_MAX).map(open).collect();
    counters.map_err(|error| rights::perf("counting context switches", &error))
}
