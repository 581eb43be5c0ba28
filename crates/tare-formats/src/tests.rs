//! Sweeps over all formats, and what the readers make of real outputs.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// An output of a real run, unless its name says otherwise.
struct Captured {
    format: &'static Format,
    name: String,
    text: String,
}

/// Those in the folder with the format's name.
fn captured(format: &'static Format) -> Vec<Captured> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format.name);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut all: Vec<Captured> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            Captured { format, name, text: std::fs::read_to_string(&path).unwrap() }
        })
        .collect();
    // In the same folder are files of the tool that its reader alone reads.
    let reader = readers().find(|reader| reader.name == format.name);
    all.retain(|one| {
        format.detects(&one.text) || reader.is_none_or(|reader| !reader.detects(&Input::of_text(&one.text)))
    });
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!all.is_empty(), "{} has no output", format.name);
    all
}

fn all_captured() -> impl Iterator<Item = Captured> {
    FORMATS.iter().flat_map(|format| captured(format))
}

/// A snapshot for each format, so that a new one changes no other's.
fn snapshots(what: &str, of: impl Fn(&Captured) -> String) {
    for format in FORMATS {
        let texts: Vec<String> =
            captured(format).iter().map(|one| format!("{}:\n{}", one.name, of(one))).collect();
        insta::assert_snapshot!(format!("{}_{what}", format.name), texts.join("\n"));
    }
}

#[test]
fn formats_and_generators_have_names_of_their_own() {
    let names: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(names.len(), FORMATS.len());
    assert!(FORMATS.iter().all(|format| !format.name.is_empty() && !format.gets_wrong.is_empty()));
    let programs: BTreeSet<&str> = GENERATORS.iter().map(|known| known.program).collect();
    assert_eq!(programs.len(), GENERATORS.len());
    for known in GENERATORS {
        assert_eq!(generator(&format!("/opt/bin/{}", known.program)).program, known.program);
        assert!(known.set_up.steady_for < known.set_up.at_most, "{}", known.program);
    }
    assert_eq!((generator("").program, generator("/bin/wrk-not").program), ("", ""));
}

#[test]
fn every_format_alone_detects_its_outputs() {
    for one in all_captured() {
        let detecting: Vec<&str> =
            FORMATS.iter().filter(|format| format.detects(&one.text)).map(|format| format.name).collect();
        assert_eq!(detecting, [one.format.name], "{}", one.name);
    }
}

#[test]
fn what_is_of_no_tool_is_detected_by_none() {
    for text in [
        "",
        "Summary:\n  Success rate: 100.00%",
        "  12 requests in",
        "GET /: 3 requests per second",
        "\"a\",\"b\"\n\"1\",\"2\"",
        "====== notes ======",
    ] {
        assert!(detect(text).is_none(), "{text:?}");
    }
}

/// One line for each figure.
fn describe(output: &ToolOutput) -> String {
    let figure = |reading: Result<String, String>| reading.unwrap_or_else(|why| format!("missing: {why}"));
    let mut text = output.complaint.iter().map(|says| format!("  says: {says}\n")).collect::<String>();
    for ToolResult {
        name,
        operations,
        window_ns,
        rate_hz,
        errors,
        latency,
        bytes_in,
        connections,
        settings,
    } in output.results.clone()
    {
        fn of<T: std::fmt::Debug>(reading: tare_model::Reading<T>) -> Result<String, String> {
            reading.ok().map(|value| format!("{value:?}")).map_err(|missing| missing.why)
        }
        text += &format!("  {}\n", name.as_deref().unwrap_or("(the whole run)"));
        for (what, reading) in [
            ("operations", of(operations)),
            ("window ns", of(window_ns)),
            ("rate Hz", of(rate_hz)),
            ("errors", of(errors)),
            ("bytes in", of(bytes_in)),
            ("connections", of(connections)),
        ] {
            text += &format!("    {what}: {}\n", figure(reading));
        }
        text += &match latency.ok() {
            Ok(latency) => {
                let mean = figure(of(latency.mean_ns));
                format!("    latency ns: mean {mean}, {:?}\n", latency.quantiles_ns)
            }
            Err(missing) => format!("    latency ns: missing: {}\n", missing.why),
        };
        text += &format!("    settings: {settings:?}\n");
    }
    text
}

#[test]
fn outputs_of_real_runs() {
    snapshots("outputs", |one| describe(&one.format.read(&one.text)));
}

#[test]
fn the_printed_duration_is_used_where_the_rate_contradicts_it() {
    let elapsed_ns = |text| http_sample(text, 77, None).elapsed_ns;
    assert_eq!(elapsed_ns("  100 requests in 2.00s, 1.00KB read\nRequests/sec:  500.00"), 2_000_000_000);
    assert_eq!(
        elapsed_ns("  1000000 requests in 1.50m, 1.00GB read\nRequests/sec:  11111.23"),
        89_999_037_010
    );
}

