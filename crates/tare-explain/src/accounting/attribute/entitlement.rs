//! The CPU entitlement of a role, and where it went: A = busy + Σ losses.
//!
//! A = min(CPUs that it may use, threads that can run at once) and what its helpers ran beside those. With no more serving threads than CPUs, each thread has a CPU to itself and the times of threads say what it
//! lost. With more, threads share CPUs, a wait of one may be the run of another, and the times of CPUs say it.

use crate::accounting::attribute::cpus::Cpu;
use crate::accounting::attribute::thread::Thread;
use crate::accounting::attribute::wait::Wait;
use crate::accounting::attribute::working::Limit;
use crate::accounting::raw::asleep::Asleep;
use crate::accounting::raw::ratio::ratio;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::observation::Role;
use tare_model::outcome::TareCause;

/// Where a part of the CPU entitlement went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loss {
    /// Taken by what is not the program.
    Tare(TareCause),
    /// The program's sleep for reasons of its own (lock, disk, timer): a serial stage of it, which lowers net.
    Program(Asleep),
    /// Programs that it calls ran on its CPUs, where it waited for them or nothing was left: the system's own, which lowers net.
    Downstream,
}

impl Loss {
    pub fn name(self) -> &'static str {
        match self {
            Loss::Tare(cause) => tare_name(cause),
            Loss::Program(why) => why.name(),
            Loss::Downstream => "downstream-cpu",
        }
    }
}

/// The cause's name in data.
pub(crate) fn tare_name(cause: TareCause) -> &'static str {
    match cause {
        TareCause::NoWork => "no-work",
        TareCause::Throttled => "throttled",
        TareCause::Preempted => "preempted",
        TareCause::Placement => "placement",
        TareCause::Steal => "steal",
        TareCause::Irq => "irq",
        TareCause::Scheduler => "scheduler",
        TareCause::SelfContention => "self-contention",
        TareCause::Clock => "clock",
        TareCause::Cost => "cost",
        TareCause::Interference => "interference",
        TareCause::ColdAfterThrottling => "cold-after-throttling",
    }
}

/// The CPU entitlement of a role, CPU-seconds over a window or several.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entitlement {
    /// Length of the windows.
    pub wall_s: f64,
    /// A × wall.
    pub entitled_s: f64,
    /// Run of all its threads.
    pub run_s: f64,
    /// Lives of its serving threads, summed; their number is this over `wall_s`.
    pub serving_s: f64,
    /// CPUs its serving threads may use; empty when unknown.
    pub usable: BTreeSet<u32>,
    /// How many of those threads can run at once; `None` where nothing bounds them but their number.
    pub limit: Option<Limit>,
    pub lost_s: BTreeMap<Loss, f64>,
}

impl Entitlement {
    /// Accounting of a role in one window; `None` when none of its threads was read.
    ///
    /// `planned` are the CPUs it was given, for threads whose affinity was not read.
    pub fn of(
        role: Role,
        threads: &[Thread],
        cpus: &BTreeMap<u32, Cpu>,
        throttled: &BTreeMap<u32, f64>,
        planned: &[u32],
        limit: Option<Limit>,
        wall_s: f64,
    ) -> Option<Entitlement> {
        let mine: Vec<&Thread> = threads.iter().filter(|thread| thread.id.role == role).collect();
        if mine.is_empty() || wall_s <= 0.0 {
            return None;
        }
        let serving = serving(&mine);
        let usable: BTreeSet<u32> = serving.iter().flat_map(|thread| usable_by(thread, planned)).collect();
        let serving_s: f64 = serving.iter().map(|thread| thread.wall_s).sum();
        let usable_s = if usable.is_empty() { f64::INFINITY } else { usable.len() as f64 * wall_s };
        let run_s: f64 = mine.iter().map(|thread| thread.run_s).sum();
        let beside_s = run_s - serving.iter().map(|thread| thread.run_s).sum::<f64>();
        let limit_s = limit.map_or(f64::INFINITY, |limit| limit.threads * wall_s);
        // The same hair of slack as below.
        let is_limited = limit_s * 1.001 < serving_s.min(usable_s);
        // What ran was allowed to: a runtime counts threads in system calls as not running.
        let entitled_s = (serving_s.min(limit_s) + beside_s).max(run_s).min(usable_s);
        let mut entitlement = Entitlement {
            wall_s,
            entitled_s,
            run_s,
            serving_s,
            usable,
            limit: limit.filter(|_| role == Role::Sut),
            lost_s: BTreeMap::new(),
        };
        let by_thread = thread_losses(role, &serving, cpus);
        // A hair of slack: a pool of three workers born just after the window opened is still three workers.
        entitlement.lost_s = if serving_s <= usable_s * 1.001 && !is_limited {
            by_thread
        } else {
            entitlement
                .cpu_losses(role, &serving, cpus, throttled)
                .unwrap_or_else(|| entitlement.scaled(by_thread))
        };
        Some(entitlement)
    }

