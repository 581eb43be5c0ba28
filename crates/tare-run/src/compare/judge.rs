//! From launches to what the programs differ by. Pure: a kept comparison can be judged again.

use super::benchmarks;
use super::change::change;
use super::interference::disturbances;
use super::parts::parts;
use super::{alone, treated, warmth};
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::comparison::{
    Arm, Change, Comparison, Disturbance, Effect, Ended, Launch, NotKnown, Program, Verdict,
};
use tare_model::figure::{Figure, Source};
use tare_model::outcome::Warning;
use tare_stats::{LAUNCHES_MIN, Sequence, adjusted, contrasts, level_of_each, median, widened};

/// The last ones tell how long one takes.
pub(super) const PACE_OF: usize = 2;

/// Fewer launches have no result.
pub(super) const FEWEST: usize = 2;
/// A launch in which all programs are slower by more than this than in the median one met interference.
const SLOWER_MAX: f64 = 0.15;
/// More errors than this and the result is not valid.
const ERRORS_MAX: f64 = 0.001;
/// Servers that are busy for less of their turns than this are not what limits the rate.
const BUSY_MIN: f64 = 0.9;
/// More launches than this disturbed is worth a warning.
const DISTURBED_MAX: f64 = 0.25;
/// A launch that takes so long has windows of seconds.
pub(super) const LONG_S: f64 = 4.0;
/// Windows are so much longer than the turns in them without their rests; and launches differ.
const WINDOW_MORE: f64 = 1.5;

/// Judges all launches so far: fills in what follows from them, and whether it is enough.
pub fn judge(comparison: &mut Comparison) {
    mark(&mut comparison.launches);
    let values = gather(comparison);
    comparison.effects = effects(comparison, &values);
    comparison.benchmarks = benchmarks::effects(comparison, |count| sequence(comparison, count));
    comparison.not_known = not_known(comparison, &values);
    // Three more of each program than the figures (busy, user, kernel), whose own intervals stay as they are.
    let more = 3 * comparison.programs.len().saturating_sub(1);
    comparison.parts = parts(comparison, sequence(comparison, figures(&values) + more).as_ref());
    treated::results(comparison);
    comparison.ended = ended(comparison);
    comparison.interleaving = alone::interleaved(comparison);
    comparison.warnings = warnings(comparison);
}

/// Whether no further launch is to be begun.
fn ended(comparison: &Comparison) -> Option<Ended> {
    let enough = |effect: &Effect| {
        effect.change.is_some_and(|change| half_ln(change).is_some_and(|half| half <= comparison.precision))
    };
    let are_metrics = benchmarks::are_precise(&comparison.benchmarks, comparison.precision);
    let mut deciding = comparison.effects.iter().filter(|effect| effect.figure.describe().is_firm).peekable();
    if are_metrics && deciding.peek().is_some() && deciding.all(enough) {
        return Some(Ended::Precise);
    }
    // A launch that would end after the budget is not begun.
    let next_s = comparison.elapsed_s + length_s(&comparison.launches);
    let all = comparison.planned.is_some_and(|planned| comparison.launches.len() >= planned);
    (all || next_s > comparison.budget_s).then_some(Ended::Budget)
}

fn half_ln(change: Change) -> Option<f64> {
    let [low, high] = change.interval.map(f64::ln_1p);
    Some((high - low) / 2.0).filter(|half| half.is_finite())
}

/// A program's index among the others, and a figure.
type Key = (usize, Figure);

/// The values of the first program, its A/A control and another, launch by launch.
#[derive(Default)]
struct Values {
    first: Vec<f64>,
    aa_control: Vec<f64>,
    other: Vec<f64>,
}

/// Of the launches in which all arms have a figure, in the order of their time.
fn gather(comparison: &Comparison) -> BTreeMap<Key, Values> {
    let mut gathered: BTreeMap<Key, Values> = BTreeMap::new();
    for launch in &comparison.launches {
        let [first, aa_control, others @ ..] = launch.arms.as_slice() else { continue };
        for (at, other) in others.iter().enumerate() {
            for figure in Figure::all() {
                let of = |arm: &Arm| arm.figures.get(&figure).copied();
                if let (Some(first), Some(aa_control), Some(other)) = (of(first), of(aa_control), of(other)) {
                    let values = gathered.entry((at, figure)).or_default();
                    values.first.push(first);
                    values.aa_control.push(aa_control);
                    values.other.push(other);
                }
            }
        }
    }
    // What some launches have too few answers for would be of the faster ones alone.
    let launches = comparison.launches.len();
    gathered.retain(|_, values| values.first.len() == launches);
    gathered
}