#[test]
fn samples_of_real_runs() {
    snapshots("samples", |one| {
        let sample = http_sample(&one.text, 77, None);
        let rate_hz = sample.requests.value().map(|&count| count as f64 * 1e9 / sample.elapsed_ns as f64);
        format!(
            "requests {:?} in {} ns = {rate_hz:.2?}/s, errors {:?}\nbytes {:?}, connections {:?}, quantiles {:?}\n",
            sample.requests,
            sample.elapsed_ns,
            sample.errors,
            sample.bytes_in,
            sample.connections,
            sample.printed_quantiles_ns,
        )
    });
}

/// What of a text its format did not understand: lines with figures that are none.
fn unread(format: &Format, text: &str) -> Vec<u64> {
    let read = load_metrics::of(format, text);
    let skipped = read.skipped.iter().filter(|skipped| skipped.why.contains(" is no figure "));
    skipped.map(|skipped| skipped.line).collect()
}

#[test]
fn figures_of_real_outputs_are_all_understood() {
    for one in all_captured() {
        let lines = unread(one.format, &one.text);
        assert!(lines.is_empty(), "{}/{}: {lines:?}", one.format.name, one.name);
    }
}

#[test]
fn a_figure_that_is_broken_is_said_with_its_line() {
    for (name, output, figure, broken) in [
        ("wrk", "latency", "108086.63", "1o8086.63"),
        ("wrk", "latency", "217.93us", "217.93parsec"),
        ("wrk2", "composed_by_hand", "timeout 7", "timeout 7x"),
        ("redis-benchmark", "text", "60000 requests completed", "6000O requests completed"),
        ("pgbench", "rate", "206.557527", "206.557.527"),
        ("sysbench", "oltp_interval_1.0", "(490.88", "(490,88"),
        ("memaslap", "plain", "TPS: 20049", "TPS: 2OO49"),
        ("ab", "time", "12859.65", "12859,65"),
        ("h2load", "plain", "49598.25", "49598.25x"),
        ("memtier", "documented_table", " 0.57460", " 0,57460"),
        ("sockperf", "ping_pong", "RunTime=0.549", "RunTime=0.54.9"),
        ("mysqlslap", "plain", "clients running queries: 2", "clients running queries: two2"),
        ("neper", "documented_tcp_rr", "throughput=33010.25", "throughput=33010.25k"),
        ("netperf", "documented_keywords", "MEAN_LATENCY=43.10", "MEAN_LATENCY=43.1O"),
        ("ycsb", "plain", "Throughput(ops/sec), 4123.7", "Throughput(ops/sec), 41x23.7"),
        ("k6", "simple_1.8", "4118.802604", "-4118.802604"),
        ("hey", "plain", "6528.2856", "6528.28.56"),
        ("ghz", "text", "651.77", "651,77"),
        ("oha", "text_1.16", "8.4971 ms", "8.4971 fortnights"),
        ("vegeta", "ok", "15.465ms", "15.465xs"),
        ("bombardier", "plain", "15330.93", "15330..93"),
        ("autocannon", "plain", "5,568.5", "5,568.5x"),
        ("locust", "headless", "69.54", "69,54"),
    ] {
        let format = FORMATS.iter().copied().find(|format| format.name == name).unwrap();
        let text = captured(format).into_iter().find(|one| one.name == output).unwrap().text;
        let before = text.split(figure).next().unwrap();
        let line = before.matches('\n').count() as u64 + 1;
        assert_eq!(unread(format, &text.replacen(figure, broken, 1)), [line], "{name}: {broken}");
    }
}

