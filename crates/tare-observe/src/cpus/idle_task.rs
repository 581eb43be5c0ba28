//! How long each CPU ran its idle task, by the clock that the scheduler charges all other tasks with.
//!
//! The kernel keeps no such account. A program at `sched:sched_switch` does: a task that gives its CPU to the idle task was last
//! charged at that moment (`sched_entity.exec_start`), and one that gets it back is charged from that moment on. So the two
//! together are what no other task is charged with, to the nanosecond, also where a task is charged from its wake-up on while its CPU
//! still wakes up.
//!
//! A kernel may hide the switches of some tasks (those of a virtual machine's own agent, it was seen). Then it is unknown since when the
//! idle task runs that such a task made way for; how long that was at most is kept apart.

use super::btf::Types;
use crate::observed::refused;
use crate::scene::Scene;
use std::collections::BTreeSet;
use std::io;
use std::sync::OnceLock;
use tare_model::Missing;
use tare_sys::affinity;
use tare_sys::bpf::{Assembler, Attached, Helper, PerCpu, Program, R0, R1, R2, R3, R6, R7, R8, R9};
use tare_sys::time::monotonic_ns;

const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The kernel hands over the numbers of these, in order.
const POSSIBLE_CPUS: &str = "/sys/devices/system/cpu/possible";
/// Arguments of the tracepoint: who gives the CPU away, and who gets it.
const PREV: i16 = 8;
const NEXT: i16 = 16;
/// The numbers of a CPU, times by the scheduler's clock: since when its idle task runs (0: it does not, or its beginning was not seen), how
/// long it ran before, how far CLOCK_MONOTONIC is ahead of that clock, how often it was seen to begin, when another task last got the CPU back,
/// the time in which it began unseen, and how often it ended then.
const WORDS: usize = 7;
type Numbers = [u64; WORDS];
const SINCE: i16 = 0;
const RAN: i16 = 8;
const AHEAD: i16 = 16;
const PERIODS: i16 = 24;
const ENDED: i16 = 32;
const UNSEEN: i16 = 40;
const HIDDEN: i16 = 48;
/// A program may be in the middle of changing what is read.
const ATTEMPTS: u32 = 4;

/// The running kernel's: its type information is megabytes long, and observers begin for every trial.
static PLACES: OnceLock<Places> = OnceLock::new();

pub(super) struct IdleTask {
    numbers: PerCpu<WORDS>,
    program: Program,
    cpus: Vec<u32>,
    /// `None` while nobody watches: it then costs nothing.
    watching: Option<Watching>,
}

struct Watching {
    /// CPUs that ran something else after the program was there: of others it may have missed the beginning of an idle period, until
    /// they begin another one.
    visited: BTreeSet<u32>,
    _attached: Attached,
}

/// Where what the program reads lies in this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    /// `task_struct.pid`.
    pid: i16,
    /// `task_struct.se.exec_start`.
    charged: i16,
    /// The type of the tracepoint.
    tracepoint: u32,
}

/// What was found of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Idled {
    pub(super) ran_ns: u64,
    pub(super) periods: u64,
    /// Time of the CPU in which its idle task began unseen: a bound of what `ran_ns` lacks.
    pub(super) unseen_ns: u64,
    /// What that grows by if the idle task runs now and began unseen; 0 where it never did.
    pub(super) unseen_open_ns: u64,
}

impl IdleTask {
    /// Watches these CPUs from now on.
    pub(super) fn open(scene: &Scene, cpus: Vec<u32>) -> Result<IdleTask, Missing> {
        let possible = scene.root.text(POSSIBLE_CPUS)?;
        if !possible.starts_with('0') || possible.contains(',') {
            return Err(Missing::new(
                "the numbers of the CPUs have holes, so their idle tasks cannot be distinguished",
            ));
        }
        let places = match PLACES.get() {
            Some(places) if scene.root.is_live() => *places,
            _ => Places::read(scene)?,
        };
        let numbers = PerCpu::new().map_err(|error| refusal(&error))?;
        let program = Program::load(program(&numbers, places), places.tracepoint);
        let program = program.map_err(|error| refusal(&error))?;
        let mut idle_task = IdleTask { numbers, program, cpus, watching: None };
        idle_task.set_active(true)?;
        Ok(idle_task)
    }

    /// Ends the watching, or begins it anew.
    pub(super) fn set_active(&mut self, active: bool) -> Result<(), Missing> {
        self.watching = None;
        if active {
            self.numbers.clear().map_err(|error| refusal(&error))?;
            let attached = self.program.attach().map_err(|error| refusal(&error))?;
            self.watching = Some(Watching { visited: visit(&self.cpus)?, _attached: attached });
        }
        Ok(())
    }

