//! Probes: what this machine does to everything that runs on it, measured in a few seconds.
//!
//! Each probe has a file, runs on a thread of its own on a CPU that its result names, keeps to the time it is given
//! (any time: a call of 2 ms between two trials is fine), and says how far its figures spread. One that could not run
//! is missing, with the reason. [`run`] is one round of all of them.

mod arithmetic;
pub mod audit;
pub mod bandwidth;
pub mod choose;
pub mod clock;
mod clock_cost;
pub mod company;
pub mod compute;
pub mod disk;
pub mod dispatch;
pub mod echo;
pub mod exit;
pub mod gaps;
pub mod handover;
pub mod memory;
pub mod packets;
pub mod parked;
mod place;
pub mod smt;
pub mod speed;
pub mod stream;
pub mod syscall;
pub mod transfer;
pub mod wakeup;

use crate::root::Root;
use tare_model::machine::CpuFacts;
use tare_model::probes::{CpuReading, EffectiveClock, Policy, Probed, Probes, WakeupSetting};
use tare_model::{Missing, Reading};
use tare_sys::affinity;
use tare_sys::time::monotonic_ns;

/// What a round of probes does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long the probes may take together, nanoseconds; the round takes a tenth longer, for threads and buffers.
    pub duration_ns: u64,
    /// The CPUs that are probed one by one; empty: some of each node, up to `cpus_max`.
    pub cpus: Vec<u32>,
    /// How many CPUs are chosen where none are named.
    pub cpus_max: usize,
    /// Settings under which wake-ups are timed.
    pub wakeups: Vec<WakeupSetting>,
}

impl Default for Options {
    /// Three seconds; wake-ups as a server has them, and as `cyclictest -p 80` has them.
    fn default() -> Self {
        Options {
            duration_ns: 3_000_000_000,
            cpus: Vec::new(),
            cpus_max: 8,
            wakeups: vec![
                WakeupSetting { policy: Policy::Other, slack_ns: 1, idle_held: false },
                WakeupSetting { policy: Policy::Fifo(80), slack_ns: 1, idle_held: true },
            ],
        }
    }
}

/// How far behind its time a round may be, beside a tenth of it, before the probes that are left are given up.
const LATE_NS: u64 = 400_000_000;

/// How far a round has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What is probed now ("memory latency").
    pub probe: &'static str,
    /// The share of the round that is over, 0–1.
    pub done_ratio: f64,
}

/// One round of all probes, and what each gets of the time in parts of a hundred. Wake-ups come once a millisecond,
/// and gaps are rare: these two need most of it.
mod share {
    pub(super) const SYSCALL: u64 = 2;
    pub(super) const EXIT: u64 = 3;
    pub(super) const MEMORY: u64 = 10;
    pub(super) const SMT: u64 = 6;
    pub(super) const SWITCH: u64 = 4;
    pub(super) const TRANSFER: u64 = 2;
    pub(super) const CROSS_WAKEUP: u64 = 4;
    pub(super) const COMPANY: u64 = 4;
    pub(super) const GAPS: u64 = 14;
    pub(super) const WAKEUPS: u64 = 46;
}