#[test]
fn json_that_is_cut_off_behind_another_is_said() {
    for (name, output) in
        [("vegeta", "json"), ("oha", "documented_json"), ("bombardier", "json"), ("autocannon", "json")]
    {
        let format = FORMATS.iter().copied().find(|format| format.name == name).unwrap();
        let text = captured(format).into_iter().find(|one| one.name == output).unwrap().text;
        let cut_off = text.trim_end().strip_suffix('}').unwrap();
        let whole = load_metrics::of(format, &text);
        let both = load_metrics::of(format, &format!("{}\n{cut_off}", text.trim_end()));

        assert_eq!((whole.skipped_count, both.skipped_count), (0, 1), "{name}: {:?}", both.skipped);
        assert_eq!(both.metrics.len(), whole.metrics.len(), "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_missing() {
    for text in ["", "Summary:\n  Success rate: 100.00%", "  12 requests in"] {
        let sample = http_sample(text, 77, None);
        assert!(sample.requests.value().is_none() && sample.bytes_in.value().is_none(), "{text:?}");
        assert_eq!(sample.elapsed_ns, 77);
    }
}

/// Everything that a reader keeps is within its bounds.
fn check(text: &str) {
    for format in FORMATS {
        format.detects(text);
        let ToolOutput { results, complaint } = format.read(text);
        assert!(results.len() <= result::RESULTS_MAX);
        unread(format, text);

        for kept in results.iter().filter_map(|result| result.name.as_ref()).chain(&complaint) {
            assert!(kept.chars().count() <= result::TEXT_CHARS_MAX);
        }
        for result in &results {
            assert!(result.settings.len() <= result::SETTINGS_MAX);
            if let Some(latency) = result.latency.value() {
                let quantiles = &latency.quantiles_ns;
                assert!(quantiles.len() <= result::QUANTILES_MAX);
                assert!(quantiles.windows(2).all(|pair| pair[0].0 < pair[1].0), "{quantiles:?}");
            }
        }
    }
    http_sample(text, 77, None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    /// Lines that begin as the tools' do and go on as they like.
    #[test]
    fn arbitrary_lines_never_panic(lines in prop::collection::vec((
        "(Latency|Requests/sec:|Socket errors: connect|[0-9]{1,25} requests in|[0-9]{1,3}%|====== |Summary:|\"test\",\"rps\",|\"|throughput summary:|\
          latency summary \\(msec\\):|Latency by percentile distribution:|[0-9]{1,25} requests completed in|SET: |Complete requests:|\\(Connect: 1, Receive:|Requests per second:|Time per request:)",
        "[-0-9.,:\"=<%a-zA-Z\r ]{0,40}( ======| seconds| requests per second|\")?",
    ), 0..12)) {
        check(&lines.iter().map(|(start, rest)| format!("{start} {rest}\n")).collect::<String>());
    }

    /// Real outputs that were cut off, or have others' lines in them.
    #[test]
    fn damaged_outputs_never_panic(
        which: prop::sample::Index, from: prop::sample::Index, to: prop::sample::Index, with in "\\PC{0,20}",
    ) {
        let all: Vec<Captured> = all_captured().collect();
        let text = which.get(&all).text.as_str();
        let place = |index: prop::sample::Index| {
            let at = index.index(text.len() + 1);
            (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        };
        let (from, to) = (place(from), place(to));
        check(&text[from.min(to)..from.max(to)]);
        check(&format!("{}{with}{}", &text[..from], &text[to..]));
    }
}

#[test]
fn a_rate_is_read_from_the_command_line_however_it_is_written() {
    let rate_hz = |command: &str| {
        let words: Vec<String> = command.split(' ').map(String::from).collect();
        generator(&words[0]).rate_hz(&words)
    };
    for command in ["pgbench -R 300 db", "pgbench -R300 db", "sysbench --rate=300 run", "wrk2 --rate 300 u"] {
        assert_eq!(rate_hz(command), Some(300.0), "{command}");
    }
    for command in
        ["pgbench -c 8 db", "sysbench --rate=0 run", "sysbench --rates 300", "pgbench -R", "wrk -R 300 u"]
    {
        assert_eq!(rate_hz(command), None, "{command}");
    }
    let sample = |rate_hz| http_sample("nothing", 3_000_000_000, rate_hz).scheduled;
    assert_eq!((sample(None), sample(Some(300.0)), sample(Some(0.1))), (None, Some(841), Some(0)));
}

#[test]
fn of_standard_error_only_what_is_no_progress_is_kept() {
    let pgbench = generator("pgbench");
    let said = "starting vacuum...end.\nprogress: 1.0 s, 312.0 tps\rprogress: 2.0 s, 310.0 tps\nclient 3 aborted\n\n";
    assert_eq!(pgbench.complaints(said), "client 3 aborted");
    assert_eq!(generator("wrk").complaints("missing.lua: cannot open\n"), "missing.lua: cannot open");
    assert_eq!(OTHER.complaints(&"words of an error\n".repeat(1000)).chars().count(), 2000);
}

#[test]
fn a_report_is_of_all_runs_that_were_printed() {
    let wrk = captured(detect("  1 requests in 1.00s, 1B read").unwrap());
    let two = &wrk.iter().find(|one| one.name == "two_runs").unwrap().text;
    let report = report(generator("wrk"), two, "");
    assert!(report.window_ns.is_some_and(|ns| (3_000_000_000..3_300_000_000).contains(&ns)), "{report:?}");
    let sample = http_sample(two, 1, None);
    assert_eq!(Some(sample.elapsed_ns), report.window_ns);
}
