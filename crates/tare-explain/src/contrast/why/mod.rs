//! Why two runs differ: the difference of their rates in parts, what else was not the same, and where the load
//! generator stood.

mod beside;
mod differences;
mod figures;
mod functions;
mod generator;
mod per_core;
mod split;
mod sums;
mod terms;

use crate::accounting::Closed;
use crate::bottlenecks::signs::lock_callers::named_lock;
use crate::capacity::levels::Accounting;
use crate::capacity::runs;
use beside::Beside;
use split::{Evidence, Split};
use std::collections::BTreeMap;
use sums::Sums;
use tare_model::outcome::{Cause, NetOrMissing, Outcome, TareCause, Warning};
use tare_model::why::{Change, Corrected, Part, Run, SCHEMA, TareChange, Why};
use tare_model::{Missing, Reading, Record};
use tare_stats::{Interval, Jackknife};

/// Accounts for the difference between two records, each with the name that its user knows it by.
///
/// # Errors
/// They are of different kinds, so that nothing in them can be compared.
pub fn why(a: (&str, &Record), b: (&str, &Record)) -> Result<Why, Missing> {
    let (accounting_a, accounting_b) = (Accounting::of(a.1), Accounting::of(b.1));
    if accounting_a.http.is_some() != accounting_b.http.is_some() {
        return Err(Missing::with_remedy(
            "one measures a server and the other a program",
            "compare two runs of the same kind",
        ));
    }
    let (before, after) = (crate::outcome::explain::explain(a.1), crate::outcome::explain::explain(b.1));
    let split = split(&accounting_a, &accounting_b);
    let unit = if accounting_a.http.is_some() { "req/s" } else { "runs/s" };
    let parts = split.as_ref().map(by_size).map_err(Missing::clone);
    let generator =
        split.as_ref().ok().and_then(|split| generator::why_no_work(split, &accounting_a, &accounting_b));
    let (differences, uncompared) = differences::between(&accounting_a, &accounting_b);
    let per_core = differences::other_machine(a.1, b.1)
        .then(|| per_core::per_core(split.as_ref().ok()?, parts.as_ref().ok()?, unit))
        .flatten();
    let warnings = warnings(split.as_ref().ok(), (&accounting_a, &before), (&accounting_b, &after));
    let rate = split.as_ref().map(|split| rate(split, unit)).map_err(Missing::clone).into();
    let net = net(split.as_ref().ok(), (&before, &accounting_a), (&after, &accounting_b));
    let parts = parts.into();
    let of_split = figures::Split { rate: &rate, net: &net, parts: &parts };
    let figures = figures::figures(&of_split, (&accounting_a, &before), (&accounting_b, &after));
    let is_in_units = net.value().is_some_and(|net| net.unit.starts_with("of "));
    let of_figures = figures::net_of(&figures).filter(|_| !is_in_units);
    let net = of_figures.map_or(net, Reading::Measured);
    Ok(Why {
        schema: SCHEMA,
        workload: before.workload.clone(),
        interference_corrected: split.as_ref().ok().and_then(corrected),
        figures,
        per_core,
        method: method(&accounting_a, &accounting_b, split.as_ref().ok()),
        tare: tare(&before, &after),
        a: run(a.0, &accounting_a, before),
        b: run(b.0, &accounting_b, after),
        rate,
        net,
        parts,
        frames: functions::changed(split.as_ref().ok(), &accounting_a, &accounting_b),
        generator,
        differences,
        uncompared,
        warnings,
    })
}

fn run(name: &str, accounting: &Accounting, outcome: Outcome) -> Run {
    let named = outcome.verdict.findings.iter().find(|finding| finding.cause == outcome.verdict.bottleneck);
    let bottleneck_title = named.map(|finding| finding.title.clone()).unwrap_or_default();
    let may_be_a_lock =
        matches!(outcome.verdict.bottleneck, Cause::LockContended | Cause::ParallelismLimited);
    Run {
        name: name.to_owned(),
        started_unix_s: accounting.record.plan.started_unix_s,
        trials: accounting.asked.pool.span.trials,
        gross: outcome.figures.gross,
        gross_is: outcome.figures.gross_is,
        net: outcome.figures.net,
        bottleneck: outcome.verdict.bottleneck,
        bottleneck_title,
        lock_taken_in: may_be_a_lock.then(|| named_lock(accounting)).flatten().map(|lock| lock.function),
        valid: outcome.verdict.valid,
    }
}

