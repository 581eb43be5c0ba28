//! The accounting of one trial, and of several pooled: everything in it is a sum of seconds or counts, so that pooling
//! is adding, and leaving a trial out is adding the others.

use crate::accounting::attribute::entitlement::Entitlement;
use crate::accounting::attribute::switches::{self, Switches};
use crate::accounting::attribute::taken;
use crate::accounting::attribute::wait;
use crate::accounting::close::residual::{self, Balance};
use crate::accounting::raw::around::Around;
use crate::accounting::raw::idle_periods::IdlePeriods;
use crate::accounting::raw::quota::Quota;
use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::cpus::{self, Cpu};
use crate::accounting::reconcile::execution::{self, Events};
use crate::accounting::reconcile::placement;
use crate::accounting::reconcile::threads::Thread;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::metric::Subject;
use tare_model::metrics::{self, clock, pmu, wakeups};
use tare_model::observation::{Observation, Role};
use tare_model::trial::{ErrorKind, Measure, Trial};
use tare_model::{Missing, Record};

/// What one trial, or several, put into the accounting.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    /// Trials pooled in it.
    pub trials: u32,
    /// How many servers were loaded interleaved; 0 and 1: it alone.
    pub interleaved: u32,
    /// Length as the observers saw it.
    pub wall_s: f64,
    /// Shortest single window.
    pub shortest_s: f64,
    pub threads: Vec<Thread>,
    pub cpus: BTreeMap<u32, Cpu>,
    /// `None` where none of its threads could be read.
    pub sut: Option<Entitlement>,
    pub load: Option<Entitlement>,
    pub balances: BTreeMap<String, Balance>,
    /// Effective clock samples of the SUT's CPUs (of all, where the SUT is unseen).
    pub clocks_hz: Vec<f64>,
    pub quota: Option<Quota>,
    /// `None` where no group's throttled time could be read.
    pub throttled_s: Option<f64>,
    pub around: Around,
    /// Wake-ups of a thread of the SUT by another; `None` where they were not counted.
    pub sut_wakeups: Option<f64>,
    pub switches: Switches,
    /// Hardware events of the SUT's threads and of the generator's; `None` where they were not counted.
    pub sut_events: Option<Events>,
    pub load_events: Option<Events>,
    /// Why there are none.
    pub no_events: Option<Missing>,
    /// Times that a CPU of the generator's left its idle loop; `None` where they were not counted on all of them.
    pub load_idle_exits: Option<f64>,
    /// Run of the SUT with the machine's interference taken out; `None` without a reference.
    pub corrected_run_s: Option<f64>,
    /// As the generator measured it (http), or start to exit (commands).
    pub elapsed_s: f64,
    /// Answers; `None` where a foreign generator's count could not be read, and for commands.
    pub requests: Option<f64>,
    pub errors: BTreeMap<ErrorKind, f64>,
    /// Requests that an open loop should have sent; `None` for a closed loop.
    pub scheduled: Option<f64>,
}

/// What the accounting of every trial of a record need from the whole of it.
pub(crate) struct Context<'a> {
    pub record: &'a Record,
    idle_periods: IdlePeriods,
}

impl<'a> Context<'a> {
    pub fn new(record: &'a Record) -> Self {
        Context { record, idle_periods: IdlePeriods::new(record) }
    }

