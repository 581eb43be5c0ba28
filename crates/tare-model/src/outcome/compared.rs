//! The figures of a result that comparisons are about.

use super::{LatencySummary, NetOrMissing, Outcome};
use crate::figure::{Figure, Source};

impl Outcome {
    /// A figure, base units; `None`: missing.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        match figure.describe().source {
            Source::Rate => self.figures.gross.value(),
            Source::Net => match &self.figures.net {
                NetOrMissing::Net(net) => Some(net.value),
                NetOrMissing::Missing(_) => None,
            },
            Source::CpuPerRequest => Some(self.answers.requests.as_ref()?.cpu_ns_per_request.sut? / 1e9),
            Source::Latency(_) => {
                let of = LatencySummary::named(figure.name())?;
                Some(of(self.answers.latency_ns.as_ref()?)? / 1e9)
            }
            Source::Time | Source::CpuTime => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_in_the_summary_of_a_result() {
        for figure in Figure::all().filter(|figure| matches!(figure.describe().source, Source::Latency(_))) {
            assert!(LatencySummary::named(figure.name()).is_some(), "{figure:?}");
        }
    }
}
