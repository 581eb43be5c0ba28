//! A page for each format that is read: how to run its tool, what it prints, what is read of that, and what the tool gets wrong.
//!
//! A new format needs a line in [`EXAMPLES`], and in `docs/SUMMARY.md`. `--meter-regex` has a page, too.
//! `TARE_WRITE_DOCS=1 cargo test -p tare --test quick format_pages` writes the pages anew.

use crate::docs::{formats, is_kept};
use crate::pages;
use std::collections::BTreeSet;
use tare_formats::Input;
use tare_model::tool::ToolMetrics;

/// How the output of a tool comes to be.
#[derive(Clone, Copy)]
enum By<'a> {
    /// It loads a server.
    Load(&'a str),
    /// It measures what it runs itself.
    Run(&'a str),
    /// It writes a file, which is read afterwards.
    File(&'a str),
    /// It is whatever text, read by the last of these lines.
    Text(&'a str),
}
use By::{File, Load, Run, Text};

/// The format, the command, and the output below `crates/tare-formats/tests/fixtures/`.
const EXAMPLES: &[(&str, By<'static>, &str)] = &[
    ("7z", Run("7z b"), "b_26.02.txt"),
    ("ab", Load("ab -k -q -c 64 -n 500000 http://127.0.0.1:8080/"), "keepalive.txt"),
    ("asv", File("asv run --record-samples     # .asv/results/MACHINE/COMMIT.json"), "medians_0.6.6.json"),
    ("autocannon", Load("autocannon -c 64 -d 10 http://127.0.0.1:8080/"), "plain.txt"),
    ("benchee", Run("mix run bench.exs"), "documented_console.txt"),
    ("benchmark-dotnet", Run("dotnet run -c Release --project bench"), "documented_log.txt"),
    ("benchmark-ips", Run("ruby bench.rb"), "report_2.7.2.txt"),
    ("benchmark-js", Run("node bench.js"), "suite_2.1.4.txt"),
    ("bmf", File("bencher run --dry-run --format json COMMAND > FILE"), "documented_all.json"),
    ("bombardier", Load("bombardier -c 64 -d 10s -l http://127.0.0.1:8080/"), "plain.txt"),
    ("bonnie++", Run("bonnie++ -d /var/tmp -u nobody"), "quick_2.00.txt"),
    ("catch2", Run("./benchmarks '[benchmark]'"), "analysis_2.13.10.txt"),
    ("criterion", Run("cargo bench"), "printed_0.8.2.txt"),
    ("csv", File("PROGRAM > FILE     # columns, with a header"), "documented_units.csv"),
    ("dart", Run("dart run benchmark/main.dart"), "documented_text.txt"),
    ("dd", Run("dd if=/dev/zero of=/var/tmp/x bs=1M count=1000 conv=fsync"), "coreutils_9.1.txt"),
    ("divan", Run("cargo bench"), "tree_0.1.21.txt"),
    ("fio", Run("fio --output-format=json job.fio"), "plus_3.33.json"),
    ("ghz", Load("ghz --insecure --call helloworld.Greeter.SayHello -n 100000 127.0.0.1:50051"), "text.txt"),
    (
        "ghz-json",
        Load("ghz -O json --insecure --call helloworld.Greeter.SayHello -n 100000 127.0.0.1:50051"),
        "plain.json",
    ),
    (
        "github-action-benchmark",
        File("PROGRAM > FILE     # a list for customSmallerIsBetter, or the action's data.js"),
        "documented_list.json",
    ),
    ("gnu-time", Run("/usr/bin/time -v ./program"), "verbose_1.9.txt"),
    ("go-bench", Run("go test -bench=. -benchmem -count=10 ./..."), "text.txt"),
    ("google-benchmark", Run("./benchmarks --benchmark_repetitions=10"), "console_1.7.1.txt"),
    ("gungraun", Run("cargo bench"), "first_0.19.4.txt"),
    ("h2load", Load("h2load -t1 -c64 -n 500000 http://127.0.0.1:8080/"), "plain.txt"),
    ("hey", Load("hey -z 10s -c 64 http://127.0.0.1:8080/"), "plain.txt"),
    ("hey-csv", File("hey -z 10s -c 64 -o csv http://127.0.0.1:8080/ > FILE"), "timeouts.csv"),
    ("hyperfine", Run("hyperfine -N ./old ./new"), "text_1.15.txt"),
    ("iai", Run("cargo bench"), "text_0.1.1.txt"),
    ("iperf3", Load("iperf3 -c 127.0.0.1 -t 10"), "tcp.txt"),
    ("jmh", Run("java -jar target/benchmarks.jar"), "log_1.37.txt"),
    ("k6", Load("k6 run script.js"), "simple_1.8.txt"),
    ("k6-csv", File("k6 run --out csv=FILE script.js"), "points_1.8.csv"),
    ("k6-json", File("k6 run --out json=FILE script.js"), "points_1.8.jsonl"),
    ("k6-summary", File("k6 run --summary-export FILE script.js"), "export_1.8.json"),
    ("libtest-bench", Run("cargo +nightly bench"), "text_1.95.txt"),
    ("locust", Load("locust --headless -u 64 -t 30s -H http://127.0.0.1:8080"), "headless.txt"),
    ("locust-history", File("locust --headless --csv out …    # out_stats_history.csv"), "full_2.47.csv"),
    ("locust-json", File("locust --headless --json … > FILE"), "json_2.47.json"),
    ("locust-stats", File("locust --headless --csv out …    # out_stats.csv"), "stats_2.47.csv"),
    ("memaslap", Load("memaslap -s 127.0.0.1:11211 -T 1 -c 64 -t 10s"), "plain.txt"),
    ("memtier", Load("memtier_benchmark -s 127.0.0.1 -p 6379 -t 1 -c 64"), "documented_table.txt"),
    ("mysqlslap", Load("mysqlslap --auto-generate-sql --concurrency=8 --iterations=10"), "plain.txt"),
    ("neper", Load("tcp_rr -c -H 127.0.0.1 -T 1 -F 64 -l 10"), "documented_tcp_rr.txt"),
    ("netperf", Load("netperf -H 127.0.0.1 -t TCP_RR -l 10"), "documented_rr.txt"),
    (
        "nighthawk",
        File("nighthawk_client --output-format json http://127.0.0.1:8080/ > FILE"),
        "documented_output.json",
    ),
    ("numbers", File("PROGRAM > FILE     # a number a line"), "documented_list.txt"),
    ("oha", Load("oha -c 64 -z 10s --no-tui http://127.0.0.1:8080/"), "text_1.16.txt"),
    ("oha-csv", File("oha -c 64 -z 10s --output-format csv http://127.0.0.1:8080/ > FILE"), "404_1.16.csv"),
    ("openssl-speed", Run("openssl speed -elapsed -evp aes-128-gcm"), "text_3.0.txt"),
    ("perf-bench", Run("perf bench sched pipe"), "text_6.1.txt"),
    ("perf-stat", Run("perf stat -r 5 ./program"), "text_repeated_6.1.txt"),
    ("pgbench", Load("pgbench -n -S -c 8 -T 10 -P 1 postgres"), "select.txt"),
    ("pyperf", Run("python3 -m pyperf timeit -o - 'sorted(range(1000))'"), "command_2.11.json"),
    ("pytest-benchmark", File("pytest --benchmark-json FILE"), "rounds_5.3.1.json"),
    ("qperf", Load("qperf 127.0.0.1 tcp_bw tcp_lat"), "lat.txt"),
    ("redis-benchmark", Load("redis-benchmark -t get -n 2000000 -c 50"), "text.txt"),
    ("ruby-benchmark", Run("ruby bench.rb"), "all_0.2.0.txt"),
    ("sockperf", Load("sockperf ping-pong --tcp -i 127.0.0.1 -t 10"), "ping_pong.txt"),
    ("stress-ng", Run("stress-ng --cpu 2 -t 10 --metrics"), "metrics_0.15.txt"),
    ("sysbench", Run("sysbench cpu --threads=2 --time=10 run"), "cpu.txt"),
    ("tinybench", Run("node bench.js"), "table_6.2.5.txt"),
    (
        "vegeta",
        Load("sh -c 'echo GET http://127.0.0.1:8080/ | vegeta attack -duration 10s | vegeta report'"),
        "ok.txt",
    ),
    ("vegeta-results", File("vegeta attack … | vegeta encode > FILE"), "mixed.jsonl"),
    ("vitest", Run("npx vitest bench --run"), "text_4.1.12.txt"),
    ("wrk", Load("wrk -t1 -c64 -d10s --latency http://127.0.0.1:8080/"), "latency.txt"),
    ("wrk2", Load("wrk2 -t1 -c64 -d10s -R20000 --latency http://127.0.0.1:8080/"), "composed_by_hand.txt"),
    ("ycsb", Load("bin/ycsb run redis -P workloads/workloada -p redis.host=127.0.0.1"), "plain.txt"),
];

/// Lines of an output that are shown, and how much of each.
const LINES_MAX: usize = 24;
const CHARS_MAX: usize = 110;
/// Metrics that are listed.
const METRICS_MAX: usize = 12;

impl By<'_> {
    fn command(self) -> String {
        match self {
            Load(command) if command.contains('\'') => format!("tare run --load \"{command}\""),
            Load(command) => format!("tare run --load '{command}'"),
            Run(command) => format!("tare run -- {command}"),
            File(command) => format!("{command}\ntare show FILE"),
            Text(commands) => commands.to_owned(),
        }
    }

    fn adds(self) -> &'static str {
        match self {
            Load(_) => {
                "Whether the server or the generator was the bottleneck, and why; the CPU time of a request on both sides; where the time of every CPU\n\
                 went while it loaded; its report held against the answers and seconds that `tare` counts itself\n\
                 ([Measure a server](../../how-to/server.md))."
            }
            Run(_) => {
                "Every sample with its launch, and intervals between launches; time, CPU time, where the time of its threads went, and what held it\n\
                 up (a quota, a neighbour, memory); repeats in fresh processes with `--trials` ([Read the results of another\n\
                 tool](../../how-to/benchmarks.md))."
            }
            Text(_) => {
                "Each match of the pattern is a sample, and groups of these names say of what: `value` (needed), `unit`, `benchmark`, `name` (of the\n\
                 metric) and `launch`. Times and bytes are in base units; medians, and intervals between launches, as of a tool's results."
            }
            File(_) => {
                "Every sample with its launch where the file says it, and intervals between launches; two files compared in every metric at once\n\
                 (`tare compare OLD NEW`); warnings of what the file itself shows ([Read the results of another\n\
                 tool](../../how-to/benchmarks.md))."
            }
        }
    }
}

/// The beginning of an output; paths and times in it are those of where it was made.
fn excerpt(text: &str) -> String {
    let lines: Vec<&str> = text.trim_matches('\n').lines().collect();
    let short = |line: &str| {
        let kept: String = line.trim_end().chars().take(CHARS_MAX).collect();
        if kept.len() < line.trim_end().len() { kept + " …" } else { kept }
    };
    let mut shown: Vec<String> = lines.iter().take(LINES_MAX).map(|line| short(line)).collect();
    if lines.len() > LINES_MAX {
        shown.push(format!("… ({} more lines)", lines.len() - LINES_MAX));
    }
    shown.join("\n")
}

fn metrics(read: &ToolMetrics) -> String {
    let mut table = "| benchmark | metric | unit | samples |\n|---|---|---|---|\n".to_owned();
    let cell =
        |text: &str| if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|")) };
    for metric in read.metrics.iter().take(METRICS_MAX) {
        let of = [&metric.benchmark, &metric.name, &metric.unit].map(|text| cell(text));
        table += &format!("| {} | {} |\n", of.join(" | "), metric.samples.len());
    }
    if read.metrics.len() > METRICS_MAX {
        table += &format!("| … | {} more | | |\n", read.metrics.len() - METRICS_MAX);
    }
    table
}

/// The bytes of an output that is an example.
fn fixture(name: &str, output: &str) -> Vec<u8> {
    let path = format!("crates/tare-formats/tests/fixtures/{name}/{output}");
    std::fs::read(pages::root().join(&path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn page(name: &str, by: By<'_>, output: &str, gets_wrong: &[&str]) -> String {
    let bytes = fixture(name, output);
    let text = tare_formats::text_of(&bytes);
    let read = tare_formats::read(&Input { bytes: &bytes, text: &text })
        .unwrap_or_else(|why| panic!("{name}/{output}: {why}"));
    assert_eq!(read.format, name, "{output}");
    let whose = match output.split('_').next() {
        Some("documented" | "composed") => "As its documentation has it",
        _ => "A real output",
    };
    let of = format!("What it prints\n\n{whose}");
    written(name, by, gets_wrong, &of, &text, &read)
}

/// A page of these parts; `of`: the head of the output, and whose it is.
fn written(name: &str, by: By<'_>, gets_wrong: &[&str], of: &str, text: &str, read: &ToolMetrics) -> String {
    let wrong: Vec<String> = gets_wrong.iter().map(|text| format!("- {text}\n")).collect();
    format!(
        "# `{name}`\n\nThis page is generated; a test compares it with the program. Other formats: [the list](../formats.md).\n\n\
         ```text\n{}\n```\n\n## What tare adds\n\n{}\n\n## What the tool gets wrong\n\n{}\n## {of}:\n\n\
         ```text\n{}\n```\n\n## What is read of that\n\n{}",
        by.command(),
        by.adds(),
        wrong.concat(),
        excerpt(text),
        metrics(read),
    )
}

/// What the example of `--meter-regex` is: each name is a group.
const PATTERN: &str = r"^(?<benchmark>\w+), run (?<launch>\d+): took (?<value>[0-9.]+) (?<unit>ms|s)$";

/// Any text, read by a regular expression: no format of a tool's, and a page all the same.
#[test]
fn the_page_of_a_regular_expression_is_what_it_reads() {
    let bytes = fixture("regex", "documented_log.txt");
    let text = tare_formats::text_of(&bytes);
    let read = tare_formats::read_by_regex(PATTERN, &Input::of_text(&text)).unwrap();
    let wrong: Vec<&str> = read.gets_wrong.iter().map(String::as_str).collect();
    let command = format!("PROGRAM > FILE     # any text\ntare show --meter-regex '{PATTERN}' FILE");
    let made = written(
        "regex",
        Text(&command),
        &wrong,
        "An example\n\nA log that no tool is known for",
        &text,
        &read,
    );
    is_kept("docs/reference/formats/regex.md", &made);
}

#[test]
fn format_pages_are_what_the_program_reads() {
    let formats = formats();
    for (name, by, output) in EXAMPLES {
        let gets_wrong = formats.get(name).unwrap_or_else(|| panic!("{name} is no format"));
        is_kept(&format!("docs/reference/formats/{name}.md"), &page(name, *by, output, gets_wrong));
    }
    let known: BTreeSet<&str> = formats.keys().copied().collect();
    assert_eq!(
        EXAMPLES.iter().map(|(name, ..)| *name).collect::<BTreeSet<_>>(),
        known,
        "a format has no example"
    );
}