/// Probes the machine that this runs on. `facts` are its CPUs; `progress` hears what comes next.
pub fn run(root: &Root, facts: &[CpuFacts], options: &Options, progress: &mut dyn FnMut(Step)) -> Probes {
    let allowed = affinity::get(0).unwrap_or_default();
    let cpus = match options.cpus.as_slice() {
        [] => choose::spread_out(facts, &allowed, options.cpus_max),
        cpus => cpus.to_vec(),
    };
    let mut round = Round::new(&cpus, options.duration_ns, progress);
    let cpu = round.one_cpu();

    let syscall = round.probe("system call", share::SYSCALL, |ns| syscall::run(cpu, ns).into());
    let exit = round.probe("hypervisor exit", share::EXIT, |ns| exit::run(cpu, ns).into());
    let memory =
        round.probe("memory latency", share::MEMORY, |ns| Reading::Measured(memory::run(root, cpu, ns)));
    let siblings = choose::siblings(facts, &allowed);
    let smt = round.probe("SMT siblings", share::SMT, |ns| smt::on_siblings(siblings, ns));
    let company = round.probe("who else is on the core", share::COMPANY, |ns| company::run(cpu, ns).into());
    let switch = round.probe("context switch", share::SWITCH, |ns| handover::run([cpu, cpu], ns).into());
    let apart = choose::apart(facts, &allowed);
    let cross_wakeup = round.probe("wake-up of another CPU", share::CROSS_WAKEUP, |ns| {
        apart.and_then(|cpus| handover::run(cpus, ns)).into()
    });
    let apart = choose::apart(facts, &allowed);
    let transfer = round.probe("core-to-core latency", share::TRANSFER, |ns| {
        apart.and_then(|cpus| transfer::run(cpus, ns)).into()
    });
    let gaps = round
        .probe("lost time", share::GAPS, |ns| Reading::Measured(gaps::run(&cpus, gaps::THRESHOLD_NS, ns)));
    let wakeup = round.wakeups(cpu, &options.wakeups);
    let (clock, clock_audit) = round.watched(root);
    Probes {
        cpus_allowed: u32::try_from(allowed.len()).unwrap_or(u32::MAX),
        clock,
        wakeup,
        gaps,
        memory,
        smt,
        company,
        switch,
        cross_wakeup,
        transfer,
        exit,
        syscall,
        clock_audit,
        took_ns: round.elapsed_ns(),
        cpus,
    }
}

/// What goes on beside the probes: between any two, the effective clocks and the clocks of the machine are looked at.
struct Round<'a> {
    begin_ns: u64,
    duration_ns: u64,
    done: u64,
    progress: &'a mut dyn FnMut(Step),
    clocks: Vec<(u32, Result<Vec<f64>, Missing>)>,
    clocks_took_ns: u64,
    stamps: Vec<audit::Stamp>,
}

impl<'a> Round<'a> {
    fn new(cpus: &[u32], duration_ns: u64, progress: &'a mut dyn FnMut(Step)) -> Self {
        let mut round = Round {
            begin_ns: monotonic_ns(),
            duration_ns,
            done: 0,
            progress,
            clocks: cpus.iter().map(|&cpu| (cpu, Ok(Vec::new()))).collect(),
            clocks_took_ns: 0,
            stamps: Vec::new(),
        };
        round.look();
        round
    }

    /// Where a probe runs that needs only one CPU: the last that let the first sample of its clock run, as the first CPU
    /// serves most interrupts.
    fn one_cpu(&self) -> u32 {
        let mut running = self.clocks.iter().rev().filter(|(_, samples)| samples.is_ok());
        running.next().or(self.clocks.last()).map_or(0, |(cpu, _)| *cpu)
    }

