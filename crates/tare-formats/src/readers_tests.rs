//! Sweeps over all readers, and what they make of the files in `tests/fixtures/READER/`.
//!
//! A file whose name begins with `documented_` was made from the tool's documentation; every other one is a real output. The name
//! of a real one ends with the tool's version where more than one is there.

use crate::metrics::{METRICS_MAX, SAMPLES_MAX, SKIPPED_MAX};
use crate::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use tare_model::tool::ToolMetrics;

struct Captured {
    reader: &'static Reader,
    name: String,
    bytes: Vec<u8>,
}

fn captured(reader: &'static Reader) -> Vec<Captured> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(reader.name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut all: Vec<Captured> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            Captured { reader, name, bytes: unpacked(std::fs::read(&path).unwrap()).unwrap() }
        })
        .collect();
    // In the same folder are summaries of the tool that its format alone reads.
    let summary = FORMATS.iter().find(|format| format.name == reader.name);
    all.retain(|one| {
        with_input(&one.bytes, |input| {
            reader.detects(input) || summary.is_none_or(|summary| !summary.detects(input.text))
        })
    });
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!all.is_empty(), "{} has no output", reader.name);
    all
}

fn all_captured() -> impl Iterator<Item = Captured> {
    readers().flat_map(captured)
}

fn with_input<T>(bytes: &[u8], then: impl FnOnce(&Input<'_>) -> T) -> T {
    let text = String::from_utf8_lossy(bytes);
    then(&Input { bytes, ..Input::of_text(&text) })
}

#[test]
fn readers_have_names_of_their_own_and_say_what_is_wrong() {
    let mut names = BTreeSet::new();
    for reader in readers() {
        assert!(names.insert(reader.name), "{} twice", reader.name);
        assert!(!reader.gets_wrong.is_empty(), "{}", reader.name);
    }
}

#[test]
fn every_reader_alone_detects_its_outputs() {
    for one in all_captured() {
        // A reader that adds to a format's summary has its name: both are one. Those that are asked last are asked where no other knows it.
        let detecting: Vec<&str> = with_input(&one.bytes, |input| {
            let formats =
                FORMATS.iter().filter(|format| format.detects(input.text)).map(|format| format.name);
            let all = readers().filter(|reader| reader.detects(input)).map(|reader| reader.name);
            all.chain(formats).collect()
        });
        let is_last =
            |name: &&str| registry::LAST.iter().flat_map(|last| last.iter()).any(|last| last.name == *name);
        let first: BTreeSet<&str> = detecting.iter().copied().filter(|name| !is_last(name)).collect();
        let expected =
            if is_last(&one.reader.name) { BTreeSet::new() } else { BTreeSet::from([one.reader.name]) };
        assert_eq!(first, expected, "{}", one.name);
        assert!(detecting.contains(&one.reader.name), "{}: {detecting:?}", one.name);
    }
}

#[test]
fn what_is_of_no_tool_is_read_by_none() {
    for text in [
        "",
        "\n\n",
        "hello",
        "{}",
        "[]",
        "{\"a\": 1}",
        "[{\"name\": \"x\"}]",
        "name: value\n",
        "<xml/>",
        "12 ms",
        "Benchmark",
        "ok  \tpkg\t1.2s",
    ] {
        assert_eq!(read(&Input::of_text(text)), Err(Refused::Unknown), "{text:?}");
    }
    for source in [
        include_str!("languages/jmh.rs"),
        include_str!("languages/pyperf.rs"),
        include_str!("languages/asv.rs"),
    ] {
        assert!(read(&Input::of_text(source)).is_err());
    }
}

/// `time wrk …`: what wrk says is what was measured.
#[test]
fn what_stands_around_results_of_others_is_read_where_there_are_none() {
    let time = "real\t0m1.250s\nuser\t0m0.001s\nsys\t0m0.000s\n";
    let load = include_str!("../tests/fixtures/wrk/plain.txt");
    let copied = "1000 bytes copied, 0.5 s, 2.0 kB/s\n";
    for (other, of) in
        [("", "gnu-time"), ("BenchmarkX-2\t100\t12.5 ns/op\n", "go-bench"), (load, "wrk"), (copied, "dd")]
    {
        assert_eq!(read(&Input::of_text(&format!("{other}{time}"))).unwrap().format, of);
    }
}

/// A format that recognises a line and has nothing to read is no result, unless its tool complains.
#[test]
fn a_summary_without_figures_counts_where_nobody_knows_more() {
    let begun = "Running 1s test @ http://127.0.0.1:8080/\n";
    let of = |text: &str| read(&Input::of_text(text)).ok().map(|read| (read.format, read.metrics.len()));
    assert_eq!(of(begun), Some(("wrk".to_owned(), 0)));
    assert!(read_printed(begun).is_none());
    let time = "real\t0m1.250s\nuser\t0m0.001s\nsys\t0m0.000s\n";
    assert_eq!(of(&format!("{begun}{time}")), Some(("gnu-time".to_owned(), 3)));
    let refused = "unable to connect to 127.0.0.1:8080 Connection refused\n";
    let read = read_printed(refused).unwrap();
    assert_eq!((read.format.as_str(), read.warnings.len()), ("wrk", 1));
    for words in ["  Spent 12 % in GC\n", "unable to connect to the database\n", "a_b:\n    x  =  y\n"] {
        assert!(of(words).is_none() && read_printed(words).is_none(), "{words}");
    }
}

#[test]
fn results_of_another_tool_are_said_not_to_be_read() {
    let go = "BenchmarkX-2\t100\t12.5 ns/op\n";
    let libtest = "test sort ... bench:       1,234 ns/iter (+/- 7)\n";
    let load = include_str!("../tests/fixtures/wrk/plain.txt");
    let counts = include_str!("../tests/fixtures/perf-stat/text_6.1.txt");
    for (text, format, other) in [
        (format!("{go}{libtest}"), "go-bench", "libtest-bench"),
        (format!("{load}{libtest}"), "libtest-bench", "wrk"),
        (format!("{counts}{load}"), "wrk", "perf-stat"),
        (format!("{load}{counts}"), "wrk", "perf-stat"),
    ] {
        for read in [read(&Input::of_text(&text)).ok(), read_printed(&text)] {
            let read = read.unwrap();
            let said = read.warnings.iter().find(|warning| warning.id == "other-tools-not-read").unwrap();
            assert_eq!(read.format, format);
            assert!(said.text.contains(&format!("holds results of {other}, ")), "{}", said.text);
        }
    }
    for text in [go, libtest, load] {
        let warnings = read(&Input::of_text(text)).unwrap().warnings;
        assert!(warnings.iter().all(|warning| warning.id != "other-tools-not-read"), "{text}");
    }
}

#[test]
fn what_stands_behind_a_long_log_is_refused_by_the_bound_of_detection() {
    let log = |lines: usize| "a worker is started\n".repeat(lines);
    let of = |text: String| read(&Input::of_text(&text)).map(|read| read.format);
    let go = "BenchmarkX-2\t100\t12.5 ns/op\n";
    assert_eq!(of(log(1999) + go), Ok("go-bench".to_owned()));
    assert_eq!(of(log(2000) + go), Err(Refused::UnknownBeginning));
    let json = include_str!("../tests/fixtures/pyperf/command_2.11.json");
    assert_eq!(of(log(60_000) + json), Err(Refused::UnknownBeginning));
    assert_eq!(of(log(2001)), Err(Refused::UnknownBeginning));
    assert_eq!(of(log(2000)), Err(Refused::Unknown));
    let iperf2 =
        "[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  1.00 GBytes  900 Mbits/sec\n";
    assert_eq!(of(format!("Client connecting to 127.0.0.1, TCP port 5001\n{iperf2}")), Err(Refused::Iperf2));
}

/// A format finds its summary wherever it stands: what its reader has beside that must not be left out.
#[test]
fn behind_a_long_log_a_summary_is_not_all_that_is_read() {
    let log = "a worker is started\n".repeat(3000);
    for output in [
        include_str!("../tests/fixtures/sockperf/full_log.csv"),
        include_str!("../tests/fixtures/pgbench/progress_rate.txt"),
        include_str!("../tests/fixtures/ycsb/plain.txt"),
    ] {
        let count = |text: &str| read(&Input::of_text(text)).unwrap().metrics.len();
        assert_eq!(count(&format!("{log}{output}")), count(output), "{output}");
    }
}

/// `perf stat ./program`: where the program prints no results, the counts are those.

#[test]
fn counts_around_a_program_without_results_are_read() {
    let counts = include_str!("../tests/fixtures/perf-stat/text_6.1.txt");
    let text = format!("hello\n{counts}");
    for read in [read(&Input::of_text(&text)).ok(), read_printed(&text)] {
        assert_eq!(read.unwrap().format, "perf-stat");
    }
}

/// One line for each figure.
fn describe(read: &ToolMetrics) -> String {
    let mut text = String::new();
    if !read.configuration.is_empty() {
        text += &format!("  {:?}\n", read.configuration);
    }
    for metric in &read.metrics {
        let better = metric.better.map_or("?".to_owned(), |better| format!("{better:?}"));
        let shown: Vec<String> = metric.samples.iter().take(6).map(|value| format!("{value:.6e}")).collect();
        text += &format!(
            "  {:?} {:?} [{}] {better}: {} samples {}\n",
            metric.benchmark,
            metric.name,
            metric.unit,
            metric.samples.len(),
            shown.join(" ")
        );
        let launches: BTreeSet<u32> = metric.launches.iter().copied().collect();
        let workers: BTreeSet<u32> = metric.workers.iter().copied().collect();
        if launches.len() > 1 || !workers.is_empty() || !metric.at_s.is_empty() {
            let ends = metric.at_s.first().zip(metric.at_s.last());
            text += &format!("    launches {}, workers {}, at {ends:?}\n", launches.len(), workers.len());
        }
        if !metric.configuration.is_empty() {
            text += &format!("    {:?}\n", metric.configuration);
        }
        if !metric.summary.is_empty() {
            text += &format!("    {:?}\n", metric.summary);
        }
    }
    for skipped in &read.skipped {
        text += &format!("  skipped, line {}: {:?}: {}\n", skipped.line, skipped.what, skipped.why);
    }
    for warning in &read.warnings {
        text += &format!("  {}: {}\n", warning.id, warning.text);
    }
    text
}

#[test]
fn outputs_as_they_are_read() {
    for reader in readers() {
        let texts: Vec<String> = captured(reader)
            .iter()
            .map(|one| {
                format!("{}:\n{}", one.name, with_input(&one.bytes, |input| describe(&reader.read(input))))
            })
            .collect();
        insta::assert_snapshot!(format!("{}_metrics", reader.name), texts.join("\n"));
    }
}

#[test]
fn every_output_has_a_sample_or_says_why_not() {
    for one in all_captured() {
        let read = with_input(&one.bytes, |input| one.reader.read(input));
        let says = !read.metrics.is_empty() || read.skipped_count > 0 || !read.warnings.is_empty();
        assert!(says, "{}/{}", one.reader.name, one.name);
    }
}

/// What two runs appended to one file is of two launches, or is said not to be read.
#[test]
fn a_run_that_is_appended_is_another_launch() {
    const NAMES: &[&str] = &[
        "csv",
        "bmf",
        "vitest",
        "tinybench",
        "benchee",
        "benchmark-dotnet",
        "catch2",
        "ruby-benchmark",
        "benchmark-ips",
        "benchmark-js",
        "dart",
    ];
    let launches = |read: &ToolMetrics| {
        read.metrics
            .iter()
            .flat_map(|metric| metric.launches.iter().copied())
            .collect::<BTreeSet<u32>>()
            .len()
    };
    for one in all_captured().filter(|one| NAMES.contains(&one.reader.name)) {
        let twice = [&one.bytes[..], b"\n", &one.bytes].concat();
        let once = with_input(&one.bytes, |input| one.reader.read(input));
        let twice = with_input(&twice, |input| one.reader.read(input));
        let more = launches(&twice) > launches(&once);
        assert!(more || twice.skipped_count > once.skipped_count, "{}/{}", one.reader.name, one.name);
    }
}

/// Everything that a reader keeps is within its bounds.
fn check(bytes: &[u8]) {
    drop(unpacked(bytes.to_vec()));
    with_input(bytes, |input| {
        drop(read(input));
        for reader in readers() {
            reader.detects(input);
            let read = reader.read(input);
            assert!(read.metrics.len() <= METRICS_MAX && read.skipped.len() <= SKIPPED_MAX);
            assert!(read.skipped.len() as u64 <= read.skipped_count);
            let samples: usize = read.metrics.iter().map(|metric| metric.samples.len()).sum();
            assert!(samples <= SAMPLES_MAX);
            for metric in &read.metrics {
                assert_eq!(metric.samples.len(), metric.launches.len());
                assert!(metric.samples.iter().all(|value| value.is_finite()), "{}", metric.name);
                assert!(
                    [metric.workers.len(), metric.at_s.len()]
                        .iter()
                        .all(|n| [0, metric.samples.len()].contains(n))
                );
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
        check(&[&[0x1f, 0x8b, 8], &bytes[..]].concat());
    }

    /// Real outputs that were cut off, or have others' lines in them.
    #[test]
    fn damaged_outputs_never_panic(
        which: prop::sample::Index, from: prop::sample::Index, to: prop::sample::Index, with in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let all: Vec<Captured> = all_captured().filter(|one| one.bytes.len() < 100_000).collect();
        prop_assume!(!all.is_empty());
        let bytes = which.get(&all).bytes.as_slice();
        let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
        check(&bytes[from.min(to)..from.max(to)]);
        check(&[&bytes[..from], &with, &bytes[to..]].concat());
    }
}