    /// A in CPUs.
    pub fn cpus(&self) -> f64 {
        ratio(self.entitled_s, self.wall_s)
    }

    /// Busy CPUs.
    pub fn busy(&self) -> f64 {
        ratio(self.run_s, self.wall_s)
    }

    /// Serving threads on average.
    pub fn serving(&self) -> f64 {
        ratio(self.serving_s, self.wall_s)
    }

    /// A loss as a share of the CPU entitlement.
    pub fn share(&self, loss: Loss) -> f64 {
        ratio(self.lost(loss), self.entitled_s)
    }

    /// A loss in seconds.
    pub fn lost(&self, loss: Loss) -> f64 {
        self.lost_s.get(&loss).copied().unwrap_or(0.0)
    }

    pub fn tare_share(&self, cause: TareCause) -> f64 {
        self.share(Loss::Tare(cause))
    }

    pub fn absorb(&mut self, other: &Entitlement) {
        self.wall_s += other.wall_s;
        self.entitled_s += other.entitled_s;
        self.run_s += other.run_s;
        self.serving_s += other.serving_s;
        self.limit = self.limit.zip(other.limit).map(|(mine, limit)| Limit {
            threads: ratio(
                mine.threads * (self.wall_s - other.wall_s) + limit.threads * other.wall_s,
                self.wall_s,
            ),
            ..mine
        });
        self.usable.extend(&other.usable);
        for (loss, lost_s) in &other.lost_s {
            *self.lost_s.entry(*loss).or_default() += lost_s;
        }
    }

    /// Losses CPU by CPU, over the CPUs that may be used; `None` when one of those was not read.
    fn cpu_losses(
        &self,
        role: Role,
        serving: &[&Thread],
        cpus: &BTreeMap<u32, Cpu>,
        throttled: &BTreeMap<u32, f64>,
    ) -> Option<BTreeMap<Loss, f64>> {
        let mut lost_s: BTreeMap<Loss, f64> = BTreeMap::new();
        let mut asleep_s = 0.0;
        let mut downstream_s = 0.0;
        let mut add = |cause, lost: f64| *lost_s.entry(Loss::Tare(cause)).or_default() += lost.max(0.0);
        for cpu in &self.usable {
            let here = cpus.get(cpu)?;
            let free_s = here.free_s()?;
            here.times.task_run_s?;
            let mut waited = Wait::default();
            for thread in serving {
                let share = thread.share_on(*cpu);
                waited.absorb(&thread.wait.scaled(share));
            }
            let called_s = if role == Role::Sut { here.ran_s.downstream } else { 0.0 };
            let waited_called_s = if role == Role::Sut { waited.behind_s.downstream } else { 0.0 };
            let system_s =
                if here.is_full() == Some(true) { called_s } else { called_s.min(waited_called_s) };
            let counterpart_s = here.ran_s.sum() - here.ran_s.of(role) - here.ran_s.other - called_s;
            let waited_counterpart_s =
                waited.behind_s.sum() - waited.behind_s.of(role) - waited.behind_s.other - waited_called_s;
            let placement_s = counterpart_s.min(waited_counterpart_s);
            let preempted_s = here.ran_s.other.min(waited.behind_s.other);
            let otherwise_s =
                counterpart_s + here.ran_s.other - placement_s - preempted_s + called_s - system_s;
            // A quota may hold the SUT back while somebody else runs: that second is the quota's.
            let held_s = if role == Role::Sut { throttled.get(cpu).copied().unwrap_or(0.0) } else { 0.0 };
            let held_behind_s = (held_s - here.throttled_s).clamp(0.0, otherwise_s.max(0.0));
            let delayed_s = free_s.min(waited.scheduler_s);
            add(TareCause::Placement, placement_s);
            add(TareCause::Preempted, preempted_s);
            add(TareCause::Throttled, here.throttled_s + held_behind_s);
            add(TareCause::Scheduler, delayed_s);
            add(TareCause::Steal, here.times.steal_apart_s());
            add(TareCause::Irq, here.times.irq_s());
            downstream_s += system_s;
            asleep_s += (free_s - delayed_s).max(0.0) + (otherwise_s - held_behind_s).max(0.0);
        }
        // CPUs that it could not have used whatever happened are not lost.
        let beyond_s = (self.usable.len() as f64 * self.wall_s - self.entitled_s).max(0.0);
        let spare_s = beyond_s.min(asleep_s);
        asleep_s -= spare_s;
        shrink(&mut lost_s, beyond_s - spare_s);
        if downstream_s > 0.0 {
            lost_s.insert(Loss::Downstream, downstream_s);
        }
        spread_sleep(&mut lost_s, serving, asleep_s);
        Some(lost_s)
    }

