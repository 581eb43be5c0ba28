//! Threads: those of the SUT and the generator at every sample, tare's own and everybody else's at the edges.

mod at_once;
mod open_waits;
mod others;
mod parse;
mod report;
mod resting;
mod state;
mod state_samples;
mod watched;
mod who;

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::rights;
use crate::roles::processes;
use crate::scene::{Scene, USER_TICK_NS, next_multiple};
use crate::tape::Reading;
use open_waits::Open;
use parse::{Schedstat, parse_schedstat};
use report::{report_resting, report_watched};
use state::{ALL, Tasks};
use std::collections::{BTreeMap, BTreeSet};
use tare_machine::procs;
use tare_model::Missing;
use tare_model::metrics::tasks;
use tare_model::observation::Role;
use tare_model::schedule::Downstream;
use tare_sys::time::monotonic_ns;
use watched::Source;

/// Threads whose samples between the edges are kept, at most: those that ran most.
const SERIES_MAX: usize = 64;
/// Readings and looks a second between the edges, at most: with more threads each is read less often.
const READINGS_HZ_MAX: f64 = 2000.0;
const STATES_HZ_MAX: f64 = 4000.0;
/// How often one that has slept since the window began is looked at, where not all are looked at more seldom.
const ASLEEP_HZ: f64 = 5.0;
/// How often run and wait are read.
const RUN_HZ: f64 = 20.0;
/// How often the slower `stat` is read, and how often new threads are looked for.
const STAT_HZ: f64 = 5.0;
const RESCAN_HZ: f64 = 2.0;
/// How often switches are read: their rate may change threefold within a second.
const STATUS_HZ: f64 = 10.0;
/// How often the threads of programs that the SUT calls are read.
const DOWNSTREAM_HZ: f64 = 5.0;

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    Box::new(Tasks::new(scene))
}

impl Observer for Tasks {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        self.at_once.begin();
        (self.unopened, self.unseen, self.is_open) = (None, None, false);
        let processes = processes(scene);
        self.forget_strangers(scene, &processes);
        let now_ns = monotonic_ns();
        for watched in &mut self.watched {
            watched.state_samples.begin(now_ns);
            watched.was_resting = false;
        }
        self.pids.clear();
        for &(pid, role) in &processes {
            self.discover(scene, pid, role);
        }
        self.at_begin = self.watched.len();
        self.others.begin(scene, &self.pids);
        // The edge reads all of them: what we ran until then, to look who is there, is not of the window.
        self.tape.clear();
    }

    fn meet(&mut self, scene: &Scene) {
        for pid in &scene.watch.sut_pids {
            self.discover(scene, *pid, Role::Sut);
            for child in procs::children(&scene.root, *pid) {
                self.discover(scene, child, Role::Sut);
            }
        }
    }

    fn edge(&mut self, _edge: &mut Edge) {
        // The SUT first: its accounting is the one that must close.
        for role in [Role::Sut, Role::Downstream, Role::Other, Role::Load, Role::Tare] {
            self.read(role, &ALL);
        }
        if std::mem::replace(&mut self.is_open, true) {
            self.rest.end();
        }
    }

    /// Looks what threads of the SUT are doing: all of them where `schedstat` is about to be read, else those that go to
    /// sleep and wake.
    fn sample_states(&mut self, scene: &Scene, tick: u64) {
        let now_ns = monotonic_ns();
        let stride = self.readings_stride();
        let is_due = |hz: f64| tick.is_multiple_of(scene.every(hz) * stride);
        let all = is_due(RUN_HZ);
        let asleep = if stride > 1 { all } else { is_due(ASLEEP_HZ) };
        let is_now = tick.is_multiple_of(states_stride(scene, self.restless(now_ns)));
        let Tasks { watched, unseen, .. } = self;
        for watched in watched.iter_mut().filter(|watched| watched.role == Role::Sut && !watched.gone) {
            let is_due = if watched.state_samples.has_only_slept() { asleep } else { all };
            if !(is_due || is_now && watched.is_restless(now_ns)) {
                continue;
            }
            match watched.read_state() {
                Err(error) if is_forbidden(&error) => {
                    *unseen = Some(refused("/proc/PID/task/TID/syscall", &error));
                    watched.forbid_syscall();
                }
                // Ended; the next reading tells as well.
                Err(_) | Ok(()) => {}
            }
        }
        if all || is_now {
            self.at_once.count(&self.watched);
        }
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        let stride = self.readings_stride();
        let is_due = |hz: f64| tick.is_multiple_of(scene.every(hz) * stride);
        let runs = if is_due(RUN_HZ) { self.rest.runs() } else { None };
        for (hz, source) in
            [(RUN_HZ, Source::Schedstat), (STAT_HZ, Source::Stat), (STATUS_HZ, Source::Status)]
        {
            if is_due(hz) {
                self.read_changed(Role::Sut, source);
                self.read_changed(Role::Load, source);
            }
        }
        // Which CPUs they ran on: nobody else samples that.
        if is_due(DOWNSTREAM_HZ) {
            self.read(Role::Downstream, &[Source::Schedstat, Source::Stat]);
        }
        self.settle(scene, tick, is_due(RUN_HZ));
        if let Some(runs) = runs {
            self.wake(scene, &runs);
        }
        if is_due(RESCAN_HZ) {
            self.rescan(scene);
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        let stride = self.readings_stride();
        let readings = [RUN_HZ, STAT_HZ, STATUS_HZ, RESCAN_HZ];
        let reading = readings.map(|hz| next_multiple(scene.every(hz) * stride, tick)).into_iter().min();
        let states = match self.restless(monotonic_ns()) {
            0 => u64::MAX,
            restless => next_multiple(states_stride(scene, restless), tick),
        };
        reading.map_or(states, |reading| reading.min(states))
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        self.rescan(scene);
        let met = |pid: &u32| self.pids.contains(pid);
        let strangers: Vec<_> = processes(scene).into_iter().filter(|(pid, _)| !met(pid)).collect();
        strangers.into_iter().for_each(|(pid, role)| self.discover(scene, pid, role));
        let mut readings: BTreeMap<u32, Vec<Reading>> = BTreeMap::new();
        for reading in self.tape.readings() {
            readings.entry(reading.source).or_default().push(reading);
        }
        let series = self.worth_a_series(&readings);
        let open_ns = self.open_waits(&readings, observed.begin_ns());
        for (at, watched) in (0u32..).zip(&self.watched) {
            let of = |source: Source| readings.get(&source.number(at)).map_or(&[][..], Vec::as_slice);
            if !of(Source::Schedstat).is_empty() {
                // One that was found later had started before only if its start, rounded down, says so.
                let started_ns = scene.started_ns(watched.start_ticks);
                let is_new = (at as usize) >= self.at_begin
                    && !watched.was_resting
                    && started_ns + USER_TICK_NS > observed.begin_ns();
                let origin_ns = is_new.then(|| started_ns.clamp(observed.begin_ns(), observed.end_ns()));
                let waits = open_ns.get(&at).copied();
                report_watched(watched, origin_ns, &of, series.contains(&at), waits, observed);
            }
        }
        if self.watched.iter().any(|watched| !watched.state_samples.is_empty()) {
            observed.sampled(self.downstream(), self.at_once.counts());
        }
        report_resting(scene, self.rest.threads(), observed);
        self.others.report(scene, &self.pids, observed);
        self.report_absences(scene, observed);
    }
}