fn split(a: &Accounting, b: &Accounting) -> Result<Split, Missing> {
    let open = |accounting: &Accounting| accounting.asked.pool.open_share_of_run();
    let beside = Beside::of(a).zip(Beside::of(b)).map(|(a, b)| [a, b]);
    let evidence = Evidence { open_ln: open(a) + open(b), apart: apart(a, b), beside };
    split::split(&sums(a, "A")?, &sums(b, "B")?, &evidence)
}

fn apart(a: &Accounting, b: &Accounting) -> f64 {
    crate::contrast::apart::lengths(a.place(), b.place())
}

/// The terms of every trial of the asked load.
fn sums(accounting: &Accounting, name: &str) -> Result<Vec<Sums>, Missing> {
    let trials = accounting.measured_trials();
    let sums: Result<Vec<Sums>, Missing> =
        trials.map(|(window, trial)| Sums::of(window, &trial.sample)).collect();
    match sums.map(|sums| as_timed(accounting, sums)) {
        Ok(sums) if sums.is_empty() => Err(Missing::new(format!("{name} has no finished trial"))),
        Ok(sums) => Ok(sums),
        Err(missing) => Err(Missing { why: format!("in {name} {}", missing.why), remedy: missing.remedy }),
    }
}

/// Runs that were observed, as long as those that were timed: what observing made them longer by is nobody's.
fn as_timed(accounting: &Accounting, mut sums: Vec<Sums>) -> Vec<Sums> {
    let mean_s = |window: &Closed| accounting.command.and_then(|_| runs::mean_s(window));
    if let Some((timed_s, observed_s)) =
        mean_s(&accounting.gross_level().pool).zip(mean_s(&accounting.asked.pool))
    {
        sums.iter_mut().for_each(|sums| sums.stretch(timed_s / observed_s));
    }
    sums
}

fn rate(split: &Split, unit: &str) -> Change {
    Change {
        from: split.from_hz,
        to: split.to_hz,
        unit: unit.to_owned(),
        ln: split.ln,
        ci95: split.ci95.map(|interval| [interval.lo, interval.hi]),
    }
}

fn by_size(split: &Split) -> Vec<Part> {
    let mut parts: Vec<Part> = split
        .parts
        .iter()
        .map(|part| Part {
            id: part.id.to_owned(),
            ln: part.ln,
            ci95: part.ci95.map(|interval| [interval.lo, interval.hi]),
            from: part.from,
            to: part.to,
            unit: part.unit.to_owned(),
        })
        .collect();
    parts.sort_by(|one, other| other.ln.abs().total_cmp(&one.ln.abs()));
    parts
}

fn method(a: &Accounting, b: &Accounting, split: Option<&Split>) -> String {
    let (trials_a, trials_b) = (a.asked.pool.span.trials, b.asked.pool.span.trials);
    match split {
        None => "there is nothing to split".to_owned(),
        Some(split) if split.ci95.is_none() => {
            format!("no intervals: {trials_a} and {trials_b} trials do not say how far trials lie apart")
        }
        Some(split) => format!(
            "95 % intervals that hold together for the rate and its {} parts: jackknife over the {trials_a} trials of A and \
             the {trials_b} of B, Welch's degrees of freedom, Šidák's level; wide enough for a machine whose interference moves \
             between runs as it does within them (1/f noise, {:.1} lengths of a run apart), which more trials do not average \
             away: 'tare compare' of both, interleaved, finds smaller differences. What only a new launch changes is not in them",
            split.parts.len(),
            apart(a, b).max(1.0)
        ),
    }
}

fn corrected(split: &Split) -> Option<Corrected> {
    let ends = |interval: Interval| [interval.lo, interval.hi];
    split.corrected.map(|corrected| Corrected { ln: corrected.ln, ci95: corrected.ci95.map(ends) })
}