    /// What each CPU has since the watching began; nothing while nobody watches.
    pub(super) fn read(&mut self) -> Result<Vec<(u32, Idled)>, Missing> {
        let Some(Watching { visited, .. }) = &self.watching else { return Ok(Vec::new()) };
        let is_known =
            |cpu: u32, numbers: &Numbers| visited.contains(&cpu) || numbers[PERIODS as usize / 8] > 0;
        let mut take = || -> Result<Vec<(u32, Numbers)>, Missing> {
            let numbers = self.numbers.read().map_err(|error| refused("the idle task's time", &error))?;
            let of_cpu = |&cpu: &u32| Some((cpu, *numbers.get(cpu as usize)?));
            Ok(self.cpus.iter().filter_map(of_cpu).collect())
        };
        // Each CPU is taken as it was read twice alike.
        let mut numbers = take()?;
        let mut changing: BTreeSet<u32> = self.cpus.iter().copied().collect();
        for _ in 0..ATTEMPTS {
            let again = take()?;
            for ((cpu, before), (_, after)) in numbers.iter_mut().zip(again) {
                if changing.contains(cpu) && *before == after {
                    changing.remove(cpu);
                } else if changing.contains(cpu) {
                    *before = after;
                }
            }
            if changing.is_empty() {
                break;
            }
        }
        let now_ns = monotonic_ns();
        let known = numbers.iter().filter(|(cpu, numbers)| is_known(*cpu, numbers));
        Ok(known.map(|(cpu, numbers)| (*cpu, idled(numbers, now_ns))).collect())
    }
}

/// Runs on each of the CPUs once; those where it was allowed.
fn visit(cpus: &[u32]) -> Result<BTreeSet<u32>, Missing> {
    let home = affinity::get(0).map_err(|error| refused("the affinity of tare", &error))?;
    let visited = cpus.iter().copied().filter(|cpu| affinity::set(0, &[*cpu]).is_ok()).collect();
    affinity::set(0, &home).map_err(|error| refused("the affinity of tare", &error))?;
    Ok(visited)
}

fn idled(&[since_ns, ran_ns, ahead_ns, seen, ended_ns, unseen_ns, hidden]: &Numbers, now_ns: u64) -> Idled {
    let up_to_now = |from_ns: u64| now_ns.wrapping_sub(ahead_ns).saturating_sub(from_ns);
    let (open_ns, unseen_open_ns) = match (since_ns, ended_ns, seen) {
        (1.., ..) => (up_to_now(since_ns), 0),
        // Another task runs, unless this is a CPU where beginnings are hidden. Before one was seen, nothing is known of the two clocks.
        (0, 1.., 1..) if unseen_ns > 0 => (0, up_to_now(ended_ns)),
        _ => (0, 0),
    };
    // Each of them ended, whether its beginning was seen or not.
    let periods = seen.saturating_add(hidden);
    Idled { ran_ns: ran_ns.saturating_add(open_ns), periods, unseen_ns, unseen_open_ns }
}

impl Places {
    fn read(scene: &Scene) -> Result<Places, Missing> {
        let bytes = std::fs::read(scene.root.path(TYPES)).map_err(|error| refused(TYPES, &error))?;
        let places = Places::find(&bytes)
            .ok_or_else(|| Missing::new("this kernel's type information lacks what the scheduler charges"))?;
        Ok(if scene.root.is_live() { *PLACES.get_or_init(|| places) } else { places })
    }

    fn find(bytes: &[u8]) -> Option<Places> {
        let types = Types::read(bytes, &["task_struct", "sched_entity", "btf_trace_sched_switch"]);
        let entity = types.member("task_struct", "se")?;
        let charged = entity.checked_add(types.member("sched_entity", "exec_start")?)?;
        Some(Places {
            pid: types.member("task_struct", "pid")?.try_into().ok()?,
            charged: charged.try_into().ok()?,
            tracepoint: types.typedef("btf_trace_sched_switch")?,
        })
    }
}