    /// does the time accounting of one trial.
    pub fn window(&self, trial: &Trial) -> Window {
        let observation = &trial.observation;
        let readings = Readings::new(observation);
        let wall_s = readings.wall_s();
        let mut threads = Thread::read_all(&readings);
        let regime = &self.record.machine.regime;
        let mut cpus = Cpu::read_all(&readings, regime, &self.idle_periods.costs_ns(trial));
        placement::reconcile(&mut threads, &cpus);
        cpus::fill_ran(&mut cpus, &threads, wall_s);
        let reported = switches::follow(&mut threads, &cpus, observation);
        threads.iter_mut().for_each(Thread::close_waits);
        let quota = Quota::read(&readings);
        let edges_s = if quota.is_some() { wait::throttled_edges_s(&threads) } else { 0.0 };
        let throttled_s = wait::throttled_s(&readings).map(|counted_s| (counted_s + edges_s).max(0.0));
        let throttled =
            wait::split(&mut threads, &mut cpus, throttled_s, &switches::held_cpus_s(observation), wall_s);
        taken::attribute(&mut threads, &cpus);
        threads.iter_mut().for_each(Thread::split_sleep);
        let entitlement = |role, planned| Entitlement::of(role, &threads, &cpus, &throttled, planned, wall_s);
        let sut = entitlement(Role::Sut, self.record.plan.sut_cpus.as_slice());
        let load = entitlement(Role::Load, self.record.plan.load_cpus.as_slice());
        let load_idle_exits = load.as_ref().and_then(|load| idle_exits(&readings, &load.usable));
        let balances = residual::balances(&readings, &threads, &cpus, &trial.sample);
        // Counted is better than timed: by the PMU for the SUT's threads, by its CPUs for themselves.
        let counted_hz = execution::clocks_hz(&readings);
        let of_cpus_hz = execution::aperf_hz(&readings, &self.record.plan.sut_cpus);
        let clocks_hz = [counted_hz, of_cpus_hz].into_iter().find(|clocks| !clocks.is_empty());
        let clocks_hz = clocks_hz.unwrap_or_else(|| clocks(&readings, observation, &cpus));
        let events = |role| Events::read(&readings, &threads, role);
        let (sut_events, load_events) = (events(Role::Sut), events(Role::Load));
        cpus::take_steal_out_of_run(&mut cpus);
        let mut window = Window {
            trials: 1,
            wall_s,
            shortest_s: wall_s,
            threads,
            cpus,
            sut,
            load,
            balances,
            clocks_hz,
            quota,
            throttled_s,
            around: Around::read(&readings),
            sut_wakeups: sut_wakeups(&readings),
            switches: Switches::read(observation, reported),
            sut_events,
            load_events,
            no_events: observation
                .absences
                .iter()
                .find(|absence| absence.metric == pmu::CYCLES.id)
                .map(|absence| absence.reason.clone()),
            load_idle_exits,
            ..Window::default()
        };
        window.count(&trial.sample);
        window
    }
}

impl Window {
    /// How many servers were loaded interleaved, this one among them: at least 1.
    pub fn arms(&self) -> u32 {
        self.interleaved.max(1)
    }

    fn count(&mut self, sample: &Measure) {
        match sample {
            Measure::Http(http) => {
                self.elapsed_s = http.elapsed_ns as f64 / 1e9;
                self.requests = http.requests.value().map(|count| *count as f64);
                self.errors = http.errors.iter().map(|(kind, count)| (*kind, *count as f64)).collect();
                self.scheduled = http.scheduled.map(|count| count as f64);
            }
            Measure::Command(command) => self.elapsed_s = command.wall_ns as f64 / 1e9,
        }
    }