fn effects(comparison: &Comparison, gathered: &BTreeMap<Key, Values>) -> Vec<Effect> {
    let interference = covariates(&comparison.launches);
    let sequence = sequence(comparison, figures(gathered));
    let others = comparison.programs.get(1..).unwrap_or_default();
    let effect = |(key, values): (&Key, &Values)| {
        let Program { name, .. } = others.get(key.0)?;
        effect(comparison, name, key.1, (values, &interference), sequence.as_ref())
    };
    gathered.iter().filter_map(effect).collect()
}

/// How many figures can be wrong.
fn figures(gathered: &BTreeMap<Key, Values>) -> usize {
    gathered.keys().filter(|(_, figure)| figure.is_of_its_own()).count()
}

/// How so many figures are analysed together.
fn sequence(comparison: &Comparison, figures: usize) -> Option<Sequence> {
    let level = level_of_each(figures);
    comparison.planned.and_then(|planned| match is_of_few(comparison) {
        true => Sequence::of_few(planned, level),
        false => Sequence::of_launches(planned, level),
    })
}

fn effect(
    comparison: &Comparison,
    program: &str,
    figure: Figure,
    (values, interference): (&Values, &[Vec<f64>]),
    sequence: Option<&Sequence>,
) -> Option<Effect> {
    let contrasts = contrasts(&values.first, &values.aa_control, &values.other)?;
    let [one, other] = &contrasts.effect;
    let launches = one.len();
    let analyses = sequence.and_then(|sequence| {
        Some((sequence, sequence.analyse(&[one, other])?, sequence.analyse_aa_control(&contrasts)?))
    });
    let both: Vec<f64> = values.first.iter().chain(&values.aa_control).copied().collect();
    let mut effect = Effect {
        program: program.to_owned(),
        figure,
        baseline: median(&both)?,
        value: median(&values.other)?,
        launches,
        change: None,
        adjusted: None,
        aa_control: None,
        verdict: Verdict::CannotTell,
        detectable: None,
        one_percent_s: None,
    };
    if let Some((sequence, analysis, aa_control)) = analyses {
        let interval = widened(analysis.interval, aa_control.interval);
        let per_launch_s = length_s(&comparison.launches);
        effect.change = change(&analysis, interval);
        let corrected = adjusted(one, interference).zip(adjusted(other, interference));
        let corrected = corrected.and_then(|(one, other)| sequence.analyse(&[&one, &other]));
        effect.adjusted = corrected
            .and_then(|corrected| change(&corrected, widened(corrected.interval, aa_control.interval)));
        effect.aa_control = change(&aa_control, aa_control.interval);
        effect.verdict = Verdict::of(figure, interval, comparison.margin);
        let foresight = sequence.foresee(&analysis, launches);
        effect.detectable = foresight.detectable.map(f64::exp_m1);
        effect.one_percent_s = foresight.one_percent_launches.map(|launches| launches as f64 * per_launch_s);
    }
    Some(effect)
}

/// Whether one error for the effect and the A/A control must do: fewer launches than the trimmed mean has a result for, or hardly more of
/// long ones, whose windows of seconds are seldom wild.
fn is_of_few(comparison: &Comparison) -> bool {
    let is_long = length_s(&comparison.launches) >= LONG_S;
    comparison.planned.is_some_and(|planned| planned < LAUNCHES_MIN || planned < 2 * LAUNCHES_MIN && is_long)
}

/// Figures that some launch lacks.
fn not_known(comparison: &Comparison, gathered: &BTreeMap<Key, Values>) -> Vec<NotKnown> {
    let figures: Vec<Figure> = match comparison.is_of_commands() {
        true => Figure::of_commands().collect(),
        false => Figure::of_servers().collect(),
    };
    let mut not_known = Vec::new();
    if comparison.launches.is_empty() {
        return not_known;
    }
    for (at, program) in comparison.programs.iter().skip(1).enumerate() {
        for figure in figures.iter().copied().filter(|figure| !gathered.contains_key(&(at, *figure))) {
            let why = why_not(&comparison.launches, at, figure);
            not_known.push(NotKnown { program: program.name.clone(), figure, why });
        }
    }
    not_known
}