/// Net of both. Where both were interleaved with the reference server it is net over that server's, by the part `cost`: two sessions
/// have each their own interference, and no interval of one knows the other's. Otherwise its interval is out of those of each, by Welch's
/// degrees of freedom, widened by what such interference may differ by, as the parts are.
fn net(
    split: Option<&Split>,
    before: (&Outcome, &Accounting),
    after: (&Outcome, &Accounting),
) -> Reading<Change> {
    let (from, to) = match (&before.0.figures.net, &after.0.figures.net) {
        (NetOrMissing::Net(from), NetOrMissing::Net(to)) => (from, to),
        (NetOrMissing::Missing(why), _) | (_, NetOrMissing::Missing(why)) => {
            return Reading::Missing(why.clone());
        }
    };
    if let Some(cost) = split.and_then(Split::beside_reference) {
        return Reading::Measured(Change {
            from: 1.0 / cost.from,
            to: 1.0 / cost.to,
            unit: "of tare's own server".to_owned(),
            ln: cost.ln,
            ci95: cost.ci95.map(|interval| [interval.lo, interval.hi]),
        });
    }
    if !(from.value > 0.0 && to.value > 0.0) {
        return Reading::missing("a net figure is not above 0");
    }
    let ln = (to.value / from.value).ln();
    let apart = apart(before.1, after.1);
    let side = |accounting: &Accounting| {
        let half = of_trials(accounting).filter(|[lo, _]| *lo > 0.0).map(|[lo, hi]| 0.5 * (hi / lo).ln())?;
        Some(Jackknife::of_half(ln, half, accounting.asked.pool.span.trials)?.between_runs(apart))
    };
    let both = side(before.1).zip(side(after.1)).and_then(|(one, other)| one.added_to(other).ci95());
    Reading::Measured(Change {
        from: from.value,
        to: to.value,
        unit: from.unit.clone(),
        ln,
        ci95: both.map(|interval| [interval.lo, interval.hi]),
    })
}

fn of_trials(accounting: &Accounting) -> Option<[f64; 2]> {
    let interval = accounting.net_estimate.as_ref().ok()?.net_of_trials?;
    Some([interval.lo, interval.hi])
}

fn tare(before: &Outcome, after: &Outcome) -> Vec<TareChange> {
    let mut changes: BTreeMap<TareCause, (f64, f64)> = BTreeMap::new();
    before.figures.tare.iter().for_each(|part| changes.entry(part.cause).or_default().0 = part.ln_share);
    after.figures.tare.iter().for_each(|part| changes.entry(part.cause).or_default().1 = part.ln_share);
    let change = |(cause, (from_ln, to_ln))| TareChange { cause, from_ln, to_ln };
    let mut changes: Vec<TareChange> = changes.into_iter().map(change).collect();
    let size = |change: &TareChange| (change.to_ln - change.from_ln).abs();
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changes
}

fn warnings(split: Option<&Split>, a: (&Accounting, &Outcome), b: (&Accounting, &Outcome)) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id: &str, text: String, hint: &str| {
        warnings.push(Warning { id: id.to_owned(), text, hint: hint.to_owned() });
    };
    for (name, (_, outcome)) in [("A", a), ("B", b)] {
        if !outcome.verdict.valid {
            let hint = "look at it alone first (tare show), and measure it again";
            warn("not-valid", format!("{name} is not a valid result: its figures mean something else"), hint);
        }
    }
    if let Some(split) = split {
        if split.clockless {
            let hint = "with a clock in both, cost would be in cycles and the clock a part of its own";
            let text = "a run has no clock, so cost is in seconds: a slower clock shows as more CPU time per request";
            warn("no-clock", text.to_owned(), hint);
        }
        if split.ci95.is_none() {
            let text = "one trial does not say how far trials lie apart: no part has an interval";
            warn("no-intervals", text.to_owned(), "run both with --trials 5 or more");
        }
    }
    if differences::other_machine(a.0.record, b.0.record) {
        let text = "the two ran on different machines: cycles of one are not cycles of the other";
        warn(
            "other-machine",
            text.to_owned(),
            "read the parts as an account, not as what a change would bring",
        );
    }
    if let (Some(one), Some(other)) = (a.0.http, b.0.http)
        && one.transport != other.transport
    {
        let text = "the requests travelled differently: costs over different transports are not compared";
        warn("other-transport", text.to_owned(), "drive both over the same transport");
    }
    let several =
        |accounting: &Accounting| accounting.command.is_some_and(|command| command.commands.len() > 1);
    if several(a.0) || several(b.0) {
        let text = "a record holds several commands: the first of each is compared";
        warn("first-command", text.to_owned(), "run the commands to compare into records of their own");
    }
    warnings
}
