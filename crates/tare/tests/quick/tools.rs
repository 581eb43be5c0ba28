//! Results of other tools: shown, compared, exported, and read from what a program prints.

use crate::support::{Tare, schema};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tare-formats/tests/fixtures");
    folder.join(name).display().to_string()
}

/// Two files of a benchmark, the second one slower by a fifth, with the folder that they are in.
fn two_files(tare: &Tare) -> [String; 2] {
    [("old.txt", 1000), ("new.txt", 1200)].map(|(name, ns)| {
        let line = |at: i32| format!("BenchmarkSort-2 100 {} ns/op 80 B/op\n", ns + at % 7);
        let path = tare.state.path().join(name);
        std::fs::write(&path, (0..10).map(line).collect::<String>()).unwrap();
        path.display().to_string()
    })
}

#[test]
fn every_text_and_json_of_a_tool_fits_the_schema() {
    let tare = Tare::new();
    let folders = std::fs::read_dir(fixture("")).unwrap();
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "txt" || extension == "json"))
        .collect();
    files.sort();
    // Each starts the program: every fifth is enough.
    let some: Vec<&PathBuf> = files.iter().step_by(5).collect();
    assert!(some.len() > 30, "{}", some.len());
    for file in some {
        let (read, code) = tare.json(&["show", "--json", &file.display().to_string()]);
        let says = |key: &str| read[key].as_array().is_some_and(|list| !list.is_empty());
        assert!(code == 0 && (says("metrics") || says("skipped") || says("warnings")), "{}", file.display());
    }
}

#[test]
fn ten_lines_are_ten_samples_with_their_median() {
    let tare = Tare::new();
    let [old, _] = two_files(&tare);
    let (read, _) = tare.json(&["show", "--json", &old]);
    let metric = &read["metrics"][0];
    assert_eq!(metric["samples"].as_array().unwrap().len(), 10);
    assert_eq!(metric["launches"].as_array().unwrap().len(), 10);
    assert_eq!(
        (&read["format"], &metric["name"], &metric["unit"]),
        (&"go-bench".into(), &"ns/op".into(), &"s/op".into())
    );
    assert_eq!(metric["estimate"]["value"], 1002e-9);
    assert!(metric["estimate"]["ci95"].is_array());
}

#[test]
fn a_slower_one_is_reported_and_fails_where_it_is_to() {
    let tare = Tare::new();
    let [old, new] = two_files(&tare);
    let (compared, code) = tare.json(&["compare", "--json", &old, &new]);
    assert_eq!((code, &compared["effects"][0]["verdict"]), (0, &"slower".into()));
    assert_eq!(compared["effects"][1]["verdict"], "no-difference");
    let code = |bound: &str, files: [&str; 2]| {
        tare.run(&["compare", files[0], files[1], "--fail-if-worse", bound]).status.code()
    };
    assert_eq!(code("10%", [&old, &new]), Some(1));
    assert_eq!(code("30%", [&old, &new]), Some(0));
    assert_eq!(code("1%", [&new, &old]), Some(0));
    // Several files a side are as many launches, and the medians of these count.
    let again = tare.state.path().join("again.txt").display().to_string();
    std::fs::copy(&old, &again).unwrap();
    let (joined, _) = tare.json(&["compare", "--json", &format!("{old},{again}"), &new]);
    assert_eq!(joined["effects"][0]["values"][0], 2, "{joined:#}");
    // One value has no interval, and what is gone cannot be judged.
    let one = tare.state.path().join("one.txt").display().to_string();
    std::fs::write(&one, "BenchmarkSort-2 100 9999 ns/op\n").unwrap();
    assert_eq!(code("10%", [&old, &one]), Some(4));
}

