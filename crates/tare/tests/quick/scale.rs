//! `tare scale --from` on tables whose law is known, and on what is no sweep.

use crate::support::schema;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn scale(input: &[u8], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.args(["scale", "--from", "-"]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever refuses a line need not read the rest.
    child.stdin.take().unwrap().write_all(input).ok();
    child.wait_with_output().unwrap()
}

fn object(input: &str, args: &[&str]) -> Value {
    let output = scale(input.as_bytes(), &[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::read(&["scale"], &output.stdout)
}

const SPEC_SDM91: &str = "n,x\n1,64.9\n18,995.9\n36,1652.4\n72,1853.2\n108,1828.9\n144,1775.0\n216,1702.2\n";

#[test]
fn a_published_fit_comes_out_and_what_lies_outside_does_not() {
    let found = object(SPEC_SDM91, &[]);
    let value = |name: &str| found["scaling"][name]["value"].as_f64().unwrap();
    assert_eq!(found["scaling"]["model"], "usl");
    for (name, published) in [("gamma", 89.995_238_2), ("alpha", 0.027_728_5), ("beta", 1.0437e-4)] {
        assert!((value(name) / published - 1.0).abs() < 1e-4, "{name}: {}", value(name));
    }
    let peak = value("peak_n");
    assert!((peak - 96.52).abs() < 0.01, "{peak}");
    let below: String = SPEC_SDM91.lines().take(4).map(|line| format!("{line}\n")).collect();
    let found = object(&(below + "54,1800\n"), &["--law", "usl"]);
    let why = found["scaling"]["peak_n"]["missing"].as_str().unwrap();
    assert!(why.contains("not within the range measured"), "{why}");
}

#[test]
fn a_break_is_said_first_and_every_form_is_printed() {
    let rows: String =
        (1..=8).map(|n| format!("{n},{}\n", 100.0 * f64::from(n.min(2)) + f64::from(n % 3))).collect();
    let table = format!("\u{feff}threads,op/s\r\n# two cores\n\n{rows}");
    let found = object(&table, &[]);
    assert_eq!((&found["scaling"]["model"], &found["factor"]), (&"piecewise".into(), &"threads".into()));
    let at = found["scaling"]["break_n"]["value"].as_f64().unwrap();
    assert!((at - 2.0).abs() < 0.05, "{at}");
    let shown = String::from_utf8(scale(table.as_bytes(), &["--color", "never"]).stdout).unwrap();
    assert!(shown.starts_with("Throughput rises in a straight line up to "), "{shown}");
    for (form, part) in
        [("--html", "class=\"band"), ("--export-markdown", "| threads"), ("--export-csv", "n,value,")]
    {
        let output = scale(table.as_bytes(), &[form, "-"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(part), "{form}: {text}");
    }
}

#[test]
fn few_levels_are_missing_with_a_reason() {
    let found = object("n,x\n1,10\n2,19\n4,30\n", &["--law", "usl"]);
    assert!(found["scaling"]["alpha"]["missing"].as_str().unwrap().contains("needs 4"), "{found}");
    let found = object("n,x\n1,10\n2,20.2\n", &[]);
    assert_eq!(found["scaling"]["model"], "linear");
}

#[test]
fn benchmarks_whose_names_end_in_numbers_are_a_sweep() {
    let of = |cpus: u32, ns: u32| format!("BenchmarkMap-{cpus} \t 1000000 \t {ns} ns/op\n");
    let text =
        format!("goos: linux\npkg: a\n{}{}{}{}PASS\n", of(1, 1000), of(2, 520), of(4, 290), of(8, 190));
    let refused = scale(text.as_bytes(), &[]);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && why.contains("--invert"), "{why}");
    let found = object(&text, &["--invert", "--law", "amdahl"]);
    let n: Vec<f64> =
        found["levels"].as_array().unwrap().iter().flat_map(|level| level["n"].as_f64()).collect();
    assert_eq!(n, [1.0, 2.0, 4.0, 8.0], "{found}");
    let alpha = found["scaling"]["alpha"]["value"].as_f64().unwrap();
    assert!((0.03..0.1).contains(&alpha), "{alpha}");
}

#[test]
fn what_is_no_sweep_is_said_in_one_line() {
    for (input, reported) in [
        ("", "hint"),
        ("n,x\n", "no figures"),
        ("n,x\n1,10\n", "only one level"),
        ("n,x\n1,10\n1,11\n", "only one level"),
        ("n,x\n1,10\n2,zero\n", "line 3"),
        ("n,x\n1,10\n0,5\n", "line 3"),
        ("n,x\n1,10\n2,-5\n", "line 3"),
        ("n,x\n1,10\n2,nan\n", "line 3"),
        ("n,x\n1,10\n2,20,30\n", "line 3"),
        ("hello\n", "hint"),
    ] {
        let output = scale(input.as_bytes(), &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{input:?}: {error}");
        assert!(
            error.lines().count() == 1 && error.contains(reported) && error.contains("hint"),
            "{input:?}: {error}"
        );
    }
    let nothing = Command::new(env!("CARGO_BIN_EXE_tare")).arg("scale").output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}
