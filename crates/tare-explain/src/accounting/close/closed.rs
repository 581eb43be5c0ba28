//! The last stage: sums that the rest of the crate reads. Everything in it is a sum of seconds or counts, so that pooling is adding, and
//! leaving a trial out is adding the others.

use crate::accounting::attribute::cpus::Cpu;
use crate::accounting::attribute::entitlement::Entitlement;
use crate::accounting::attribute::stage::Attributed;
use crate::accounting::attribute::switches::Switches;
use crate::accounting::attribute::thread::Thread;
use crate::accounting::attribute::wait_owners::Throttling;
use crate::accounting::close::answered::Answered;
use crate::accounting::close::residual::{self, Balance};
use crate::accounting::close::unclaimed;
use crate::accounting::raw::around::Around;
use crate::accounting::raw::bounds::CHECKED_S_MIN;
use crate::accounting::raw::downstream::Downstream;
use crate::accounting::raw::ratio::sum;
use crate::accounting::raw::stage::{Raw, Source};
use crate::accounting::reconcile::stage::Hardware;
use std::collections::BTreeMap;
use tare_model::Record;
use tare_model::observation::Role;
use tare_model::plan::Workload;
use tare_model::trial::Trial;

/// The windows that are in the sums.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    /// Trials pooled.
    pub trials: u32,
    /// How many servers were loaded interleaved; 0 and 1: it alone.
    pub interleaved: u32,
    /// Length as the observers saw it.
    pub wall_s: f64,
    /// Shortest single window.
    pub shortest_s: f64,
}

/// Where the time of one trial, or of several pooled, went.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closed {
    pub span: Span,
    /// What the generator counted.
    pub answered: Answered,
    pub threads: Vec<Thread>,
    pub cpus: BTreeMap<u32, Cpu>,
    /// `None` where none of its threads could be read.
    pub sut: Option<Entitlement>,
    pub load: Option<Entitlement>,
    pub balances: BTreeMap<String, Balance>,
    pub hardware: Hardware,
    pub throttling: Throttling,
    pub around: Around,
    /// Programs that the SUT calls.
    pub downstream: Downstream,
    pub switches: Switches,
    /// Run of the SUT with the machine's interference taken out; `None` without a reference.
    pub corrected_run_s: Option<f64>,
    /// Run of tasks that is nobody's, not even anybody else's; `None` where not all were looked at.
    pub unclaimed_s: Option<f64>,
}

impl Attributed<'_> {
    /// Sums up, and checks what stays unclaimed.
    pub fn close(self) -> Closed {
        let Attributed {
            record,
            trial,
            readings,
            threads,
            cpus,
            sut,
            load,
            around,
            downstream,
            hardware,
            throttling,
            switches,
        } = self;
        let wall_s = readings.wall_s();
        Closed {
            span: Span { trials: 1, interleaved: interleaved(record, trial), wall_s, shortest_s: wall_s },
            answered: Answered::of(&trial.sample),
            unclaimed_s: unclaimed::unclaimed_s(&readings, &threads, &cpus),
            balances: residual::balances(&readings, &threads, &cpus, &trial.sample),
            threads,
            // Comes after the checks, which are made with the kernel's own figures.
            cpus: cpus.into_iter().map(|(number, cpu)| (number, cpu.without_steal())).collect(),
            sut,
            load,
            hardware,
            throttling,
            around,
            downstream,
            switches,
            corrected_run_s: None,
        }
    }
}

impl Closed {
    /// Every trial of a record, in order.
    pub fn all(record: &Record) -> Vec<Closed> {
        Closed::since(record, 0)
    }

    /// The trials after the first so many, in order.
    pub fn since(record: &Record, first: usize) -> Vec<Closed> {
        let source = Source::new(record);
        let close = |trial| Raw::read(&source, trial).reconcile().attribute().close();
        record.trials.iter().skip(first).map(close).collect()
    }

    /// How many servers were loaded interleaved, this one among them: at least 1.
    pub fn arms(&self) -> u32 {
        self.span.interleaved.max(1)
    }

    /// Says by what factor everything cost more in this trial than it usually does.
    pub fn take_interference_out(&mut self, factor: f64) {
        self.corrected_run_s = self.sut.as_ref().map(|sut| sut.run_s / factor);
    }