/// Why there are launches without a figure of a program, of the first one, or of its A/A control.
fn why_not(launches: &[Launch], other: usize, figure: Figure) -> Missing {
    let held: Vec<Vec<&Arm>> = launches.iter().map(|launch| held(launch, other)).collect();
    let lacks = |arms: &&Vec<&Arm>| arms.iter().any(|arm| !arm.figures.contains_key(&figure));
    let lacking = format!("{} of {} launches", held.iter().filter(lacks).count(), launches.len());
    let fewest = held.iter().flatten().map(|arm| arm.answers).min().unwrap_or(0);
    let answers_min = figure.describe().answers_min;
    match figure.describe().source {
        _ if fewest < answers_min => Missing::with_remedy(
            format!("{lacking} had fewer than {answers_min} answers of a server (the fewest: {fewest})"),
            format!(
                "give {}, and a --budget that has room for enough of them",
                long_enough(&held, answers_min)
            ),
        ),
        Source::Net | Source::CpuPerRequest | Source::CpuTime => {
            Missing::new(format!("in {lacking} a process came or went, whose CPU time nobody knows"))
        }
        _ => Missing::new(format!("{lacking} have none of a program")),
    }
}

/// Whom a program is held against, and itself.
fn held(launch: &Launch, other: usize) -> Vec<&Arm> {
    [0, 1, other + 2].into_iter().filter_map(|at| launch.arms.get(at)).collect()
}

/// The window in which the slowest has answers enough in most launches.
fn long_enough(held: &[Vec<&Arm>], answers_min: u64) -> String {
    let slowest_s = |arms: &Vec<&Arm>| {
        let each_s = arms.iter().map(|arm| arm.own_ns as f64 / 1e9 / arm.answers as f64);
        arms.len() as f64 * each_s.fold(0.0, f64::max)
    };
    let slowest_s: Vec<f64> = held.iter().map(slowest_s).collect();
    let window_s = median(&slowest_s).map(|each_s| each_s * answers_min as f64 * WINDOW_MORE);
    match window_s.filter(|window_s| window_s.is_finite()) {
        Some(window_s) => format!("--window {:.1}s or longer", (window_s * 10.0).ceil() / 10.0),
        None => "a longer --window".to_owned(),
    }
}

/// What the launches' interference was, as logarithms; of what was seen in all of them. All programs met the same: what they differ by may
/// go with it all the same, where the one waits for memory and the other computes.
fn covariates(launches: &[Launch]) -> Vec<Vec<f64>> {
    let of = |seen: fn(&Launch) -> Option<f64>| {
        launches.iter().map(|launch| seen(launch).map(f64::ln)).collect::<Option<Vec<f64>>>()
    };
    [of(|launch| launch.interference.compute_s), of(|launch| launch.interference.load_s)]
        .into_iter()
        .flatten()
        .collect()
}

/// Marks what disturbed each launch.
fn mark(launches: &mut [Launch]) {
    let speeds: Vec<Option<f64>> = launches.iter().map(speed_ln).collect();
    let known: Vec<f64> = speeds.iter().flatten().copied().collect();
    let slow = median(&known).map(|middle| middle - SLOWER_MAX);
    for (launch, speed) in launches.iter_mut().zip(speeds) {
        let is_slow = speed.zip(slow).is_some_and(|(speed, slow)| speed < slow);
        launch.disturbed = disturbances(&launch.interference);
        launch.disturbed.extend(is_slow.then_some(Disturbance::Slow));
    }
}

/// How fast all arms were together, as a logarithm.
fn speed_ln(launch: &Launch) -> Option<f64> {
    let ln = |arm: &Arm| match arm.figures.get(&Figure::Throughput) {
        Some(rate) => Some(rate.ln()),
        None => arm.figures.get(&Figure::Time).map(|time_s| -time_s.ln()),
    };
    let sum: f64 = launch.arms.iter().map(ln).sum::<Option<f64>>()?;
    (!launch.arms.is_empty()).then(|| sum / launch.arms.len() as f64)
}

/// Whether answers can be trusted to be answers, and settings were applied.
pub fn is_valid(comparison: &Comparison) -> bool {
    !treated::is_refused(comparison)
        && totals(comparison).iter().all(|total| total.errors_share() <= ERRORS_MAX)
}

/// An arm over all launches.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    own_ns: u64,
    answers: u64,
    errors: u64,
    /// `None` once a launch did not tell it.
    cpu_ns: Option<u64>,
}

impl Total {
    /// Share of its turns in which it kept its CPUs busy.
    fn busy(&self, cpus: f64) -> Option<f64> {
        Some(self.cpu_ns? as f64 / self.own_ns.max(1) as f64 / cpus)
    }

    /// Errors of status are answers as well.
    fn errors_share(&self) -> f64 {
        self.errors as f64 / self.answers.max(self.errors).max(1) as f64
    }
}