    /// The accounting of several trials together.
    pub fn pool<'w>(windows: impl IntoIterator<Item = &'w Window>) -> Window {
        let mut windows = windows.into_iter();
        let mut pool = windows.next().cloned().unwrap_or_default();
        for window in windows {
            pool.absorb(window);
        }
        pool
    }

    fn absorb(&mut self, other: &Window) {
        self.trials += other.trials;
        self.wall_s += other.wall_s;
        self.shortest_s = self.shortest_s.min(other.shortest_s);
        self.absorb_threads(&other.threads);
        for (cpu, accounting) in &other.cpus {
            match self.cpus.get_mut(cpu) {
                Some(known) => known.absorb(accounting),
                None => {
                    self.cpus.insert(*cpu, accounting.clone());
                }
            }
        }
        absorb_entitlement(&mut self.sut, &other.sut);
        absorb_entitlement(&mut self.load, &other.load);
        for (name, balance) in &other.balances {
            self.balances.entry(name.clone()).or_default().absorb(balance);
        }
        self.clocks_hz.extend(&other.clocks_hz);
        self.quota = Quota::pooled(self.quota.take(), other.quota.as_ref());
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        self.throttled_s = sum(self.throttled_s, other.throttled_s);
        self.around.absorb(&other.around);
        self.sut_wakeups = sum(self.sut_wakeups, other.sut_wakeups);
        self.switches.absorb(&other.switches);
        absorb_events(&mut self.sut_events, &other.sut_events);
        absorb_events(&mut self.load_events, &other.load_events);
        self.load_idle_exits = sum(self.load_idle_exits, other.load_idle_exits);
        self.corrected_run_s = sum(self.corrected_run_s, other.corrected_run_s);
        self.elapsed_s += other.elapsed_s;
        self.requests = sum(self.requests, other.requests);
        self.scheduled = sum(self.scheduled, other.scheduled);
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }

    /// Adds each thread to itself; one that is new (a generator started for each trial) to the one of the same
    /// role and name that is gone, so that eight threads stay eight.
    fn absorb_threads(&mut self, others: &[Thread]) {
        let places: BTreeMap<(u32, u32), usize> = self
            .threads
            .iter()
            .enumerate()
            .map(|(place, thread)| ((thread.pid, thread.tid), place))
            .collect();
        let mut taken = vec![false; self.threads.len()];
        let known = |thread: &Thread| places.get(&(thread.pid, thread.tid)).copied();
        for place in others.iter().filter_map(known) {
            taken[place] = true;
        }
        let mut gone: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
        for (place, thread) in self.threads.iter().enumerate().rev().filter(|(place, _)| !taken[*place]) {
            gone.entry((thread.role as usize, thread.name.clone())).or_default().push(place);
        }
        for thread in others {
            let successor = || gone.get_mut(&(thread.role as usize, thread.name.clone()))?.pop();
            match known(thread).or_else(successor).and_then(|place| self.threads.get_mut(place)) {
                Some(mine) => mine.absorb(thread),
                None => self.threads.push(thread.clone()),
            }
        }
    }

    /// Answers per second; `None` where they could not be counted.
    pub fn rate_hz(&self) -> Option<f64> {
        self.requests.filter(|_| self.elapsed_s > 0.0).map(|count| count / self.elapsed_s)
    }

    /// Answers per second of its own turns; the same where it alone was loaded.
    pub fn rate_interleaved_hz(&self) -> Option<f64> {
        self.rate_hz().map(|rate_hz| rate_hz * f64::from(self.arms()))
    }

    /// Something that grew at `amount` per observed second, for each request.
    pub fn per_request(&self, amount: f64) -> Option<f64> {
        let rate_hz = self.rate_hz().filter(|rate_hz| *rate_hz > 0.0)?;
        (self.wall_s > 0.0).then(|| amount / self.wall_s / rate_hz)
    }

    /// Failed attempts of any kind.
    pub fn errors(&self) -> f64 {
        self.errors.values().sum()
    }

    /// Whether at least half of the errors are of these kinds, which makes what stands behind those the cause of them.
    pub fn fails_mostly_by(&self, kinds: &[ErrorKind]) -> bool {
        let of = |kind: &ErrorKind| self.errors.get(kind).copied().unwrap_or(0.0);
        kinds.iter().map(of).sum::<f64>() >= 0.5 * self.errors().max(1.0)
    }

    /// Errors as a share of all attempts. A status error is an answer too; the others have none.
    pub fn error_share(&self) -> f64 {
        let answerless: f64 =
            self.errors.iter().filter(|(kind, _)| **kind != ErrorKind::Status).map(|(_, count)| count).sum();
        let attempts = (self.requests.unwrap_or(0.0) + answerless).max(self.errors());
        if attempts > 0.0 { self.errors() / attempts } else { 0.0 }
    }

    /// Median effective clock of the SUT's CPUs.
    pub fn clock_hz(&self) -> Option<f64> {
        tare_stats::median(&self.clocks_hz)
    }

    /// Threads of a role.
    pub fn threads_of(&self, role: Role) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(move |thread| thread.role == role)
    }

    /// A count summed over a role's threads; `None` when it was read of none of them.
    pub fn sum_of(&self, role: Role, of: impl Fn(&Thread) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.threads_of(role).filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// What the accounting of the SUT's CPUs, or of its group, leave open, as a share of its run; 0 where nothing was checked.
    pub fn open_share_of_run(&self) -> f64 {
        let Some(sut) = self.sut.as_ref().filter(|sut| sut.run_s > 0.0) else { return 0.0 };
        let of_cpu = |cpu: &u32| self.balances.get(&residual::cpu_name(*cpu)).map_or(0.0, Balance::gap_s);
        let of_cpus = sut.usable.iter().map(of_cpu).sum::<f64>() / sut.run_s;
        let of_group = self.balances.get(residual::GROUP).map_or(0.0, Balance::ratio);
        of_cpus.max(of_group)
    }

    /// The largest residual and each by name.
    pub fn residuals(&self) -> (Option<f64>, BTreeMap<String, f64>) {
        let named: BTreeMap<String, f64> =
            self.balances.iter().map(|(name, balance)| (name.clone(), balance.ratio())).collect();
        (named.values().copied().max_by(f64::total_cmp), named)
    }
}

