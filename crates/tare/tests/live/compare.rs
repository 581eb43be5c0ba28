//! `tare compare`: real servers interleaved. What takes luck is not asserted.

use crate::support::{Quota, Tare, alone, number};
use serde_json::Value;
use std::process::Output;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The effect on a figure.
fn effect<'v>(result: &'v Value, figure: &str) -> &'v Value {
    let effects = result["effects"].as_array().unwrap();
    effects
        .iter()
        .find(|effect| effect["figure"] == figure)
        .unwrap_or_else(|| panic!("{figure} in {result:#}"))
}

/// Servers of this build that are up: tests that start some wait for each other.
fn servers() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let commands = commands.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    commands.filter(|line| line.contains(concat!(env!("CARGO_BIN_EXE_tare"), " serve"))).collect()
}

#[test]
fn a_server_is_no_other_than_itself() {
    let _alone = alone();
    let tare = Tare::new();
    let file = tare.state.path().join("same.json");
    let kept = file.to_str().unwrap();
    let arguments = [
        "compare",
        "/plaintext",
        "/plaintext",
        "--budget",
        "8s",
        "--window",
        "200ms",
        "-q",
        "--json",
        "-o",
        kept,
    ];
    let (result, code) = tare.json(&arguments);
    assert_eq!(code, 0, "{result:#}");
    let launches = result["launches"].as_array().unwrap();
    assert!(launches.iter().all(|launch| launch["arms"].as_array().unwrap().len() == 3), "{result:#}");
    for figure in ["throughput", "cpu_per_request", "p50"] {
        let effect = effect(&result, figure);
        let ratio = number(effect, "/value") / number(effect, "/baseline");
        assert!(ratio > 0.2 && ratio < 5.0, "{effect:#}");
        // On a busy machine launches may be too few for an interval; one that there is does not tell them apart.
        if let Some(change) = effect["change"].as_object() {
            let [low, high] = [0, 1].map(|end| change["interval"][end].as_f64().unwrap());
            assert!(low < 0.25 && high > -0.25, "{effect:#}");
        }
    }
    let on_disk: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(on_disk, result);
}

#[test]
fn much_more_cpu_is_found_and_can_fail() {
    let _alone = alone();
    let tare = Tare::new();
    let output = tare.run(&[
        "compare",
        "/plaintext",
        "/spin?ns=200000",
        "--budget",
        "36s",
        "--window",
        "200ms",
        "--precision",
        "5%",
        "--fail-if",
        "cpu_per_request > 50%",
        "--fail-if",
        "throughput > 5%",
    ]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("B is slower than A"), "{text}\n{}", said(&output));
    assert_eq!(output.status.code(), Some(1), "{text}\n{}", said(&output));
    assert!(said(&output).contains("cpu_per_request > 50% is proven"), "{}", said(&output));
    assert!(!said(&output).contains("throughput > 5% is proven"), "{}", said(&output));
}

/// With turns of a few milliseconds it would never run out. It is far below the third of a CPU that a busy loop of another session leaves.
#[test]
fn a_quota_of_the_one_alone_is_why_it_is_slower() {
    let _alone = alone();
    let quota = Quota::of(10);
    let procs = quota.group(false).join("cgroup.procs");
    let server = format!("{} serve --threads 1 --listen 127.0.0.1:{{port}}", env!("CARGO_BIN_EXE_tare"));
    let held = format!("echo $$ > {} && exec {server}", procs.display());
    let options =
        ["compare", "-q", "--json", "--budget", "20s", "--sut", &server, "--sut", &held, "/plaintext"];
    let (result, code) = Tare::new().json(&options);
    assert_eq!(code, 0, "{result:#}");
    assert!(number(&result, "/turn_ns") >= 2e8, "{}", result["turn_ns"]);
    let parts = result["parts"].as_array().unwrap();
    let whole: Vec<&Value> = parts.iter().filter(|part| part["within"].is_null()).collect();
    let largest = whole.iter().min_by(|one, other| number(one, "/ln").total_cmp(&number(other, "/ln")));
    assert_eq!(largest.unwrap()["id"], "throttled", "{parts:#?}");
    let within: Vec<&Value> =
        parts.iter().filter(|part| part["within"] == "cost").map(|part| &part["id"]).collect();
    assert_eq!(within, ["user", "kernel"], "{parts:#?}");
    let warned = result["warnings"].as_array().unwrap().iter().any(|warning| warning["id"] == "other-quota");
    assert!(warned, "{:#}", result["warnings"]);
}