fn totals(comparison: &Comparison) -> Vec<Total> {
    let arms = comparison.launches.first().map_or(0, |launch| launch.arms.len());
    let mut totals = vec![Total { cpu_ns: Some(0), ..Total::default() }; arms];
    for launch in &comparison.launches {
        for (total, arm) in totals.iter_mut().zip(&launch.arms) {
            total.own_ns += arm.own_ns;
            total.answers += arm.answers;
            total.errors += arm.errors;
            total.cpu_ns = total.cpu_ns.zip(arm.cpu_ns).map(|(sum, more)| sum + more);
        }
    }
    totals
}

fn warnings(comparison: &Comparison) -> Vec<Warning> {
    let warning = |id: &str, text: String, hint: &str| Warning { id: id.into(), text, hint: hint.into() };
    let totals = totals(comparison);
    let mut warnings = Vec::new();
    // The second arm is the first program as well.
    for (at, total) in
        totals.iter().enumerate().filter(|(at, total)| *at != 1 && total.errors_share() > ERRORS_MAX)
    {
        let Some(program) = comparison.programs.get(at.saturating_sub(1)) else { continue };
        let text = format!(
            "{}: {} of {} requests failed: what is compared is an error",
            program.name,
            total.errors,
            total.answers.max(total.errors)
        );
        warnings.push(warning("errors", text, "ask for what it answers with 200"));
    }
    let cpus = comparison.sut_cpus.len().max(1) as f64;
    let idlest = totals.iter().filter_map(|total| total.busy(cpus)).fold(f64::INFINITY, f64::min);
    if idlest < BUSY_MIN && !comparison.is_of_commands() {
        let text = format!(
            "the servers were busy for {:.0} % of their turns only: throughput and latency tell of the generator as well",
            idlest * 100.0
        );
        warnings.push(warning(
            "not-saturated",
            text,
            "go by the CPU time of a request, or give more connections (-c)",
        ));
    }
    let launches = comparison.launches.len();
    if comparison.ended.is_some() && (launches < FEWEST || comparison.planned.is_none()) {
        let text = format!(
            "{launches} launches fitted into the budget, and {FEWEST} are the fewest that tell anything"
        );
        warnings.push(warning("too-few-launches", text, "give a longer --budget, or a shorter --window"));
    }
    warnings.extend(unlike_quotas(comparison));
    warnings.extend(warmth::warnings(comparison));
    warnings.extend(alone::warnings(comparison));
    warnings.extend(benchmarks::warning(comparison));
    let disturbed = comparison.launches.iter().filter(|launch| !launch.disturbed.is_empty()).count();
    if disturbed as f64 > DISTURBED_MAX * launches as f64 {
        let text = format!(
            "{disturbed} of {launches} launches were disturbed; they count, and intervals are wider for it"
        );
        warnings.push(warning("disturbed", text, "'tare doctor' shows what this machine does"));
    }
    warnings
}

/// A quota is for all of the time, and a server that is interleaved with others has a part of it: it binds less than alone.
fn unlike_quotas(comparison: &Comparison) -> Option<Warning> {
    let launch = comparison.launches.last()?;
    // A quota of more than the servers' CPUs takes nothing.
    let cpus = comparison.sut_cpus.len().max(1) as f64;
    let quota = |at: usize| launch.arms.get(at).and_then(|arm| arm.quota_cpus).filter(|quota| *quota < cpus);
    let others = comparison.programs.iter().enumerate().skip(1);
    let unlike: Vec<&str> = others
        .filter(|(at, _)| quota(at + 1) != quota(0))
        .map(|(_, program)| program.name.as_str())
        .collect();
    let first = comparison.programs.first()?;
    let text = format!(
        "{} may use another CPU quota than {}: each of {} servers is loaded for a part of the time only ({} ms), so that a quota takes \
         less than of a server alone",
        unlike.join(", "),
        first.name,
        launch.arms.len(),
        comparison.turn_ns / 1_000_000
    );
    let hint = "measure each alone (tare run -o FILE --sut …), then 'tare why' of both";
    (!unlike.is_empty()).then(|| Warning { id: "other-quota".into(), text, hint: hint.into() })
}

/// Seconds that a launch takes, by the last ones: the first finds the length of a turn, the first few that of a window.
pub(super) fn length_s(launches: &[Launch]) -> f64 {
    let last = launches.get(launches.len().saturating_sub(PACE_OF)..).unwrap_or(launches);
    last.iter().map(|launch| launch.took_s).sum::<f64>() / last.len().max(1) as f64
}