/// What runs at each switch. The idle task of every CPU has number 0.
fn program(numbers: &PerCpu<WORDS>, places: Places) -> Assembler {
    let mut program = Assembler::default();
    let [of_idle, ends, unseen, done] = [(); 4].map(|()| program.label());
    program.load_u64(R6, R1, PREV).load_u64(R7, R1, NEXT);
    program.load_u32(R8, R6, places.pid).load_u32(R3, R7, places.pid);
    program.jump_if(R8, 0, of_idle).jump_unless(R3, 0, done);
    program.place(of_idle);
    numbers.find(&mut program, done);
    program.copy(R9, R0).jump_if(R8, 0, ends);
    // It begins.
    program.call(Helper::KtimeNs).load_u64(R1, R6, places.charged).store_u64(R9, SINCE, R1);
    program.subtract(R0, R1).store_u64(R9, AHEAD, R0);
    program.load_u64(R1, R9, PERIODS).add_value(R1, 1).store_u64(R9, PERIODS, R1).jump(done);
    // It ends.
    program.place(ends).load_u64(R1, R7, places.charged).load_u64(R3, R9, ENDED).store_u64(R9, ENDED, R1);
    program.load_u64(R2, R9, SINCE).jump_if(R2, 0, unseen).subtract(R1, R2);
    program.load_u64(R2, R9, RAN).add(R2, R1).store_u64(R9, RAN, R2).set_u64(R9, SINCE, 0).jump(done);
    // It began unseen, after the end before; where there was none, it began before the program.
    program.place(unseen).jump_if(R3, 0, done).subtract(R1, R3);
    program.load_u64(R2, R9, UNSEEN).add(R2, R1).store_u64(R9, UNSEEN, R2);
    program.load_u64(R2, R9, HIDDEN).add_value(R2, 1).store_u64(R9, HIDDEN, R2);
    program.place(done).set(R0, 0).exit();
    program
}

fn refusal(error: &io::Error) -> Missing {
    match error.raw_os_error() {
        Some(libc::EPERM) => Missing::with_remedy(
            "the idle task's time: a program at the scheduler's switches is not permitted",
            "run tare as root or with CAP_BPF and CAP_PERFMON (before Linux 5.11 also with ulimit -l unlimited)",
        ),
        Some(libc::EACCES | libc::EINVAL) => Missing::new(
            "the idle task's time: this kernel does not accept the program at the scheduler's switches",
        ),
        Some(libc::ENOSYS) => Missing::new("the idle task's time: this kernel runs no programs (bpf)"),
        _ => refused("a program at the scheduler's switches", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_period_counts_up_to_now() {
        let found = |ran_ns| Idled { ran_ns, periods: 3, unseen_ns: 4, unseen_open_ns: 0 };
        // The clock that began 100 later was at 0 then.
        assert_eq!(idled(&[50, 70, 100, 3, 40, 4, 0], 240), found(160));
        assert_eq!(idled(&[50, 70, 100, 3, 40, 4, 0], 140), found(70));
        assert_eq!(idled(&[50, 70, 100_u64.wrapping_neg(), 3, 40, 4, 0], 40), found(160));
    }

    #[test]
    fn a_period_that_began_unseen_may_be_open() {
        let found = |unseen_open_ns| Idled { ran_ns: 70, periods: 3, unseen_ns: 4, unseen_open_ns };
        assert_eq!(idled(&[0, 70, 100, 3, 40, 4, 0], 240), found(100));
        assert_eq!(idled(&[0, 70, 100, 3, 0, 4, 0], 240), found(0));
        let of_a_kernel_that_hides_nothing = Idled { unseen_ns: 0, ..found(0) };
        assert_eq!(idled(&[0, 70, 100, 3, 40, 0, 0], 240), of_a_kernel_that_hides_nothing);
        let never_began = Idled { ran_ns: 0, periods: 0, unseen_ns: 0, unseen_open_ns: 0 };
        assert_eq!(idled(&[0, 0, 0, 0, 40, 0, 0], 240), never_began);
    }

    /// What hides its beginnings does not hide that it ended.
    #[test]
    fn periods_that_began_unseen_are_counted() {
        assert_eq!(idled(&[50, 70, 100, 3, 40, 4, 5], 240).periods, 8);
    }

    #[test]
    fn this_kernels_own_types_have_what_is_read() {
        let Ok(bytes) = std::fs::read(TYPES) else { return };
        let places = Places::find(&bytes).unwrap();
        assert!(places.pid > 0 && places.charged > 0 && places.tracepoint > 0, "{places:?}");
    }

    #[test]
    fn a_refusal_of_the_program_is_none_of_the_user() {
        let remedy = |code| refusal(&io::Error::from_raw_os_error(code)).remedy;
        assert!(remedy(libc::EPERM).contains("CAP_BPF"));
        assert!(remedy(libc::EACCES).is_empty() && remedy(libc::EINVAL).is_empty());
    }

    #[test]
    fn a_kernel_without_type_information_has_no_places() {
        assert_eq!(Places::find(b"\x9f\xeb\x01\x00"), None);
    }
}