    /// The thread losses shrunk to what the CPU entitlement lacks: the best there is without accounting of the CPUs.
    fn scaled(&self, by_thread: BTreeMap<Loss, f64>) -> BTreeMap<Loss, f64> {
        let mut lost_s = by_thread;
        lost_s.remove(&Loss::Tare(TareCause::SelfContention));
        let sum: f64 = lost_s.values().sum();
        let lacking_s = (self.entitled_s - self.run_s).max(0.0);
        let scale = if sum > 0.0 { lacking_s / sum } else { 0.0 };
        lost_s.into_iter().map(|(loss, lost)| (loss, lost * scale)).collect()
    }
}

/// Takes `by_s` off the losses, from each its part.
fn shrink(lost_s: &mut BTreeMap<Loss, f64>, by_s: f64) {
    let sum: f64 = lost_s.values().sum();
    let left = if sum > 0.0 { (1.0 - by_s / sum).max(0.0) } else { 1.0 };
    lost_s.values_mut().for_each(|lost| *lost *= left);
}

/// The threads that do the work. Where none ran enough to count, those that ran at all: a server that is hardly
/// asked for anything is still there.
fn serving<'t>(mine: &[&'t Thread]) -> Vec<&'t Thread> {
    let of = |wanted: fn(&Thread) -> bool| -> Vec<&'t Thread> {
        mine.iter().copied().filter(|thread| wanted(thread)).collect()
    };
    [of(Thread::serves), of(|thread| thread.run_s > 0.0)]
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_else(|| mine.to_vec())
}

/// The CPUs a thread may use. The affinity of one that has ended cannot be read any more: then where it was put,
/// or where it was seen.
fn usable_by(thread: &Thread, planned: &[u32]) -> Vec<u32> {
    match (thread.id.allowed.as_slice(), planned) {
        ([], []) => thread.cpu_run_s.keys().copied().collect(),
        ([], planned) => planned.to_vec(),
        (allowed, _) => allowed.to_vec(),
    }
}

/// Losses thread by thread.
///
/// No more threads than CPUs are not too many: where one waited behind another, somebody else had the CPU that it could have had.
fn thread_losses(role: Role, serving: &[&Thread], cpus: &BTreeMap<u32, Cpu>) -> BTreeMap<Loss, f64> {
    let mut lost_s: BTreeMap<Loss, f64> = BTreeMap::new();
    let mut own_sum_s = 0.0;
    for thread in serving {
        let wait = &thread.wait;
        let own_s = wait.behind_s.of(role);
        let is_sut = role == Role::Sut;
        let shared_s = if is_sut { asleep_while_s(thread, cpus, Role::Load) } else { 0.0 };
        let idle_s = Asleep::NO_WORK.into_iter().map(|why| thread.asleep(why)).sum::<f64>();
        let shared_s = shared_s.min(idle_s);
        // Asleep while those that it called had its CPU, and nothing of that was left.
        let for_them_s = thread.asleep(Asleep::Downstream);
        let called_s = if is_sut { asleep_while_s(thread, cpus, Role::Downstream) } else { 0.0 };
        let called_s = called_s.min(idle_s - shared_s + for_them_s);
        let called_asleep_s = called_s.min(for_them_s);
        let called_idle_s = called_s - called_asleep_s;
        let before_s = if is_sut { wait.behind_s.downstream } else { 0.0 };
        let parts = [
            (Loss::Tare(TareCause::Throttled), wait.throttled_s),
            (Loss::Tare(TareCause::Preempted), wait.behind_s.other),
            (
                Loss::Tare(TareCause::Placement),
                wait.behind_s.sum() - wait.behind_s.other - own_s - before_s + shared_s,
            ),
            (Loss::Tare(TareCause::Scheduler), wait.scheduler_s),
            (Loss::Tare(TareCause::Steal), thread.taken.steal_s),
            (Loss::Tare(TareCause::Irq), thread.taken.irq_s),
            (Loss::Tare(TareCause::NoWork), idle_s - shared_s - called_idle_s),
            (Loss::Downstream, before_s + called_s),
        ];
        own_sum_s += own_s;
        let less_s = |why| if why == Asleep::Downstream { called_asleep_s } else { 0.0 };
        let own = Asleep::PROGRAM.map(|why| (Loss::Program(why), thread.asleep(why) - less_s(why)));
        for (loss, lost) in parts.into_iter().chain(own).filter(|(_, lost)| *lost > 0.0) {
            *lost_s.entry(loss).or_default() += lost;
        }
    }
    for (loss, lost) in behind_own(role, own_sum_s, serving, cpus) {
        *lost_s.entry(loss).or_default() += lost;
    }
    lost_s
}

