//! Everything that limit, rules and warnings judge by: the pooled books of the levels, and gross, tare and net
//! with their intervals.

use crate::allotment::{Allotment, Loss};
use crate::cost::{self, Choice};
use crate::iron::{Chain, Point, allotment_parts};
use crate::window::{Context, Window};
use std::collections::BTreeMap;
use tare_record::outcome::TareCause;
use tare_record::plan::{CommandWorkload, HttpWorkload, Level as PlannedLevel, Purpose, Workload};
use tare_record::trial::{CommandSample, Measure};
use tare_record::{Missing, Record};
use tare_stats::{Interval, Jackknife, jackknife};

/// Several trials of one kind, each alone and together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    pub trials: Vec<Window>,
    pub pool: Window,
}

impl Level {
    pub fn new(trials: Vec<Window>) -> Self {
        let pool = Window::pool(&trials);
        Level { trials, pool }
    }

    /// The books with one trial left out.
    fn without(&self, skip: Option<usize>) -> Window {
        Window::pool(
            self.trials
                .iter()
                .enumerate()
                .filter(|(place, _)| Some(*place) != skip)
                .map(|(_, window)| window),
        )
    }

    /// Jackknife over the trials of anything computed from pooled books.
    pub fn spread(&self, statistic: impl Fn(&Window) -> Option<Vec<f64>>) -> Option<Vec<Jackknife>> {
        jackknife(self.trials.len(), |skip| match skip {
            None => statistic(&self.pool),
            skip => statistic(&self.without(skip)),
        })
    }

    /// 95 % interval of one figure.
    pub fn interval(&self, statistic: impl Fn(&Window) -> Option<f64>) -> Option<Interval> {
        self.spread(|window| Some(vec![statistic(window)?]))?.first()?.ci95()
    }
}

/// Gross → tare → net with intervals.
#[derive(Debug, Clone)]
pub(crate) struct Weighing {
    /// req/s (http) or seconds (commands).
    pub net: f64,
    pub net_ci95: Option<Interval>,
    pub parts: Vec<(TareCause, f64, Option<Interval>)>,
    /// Clock that net is stated at.
    pub reference_hz: Option<f64>,
    pub allotted: f64,
    /// How the cost at saturation was come by (http).
    pub choice: Option<Choice>,
}

/// The books of a record.
pub(crate) struct Books<'a> {
    pub record: &'a Record,
    pub http: Option<&'a HttpWorkload>,
    pub command: Option<&'a CommandWorkload>,
    /// The trials that gross is measured in: the asked level's, or the first command's.
    pub asked: Level,
    pub asked_level: Option<&'a PlannedLevel>,
    pub saturating: Option<Level>,
    pub saturating_level: Option<&'a PlannedLevel>,
    /// Every trial in order.
    pub windows: Vec<Window>,
    pub point: Result<Point, Missing>,
    pub weighing: Result<Weighing, Missing>,
}

impl<'a> Books<'a> {
    /// Keeps the books of a record.
    pub fn keep(record: &'a Record) -> Books<'a> {
        let context = Context::new(record);
        let windows: Vec<Window> = record.trials.iter().map(|trial| context.window(trial)).collect();
        match &record.plan.workload {
            Workload::Http(http) => Books::http(record, http, windows),
            Workload::Command(command) => Books::command(record, command, windows),
        }
    }

    fn http(record: &'a Record, http: &'a HttpWorkload, windows: Vec<Window>) -> Books<'a> {
        let index_of = |purpose| http.levels.iter().position(|level| level.purpose == purpose);
        let level_of = |index: Option<usize>| {
            let trials = record.trials.iter().zip(&windows).filter(|(trial, _)| {
                Some(trial.level as usize) == index && matches!(trial.sample, Measure::Http(_))
            });
            Level::new(trials.map(|(_, window)| window.clone()).collect())
        };
        let (asked_index, saturating_index) = (index_of(Purpose::Asked), index_of(Purpose::Saturating));
        let asked = level_of(asked_index);
        let saturating = Some(level_of(saturating_index)).filter(|level| !level.trials.is_empty());
        let point = Point::of(&asked.pool);
        let reference_hz = record.plan.ref_clock_hz.filter(|hz| hz.is_finite() && *hz > 0.0).or_else(|| {
            let clocks: Vec<f64> =
                windows.iter().flat_map(|window| window.clocks_hz.iter().copied()).collect();
            tare_stats::quantile(&clocks, 0.95)
        });
        let weighing = match &point {
            Ok(point) => weigh(point, &asked, saturating.as_ref(), reference_hz),
            Err(missing) => Err(missing.clone()),
        };
        Books {
            record,
            http: Some(http),
            command: None,
            asked,
            asked_level: asked_index.and_then(|index| http.levels.get(index)),
            saturating,
            saturating_level: saturating_index.and_then(|index| http.levels.get(index)),
            windows,
            point,
            weighing,
        }
    }

