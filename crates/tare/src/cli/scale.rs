//! `tare scale`.

use super::choice::ChoiceArgs;
use super::output::OutputArgs;
use super::sweep::{KeptArgs, MEASURING, SweepArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tare_model::scaling::{ScalingModel, Weights};

/// What is fitted, and how.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare scale --connections 1..64 http://127.0.0.1:8080/
  tare scale --cpus 1..4 --sut './server --port 8080' http://127.0.0.1:8080/
  tare scale --n 1..8 -- sysbench cpu --threads={n} --time=2 run
  tare scale --instances 1..4 --sut './server --port {port}' http://127.0.0.1:{port}/
  tare scale --from sweep.csv            a table: n,x, several rows for an n allowed
  tare scale --from bench.txt --benchmark Map --metric ns/op --invert")]
pub struct ScaleArgs {
    /// Fit the figures in this file; nothing is measured.
    ///
    /// `-` is standard input. A table with the header n,x (other names are taken for the names of the factor and of the figure), a row for each sample, compressed
    /// (gzip) or not; lines that begin with # are left out. Or results of another tool ('tare help formats') whose benchmarks have the
    /// factor at the end of their names: BenchmarkMap-8, threads=4, conns:64.
    #[arg(long, value_name = "FILE", conflicts_with_all = MEASURING)]
    pub from: Option<PathBuf>,
    /// The law to fit; auto takes the one that fits best.
    ///
    /// linear: x = g n. amdahl: x = g n / (1 + a (n - 1)). usl: x = g n / (1 + a (n - 1) + b n (n - 1)), the universal scalability law.
    /// piecewise: a straight line up to a break, and another from there on. auto decides by Akaike's criterion and shows all.
    #[arg(long, value_name = "LAW", default_value = "auto", help_heading = "Fit")]
    pub law: LawChoice,
    /// How samples are weighted: auto, equal or relative.
    ///
    /// equal: plain least squares, as fits are published. relative: a sample that misses by 1 % counts alike at every level. auto: equal where
    /// every level has one sample, relative otherwise.
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = "Fit")]
    pub weights: WeightsChoice,
    /// Fit 1/x: of figures that are times, of which less is better.
    ///
    /// The laws are of rates. Of the time of an operation the rate is 1/x. Without this option such figures are refused.
    #[arg(long, help_heading = "Fit")]
    pub invert: bool,
    #[command(flatten)]
    pub sweep: SweepArgs,
    #[command(flatten)]
    pub kept: KeptArgs,
    #[command(flatten)]
    pub exports: OutputArgs,
}

/// A law, or the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LawChoice {
    /// The one that fits best.
    Auto,
    /// A straight line.
    Linear,
    /// Amdahl's law.
    Amdahl,
    /// The universal scalability law.
    Usl,
    /// Two straight lines.
    Piecewise,
}

/// How samples are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WeightsChoice {
    /// By what there is.
    Auto,
    /// All alike.
    Equal,
    /// By the figure.
    Relative,
}

impl ScaleArgs {
    /// Which of a benchmark's results are taken, of a file or of a program.
    pub fn chosen(&self) -> &ChoiceArgs {
        &self.sweep.program.chosen
    }

    /// What is wanted of the fit.
    pub fn wanted(&self) -> tare_explain::scaling::Wanted {
        let law = match self.law {
            LawChoice::Auto => None,
            LawChoice::Linear => Some(ScalingModel::Linear),
            LawChoice::Amdahl => Some(ScalingModel::Amdahl),
            LawChoice::Usl => Some(ScalingModel::Usl),
            LawChoice::Piecewise => Some(ScalingModel::Piecewise),
        };
        let weights = match self.weights {
            WeightsChoice::Auto => None,
            WeightsChoice::Equal => Some(Weights::Equal),
            WeightsChoice::Relative => Some(Weights::Relative),
        };
        tare_explain::scaling::Wanted { law, weights }
    }
}
