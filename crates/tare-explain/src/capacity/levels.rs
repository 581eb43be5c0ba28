//! Everything that bottleneck, causes and warnings are judged by: the levels of load, pooled, and gross, tare and net
//! with their intervals.

use crate::accounting::Closed;
use crate::accounting::{Entitlement, Loss};
use crate::capacity::iron::{Point, entitlement_parts};
use crate::capacity::level::Level;
use crate::capacity::net::{Evidence, NetEstimate, estimate_net};
use crate::capacity::reference::{Interference, cost_s, middle_ns};
use crate::capacity::reference_level;
use crate::capacity::schedule;
use crate::capacity::stopping::stopped;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use tare_model::outcome::{Stopped, TareCause};
use tare_model::plan::{CommandWorkload, HttpWorkload, Level as PlannedLevel, Purpose, Workload};
use tare_model::reference_level::ReferenceLevel;
use tare_model::trial::{CommandSample, Measure, Trial};
use tare_model::{Missing, Record};

/// The time accounting of a record by level of load, with what follows from it.
pub(crate) struct Accounting<'a> {
    pub record: &'a Record,
    pub http: Option<&'a HttpWorkload>,
    pub command: Option<&'a CommandWorkload>,
    /// The trials that gross is measured in: the asked level's (of a load with stages the deciding one's), or the first command's.
    pub asked: Level,
    /// Where that level is in the plan.
    pub asked_index: Option<usize>,
    pub saturating: Option<Level>,
    pub saturating_level: Option<&'a PlannedLevel>,
    /// Every trial in order.
    pub windows: Rc<[Closed]>,
    /// What net is stated at, of a server.
    stated: Option<ReferenceLevel>,
    /// How well gross is known, where that or a budget ended the trials.
    pub stopping: Option<Stopped>,
    pub point: Result<Point, Missing>,
    pub net_estimate: Result<NetEstimate, Missing>,
}

impl<'a> Accounting<'a> {
    /// Does the time accounting of a record.
    pub fn of(record: &'a Record) -> Accounting<'a> {
        let windows = Closed::all(record);
        match &record.plan.workload {
            Workload::Http(http) => Accounting::http(record, http, windows),
            Workload::Command(command) => Accounting::command(record, command, windows),
        }
    }

    fn http(record: &'a Record, http: &'a HttpWorkload, windows: Vec<Closed>) -> Accounting<'a> {
        let mut windows = windows;
        let is_reference = |level: u32| {
            let level = http.levels.get(level as usize);
            level.is_some_and(|level| level.purpose == Purpose::Reference && level.arms > 1)
        };
        let level = reference_level::stated(record, http, &windows);
        if let Some(interference) = Interference::of(record, &windows, is_reference, level.as_ref()) {
            for (trial, window) in record.trials.iter().zip(&mut windows) {
                let factor = interference.factor(middle_ns(trial));
                window.take_interference_out(factor);
            }
        }
        let stopping = stopped(record, 0, &windows);
        let first = || http.levels.iter().position(|level| level.purpose == Purpose::Asked);
        let asked = schedule::deciding(http, &record.trials, &windows).or_else(first);
        Accounting::of_level(record, http, windows.into(), asked, (level, stopping))
    }