impl Tasks {
    /// Finds out what those that were looked at sleep on.
    fn settle(&mut self, scene: &Scene, tick: u64, is_read: bool) {
        let now_ns = monotonic_ns();
        let Tasks { watched, peers, .. } = self;
        peers.forget();
        watched.iter_mut().for_each(|watched| watched.settle(scene, peers, now_ns, tick, is_read));
    }

    /// Threads of the SUT that go to sleep and wake.
    fn restless(&self, now_ns: u64) -> usize {
        self.watched.iter().filter(|watched| watched.is_restless(now_ns)).count()
    }

    fn readings_stride(&self) -> u64 {
        let downstream_hz = self.alive(Role::Downstream) as f64 * DOWNSTREAM_HZ;
        let hz = (self.alive(Role::Sut) + self.alive(Role::Load)) as f64 * RUN_HZ + downstream_hz;
        over(hz, READINGS_HZ_MAX)
    }

    /// The servers that threads were found waiting for.
    fn downstream(&self) -> Vec<Downstream> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (why, count) in self.watched.iter().flat_map(|watched| watched.state_samples.counts()) {
            if let Some(peer) = why.and_then(|why| self.peers.name(why.peer?)) {
                *counts.entry(peer).or_default() += count;
            }
        }
        counts.into_iter().map(|(peer, count)| Downstream { peer, ns: 0, count }).collect()
    }

    fn alive(&self, role: Role) -> usize {
        self.watched.iter().filter(|watched| watched.role == role && !watched.gone).count()
    }

    fn read(&mut self, role: Role, sources: &[Source]) {
        for at in 0..self.watched.len() {
            if self.watched[at].role == role && !self.watched[at].gone {
                self.read_one(at, sources);
            }
        }
    }

    /// Between the edges: a file of a thread that did not run says what it said.
    fn read_changed(&mut self, role: Role, source: Source) {
        for at in 0..self.watched.len() {
            let watched = &mut self.watched[at];
            if watched.role != role || watched.gone {
                continue;
            }
            match watched.unchanged(source) {
                Some((at_ns, text)) => self.tape.keep(source.number(at as u32), at_ns, text),
                None => self.read_one(at, &[source]),
            }
        }
    }

    /// How long the waits had lasted that were open at the beginning and at the end, of threads that were there at both, those among them that
    /// rested at first.
    fn open_waits(&self, readings: &BTreeMap<u32, Vec<Reading>>, begin_ns: u64) -> BTreeMap<u32, [u64; 2]> {
        let of = |at: u32, source: Source| readings.get(&source.number(at)).map_or(&[][..], Vec::as_slice);
        let mut waits = BTreeMap::new();
        let mut open = Vec::new();
        for (at, watched) in (0u32..).zip(&self.watched) {
            let schedstat: Vec<Schedstat> =
                of(at, Source::Schedstat).iter().filter_map(Schedstat::of).collect();
            let rested =
                watched.was_resting && schedstat.first().is_some_and(|first| first.at_ns <= begin_ns);
            let was_there = (at as usize) < self.at_begin || rested;
            if watched.gone || !was_there || !matches!(watched.role, Role::Sut | Role::Load) {
                continue;
            }
            waits.insert(at, [open_waits::before_ns(&schedstat), 0]);
            let stat = of(at, Source::Stat).last().map_or("", Reading::text);
            open.extend(Open::new(at, watched, &schedstat, stat));
        }
        for (at, open_ns) in open_waits::follow(open) {
            if let Some([_, at_end_ns]) = waits.get_mut(&at) {
                *at_end_ns = open_ns;
            }
        }
        waits.retain(|_, open_ns| *open_ns != [0, 0]);
        waits
    }

    /// The threads of the SUT and the generator that ran most.
    fn worth_a_series(&self, readings: &BTreeMap<u32, Vec<Reading>>) -> BTreeSet<u32> {
        let mut ran: Vec<(u64, u32)> = Vec::new();
        for (at, watched) in (0u32..).zip(&self.watched) {
            let all = readings.get(&Source::Schedstat.number(at)).map_or(&[][..], Vec::as_slice);
            if let ([first, .., last], true) = (all, watched.role != Role::Tare) {
                let run = |reading: &Reading| parse_schedstat(reading.text()).map_or(0, |(run, _)| run);
                ran.push((run(last).saturating_sub(run(first)), at));
            }
        }
        ran.retain(|(run_ns, _)| *run_ns > 0);
        ran.sort_unstable_by(|one, other| other.cmp(one));
        ran.into_iter().take(SERIES_MAX).map(|(_, at)| at).collect()
    }

    fn report_absences(&self, scene: &Scene, observed: &mut Observed) {
        let sut_seen = self.watched.iter().any(|watched| watched.role == Role::Sut);
        let nobody = match (&self.unopened, scene.watch.sut_pids.is_empty()) {
            (Some(reason), _) => reason.clone(),
            (None, true) => Missing::new("the SUT is not seen from here"),
            (None, false) => rights::unseen(&scene.root),
        };
        for &metric in tasks::DESCRIPTORS {
            let is_sample = metric.id.starts_with(tasks::SAMPLES.id);
            match (&self.unseen, sut_seen) {
                (_, false) => observed.absent(metric, None, nobody.clone()),
                (Some(_), true) if is_sample => observed.absent(metric, None, rights::syscalls(&scene.root)),
                _ => {}
            }
        }
    }
}

