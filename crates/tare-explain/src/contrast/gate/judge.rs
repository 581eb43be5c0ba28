//! A run held against another one, or against a history.

use super::history;
use super::row::{Row, absolute, error, of_run};
use tare_model::comparison::{Change, Figure, Verdict};
use tare_model::condition::Condition;
use tare_model::gate::{Against, BLIND, ChangePoint, Effect, FigureValue, Gate, Judged, Run, SCHEMA, State};
use tare_model::outcome::Warning;
use tare_model::{Missing, Reading};
use tare_stats::{Interval, Jackknife, simultaneous_intervals, t_quantile};

/// Worse by more than this fails where nothing else was asked for.
const DEFAULT_BOUND: f64 = -0.05;

/// What is asked of a gate.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Differences up to this share do not matter.
    pub margin: f64,
    /// What it is to fail on. `None`: net lower by 5 %, or throughput where net cannot be compared.
    pub conditions: Option<Vec<Condition>>,
}

/// Holds a run against another one.
pub fn against_baseline(new: Run, baseline: Run, asked: &Asked) -> Gate {
    let rows = Figure::of_servers().map(|figure| pair(figure, &baseline, &new)).collect();
    let mut warnings = Vec::new();
    for run in [&baseline, &new] {
        not_valid(run, &mut warnings);
    }
    let mut differ = |id: &str, what: &str, [from, to]: [&String; 2], hint: &str| {
        if from != to {
            let text = format!("{what}: {from} in {}, {to} in {}", baseline.label, new.label);
            warnings.push(Warning { id: id.into(), text, hint: hint.into() });
        }
    };
    let both = |of: fn(&Run) -> &String| [of(&baseline), of(&new)];
    differ(
        "other-plan",
        "the two were not asked for the same",
        both(|run| &run.plan),
        "make both with the same command: what differs may be the question",
    );
    differ(
        "other-machine",
        "the two ran on different machines",
        both(|run| &run.machine),
        "only what was measured against the reference server is compared",
    );
    differ(
        "other-kernel",
        "the two ran under different kernels",
        both(|run| &run.kernel),
        "what differs may be the kernel; make the baseline again",
    );
    let valid = baseline.valid && new.valid;
    let method = "95 % intervals that hold together for all figures, from the trials of both runs; those that are not of the \
                  reference are wide enough for a machine whose interference moves between runs as it does within them (1/f noise). What \
                  only a new launch changes is not in them: a --history knows it, and 'tare compare' of both builds takes it out";
    finished(new, Against::Baseline(baseline), asked, valid, rows, (Vec::new(), method.to_owned(), warnings))
}

/// Holds a run against those of a history, the oldest first.
pub fn against_history(new: Run, runs: &[Run], asked: &Asked) -> Gate {
    let mut warnings = Vec::new();
    not_valid(&new, &mut warnings);
    let past = history::Past::of(&new, runs, &mut warnings);
    let levels = Figure::of_servers().map(|figure| past.level(figure, &new));
    let (rows, change_points): (Vec<Row>, Vec<Vec<ChangePoint>>) = levels.unzip();
    let method = "95 % intervals that hold together for all figures, in which one more run of the same program would lie by what \
                  the runs since the last change point differ by";
    let change_points = change_points.into_iter().flatten().collect();
    let valid = new.valid;
    finished(new, past.against(), asked, valid, rows, (change_points, method.to_owned(), warnings))
}

/// Whether the record of a run is one of the history's: it must not be judged by itself, nor kept twice.
pub fn is_kept(new: &Run, runs: &[Run]) -> bool {
    runs.iter().any(|run| history::is_same(new, run))
}

/// A figure of two runs, in units of the reference where both have it so.
pub(in crate::contrast) fn pair(figure: Figure, baseline: &Run, new: &Run) -> Row {
    let sides = [baseline, new].map(|run| run.against_reference.get(&figure));
    let (of_reference, sides) = match sides {
        [Some(from), Some(to)] => (true, [Ok(*from), Ok(*to)]),
        _ => (false, [baseline, new].map(|run| absolute(run, figure))),
    };
    let [baseline_value, value] = [0, 1].map(|side| sides[side].as_ref().ok().map(|of| of.value));
    let foreign = !of_reference && baseline.machine != new.machine;
    let spread = match sides {
        [Ok(_), Ok(_)] if foreign => Err(Missing::with_remedy(
            "the two ran on different machines, and it was not measured against the reference server in both",
            "run both on machines of one kind, or without --no-levels and --no-reference",
        )),
        [Ok(from), Ok(to)] => between(from, to).map(|sides| match of_reference {
            true => sides,
            false => sides.map(|side| side.between_runs(apart(baseline, new))),
        }),
        [Err(missing), _] => Err(of_run(baseline, missing)),
        [_, Err(missing)] => Err(of_run(new, missing)),
    };
    Row { figure, of_reference, baseline: baseline_value, value, runs: 1, runs_missing: 0, spread }
}

/// How many lengths of a run the one began before the other; where a length is not known, a second: it is hardly less.
fn apart(one: &Run, other: &Run) -> f64 {
    let place = |run: &Run| (run.time_unix_s, run.length_s.unwrap_or(1.0));
    crate::contrast::apart::lengths(place(one), place(other))
}

fn between(from: FigureValue, to: FigureValue) -> Result<[Jackknife; 2], Missing> {
    let value = (to.value / from.value).ln();
    let side = |measured| {
        error(value, measured).ok_or_else(|| {
            Missing::with_remedy(
                "one trial does not say how far trials lie apart",
                "run both with --trials 5 or more",
            )
        })
    };
    Ok([side(from)?, side(to)?])
}