    /// Several trials together.
    pub fn pool<'c>(trials: impl IntoIterator<Item = &'c Closed>) -> Closed {
        let mut trials = trials.into_iter();
        let mut pool = trials.next().cloned().unwrap_or_default();
        for closed in trials {
            pool.absorb(closed);
        }
        pool
    }

    fn absorb(&mut self, other: &Closed) {
        self.span.trials += other.span.trials;
        self.span.wall_s += other.span.wall_s;
        self.span.shortest_s = self.span.shortest_s.min(other.span.shortest_s);
        self.answered.absorb(&other.answered);
        self.absorb_threads(&other.threads);
        for (number, cpu) in &other.cpus {
            match self.cpus.get_mut(number) {
                Some(known) => known.absorb(cpu),
                None => {
                    self.cpus.insert(*number, cpu.clone());
                }
            }
        }
        absorb_entitlement(&mut self.sut, &other.sut);
        absorb_entitlement(&mut self.load, &other.load);
        for (name, balance) in &other.balances {
            self.balances.entry(name.clone()).or_default().absorb(balance);
        }
        self.hardware.absorb(&other.hardware);
        self.throttling.absorb(&other.throttling);
        self.around.absorb(&other.around);
        self.downstream.absorb(&other.downstream);
        self.switches.absorb(&other.switches);
        self.corrected_run_s = sum(self.corrected_run_s, other.corrected_run_s);
        self.unclaimed_s = sum(self.unclaimed_s, other.unclaimed_s);
    }

    /// Adds each thread to itself; one that is new (a generator started for each trial) to the one of the same
    /// role and name that is gone, so that eight threads stay eight.
    fn absorb_threads(&mut self, others: &[Thread]) {
        // Several that ended have no number of their own: their name and role stand for it.
        let key = |thread: &Thread| {
            let several = (!thread.is_one()).then(|| (thread.id.role as u8, thread.id.name.clone()));
            (thread.id.pid, thread.id.tid, several)
        };
        let places: BTreeMap<_, usize> =
            self.threads.iter().enumerate().map(|(place, thread)| (key(thread), place)).collect();
        let mut taken = vec![false; self.threads.len()];
        let known = |thread: &Thread| places.get(&key(thread)).copied();
        for place in others.iter().filter_map(known) {
            taken[place] = true;
        }
        let mut gone: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
        for (place, thread) in self.threads.iter().enumerate().rev().filter(|(place, _)| !taken[*place]) {
            gone.entry((thread.id.role as usize, thread.id.name.clone())).or_default().push(place);
        }
        for thread in others {
            let successor = || gone.get_mut(&(thread.id.role as usize, thread.id.name.clone()))?.pop();
            match known(thread).or_else(successor).and_then(|place| self.threads.get_mut(place)) {
                Some(mine) => mine.absorb(thread),
                None => self.threads.push(thread.clone()),
            }
        }
    }

    /// Answers per second; `None` where they could not be counted.
    pub fn rate_hz(&self) -> Option<f64> {
        self.answered.rate_hz()
    }

    /// Answers per second of its own part of the time; the same where it alone was loaded.
    pub fn rate_interleaved_hz(&self) -> Option<f64> {
        self.rate_hz().map(|rate_hz| rate_hz * f64::from(self.arms()))
    }

    /// Something that grew at `amount` per observed second, for each request.
    pub fn per_request(&self, amount: f64) -> Option<f64> {
        let rate_hz = self.rate_hz().filter(|rate_hz| *rate_hz > 0.0)?;
        (self.span.wall_s > 0.0).then(|| amount / self.span.wall_s / rate_hz)
    }

    /// Median effective clock of the SUT's CPUs.
    pub fn clock_hz(&self) -> Option<f64> {
        tare_stats::median(&self.hardware.clocks_hz)
    }

    /// Threads of a role.
    pub fn threads_of(&self, role: Role) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(move |thread| thread.id.role == role)
    }

    /// A count summed over a role's threads; `None` when it was read of none of them.
    pub fn sum_of(&self, role: Role, of: impl Fn(&Thread) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.threads_of(role).filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// What the accounting of the SUT's CPUs, or of its group, leaves open, as a share of its run; 0 where nothing was checked.
    pub fn open_share_of_run(&self) -> f64 {
        let Some(sut) = self.sut.as_ref().filter(|sut| sut.run_s > 0.0) else { return 0.0 };
        let of_cpu = |cpu: &u32| self.balances.get(&residual::cpu_name(*cpu)).map_or(0.0, Balance::gap_s);
        let of_cpus = sut.usable.iter().map(of_cpu).sum::<f64>() / sut.run_s;
        let of_group = self.balances.get(residual::GROUP).map_or(0.0, Balance::ratio);
        of_cpus.max(of_group)
    }

    /// What nobody claims, as a share of the SUT's own run, where that is too much for a verdict.
    pub fn unclaimed_share(&self) -> Option<f64> {
        let unclaimed_s = self.unclaimed_s.filter(|_| self.span.shortest_s >= CHECKED_S_MIN)?;
        let run_s = self.sut.as_ref().map(|sut| sut.run_s).filter(|run_s| *run_s > 0.0)?;
        unclaimed::is_much(unclaimed_s, run_s, self.span.wall_s).then(|| unclaimed_s / run_s)
    }

    /// The largest difference of a check, also where an error may be all of it, as a share.
    pub fn missing_share(&self) -> f64 {
        self.balances.values().map(Balance::gap_share).fold(0.0, f64::max)
    }

    /// The largest residual and each by name.
    pub fn residuals(&self) -> (Option<f64>, BTreeMap<String, f64>) {
        let named: BTreeMap<String, f64> =
            self.balances.iter().map(|(name, balance)| (name.clone(), balance.ratio())).collect();
        (named.values().copied().max_by(f64::total_cmp), named)
    }
}

/// How many servers the plan loads interleaved at the level of a trial.
fn interleaved(record: &Record, trial: &Trial) -> u32 {
    match &record.plan.workload {
        Workload::Http(http) => http.levels.get(trial.level as usize).map_or(1, |level| level.arms),
        Workload::Command(_) => 0,
    }
}

fn absorb_entitlement(mine: &mut Option<Entitlement>, other: &Option<Entitlement>) {
    match (mine.as_mut(), other) {
        (Some(mine), Some(other)) => mine.absorb(other),
        (None, Some(other)) => *mine = Some(other.clone()),
        (_, None) => {}
    }
}