#[test]
fn what_cannot_be_compared_or_read_says_what_to_do() {
    let tare = Tare::new();
    let [old, new] = two_files(&tare);
    let unknown = tare.state.path().join("words.txt").display().to_string();
    std::fs::write(&unknown, "nothing that is known\n").unwrap();
    let record = format!("{}/../tare-store/tests/fixtures/0.1.0/http.tare", env!("CARGO_MANIFEST_DIR"));
    for (arguments, says) in [
        (vec!["show", &unknown], "tare help formats"),
        (vec!["compare", &old, &unknown], "tare help formats"),
        (vec!["compare", &old, &old], "nothing can differ"),
        (vec!["compare", &format!("{old},{new}"), &new], "nothing can differ"),
        (vec!["compare", &format!("{old},{unknown}"), &new], "tare help formats"),
        (vec!["compare", &format!("{old},{old}"), &new], "named twice"),
        (vec!["compare", &format!("{old},nowhere.txt"), &new], "no file 'nowhere.txt'"),
        (vec!["compare", &old, &record], "is a record of tare"),
        (vec!["compare", &old, &new, "-o", "kept.json"], "leave it out"),
        (vec!["compare", &old, &new, "--fail-if", "net < -2%"], "--fail-if-worse"),
        (vec!["show", &old, "--meter-regex", "("], "--meter-regex"),
        (vec!["export", "--format", "nothing", &old], "benchfmt"),
    ] {
        let output = tare.run(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
}

#[test]
fn some_of_the_results_are_chosen_by_name() {
    let tare = Tare::new();
    let [old, new] = two_files(&tare);
    let (read, _) = tare.json(&["show", "--json", &old, "--metric", "^ns"]);
    let names: Vec<&str> =
        read["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ns/op"]);
    let warned = read["warnings"].as_array().unwrap();
    assert!(warned.iter().any(|warning| warning["text"].as_str().unwrap().starts_with("1 of 1 metrics")));
    let (compared, _) =
        tare.json(&["compare", "--json", &old, &new, "--metric", "B/op", "--benchmark", "Sort"]);
    assert_eq!(compared["effects"].as_array().unwrap().len(), 1);
    let exported = tare.run(&["export", "--format", "csv", &old, "--metric", "B/op"]);
    let text = String::from_utf8(exported.stdout).unwrap();
    assert!(text.contains("B/op") && !text.contains("ns/op"), "{text}");
    for (arguments, says) in [
        (
            vec!["show", &old, "--benchmark", "Hash"],
            "no benchmark matches 'Hash' (hint: there are BenchmarkSort",
        ),
        (vec!["show", &old, "--metric", "("], "no regular expression"),
        (vec!["run", "--metric", "x", "http://127.0.0.1:1/"], "put it behind '--'"),
        (vec!["compare", "--metric", "x", "/a", "/b"], "two files of results"),
    ] {
        let output = tare.run(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(says), "{arguments:?}: {text}");
    }
}

#[test]
fn every_command_on_records_takes_results_too() {
    let tare = Tare::new();
    let [old, new] = two_files(&tare);
    let gate = |arguments: &[&str]| tare.run(&[&["gate"], arguments].concat()).status.code();
    assert_eq!(gate(&[&new, "--baseline", &old]), Some(1), "20 % slower, 5 % are allowed");
    assert_eq!(gate(&[&new, "--baseline", &old, "--fail-if-worse", "30%"]), Some(0));
    assert_eq!(gate(&[&old, "--baseline", &new]), Some(0));
    let page = tare.state.path().join("page.html").display().to_string();
    assert!(tare.run(&["report", &new, "-o", &page]).status.success());
    assert!(std::fs::read_to_string(&page).unwrap().contains("BenchmarkSort"));
    let why = tare.run(&["why", &old, &new]);
    let said = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.status.success() && said.contains("slower"), "{said}");
    assert!(String::from_utf8_lossy(&why.stderr).contains("and not why"));
    for (arguments, says) in [
        (vec!["gate", &new, "--history", "main.jsonl"], "--baseline OLD"),
        (vec!["gate", &new, "--baseline", &old, "--fail-if", "net < -2%"], "--fail-if-worse"),
        (vec!["gate", &new, "--baseline", &new], "nothing can differ"),
    ] {
        let output = tare.run(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(says), "{arguments:?}: {text}");
    }
}

#[test]
fn a_pattern_reads_what_nobody_knows() {
    let tare = Tare::new();
    let log = tare.state.path().join("log.txt").display().to_string();
    std::fs::write(&log, "sort took 12.5 ms\nsomething else\nsort took 13.5 ms\n").unwrap();
    let pattern = "(?P<benchmark>[a-z]+) took (?P<value>[0-9.]+) (?P<unit>ms)";
    let (read, _) = tare.json(&["show", "--json", &log, "--meter-regex", pattern]);
    assert_eq!(read["metrics"][0]["benchmark"], "sort");
    assert_eq!(read["metrics"][0]["samples"], serde_json::json!([0.0125, 0.0135]));
}