/// Who had the CPUs while threads waited behind their own: the other side as far as it ran there, then others, else the scheduler.
/// More threads than CPUs are in each other's way by themselves.
fn behind_own(role: Role, own_s: f64, serving: &[&Thread], cpus: &BTreeMap<u32, Cpu>) -> Vec<(Loss, f64)> {
    let usable: BTreeSet<u32> = serving.iter().flat_map(|thread| usable_by(thread, &[])).collect();
    let there: Option<Vec<&Cpu>> = usable.iter().map(|cpu| cpus.get(cpu)).collect();
    let of = |causes: &[(TareCause, f64)]| -> Vec<(Loss, f64)> {
        let some = causes.iter().filter(|(_, lost)| *lost > 0.0);
        some.map(|(cause, lost)| (Loss::Tare(*cause), *lost)).collect()
    };
    let Some(there) = there.filter(|there| role == Role::Sut && serving.len() <= there.len()) else {
        return of(&[(TareCause::SelfContention, own_s)]);
    };
    let ran = |of: fn(&Cpu) -> f64| there.iter().map(|cpu| of(cpu)).sum::<f64>();
    let placed_s = own_s.min(ran(|cpu| cpu.ran_s.load + cpu.ran_s.tare));
    let preempted_s = (own_s - placed_s).min(ran(|cpu| cpu.ran_s.other));
    of(&[
        (TareCause::Placement, placed_s),
        (TareCause::Preempted, preempted_s),
        (TareCause::Scheduler, own_s - placed_s - preempted_s),
    ])
}

/// Time that a SUT thread slept while the generator (or a program that it calls) ran on its CPU, where that CPU is full, and so is every
/// other that it may use: elsewhere that could have run beside it, so this is the layout's doing (or the system's) and not a lack of
/// load. With a CPU that is free the scheduler had the choice, and put the two together because one only ran while the other slept.
fn asleep_while_s(thread: &Thread, cpus: &BTreeMap<u32, Cpu>, who: Role) -> f64 {
    let is_free = |cpu: &u32| cpus.get(cpu).is_some_and(|here| here.is_full() == Some(false));
    if thread.id.allowed.iter().any(is_free) {
        return 0.0;
    }
    let on = |cpu: &u32| {
        let here = cpus.get(cpu)?;
        let ran_s = here.ran_s.of(who);
        let waited_s = thread.wait.behind_s.of(who) * thread.share_on(*cpu);
        let shared_s = ran_s * thread.share_on(*cpu) - waited_s;
        (here.is_full()? && ran_s > 0.05 * here.times.wall_s).then_some(shared_s.max(0.0))
    };
    thread.cpu_run_s.keys().filter_map(on).sum()
}

/// Divides sleep by the serving threads' own reasons.
fn spread_sleep(lost_s: &mut BTreeMap<Loss, f64>, serving: &[&Thread], asleep_s: f64) {
    let of = |why: Asleep| -> f64 { serving.iter().map(|thread| thread.asleep(why)).sum() };
    let all: f64 = Asleep::SAMPLED.into_iter().chain([Asleep::Unsplit]).map(of).sum();
    let share = |why| if all > 0.0 { of(why) / all } else { 0.0 };
    let mut left = asleep_s;
    for why in Asleep::PROGRAM.into_iter().filter(|why| share(*why) > 0.0) {
        *lost_s.entry(Loss::Program(why)).or_default() += asleep_s * share(why);
        left -= asleep_s * share(why);
    }
    *lost_s.entry(Loss::Tare(TareCause::NoWork)).or_default() += left.max(0.0);
}