/// Every how many turns something is done that would be done `hz` times a second and may be `max_hz` times.
fn over(hz: f64, max_hz: f64) -> u64 {
    (hz / max_hz).ceil().max(1.0) as u64
}

/// Every how many ticks this many threads are looked at.
fn states_stride(scene: &Scene, threads: usize) -> u64 {
    over(threads as f64 * scene.sample_hz(), STATES_HZ_MAX)
}

fn is_forbidden(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::watched::Watched;
    use super::*;
    use crate::watch::Watch;
    use tare_machine::Root;

    /// Two threads that had waited for 40 ms as the window began: one rested then, the other was first seen later.
    #[test]
    fn a_thread_that_rested_may_have_waited_as_the_window_began() {
        let folder = tempfile::tempdir().unwrap();
        let task = folder.path().join("proc/7/task/7");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(task.join("stat"), format!("7 (web) S{}\n", " 1".repeat(49))).unwrap();
        std::fs::write(task.join("schedstat"), "0 0 0\n").unwrap();
        let scene = Scene::new(Watch::default(), &Root::at(folder.path()));
        let mut tasks = Tasks::new(&scene);
        let mut found = |was_resting: bool| {
            let mut watched = Watched::open(&scene, 7, 7, Role::Sut).unwrap();
            watched.was_resting = was_resting;
            tasks.watched = vec![watched];
            tasks.tape.clear();
            for (at_ms, wait_ms) in [(990, 0), (1_020, 70), (1_060, 70)] {
                let text = format!("0 {} 1\n", wait_ms * 1_000_000);
                tasks.tape.keep(Source::Schedstat.number(0), at_ms * 1_000_000, text.as_bytes());
            }
            let readings = tasks.tape.readings().collect();
            let readings = BTreeMap::from([(Source::Schedstat.number(0), readings)]);
            tasks.open_waits(&readings, 1_000_000_000)
        };
        assert_eq!(found(true), BTreeMap::from([(0, [40_000_000, 0])]));
        assert_eq!(found(false), BTreeMap::new());
    }
}