    /// The same of another stage of the load.
    pub fn at(&self, stage: usize) -> Accounting<'a> {
        match self.http {
            Some(http) => {
                let known = (self.stated, self.stopping);
                Accounting::of_level(self.record, http, self.windows.clone(), Some(stage), known)
            }
            None => Accounting::of(self.record),
        }
    }

    fn of_level(
        record: &'a Record,
        http: &'a HttpWorkload,
        windows: Rc<[Closed]>,
        asked_index: Option<usize>,
        (stated, stopping): (Option<ReferenceLevel>, Option<Stopped>),
    ) -> Accounting<'a> {
        let index_of = |purpose| http.levels.iter().position(|level| level.purpose == purpose);
        let level_of = |index: Option<usize>| {
            let trials = record.trials.iter().zip(&*windows).filter(|(trial, _)| {
                Some(trial.level as usize) == index && matches!(trial.sample, Measure::Http(_))
            });
            let planned =
                index.and_then(|index| http.levels.get(index)).map_or(0, |level| level.trials as usize);
            Level::new(trials.map(|(_, window)| window.clone()).collect()).of_planned(planned)
        };
        let saturating_index = index_of(Purpose::Saturating);
        let asked = level_of(asked_index);
        let there = |index| Some(level_of(index)).filter(|level: &Level| !level.trials.is_empty());
        let saturating = there(saturating_index);
        let reference = there(index_of(Purpose::Reference));
        let point = Point::of(&asked.pool);
        let reference_hz = record.plan.ref_clock_hz.filter(|hz| hz.is_finite() && *hz > 0.0).or_else(|| {
            if let Some(level) = &stated {
                return level.clock_hz;
            }
            let clocks: Vec<f64> =
                windows.iter().flat_map(|window| window.hardware.clocks_hz.iter().copied()).collect();
            tare_stats::quantile(&clocks, 0.95)
        });
        let net_estimate = match &point {
            Ok(point) => {
                let evidence = Evidence {
                    asked: &asked,
                    saturating: saturating.as_ref(),
                    reference: reference.as_ref(),
                    level: stated,
                };
                estimate_net(point, &evidence, reference_hz).and_then(NetEstimate::if_known)
            }
            Err(missing) => Err(missing.clone()),
        };
        Accounting {
            record,
            http: Some(http),
            command: None,
            asked,
            asked_index,
            saturating,
            saturating_level: saturating_index.and_then(|index| http.levels.get(index)),
            windows,
            stated,
            stopping,
            point,
            net_estimate,
        }
    }

    fn command(record: &'a Record, command: &'a CommandWorkload, windows: Vec<Closed>) -> Accounting<'a> {
        let asked = crate::capacity::command::level(record, &windows, 0);
        let net_estimate = crate::capacity::command::estimate_net(record, 0, &asked, &windows)
            .and_then(NetEstimate::if_known);
        let stopping = stopped(record, 0, &windows);
        Accounting {
            record,
            http: None,
            command: Some(command),
            asked,
            asked_index: None,
            saturating: None,
            saturating_level: None,
            windows: windows.into(),
            stated: None,
            stopping,
            point: Err(Missing::new("a command answers no requests")),
            net_estimate,
        }
    }

    /// The SUT's CPU entitlement at the asked level; `None` when it cannot be seen.
    pub fn sut(&self) -> Option<&Entitlement> {
        self.asked.pool.sut.as_ref().filter(|sut| sut.entitled_s > 0.0)
    }

    /// The generator's.
    pub fn load(&self) -> Option<&Entitlement> {
        self.asked.pool.load.as_ref().filter(|load| load.entitled_s > 0.0)
    }

    /// ln share of the tare that a cause took. Where net is missing, what follows from the entitlement alone.
    pub fn effect(&self, cause: TareCause) -> f64 {
        if let Ok(net_estimate) = &self.net_estimate {
            return net_estimate.parts.iter().find(|part| part.0 == cause).map_or(0.0, |part| part.1);
        }
        let parts = self.point.as_ref().ok().and_then(|point| entitlement_parts(point, point.entitled));
        parts.and_then(|parts| parts.get(&cause).copied()).unwrap_or(0.0)
    }

    /// Share of the asked level's entitlement that a loss took, 0 where the SUT cannot be seen.
    pub fn lost(&self, cause: TareCause) -> f64 {
        self.sut().map_or(0.0, |sut| sut.tare_share(cause))
    }

    /// Share of a figure's 95 % interval above a threshold. With one trial there is no interval: a half, since
    /// one trial can be on either side.
    pub fn support(&self, figure: impl Fn(&Closed) -> Option<f64>, threshold: f64) -> f64 {
        match self.asked.interval(figure) {
            Some(interval) => interval.share_above(threshold),
            None => 0.5,
        }
    }

    /// [`Accounting::support`] for a loss as a share of the entitlement.
    pub fn support_loss(&self, cause: TareCause, threshold: f64) -> f64 {
        self.support(|window| Some(window.sut.as_ref()?.share(Loss::Tare(cause))), threshold)
    }
}

/// Losses of an entitlement by name, in CPUs.
pub(crate) fn losses_cpus(entitlement: &Entitlement) -> BTreeMap<String, f64> {
    entitlement
        .lost_s
        .iter()
        .map(|(loss, lost_s)| (loss.name().to_owned(), crate::accounting::ratio(*lost_s, entitlement.wall_s)))
        .collect()
}

impl<'a> Accounting<'a> {
    /// The plan of the level that gross is measured at.
    pub fn asked_level(&self) -> Option<&'a PlannedLevel> {
        self.http?.levels.get(self.asked_index?)
    }

    /// CPU seconds of a request in each window of a purpose that was interleaved with others, in order.
    pub fn interleaved_costs_s(&self, purpose: Purpose) -> Vec<Option<f64>> {
        let levels = self.http.map(|http| http.levels.as_slice()).unwrap_or_default();
        let trials = self.record.trials.iter().zip(&*self.windows);
        let mine = trials.filter(|(trial, _)| {
            let level = levels.get(trial.level as usize);
            level.is_some_and(|level| level.purpose == purpose && level.arms > 1)
        });
        mine.map(|(_, window)| cost_s(window)).collect()
    }

    /// The trials whose rate, or whose time, is gross: the asked level's, but of a program those runs that were timed.
    pub fn gross_level(&self) -> Cow<'_, Level> {
        match self.command {
            Some(_) => Cow::Owned(crate::capacity::command::timed_level(self.record, &self.windows, 0)),
            None => Cow::Borrowed(&self.asked),
        }
    }

    /// The asked level's trials, with their accounting, in order; of runs of a program those that were observed.
    pub fn measured_trials(&self) -> impl Iterator<Item = (&Closed, &Trial)> {
        let asked = self.asked_index;
        self.record.trials.iter().zip(&*self.windows).filter_map(move |(trial, window)| {
            let mine = match &trial.sample {
                Measure::Http(_) => Some(trial.level as usize) == asked,
                Measure::Command(run) => run.command == 0 && !run.unobserved,
            };
            mine.then_some((window, trial))
        })
    }
}

/// What only commands have.
impl Accounting<'_> {
    /// The first command's runs.
    pub fn runs(&self) -> impl Iterator<Item = &CommandSample> {
        crate::capacity::runs::runs_of(self.record, 0)
    }

    /// Runs that ended with an exit code other than 0 or by a signal, and all runs.
    pub fn failed_runs(&self) -> (usize, usize) {
        (self.runs().filter(|run| run.exit_code != Some(0)).count(), self.runs().count())
    }

    /// Those of them that were observed: what is held against the time accounting.
    pub fn observed_runs(&self) -> impl Iterator<Item = &CommandSample> {
        self.runs().filter(|run| !run.unobserved)
    }

    /// CPUs that the runs kept busy or were kept off by others, on average. The kernel's own account of the runs
    /// counts every thread of them, however short its life.
    pub fn ready_cpus(&self) -> Option<f64> {
        let taken = crate::capacity::runs::taken_cpus(&self.asked.pool).unwrap_or(0.0);
        crate::capacity::runs::rusage_cpus(self.observed_runs()).map(|cpus| cpus + taken)
    }
}
