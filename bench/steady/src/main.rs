//! How often the verdict on steady state agrees with labelled series, and whether that holds elsewhere: each benchmark is
//! judged by the rules that agree best on all the others.
//!
//! `cargo run --release -p bench-steady -- FORKS.jsonl.gz`
#![allow(clippy::print_stdout, reason = "a program of its own")]

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_stats::{Rules, State, median, quantile, steadiness_by};

/// JSON lines with `name`, `fork`, `steady_from` (-1: never) and `seconds`, compressed or not.
#[derive(Debug, Parser)]
struct Args {
    /// The labelled series.
    file: PathBuf,
    /// Print each series on which the verdicts differ.
    #[arg(long)]
    differences: bool,
}

/// A labelled series.
#[derive(Debug, Deserialize)]
struct Fork {
    name: String,
    #[serde(default)]
    fork: u64,
    steady_from: i64,
    seconds: Vec<f64>,
}

/// By the rules of one cell of the grid.
struct Judged {
    /// Where each fork is steady from; -1: never.
    from: Vec<i64>,
    slowest: Duration,
}

/// How many forks of those that are steady, and of those that never are, are found so.
#[derive(Default)]
struct Agreement {
    steady: [usize; 2],
    never: [usize; 2],
    /// Between the starts of those that both call steady, in iterations.
    apart: Vec<f64>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let forks = read(&args.file).with_context(|| format!("cannot use {}", args.file.display()))?;
    let rules = grid();
    let judged: Result<Vec<Judged>> = rules.iter().map(|rules| judge(&forks, rules)).collect();
    let judged = judged?;
    let every = |_: &Fork| true;
    println!("{:>10} {:>10} {:>10}  balanced", "disturbed", "apart", "");
    for (rules, judged) in rules.iter().zip(&judged) {
        let found = Agreement::of(&forks, &judged.from, every);
        let usual = if *rules == Rules::default() { "default" } else { "" };
        println!("{:>10} {:>10} {usual:>10}  {:.3}", rules.disturbed_max, rules.apart_max, found.balanced());
    }
    let usual =
        rules.iter().position(|rules| *rules == Rules::default()).context("the grid lacks the default")?;
    report("all forks, default rules", &Agreement::of(&forks, &judged[usual].from, every));
    report("leave one benchmark out", &Agreement::of(&forks, &left_out(&forks, &judged), every));
    println!("slowest series: {:.0} ms", judged[usual].slowest.as_secs_f64() * 1e3);
    for (fork, from) in forks.iter().zip(&judged[usual].from).filter(|_| args.differences) {
        if (fork.steady_from < 0) != (*from < 0) {
            println!("{} #{}: {} by its label, {from} found", fork.name, fork.fork, fork.steady_from);
        }
    }
    Ok(())
}

fn report(title: &str, found: &Agreement) {
    println!(
        "{title}: {}/{} steady, {}/{} never steady, {:.3} balanced; starts {} iterations apart in the median, {} in nine of ten",
        found.steady[0],
        found.steady[1],
        found.never[0],
        found.never[1],
        found.balanced(),
        median(&found.apart).unwrap_or(f64::NAN),
        quantile(&found.apart, 0.9).unwrap_or(f64::NAN).round()
    );
}

/// The rules that are free, the strictest first: of equally good ones the first is taken. Twice and half of what is usual, and no disturbance.
fn grid() -> Vec<Rules> {
    let usual = Rules::default();
    let apart = [0.5, 1.0, 2.0].map(|times| times * usual.apart_max);
    let of = |disturbed_max| apart.map(|apart_max| Rules { disturbed_max, apart_max });
    [0, usual.disturbed_max].into_iter().flat_map(of).collect()
}

fn read(path: &Path) -> Result<Vec<Fork>> {
    let mut reader = BufReader::new(File::open(path)?);
    let plain: Box<dyn Read> = match reader.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        true => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        false => Box::new(reader),
    };
    let forks: Result<Vec<Fork>> =
        BufReader::new(plain).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect();
    let forks = forks?;
    ensure!(!forks.is_empty(), "it holds no series");
    Ok(forks)
}

fn judge(forks: &[Fork], rules: &Rules) -> Result<Judged> {
    let mut judged = Judged { from: Vec::new(), slowest: Duration::ZERO };
    for fork in forks {
        let begin = Instant::now();
        let found = steadiness_by(&fork.seconds, rules)
            .with_context(|| format!("{} #{}: not a series of times", fork.name, fork.fork))?;
        judged.slowest = judged.slowest.max(begin.elapsed());
        let from = found.from.filter(|_| found.state == State::Steady);
        judged.from.push(from.map_or(-1, |from| from as i64));
    }
    Ok(judged)
}

/// Where each fork is steady from by the rules that agree best on the forks of all other benchmarks.
fn left_out(forks: &[Fork], judged: &[Judged]) -> Vec<i64> {
    let mut from = vec![-1; forks.len()];
    for name in forks.iter().map(|fork| &fork.name).collect::<BTreeSet<_>>() {
        let others =
            |judged: &Judged| Agreement::of(forks, &judged.from, |fork| fork.name != *name).balanced();
        // The last of equal ones is the largest: from the end it is the first.
        let best = judged.iter().rev().max_by(|one, other| others(one).total_cmp(&others(other)));
        for at in (0..forks.len()).filter(|at| forks[*at].name == *name) {
            from[at] = best.map_or(-1, |best| best.from[at]);
        }
    }
    from
}

impl Agreement {
    fn of(forks: &[Fork], found: &[i64], is_counted: impl Fn(&Fork) -> bool) -> Agreement {
        let mut agreement = Agreement::default();
        for (fork, found) in forks.iter().zip(found).filter(|(fork, _)| is_counted(fork)) {
            let is_steady = fork.steady_from >= 0;
            let counts = if is_steady { &mut agreement.steady } else { &mut agreement.never };
            let agrees = is_steady == (*found >= 0);
            counts[0] += usize::from(agrees);
            counts[1] += 1;
            if is_steady && agrees {
                agreement.apart.push((fork.steady_from - found).abs() as f64);
            }
        }
        agreement
    }

    /// Mean of the shares of both kinds.
    fn balanced(&self) -> f64 {
        let share = |[agreed, all]: [usize; 2]| agreed as f64 / all as f64;
        0.5 * (share(self.steady) + share(self.never))
    }
}