#[test]
fn what_cannot_be_compared_is_one_line_and_nothing_starts() {
    let _alone = alone();
    let tare = Tare::new();
    for (arguments, wanted) in [
        (&["/plaintext"][..], "nothing to compare"),
        (&["--sut", "true", "--sut", "false {port}"], "{port}"),
        (&["/a", "http://127.0.0.1:8080/"], "leads to one port"),
        (&["/a", "/b", "--rate", "100"], "--rate"),
        (&["/a", "/b", "--sut", "x", "--sut", "y", "--sut", "z"], "do not pair"),
        (&["/a", "/b", "--sut-cpus", "4000"], "no CPU 4000"),
        (&["/a", "/b", "--fail-if", "speed > 2%"], "no figure 'speed'"),
        (&["/a", "/b", "--precision", "0"], "not a share"),
        (&["/a", "/b", "-o", "/proc/nowhere/x"], "cannot write"),
        (&["/a", "/b", "-o", "/dev/null"], "not a comparison"),
        (&["/a", "/b", "--window", "10m"], "longer than the whole budget"),
    ] {
        let output = tare.command().arg("compare").args(arguments).output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(wanted) && text.trim_end().lines().count() == 1, "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_server_that_dies_is_reported_and_what_was_measured_is_kept() {
    let _alone = alone();
    let tare = Tare::new();
    let folder = tare.state.path();
    let file = folder.join("died.json");
    // The built-in server; from its fourth launch on, B ends by itself a moment after it began to answer.
    let script = folder.join("mortal.sh");
    let server = env!("CARGO_BIN_EXE_tare");
    let text = format!(
        "#!/bin/sh\ncd {0}\necho x >> launches\nif [ $(wc -l < launches) -gt 3 ]; then\n\
         timeout -s KILL 0.6 {server} serve --threads 1 --listen 127.0.0.1:$1\nexit 7\nfi\n\
         exec {server} serve --threads 1 --listen 127.0.0.1:$1\n",
        folder.display()
    );
    std::fs::write(&script, text).unwrap();
    let mortal = format!("exec sh {} {{port}}", script.display());
    let output = tare.run(&[
        "compare",
        "--sut",
        "embedded",
        "--sut",
        &mortal,
        "/plaintext",
        "--window",
        "2s",
        "--budget",
        "60s",
        "-q",
        "-o",
        file.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("B 'exec sh") && said(&output).contains("hint:"), "{}", said(&output));
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["launches"].as_array().unwrap().len(), 3, "{kept:#}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("3 in "),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    crate::support::eventually("nobody is left", || servers().is_empty());
    assert_eq!(std::fs::read_to_string(folder.join("launches")).unwrap().lines().count(), 4);
}

#[test]
fn a_server_that_never_answers_is_reported() {
    let _alone = alone();
    let tare = Tare::new();
    let output = tare.run(&["compare", "--sut", "embedded", "--sut", "exit 3; : {port}", "/plaintext", "-q"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("B 'exit 3") && text.contains("exit status 3") && text.contains("hint:"), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let _alone = alone();
    let tare = Tare::new();
    let file = tare.state.path().join("cut.json");
    let mut command = tare.command();
    command
        .args(["compare", "/plaintext", "/plaintext", "--window", "100ms", "--json", "-q", "-o"])
        .arg(&file);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    crate::support::eventually("a launch is over", || file.exists());
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let result: Value = crate::support::schema::read(&["compare"], &output.stdout);
    assert!(!result["launches"].as_array().unwrap().is_empty() && result["ended"].is_null(), "{result:#}");
}

#[test]
fn commands_differ_by_their_times_and_not_from_themselves() {
    let _alone = alone();
    let tare = Tare::new();
    let loops = |count: u32| format!("sh -c 'i=0; while [ $i -lt {count} ]; do i=$((i+1)); done'");
    let (short, long) = (loops(2_000), loops(40_000));
    let mut arguments =
        vec!["compare", "-q", "--json", "--budget", "8s", "--window", "150ms", "--fail-if", "time > 50%"];
    arguments.extend(["--command", &short, "--command", &long]);
    let (result, code) = tare.json(&arguments);
    assert_eq!(code, 1, "{result:#}");
    assert!(result["programs"][0]["command"] == short.as_str() && result["programs"][0]["url"].is_null());
    let launches = result["launches"].as_array().unwrap();
    for launch in launches {
        let arms = launch["arms"].as_array().unwrap();
        let runs: Vec<u64> = arms.iter().map(|arm| arm["answers"].as_u64().unwrap()).collect();
        // As many of each, an even number: every round has its mirror.
        assert!(
            runs.len() == 3 && runs[0].is_multiple_of(2) && runs.iter().all(|count| *count == runs[0]),
            "{runs:?}"
        );
    }
    for figure in ["time", "cpu_time"] {
        let effect = effect(&result, figure);
        let ratio = number(effect, "/value") / number(effect, "/baseline");
        assert!((2.0..40.0).contains(&ratio) && effect["verdict"] == "slower", "{effect:#}");
        let aa_control = number(effect, "/aa_control/value");
        assert!(aa_control.abs() < 0.5, "{effect:#}");
    }
    // A wall second of a loop is one of CPU.
    let of = |figure| number(effect(&result, figure), "/value");
    assert!(of("cpu_time") <= of("time") * 1.05, "{result:#}");
}

/// A fifth slower, beside a metric that never changes: what luck adds is a per cent.
#[test]
fn commands_that_print_results_differ_by_their_metrics() {
    let _alone = alone();
    let tare = Tare::new();
    let prints = |ns: u32| {
        format!(
            "sh -c \"echo BenchmarkSort-2 100 $(({ns} + $$ % 20)) ns/op; echo BenchmarkSame-2 9 50 ns/op 3 allocs/op\""
        )
    };
    let (old, new) = (prints(1000), prints(1200));
    let compare = |more: &[&str]| {
        let asked = [
            "compare",
            "-q",
            "--json",
            "--budget",
            "6s",
            "--window",
            "100ms",
            "--command",
            &old,
            "--command",
            &new,
        ];
        tare.json(&[&asked[..], more].concat())
    };
    let (result, code) = compare(&["--fail-if-worse", "5%"]);
    assert_eq!(code, 1, "{result:#}");
    let metrics = result["benchmarks"].as_array().unwrap();
    let verdicts: Vec<[&str; 3]> = metrics
        .iter()
        .map(|metric| ["benchmark", "name", "verdict"].map(|key| metric[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ["BenchmarkSort-2", "ns/op", "slower"],
            ["BenchmarkSame-2", "ns/op", "no-difference"],
            ["BenchmarkSame-2", "allocs/op", "no-difference"]
        ]
    );
    let change = number(&metrics[0], "/change/value");
    assert!((0.15..0.25).contains(&change), "{metrics:#?}");
    let (result, code) = compare(&["--fail-if-worse", "5%", "--benchmark", "Same"]);
    assert_eq!((code, result["benchmarks"].as_array().unwrap().len()), (0, 2), "{result:#}");
    let gate = ["gate", "-q", "--json", "--budget", "10s", "--command", &new, "--against", &old];
    let (result, code) = tare.json(&gate);
    assert!(code == 1 && result["benchmarks"][0]["verdict"] == "slower", "{result:#}");
    assert_eq!(result["conditions"].as_array().map(Vec::len), Some(0), "how long it took is not judged");
    let silent = tare.run(&["compare", "-q", "--command", "true", "--command", "true", "--metric", "x"]);
    assert!(silent.status.code() == Some(2) && said(&silent).contains("print no results"));
}

#[test]
fn a_command_that_fails_is_reported_and_what_does_not_fit_is_refused() {
    let _alone = alone();
    let tare = Tare::new();
    let run = |more: &[&str]| tare.run(&[&["compare", "-q"], more].concat());
    let output = run(&["--command", "true", "--command", "sh -c 'echo broken >&2; exit 3'"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("B 'sh -c") && text.contains("exit status 3") && text.contains("broken"), "{text}");
    for (arguments, word) in [
        (&["--command", "true"][..], "second --command"),
        (&["--command", "true", "--command", "no-such-program-at-all"], "no-such-program-at-all"),
        (&["--command", "true", "--command", "false", "--sut", "embedded"], "cannot be used with"),
        (&["--command", "true", "--command", "false", "-c", "8"], "cannot be used with"),
        (&["--command", "true", "--command", "true", "--fail-if", "p99 > 5%"], "time, cpu_time"),
        (&["/plaintext", "/plaintext", "--fail-if", "time > 5%"], "throughput"),
    ] {
        let output = run(arguments);
        let text = said(&output);
        assert!(output.status.code() == Some(2) && text.contains(word), "{arguments:?}: {text}");
    }
}