#[test]
fn what_is_exported_is_read_again() {
    let tare = Tare::new();
    let [old, _] = two_files(&tare);
    for (format, reader) in [
        ("benchfmt", "go-bench"),
        ("bmf", "bmf"),
        ("hyperfine", "hyperfine"),
        ("github-action-benchmark", "github-action-benchmark"),
        ("csv", "csv"),
    ] {
        let written = tare.state.path().join(format!("{format}.txt")).display().to_string();
        let output = tare.run(&["export", "--format", format, &old, "-o", &written]);
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        let (read, _) = tare.json(&["show", "--json", &written]);
        assert_eq!(read["format"], reader, "{format}");
        assert!(!read["metrics"].as_array().unwrap().is_empty(), "{format}");
    }
    let record = format!("{}/../tare-store/tests/fixtures/0.1.0/http.tare", env!("CARGO_MANIFEST_DIR"));
    let output = tare.run(&["export", "--format", "openmetrics", &record]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("metric=\"throughput\""));
}

/// Reads what a run of this shell command comes to.
fn run_of(tare: &Tare, script: &str, more: &[&str]) -> serde_json::Value {
    let record = tare.state.path().join("run.tare").display().to_string();
    let arguments = [&["run", "--json", "-q", "-o", &record], more, &["--", "sh", "-c", script]].concat();
    let output = tare.run(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::read(&["run"], &output.stdout)
}

/// `openssl speed` prints its rates to standard output, and to standard error how long each measurement ran.
#[test]
fn what_a_tool_says_on_standard_error_judges_its_results() {
    let tare = Tare::new();
    let fixture = format!(
        "{}/../tare-formats/tests/fixtures/openssl-speed/one_size_3.0.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    let run = |time_s: &str| {
        let script = format!(
            "sed 's/in 0.53s/in {time_s}s/' {fixture} | grep Doing >&2; grep -v Doing {fixture}; sleep 0.05"
        );
        run_of(&tare, &script, &[])
    };
    let ids = |found: &serde_json::Value| -> Vec<String> {
        let warnings = found["results"]["warnings"].as_array().unwrap();
        warnings.iter().map(|warning| warning["id"].as_str().unwrap().to_owned()).collect()
    };
    let throttled = run("0.53");
    assert_eq!(ids(&throttled), ["tool-divides-by-cpu-time"], "{}", throttled["results"]);
    let undisturbed = run("1.00");
    assert_eq!(ids(&undisturbed), [""; 0], "{}", undisturbed["results"]);
}

#[test]
fn that_a_benchmark_is_run_once_is_said_where_nobody_asked_for_it() {
    let tare = Tare::new();
    let said = |more: &[&str]| {
        let command = ["--", "sh", "-c", "echo 'BenchmarkX-2 100 1 ns/op'; sleep 0.05"];
        let output = tare.run(&[&["run"], more, &command].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).contains("it is run once (--trials N for more)")
    };
    assert_eq!([said(&[]), said(&["--trials", "2"]), said(&["-q"])], [true, false, false]);
}

#[test]
fn what_a_benchmark_prints_is_read_and_it_is_started_once() {
    let tare = Tare::new();
    let prints = "for i in 1 2 3; do echo \"BenchmarkX-2 100 $i ns/op\"; done; sleep 0.05";
    let once = run_of(&tare, prints, &[]);
    assert_eq!(once["results"]["metrics"][0]["samples"], serde_json::json!([1e-9, 2e-9, 3e-9]));
    assert_eq!(once["trials"].as_array().unwrap().len(), 1);
    let three = run_of(&tare, prints, &["--trials", "3"]);
    assert_eq!(three["results"]["metrics"][0]["launches"], serde_json::json!([0, 0, 0, 1, 1, 1, 2, 2, 2]));
    let warmed = run_of(&tare, prints, &["--warmup", "1"]);
    assert_eq!(warmed["trials"].as_array().unwrap().len(), 1);
    // Numbers alone may be anybody's.
    let numbers = run_of(&tare, "seq 10; sleep 0.05", &["--trials", "2"]);
    assert!(numbers["results"].is_null(), "{}", numbers["results"]);
}