    fn command(record: &'a Record, command: &'a CommandWorkload, windows: Vec<Window>) -> Books<'a> {
        let asked = crate::command::level(record, &windows, 0);
        let weighing = crate::command::weigh(record, 0, &asked, &windows);
        Books {
            record,
            http: None,
            command: Some(command),
            asked,
            asked_level: None,
            saturating: None,
            saturating_level: None,
            windows,
            point: Err(Missing::new("a command answers no requests")),
            weighing,
        }
    }

    /// The SUT's allotment at the asked level; `None` when it cannot be seen.
    pub fn sut(&self) -> Option<&Allotment> {
        self.asked.pool.sut.as_ref().filter(|sut| sut.allotted_s > 0.0)
    }

    /// The generator's.
    pub fn load(&self) -> Option<&Allotment> {
        self.asked.pool.load.as_ref().filter(|load| load.allotted_s > 0.0)
    }

    /// ln share of the tare that a cause took. Where net is missing, what the allotment alone tells.
    pub fn effect(&self, cause: TareCause) -> f64 {
        if let Ok(weighing) = &self.weighing {
            return weighing.parts.iter().find(|part| part.0 == cause).map_or(0.0, |part| part.1);
        }
        let parts = self.point.as_ref().ok().and_then(|point| allotment_parts(point, point.allotted));
        parts.and_then(|parts| parts.get(&cause).copied()).unwrap_or(0.0)
    }

    /// Share of the asked level's allotment that a loss took, 0 where the SUT cannot be seen.
    pub fn lost(&self, cause: TareCause) -> f64 {
        self.sut().map_or(0.0, |sut| sut.tare_share(cause))
    }

    /// Share of a figure's 95 % interval above a threshold. With one trial there is no interval: a half, since
    /// one look can be either.
    pub fn support(&self, figure: impl Fn(&Window) -> Option<f64>, threshold: f64) -> f64 {
        match self.asked.interval(figure) {
            Some(interval) => interval.share_above(threshold),
            None => 0.5,
        }
    }

    /// [`Books::support`] for a loss as a share of the allotment.
    pub fn support_loss(&self, cause: TareCause, threshold: f64) -> f64 {
        self.support(|window| Some(window.sut.as_ref()?.share(Loss::Tare(cause))), threshold)
    }
}

