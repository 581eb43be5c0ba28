//! How often the intervals of `tare scale` hold the truth: sweeps that are simulated, so that it is known.
//!
//! `cargo run --release -p bench-scale`
#![allow(clippy::print_stdout, reason = "a program of its own")]

use clap::Parser;
use tare_stats::SplitMix64;
use tare_stats::scaling::{Curve, Known, Law, Level, Noise, Wanted, scaling};

/// γ of every sweep.
const GAMMA: f64 = 1000.0;
/// The highest level.
const TOP: f64 = 64.0;
/// α and β of the sweeps.
const TRUTHS: [(f64, f64); 7] =
    [(0.03, 3e-4), (0.1, 2e-3), (0.3, 1e-3), (0.0, 5e-4), (0.02, 0.0), (0.3, 0.0), (0.0, 0.0)];

/// Each sweep has 6 to 12 levels from 1 to 64, noise of 1 to 10 % of the figure.
#[derive(Debug, Parser)]
struct Args {
    /// Sweeps, shared among the truths.
    #[arg(long, default_value_t = 10_000)]
    sweeps: usize,
    /// Samples of a level.
    #[arg(long, default_value_t = 1)]
    samples: usize,
    /// One level is wrong by this share or so (0.7 to 1.3 of it), up or down; 0: none is.
    #[arg(long, default_value_t = 0.5)]
    outlier: f64,
    /// Fit the law that is true in all of them, instead of the one that fits best.
    #[arg(long)]
    usl: bool,
    /// Fit by relative weights whatever the samples.
    #[arg(long)]
    relative: bool,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How often an interval held the truth, of those that there were.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    held: usize,
    of: usize,
}

impl Held {
    fn see(&mut self, known: Option<Known>, truth: Option<f64>) {
        if let (Some((low, high)), Some(truth)) = (known.and_then(|known| known.ci95), truth) {
            self.of += 1;
            self.held += usize::from(low <= truth * (1.0 + 1e-9) && truth <= high * (1.0 + 1e-9));
        }
    }

    fn add(&mut self, other: Held) {
        (self.held, self.of) = (self.held + other.held, self.of + other.of);
    }

    fn words(&self) -> String {
        match self.of {
            0 => "-".to_owned(),
            of => format!("{:.1}", 100.0 * self.held as f64 / of as f64),
        }
    }
}

fn main() {
    let args = Args::parse();
    println!("{args:?}");
    println!(
        "| alpha, beta | alpha | beta | gamma | N* | N* as printed | knee | laws: linear, Amdahl, USL, piecewise | outliers found |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut total = [Held::default(); 6];
    for truth in TRUTHS {
        let held = of_truth(&args, truth);
        total.iter_mut().zip(held).for_each(|(total, held)| total.add(held));
    }
    let total: Vec<String> = total.iter().map(Held::words).collect();
    println!("| all | {} | | |", total.join(" | "));
}

fn of_truth(args: &Args, (alpha, beta): (f64, f64)) -> [Held; 6] {
    let curve = Curve::Smooth { gamma: GAMMA, alpha, beta };
    let mut random = SplitMix64::new(args.seed);
    let mut held = [Held::default(); 6];
    let (mut laws, mut found_outliers, mut outliers) = ([0usize; 4], 0usize, 0usize);
    let count = args.sweeps / TRUTHS.len();
    for _ in 0..count {
        let (levels, bad) = sweep(args, &curve, &mut random);
        let wanted = Wanted {
            law: args.usl.then_some(Law::Usl),
            noise: args.relative.then_some(Noise::Relative),
            points: 0,
            expected_break: None,
        };
        let Some(found) = scaling(&levels, wanted) else { continue };
        laws[Law::ALL.iter().position(|law| *law == found.law).unwrap_or(0)] += 1;
        outliers += usize::from(bad.is_some());
        found_outliers += usize::from(bad.is_some() && bad == found.outlier);
        held[0].see(found.alpha, Some(alpha));
        held[1].see(found.beta, Some(beta));
        held[2].see(Some(found.gamma), Some(GAMMA));
        held[3].see(found.peak, curve.peak());
        // A peak that is not within the range, or may be anywhere above an end, is not printed.
        let is_shown =
            |known: &Known| known.value <= TOP && known.ci95.is_some_and(|(_, high)| high.is_finite());
        held[4].see(found.peak.filter(is_shown), curve.peak());
        held[5].see(found.knee, curve.knee());
    }
    let words: Vec<String> = held.iter().map(Held::words).collect();
    println!("| {alpha}, {beta} | {} | {laws:?} | {found_outliers} of {outliers} |", words.join(" | "));
    held
}

/// A sweep, and which level is wrong.
fn sweep(args: &Args, curve: &Curve, random: &mut SplitMix64) -> (Vec<Level>, Option<usize>) {
    let count = 6 + (random.next_u64() % 7) as usize;
    let noise = 0.01 + 0.09 * unit(random);
    let bad = (random.next_u64() % count as u64) as usize;
    let size = args.outlier * (0.7 + 0.6 * unit(random));
    let factor = if random.next_u64().is_multiple_of(2) { 1.0 - size.min(0.9) } else { 1.0 + size };
    let bad = (args.outlier > 0.0).then_some(bad);
    let level = |(at, n): (usize, f64)| {
        let factor = if bad == Some(at) { factor } else { 1.0 };
        let mut sample = || (curve.at(n) * (1.0 + noise * normal(random)) * factor).max(1e-3);
        Level { n, samples: (0..args.samples).map(|_| sample()).collect() }
    };
    (places(count).into_iter().enumerate().map(level).collect(), bad)
}

/// Whole numbers from 1 to the top, each about as many times the one before.
fn places(count: usize) -> Vec<f64> {
    let mut places: Vec<f64> =
        (0..count).map(|at| TOP.powf(at as f64 / (count - 1) as f64).round()).collect();
    places.dedup();
    for n in 2..TOP as u32 {
        if places.len() < count && !places.contains(&f64::from(n)) {
            places.push(f64::from(n));
        }
    }
    places.sort_by(f64::total_cmp);
    places
}

/// A number between 0 and 1.
fn unit(random: &mut SplitMix64) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// By Box and Muller.
fn normal(random: &mut SplitMix64) -> f64 {
    (-2.0 * unit(random).ln()).sqrt() * (std::f64::consts::TAU * unit(random)).cos()
}
