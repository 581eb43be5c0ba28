//! Whether readers of other tools' results hold out against damaged files: real outputs are cut, spliced and garbled, read, and written again,
//! so many seconds for each format. A panic, a wrong list or a slow file is a find, and is kept.
//!
//! `cargo build --release -p bench-formats && target/release/fuzz-formats --seconds 300`; `--only jmh,k6-json` for some formats.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program of its own, not a room

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_formats::export::EXPORTS;
use tare_formats::{Input, METRICS_MAX, read, read_printed, text_of, unpacked};
use tare_model::tool::ToolMetrics;
use tare_stats::SplitMix64;

/// Files are not made longer than this, in bytes.
const LONGEST: usize = 64 << 10;
/// A file of that length that takes so long is a find.
const SLOW: Duration = Duration::from_secs(1);
/// Changes of a file, at most.
const CHANGES_MAX: u64 = 8;
/// What numbers and other words are replaced by.
const ODD: &[&str] = &[
    "",
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "NaN",
    "Infinity",
    "-INF",
    "18446744073709551616",
    "9223372036854775807",
    "0x10",
    "1,5",
    "1.2.3",
    "null",
    "true",
    "[]",
    "{}",
    "\"",
    "\\u0000",
    "\u{0}",
    "\u{202e}",
    "µ",
    "%",
    "ns/op",
    "e",
    ".",
    "-",
];

/// Damages real outputs of every tool and reads them.
#[derive(Debug, Parser)]
struct Args {
    /// So long for each format.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Only these formats, by the names of their folders.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Another order of changes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Real outputs, a folder for each format.
    #[arg(long, default_value = "crates/tare-formats/tests/fixtures")]
    fixtures: PathBuf,
    /// Where files that are finds are kept.
    #[arg(long, default_value = "target/fuzz-formats")]
    finds: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut formats: Vec<PathBuf> = std::fs::read_dir(&args.fixtures)
        .with_context(|| {
            format!("cannot read {} (hint: run it in the root of the tree)", args.fixtures.display())
        })?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    formats.sort();
    // Where it was is printed with the file that is kept.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let (mut finds, mut cases) = (0u64, 0u64);
    for format in &formats {
        let name = format.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        let seeds = seeds(format)?;
        ensure!(!seeds.is_empty(), "{name} has no fixture");
        let (read, found) = fuzzed(&args, &name, &seeds)?;
        println!("{name}: {read} files, {found} finds");
        (cases, finds) = (cases + read, finds + found);
    }
    println!("{cases} files, {finds} finds");
    ensure!(finds == 0, "{finds} finds are in {}", args.finds.display());
    Ok(())
}

fn seeds(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            let mut bytes = unpacked(std::fs::read(&path)?)?;
            bytes.truncate(LONGEST);
            seeds.push(bytes);
        }
    }
    Ok(seeds)
}

/// How many damaged files were read, and how many of them are finds.
fn fuzzed(args: &Args, name: &str, seeds: &[Vec<u8>]) -> Result<(u64, u64)> {
    let mut random = SplitMix64::new(args.seed);
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let (mut cases, mut finds) = (0, 0);
    while Instant::now() < until {
        let bytes = damaged(seeds, &mut random);
        cases += 1;
        let begun = Instant::now();
        let wrong = match catch_unwind(AssertUnwindSafe(|| tried(&bytes))) {
            Ok(Ok(())) if begun.elapsed() > SLOW => {
                Some(format!("it took {:.1} s", begun.elapsed().as_secs_f64()))
            }
            Ok(Ok(())) => None,
            Ok(Err(wrong)) => Some(wrong),
            Err(_) => Some("a panic".to_owned()),
        };
        if let Some(wrong) = wrong {
            std::fs::create_dir_all(&args.finds)?;
            let path = args.finds.join(format!("{name}-{finds}"));
            std::fs::write(&path, &bytes)?;
            eprintln!("{}: {wrong}", path.display());
            finds += 1;
        }
    }
    Ok((cases, finds))
}

/// Reads it as a file and as what a program printed, and writes what was read in every format.
fn tried(bytes: &[u8]) -> Result<(), String> {
    let Ok(bytes) = unpacked(bytes.to_vec()) else { return Ok(()) };
    let text = text_of(&bytes);
    let of_file = read(&Input { bytes: &bytes, ..Input::of_text(&text) });
    for found in of_file.into_iter().chain(read_printed(&text)) {
        checked(&found)?;
        for export in EXPORTS {
            export.write(&found);
        }
    }
    Ok(())
}

/// What holds of all results.
fn checked(found: &ToolMetrics) -> Result<(), String> {
    if found.metrics.len() > METRICS_MAX {
        return Err(format!("{} metrics", found.metrics.len()));
    }
    for metric in &found.metrics {
        let (count, name) = (metric.samples.len(), &metric.name);
        let fits = |list: usize| list == 0 || list == count;
        if metric.launches.len() != count
            || ![metric.workers.len(), metric.at_s.len(), metric.lines.len()].into_iter().all(fits)
        {
            return Err(format!("{name}: lists of unlike lengths"));
        }
        if !metric.samples.iter().chain(&metric.at_s).all(|value| value.is_finite()) {
            return Err(format!("{name}: a value that is no finite number"));
        }
    }
    Ok(())
}

/// One of the outputs with a few changes.
fn damaged(seeds: &[Vec<u8>], random: &mut SplitMix64) -> Vec<u8> {
    let below = |random: &mut SplitMix64, most: usize| (random.next_u64() % most.max(1) as u64) as usize;
    let mut bytes = seeds[below(random, seeds.len())].clone();
    for _ in 0..=random.next_u64() % CHANGES_MAX {
        let at = below(random, bytes.len());
        let length = below(random, 200).min(bytes.len() - at);
        match random.next_u64() % 8 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            4 => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len());
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
            5 => replace_word(&mut bytes, at, ODD[below(random, ODD.len())]),
            6 => swapped(&mut bytes, at, random),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Puts another word in place of the one there.
fn replace_word(bytes: &mut Vec<u8>, at: usize, word: &str) {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",:;=\"()[]{}<>".contains(byte);
    let begin = bytes[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length);
    bytes.splice(begin..end.max(begin), word.bytes());
}

/// Puts what stands before a place, and the rest of the line there, in the other order.
fn swapped(bytes: &mut [u8], at: usize, random: &mut SplitMix64) {
    let end =
        bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length + 1);
    let from = (random.next_u64() % (at as u64 + 1)) as usize;
    bytes[from..end].rotate_left(at - from);
}