fn weigh(
    point: &Point,
    asked: &Level,
    saturating: Option<&Level>,
    reference_hz: Option<f64>,
) -> Result<Weighing, Missing> {
    let saturating_point = saturating.and_then(|level| Point::of(&level.pool).ok());
    let choice = cost::choose(point, saturating_point.as_ref())?;
    let chain = Chain::of(point, &choice.cost, reference_hz)
        .ok_or_else(|| Missing::new("a term of the iron law is zero or not a number"))?;
    let causes: Vec<TareCause> = chain.parts.keys().copied().collect();
    // With the cost taken from the asked level itself, each replicate takes its own; else it stands, and its own
    // spread is added below.
    let figures = |window: &Window| {
        let point = Point::of(window).ok()?;
        let own = crate::iron::SaturatedCost {
            cost_s: point.cost_s * choice.cost.cost_s / cost_of(asked)?,
            clock_hz: point.clock_hz,
            program_s: point.program_s,
        };
        let cost = if choice.from_saturating { choice.cost } else { own };
        let chain = Chain::of(&point, &cost, reference_hz)?;
        let parts = causes.iter().map(|cause| chain.parts.get(cause).copied().unwrap_or(0.0));
        Some(std::iter::once(chain.net_hz.ln()).chain(parts).collect())
    };
    let spread = asked.spread(figures);
    let cost_se = cost_se(&choice, asked, saturating);
    let ci = |place: usize, moves_with_cost: bool| {
        let jack = spread.as_ref()?.get(place)?;
        let cost_se = if moves_with_cost { cost_se } else { 0.0 };
        let [below, above] = if moves_with_cost { choice.ln_slack } else { [0.0, 0.0] };
        let around = Interval::around(jack.value, jack.se.hypot(cost_se), jack.df)?;
        // A lower C_sat is a higher net and a larger cost part.
        Interval::new(around.lo - above, around.hi + below)
    };
    let parts = chain
        .parts
        .iter()
        .enumerate()
        .map(|(place, (cause, part))| (*cause, *part, ci(place + 1, *cause == TareCause::Cost)))
        .collect();
    let clocked = chain.parts.contains_key(&TareCause::Clock);
    Ok(Weighing {
        net: chain.net_hz,
        net_ci95: ci(0, true).and_then(|interval| interval.map(f64::exp)),
        parts,
        reference_hz: reference_hz.filter(|_| clocked),
        allotted: point.allotted,
        choice: Some(choice),
    })
}

fn cost_of(level: &Level) -> Option<f64> {
    Point::of(&level.pool).ok().map(|point| point.cost_s)
}

/// Standard error of ln C_sat over the saturating level's trials. A single trial there has no spread of its own:
/// it is one draw with the spread that single trials of the asked level have.
fn cost_se(choice: &Choice, asked: &Level, saturating: Option<&Level>) -> f64 {
    let ln_cost = |window: &Window| {
        let point = Point::of(window).ok()?;
        Some((point.cost_s * point.clock_hz.unwrap_or(1.0)).ln())
    };
    let Some(saturating) = saturating.filter(|_| choice.from_saturating) else { return 0.0 };
    let own = saturating.spread(|window| Some(vec![ln_cost(window)?]));
    if let Some(jack) = own.as_ref().and_then(|jacks| jacks.first()) {
        return jack.se;
    }
    let costs: Vec<f64> = asked.trials.iter().filter_map(ln_cost).collect();
    tare_stats::stdev(&costs).unwrap_or(0.0)
}

/// The parts as the outcome lists them: largest first.
pub(crate) fn by_size(
    parts: &[(TareCause, f64, Option<Interval>)],
) -> Vec<(TareCause, f64, Option<Interval>)> {
    let mut sorted = parts.to_vec();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    sorted
}

/// The command's index by trial, for the rooms that group by it.
pub(crate) fn command_of(sample: &Measure) -> Option<u32> {
    match sample {
        Measure::Command(command) => Some(command.command),
        Measure::Http(_) => None,
    }
}

/// Losses of an allotment by name, in CPUs.
pub(crate) fn losses_cpus(allotment: &Allotment) -> BTreeMap<String, f64> {
    allotment
        .lost_s
        .iter()
        .map(|(loss, lost_s)| (loss.name().to_owned(), crate::allotment::ratio(*lost_s, allotment.wall_s)))
        .collect()
}

/// What only commands have.
impl Books<'_> {
    /// The first command's runs.
    pub fn runs(&self) -> impl Iterator<Item = &CommandSample> {
        crate::command::runs_of(self.record, 0)
    }

    /// Runs that ended with an exit code other than 0 or by a signal, and all runs.
    pub fn failed_runs(&self) -> (usize, usize) {
        (self.runs().filter(|run| run.exit_code != Some(0)).count(), self.runs().count())
    }

    /// CPUs that the runs kept busy or were kept off by others, on average. The kernel's own account of the runs
    /// counts every thread of them, however short its life.
    pub fn ready_cpus(&self) -> Option<f64> {
        let taken = crate::command::taken_cpus(&self.asked.pool).unwrap_or(0.0);
        crate::command::rusage_cpus(self.runs()).map(|cpus| cpus + taken)
    }
}