fn absorb_entitlement(mine: &mut Option<Entitlement>, other: &Option<Entitlement>) {
    match (mine.as_mut(), other) {
        (Some(mine), Some(other)) => mine.absorb(other),
        (None, Some(other)) => *mine = Some(other.clone()),
        (_, None) => {}
    }
}

/// Requests are counted in every window, so events must be, too.
fn absorb_events(mine: &mut Option<Events>, other: &Option<Events>) {
    *mine = mine.take().zip(other.as_ref()).map(|(mut mine, other)| {
        mine.absorb(other);
        mine
    });
}

/// Over all CPUs that were counted on; one that was not read to the end leaves the sum unknown.
fn sut_wakeups(readings: &Readings) -> Option<f64> {
    let columns = readings.observation.columns.iter().filter(|column| column.metric == wakeups::PEER.id);
    let of_cpus: Option<Vec<f64>> =
        columns.map(|column| readings.growth(&wakeups::PEER, &column.subject)).collect();
    of_cpus.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
}

/// Over all of some CPUs; one that was not counted on leaves the sum unknown.
fn idle_exits(readings: &Readings, of: &BTreeSet<u32>) -> Option<f64> {
    let exits = |cpu: &u32| readings.growth(&metrics::cpus::IDLE_EXITS, &Subject::Cpu(*cpu));
    of.iter()
        .map(exits)
        .collect::<Option<Vec<f64>>>()
        .filter(|all| !all.is_empty())
        .map(|all| all.iter().sum())
}

/// Clock samples of the CPUs that the SUT used; of all CPUs where it used none that was sampled.
fn clocks(readings: &Readings, observation: &Observation, cpus: &BTreeMap<u32, Cpu>) -> Vec<f64> {
    let mut used = Vec::new();
    let mut all = Vec::new();
    for column in observation.columns.iter().filter(|column| column.metric == clock::EFFECTIVE_HZ.id) {
        let values = readings.samples(&clock::EFFECTIVE_HZ, &column.subject);
        // Slower than 1 MHz is a failed sample, not a clock.
        let values = values.into_iter().map(|sample| sample.value).filter(|hz| (1e6..1e11).contains(hz));
        let Subject::Cpu(cpu) = column.subject else { continue };
        let sut_ran =
            cpus.get(&cpu).is_some_and(|accounting| accounting.ran_s.sut > 0.01 * accounting.wall_s);
        if sut_ran { &mut used } else { &mut all }.extend(values);
    }
    if used.is_empty() { all } else { used }
}