fn finished(
    new: Run,
    against: Against,
    asked: &Asked,
    valid: bool,
    rows: Vec<Row>,
    (change_points, method, warnings): (Vec<ChangePoint>, String, Vec<Warning>),
) -> Gate {
    with_conditions(
        Gate {
            schema: SCHEMA,
            new,
            against,
            margin: asked.margin,
            valid,
            effects: effects(rows, asked.margin),
            benchmarks: Vec::new(),
            change_points,
            conditions: Vec::new(),
            method,
            warnings,
        },
        asked,
    )
}

/// With what became of the conditions, and a warning of those that it could not have shown.
pub(super) fn with_conditions(mut gate: Gate, asked: &Asked) -> Gate {
    let conditions = asked.conditions.clone().unwrap_or_else(|| vec![usual(&gate.effects)]);
    let hint = match gate.against {
        Against::Interleaved(_) => "give a longer --budget",
        Against::Baseline(_) | Against::History { .. } => {
            "measure both builds interleaved (tare gate --sut NEW --against OLD), or take more and longer trials"
        }
    };
    let blind = conditions.iter().filter_map(|condition| blind(*condition, &gate.effects, hint));
    gate.warnings.extend(blind.collect::<Vec<_>>());
    gate.conditions = conditions.into_iter().map(|condition| judged(condition, &gate.effects)).collect();
    gate
}

/// Where the smallest change that is shown is larger than the one that is asked for.
fn blind(condition: Condition, effects: &[Effect], hint: &str) -> Option<Warning> {
    let effect = effects.iter().find(|effect| effect.figure == condition.figure)?;
    let shown = effect.detectable.filter(|shown| *shown > condition.bound.abs())?;
    effect.change.value().filter(|change| !condition.is_proven_by(**change))?;
    let text = format!(
        "'{condition}' asks for a smaller change than this gate finds: of {}, changes of {:.2} % and more are found in nine of ten cases",
        condition.figure.name(),
        shown * 100.0
    );
    Some(Warning { id: BLIND.into(), text, hint: hint.into() })
}

/// Of a true change in the worse direction that is shown with this probability.
const SHOWN: f64 = 0.9;

/// The smallest true change for the worse that is shown in nine of ten cases, as a share: it reaches beyond the interval's half by so much
/// of its error.
fn detectable(figure: Figure, [one, other]: &[Jackknife; 2], interval: Interval) -> Option<f64> {
    let both = one.added_to(*other);
    let reach = 0.5 * (interval.hi - interval.lo) + t_quantile(SHOWN, both.df)? * both.se;
    let worse = if figure.higher_is_better() { -(-reach).exp_m1() } else { reach.exp_m1() };
    worse.is_finite().then_some(worse)
}

/// Intervals of all figures that have any, together.
pub(in crate::contrast) fn effects(rows: Vec<Row>, margin: f64) -> Vec<Effect> {
    let spreads: Vec<[Jackknife; 2]> = rows.iter().filter_map(|row| row.spread.clone().ok()).collect();
    let side = |at: usize| spreads.iter().map(|both| both[at]).collect::<Vec<_>>();
    let mut intervals = simultaneous_intervals(&side(0), &side(1)).unwrap_or_default().into_iter();
    let mut effect = |row: Row| {
        let (mut verdict, mut change) = (Verdict::CannotTell, Reading::missing("its interval has no end"));
        let mut shown = None;
        match row.spread {
            Ok(spread) => {
                let interval = intervals.next();
                let shares = interval.and_then(|interval| interval.map(f64::exp_m1));
                if let Some((interval, shares)) = interval.zip(shares) {
                    verdict = Verdict::of(row.figure, interval, margin);
                    shown = detectable(row.figure, &spread, interval);
                    let interval = [shares.lo, shares.hi];
                    change = Reading::Measured(Change { value: spread[0].value.exp_m1(), interval });
                }
            }
            Err(missing) => change = Reading::Missing(missing),
        }
        let Row { figure, of_reference, baseline, value, runs, runs_missing, .. } = row;
        Effect {
            figure,
            of_reference,
            baseline,
            value,
            runs,
            runs_missing,
            change,
            detectable: shown,
            verdict,
        }
    };
    rows.into_iter().map(&mut effect).collect()
}

/// Net is the program's own, so it is gone by where it can be: `throughput` moves with everything that the machine does.
fn usual(effects: &[Effect]) -> Condition {
    let can = |figure: Figure| {
        let mine = effects.iter().find(|effect| effect.figure == figure);
        mine.is_some_and(|effect| effect.change.value().is_some() || effect.runs_missing > 0)
    };
    let figure = if can(Figure::Net) || !can(Figure::Throughput) { Figure::Net } else { Figure::Throughput };
    Condition { figure, above: false, bound: DEFAULT_BOUND }
}

fn judged(condition: Condition, effects: &[Effect]) -> Judged {
    let effect = effects.iter().find(|effect| effect.figure == condition.figure);
    let change = effect.and_then(|effect| effect.change.value());
    let state = match change {
        Some(change) if condition.is_proven_by(*change) => State::Proven,
        Some(_) => State::NotProven,
        None if effect.is_some_and(|effect| effect.runs_missing > 0) => State::TooFewRuns,
        None => State::CannotTell,
    };
    Judged { condition: condition.to_string(), figure: condition.figure, state }
}

fn not_valid(run: &Run, warnings: &mut Vec<Warning>) {
    if !run.valid {
        let text = format!("{} is not a valid result: its figures mean something else", run.label);
        let hint = "look at it alone first (tare show), and measure it again";
        warnings.push(Warning { id: "not-valid".into(), text, hint: hint.into() });
    }
}
