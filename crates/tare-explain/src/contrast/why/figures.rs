//! The figures of two runs, as a gate has them. Where the split has rate, net or the CPU time of a request in the same unit, its figure stands
//! for the gate's, so that no two lines of an account contradict each other.

use crate::capacity::levels::Accounting;
use crate::contrast::gate::{self, effects, pair};
use tare_model::Reading;
use tare_model::comparison::{Change as Share, MARGIN, Verdict};
use tare_model::figure::{Figure, Source};
use tare_model::gate::Effect;
use tare_model::outcome::Outcome;
use tare_model::why::{Change, Part};
use tare_stats::Interval;

/// What the split says.
pub(super) struct Split<'s> {
    pub rate: &'s Reading<Change>,
    pub net: &'s Reading<Change>,
    pub parts: &'s Reading<Vec<Part>>,
}

/// All figures of two servers; none of programs.
pub(super) fn figures(split: &Split, a: (&Accounting, &Outcome), b: (&Accounting, &Outcome)) -> Vec<Effect> {
    let (Ok(from), Ok(to)) = (gate::run_of(a, "A"), gate::run_of(b, "B")) else { return Vec::new() };
    let rows = Figure::of_servers().map(|figure| pair(figure, &from, &to)).collect();
    let mut all = effects(rows, MARGIN);
    for effect in &mut all {
        let known = match effect.figure.describe().source {
            Source::Rate => split.rate.value().cloned(),
            Source::Net => split.net.value().cloned(),
            Source::CpuPerRequest => cost(split.parts),
            _ => None,
        };
        // Why a figure cannot be held against another is the gate's to say, and so is what it is counted in.
        let known = known.map(|known| of_split(effect.figure, &known));
        let is_same =
            |known: &Effect| known.of_reference == effect.of_reference && effect.change.value().is_some();
        if let Some(known) = known.filter(is_same) {
            *effect = known;
        }
    }
    all
}

/// Net, where the figures have it in units of the reference server's: a figure in another unit would be another net beside it.
pub(super) fn net_of(figures: &[Effect]) -> Option<Change> {
    let net = figures.iter().find(|effect| effect.figure == Figure::Net && effect.of_reference)?;
    let change = net.change.value()?;
    Some(Change {
        from: net.baseline?,
        to: net.value?,
        unit: "of tare's own server".to_owned(),
        ln: change.value.ln_1p(),
        ci95: Some(change.interval.map(f64::ln_1p)),
    })
}

/// The CPU time of a request: what it does to the rate, the other way round.
fn cost(parts: &Reading<Vec<Part>>) -> Option<Change> {
    let part =
        parts.value()?.iter().find(|part| part.id == "cost" && matches!(part.unit.as_str(), "s" | "×"))?;
    let (from, to, unit) = (part.from, part.to, part.unit.clone());
    Some(Change { from, to, unit, ln: -part.ln, ci95: part.ci95.map(|[low, high]| [-high, -low]) })
}

fn of_split(figure: Figure, change: &Change) -> Effect {
    let interval = change.ci95.map(|[lo, hi]| Interval { lo, hi });
    let shares = interval.and_then(|interval| interval.map(f64::exp_m1));
    Effect {
        figure,
        of_reference: matches!(change.unit.as_str(), "×") || change.unit.starts_with("of "),
        baseline: Some(change.from),
        value: Some(change.to),
        runs: 1,
        runs_missing: 0,
        change: match shares {
            Some(Interval { lo, hi }) => {
                Reading::Measured(Share { value: change.ln.exp_m1(), interval: [lo, hi] })
            }
            None => Reading::missing("one trial does not say how far trials lie apart"),
        },
        detectable: None,
        verdict: interval.map_or(Verdict::CannotTell, |interval| Verdict::of(figure, interval, MARGIN)),
    }
}