    fn elapsed_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.begin_ns)
    }

    /// One probe with `share` hundredths of the time.
    fn probe<T>(
        &mut self,
        name: &'static str,
        share: u64,
        probe: impl FnOnce(u64) -> Reading<T>,
    ) -> Probed<T> {
        (self.progress)(Step { probe: name, done_ratio: self.done as f64 / 100.0 });
        let begin_ns = monotonic_ns();
        let late_ns = self.duration_ns / 10 + LATE_NS;
        let found = if begin_ns.saturating_sub(self.begin_ns) > self.duration_ns.saturating_add(late_ns) {
            Reading::Missing(Missing::with_remedy(
                "the probes before it took too long: somebody else holds the CPUs, or a quota this process",
                "try again when the machine is less busy",
            ))
        } else {
            probe(self.duration_ns / 100 * share)
        };
        let took_ns = monotonic_ns().saturating_sub(begin_ns);
        self.done += share;
        self.look();
        Probed { found, took_ns }
    }

    fn wakeups(&mut self, cpu: u32, settings: &[WakeupSetting]) -> Probed<Vec<tare_model::probes::Wakeup>> {
        let share = share::WAKEUPS / (settings.len() as u64).max(1);
        let (mut found, mut took_ns) = (Vec::new(), 0);
        for &setting in settings {
            let one = self.probe("wake-up latency", share, |ns| {
                Reading::Measured(wakeup::run(cpu, setting, wakeup::INTERVAL_NS, ns))
            });
            took_ns += one.took_ns;
            match one.found.ok() {
                Ok(wakeup) => found.push(wakeup),
                Err(missing) => return Probed { found: Reading::Missing(missing), took_ns },
            }
        }
        Probed { found: wakeup::all(found), took_ns }
    }

    /// Takes a reading of all clocks and a few samples of every probed CPU's.
    fn look(&mut self) {
        const SAMPLING_NS: u64 = 1_000_000;
        self.stamps.push(audit::stamp());
        let begin_ns = monotonic_ns();
        for (cpu, samples) in &mut self.clocks {
            // A CPU that did not let the first sample run is not waited for again.
            let Ok(samples_hz) = samples else { continue };
            match clock::samples(*cpu, SAMPLING_NS) {
                Ok(more) => samples_hz.extend(more),
                Err(missing) if samples_hz.is_empty() => *samples = Err(missing),
                Err(_) => {}
            }
        }
        self.clocks_took_ns += monotonic_ns().saturating_sub(begin_ns);
    }

    /// What was seen beside the probes.
    fn watched(
        &mut self,
        root: &Root,
    ) -> (Probed<Vec<CpuReading<EffectiveClock>>>, Probed<tare_model::probes::ClockAudit>) {
        let clocks = std::mem::take(&mut self.clocks).into_iter().map(|(cpu, samples)| {
            let found = samples.and_then(|samples| clock::summary(&samples)).into();
            CpuReading { cpu, found }
        });
        let clocks = Probed { found: Reading::Measured(clocks.collect()), took_ns: self.clocks_took_ns };
        let audit = audit::compare(&self.stamps, audit::tsc(root)).into();
        (clocks, Probed { found: audit, took_ns: self.elapsed_ns() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_round_finds_something_of_everything() {
        let root = Root::live();
        let facts = crate::facts::read(&root).cpus;
        let allowed = affinity::get(0).unwrap();
        let options = Options { duration_ns: 100_000_000, ..Options::default() };
        let mut steps = Vec::new();
        let probes = run(&root, &facts, &options, &mut |step| steps.push(step.done_ratio));
        assert!(!probes.cpus.is_empty() && probes.cpus.len() <= options.cpus_max);
        assert_eq!(probes.cpus_allowed as usize, allowed.len());
        assert!(steps.is_sorted() && steps.iter().all(|done| (0.0..1.0).contains(done)), "{steps:?}");
        assert!(probes.syscall.found.value().is_some());
        assert_eq!(probes.clock.found.value().unwrap().len(), probes.cpus.len());
        assert!(probes.clock_audit.found.value().unwrap().window_ns > 0);
        assert_eq!(affinity::get(0).unwrap(), allowed);
    }

    #[test]
    fn a_cpu_that_is_not_there_has_everything_missing() {
        let options =
            Options { duration_ns: 1_000_000, cpus: vec![affinity::CPUS_MAX - 1], ..Options::default() };
        let probes = run(&Root::live(), &[], &options, &mut |_| {});
        assert!(probes.syscall.found.value().is_none() && probes.switch.found.value().is_none());
        let clocks = probes.clock.found.ok().unwrap();
        assert!(clocks.iter().all(|clock| clock.found.value().is_none()));
        assert!(probes.wakeup.found.ok().unwrap().iter().all(|wakeup| wakeup.late.value().is_none()));
    }
}
