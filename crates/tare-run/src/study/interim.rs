//! Intervals over the blocks of a plan: of a fixed number of them, or good for an analysis after each, so that it can end once enough is
//! known.

use super::resolve::Study;
use tare_model::figure::Figure;
use tare_model::outcome::Outcome;
use tare_model::study::Precision;
use tare_stats::{Foresight, Interval, Sequence, mean, mean_interval};

/// Coverage of the intervals.
const LEVEL: f64 = 0.95;
/// With fewer squares Student's t alone would make intervals half as wide again.
const SQUARES_MIN: usize = 4;

/// When the blocks are analysed.
#[derive(Debug)]
pub enum Intervals {
    /// Once, after the last one.
    Once {
        /// So many blocks are taken together.
        square: usize,
    },
    /// After each: intervals hold for all analyses together.
    AfterEach(Sequence),
}

impl Intervals {
    /// Once, of so many cells.
    pub(super) fn once(cells: usize) -> Intervals {
        Intervals::Once { square: if cells == 2 { 2 } else { 1 } }
    }

    /// After each of so many at most. `None` where those are too few.
    pub fn after_each(planned: usize) -> Option<Intervals> {
        Sequence::of_launches(planned, LEVEL).map(Intervals::AfterEach)
    }

    /// As a study asks for.
    pub(super) fn of(study: &Study) -> Intervals {
        let each = study.precision.and_then(|_| Intervals::after_each(study.blocks as usize));
        each.unwrap_or_else(|| Intervals::once(study.cells.len()))
    }

    /// The middle of one value a block and its 95 % interval: the mean, or, where it may end after each block, the trimmed one. `Err`
    /// says why there is none.
    pub(super) fn interval(&self, values: &[f64]) -> Result<(f64, Interval), String> {
        if !values.iter().all(|value| value.is_finite()) {
            return Err("a figure is not a number".to_owned());
        }
        let found = match self {
            Intervals::AfterEach(sequence) => {
                sequence.analyse(&[values]).map(|analysis| (analysis.mean.value, analysis.interval))
            }
            Intervals::Once { .. } => mean_interval(values).and_then(|mean| Some((mean.value, mean.ci95?))),
        };
        found.ok_or_else(|| format!("{} blocks are too few for an interval", values.len()))
    }

    /// The same of what two cells differ by, of each block with its number.
    ///
    /// Of two cells the second block of a square turns the first one's order round: what is slow for the length of two cells meets B twice in AB, BA,
    /// and differences of single blocks are further from the truth, all together, than they are from each other. Those of whole squares are
    /// not, and a drift falls out of them. With three cells and more the blocks of a square hardly lean on each other.
    pub(super) fn of_differences(&self, differences: &[(usize, f64)]) -> Result<(f64, Interval), String> {
        let value = |(_, value): &(usize, f64)| *value;
        if let Intervals::Once { square } = self {
            let squares = differences.chunk_by(|(one, _), (other, _)| one / square == other / square);
            let means = squares.filter_map(|all| mean(&all.iter().map(value).collect::<Vec<f64>>()));
            let means: Vec<f64> = means.collect();
            if means.len() >= SQUARES_MIN {
                return self.interval(&means);
            }
        }
        self.interval(&differences.iter().map(value).collect::<Vec<f64>>())
    }

    /// How well it is known by now what each cell's throughput is over its baseline's; `None` where nobody asked.
    pub(super) fn precision(&self, study: &Study, results: &[Vec<Outcome>]) -> Option<Precision> {
        let asked = study.precision?;
        let others = study.cells.iter().enumerate().filter(|(at, cell)| cell.baseline != *at);
        let pairs = others.map(|(at, cell)| self.known(results.get(cell.baseline)?, results.get(at)?));
        let known: Vec<(f64, Foresight)> = pairs.collect::<Option<_>>().unwrap_or_default();
        let foresights = || known.iter().map(|(_, foresight)| foresight);
        Some(Precision {
            asked,
            reached: largest(known.iter().map(|(half_ln, _)| Some(*half_ln))).map(f64::exp_m1),
            detectable: largest(foresights().map(|foresight| foresight.detectable)).map(f64::exp_m1),
            one_percent_blocks: largest(foresights().map(|foresight| foresight.one_percent_launches)),
        })
    }

    /// Half of the interval of a cell's throughput over its baseline's, on the log, and what more blocks would tell.
    fn known(&self, baseline: &[Outcome], results: &[Outcome]) -> Option<(f64, Foresight)> {
        let Intervals::AfterEach(sequence) = self else { return None };
        let valid =
            baseline.iter().zip(results).filter(|(one, other)| one.verdict.valid && other.verdict.valid);
        let throughput = |outcome: &Outcome| outcome.figure(Figure::Throughput);
        let changes = valid.map(|(one, other)| Some((throughput(other)? / throughput(one)?).ln()));
        let changes = changes.collect::<Option<Vec<f64>>>()?;
        let analysis = sequence.analyse(&[&changes])?;
        Some((
            (analysis.interval.hi - analysis.interval.lo) / 2.0,
            sequence.foresee(&analysis, changes.len()),
        ))
    }
}

/// `None` where one of them is missing: what is not known may be larger.
fn largest<T: PartialOrd>(each: impl Iterator<Item = Option<T>>) -> Option<T> {
    each.reduce(|one, other| Some(if other.as_ref()? > one.as_ref()? { other? } else { one? }))?
}

#[cfg(test)]
#[path = "interim_tests.rs"]
mod tests;
