//! `tare plan` on real processes: what is refused, what is measured, what is kept.

use crate::pages::{self, Page};
use crate::support::{alone, left_running};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn tare(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tare"))
        .args(args)
        .env("TARE_STATE_DIR", dir)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn a_bad_plan_gets_one_line_and_starts_nothing() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for (plan, wanted) in [
        ("thread = 2", "plan.toml:1: unknown key 'thread' (hint: did you mean 'threads'?)"),
        ("load_cpus = 1000", "all: load_cpus: there is no CPU 1000 here"),
        ("budget = \"2s\"\nblocks = 9", "more than the budget of 2 s"),
        ("url = \"nowhere\"\nsut = \"true\"", "all: url:"),
    ] {
        std::fs::write(dir.path().join("plan.toml"), plan).unwrap();
        let output = tare(dir.path(), &["plan", "plan.toml"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted) && said.trim().lines().count() == 1, "{said}");
    }
    assert_eq!(tare(dir.path(), &["plan", "missing.toml"]).status.code(), Some(2));
}

#[test]
fn what_is_expected_is_held_to_what_comes() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let plan = "blocks = 2\ntrial = \"1s\"\nwarmup = \"50ms\"\nconnections = 8\nseed = 3\n\
                [[case]]\nname = \"plain\"\n\
                [[case]]\nname = \"slow\"\nrate = 200\nexpect = \"throughput down by 50%; throughput < 1; bottleneck = errors\"\n";
    std::fs::write(dir.path().join("plan.toml"), plan).unwrap();
    let output = tare(dir.path(), &["plan", "plan.toml", "--json", "-q", "-o", "kept"]);
    let result: serde_json::Value = crate::support::schema::read(&["plan"], &output.stdout);
    let slow = &result["cells"][1];
    assert_eq!((slow["name"].as_str(), slow["baseline"].as_str()), (Some("slow"), Some("plain")));
    assert_eq!(slow["blocks"], 2, "{slow}");
    let verdicts: Vec<&str> =
        slow["expectations"].as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap()).collect();
    // On a busy machine a result may not be valid, and then nothing is known; but nobody answers less than once a second.
    assert!(verdicts[1] != "held" && verdicts[2] != "held", "{slow}");
    // What does not hold is an exit code, not a failure.
    let code = if verdicts.contains(&"did-not-hold") { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert_eq!(std::fs::read_dir(dir.path().join("kept")).unwrap().count(), 4);
    let shown = tare(dir.path(), &["show", "kept/block-0001-cell-002.tare"]);
    // A busy machine can open the accounting; the record is shown all the same.
    assert!(matches!(shown.status.code(), Some(0 | 4)), "{}", said(&shown));
}

#[test]
fn what_is_varied_on_the_command_line_is_held_against_its_first_level() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let flags =
        ["--set", "blocks=3", "--set", "trial=1s", "--set", "warmup=50ms", "--factor", "rate=800,100"];
    let output = tare(dir.path(), &[&["plan", "--json", "-q"][..], &flags].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let result: serde_json::Value = crate::support::schema::read(&["plan"], &output.stdout);
    let cells = result["cells"].as_array().unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rate=800", "rate=100"]);
    assert!(cells[0]["baseline"].is_null() && cells[1]["baseline"] == "rate=800", "{result:#}");
    assert!(cells.iter().all(|cell| cell["blocks"] == 3), "{result:#}");
    let eighth = cells[1]["changes"]["throughput"]["ratio"]["value"].as_f64();
    let eighth = eighth.unwrap_or_else(|| panic!("{result:#}"));
    assert!((eighth * 8.0 - 1.0).abs() < 0.5, "{result:#}");
    let nothing = tare(dir.path(), &["plan"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", said(&nothing));
}

/// Two cases that do the same, at a rate that any interference leaves them, are soon known well enough for so little to be asked.
#[test]
fn it_ends_once_enough_is_known() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let plan = "blocks = 24\nprecision = \"20%\"\ntrial = \"500ms\"\nwarmup = \"50ms\"\nconnections = 8\nseed = 3\n\
                rate = 400\n[[case]]\nname = \"one\"\n[[case]]\nname = \"other\"\n";
    std::fs::write(dir.path().join("plan.toml"), plan).unwrap();
    let reported = tare(dir.path(), &["plan", "plan.toml", "--dry-run"]);
    assert!(said(&reported).contains("s at most, until throughput is known to ±20 %"), "{}", said(&reported));
    let output = tare(dir.path(), &["plan", "plan.toml", "--json", "-q", "-o", "kept"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let result: serde_json::Value = crate::support::schema::read(&["plan"], &output.stdout);
    let blocks = result["cells"][1]["blocks"].as_u64().unwrap();
    let reached = result["precision"]["reached"].as_f64();
    assert!((8..24).contains(&blocks) && reached.is_some_and(|reached| reached <= 0.2), "{result:#}");
}

/// Two blocks of a case with the built-in server, and one with `sut` on a port of its own.
fn beside(dir: &Path, sut: &str, port: u16, trial: &str, more: &[&str]) -> Output {
    let plan = format!(
        "blocks = 2\ntrial = \"{trial}\"\nwarmup = \"50ms\"\nstart_timeout = \"5s\"\nconnections = 8\nseed = 3\n\
         [[case]]\nname = \"well\"\n\
         [[case]]\nname = \"ill\"\nsut = \"{}\"\nurl = \"http://127.0.0.1:{port}/plaintext\"\n",
        serving(sut, port)
    );
    std::fs::write(dir.join("plan.toml"), plan).unwrap();
    tare(dir, &[["plan", "plan.toml", "--json", "-o", "kept"].as_slice(), more].concat())
}

fn serving(command: &str, port: u16) -> String {
    command.replace("SERVE", &format!("{} serve --listen 127.0.0.1:{port}", env!("CARGO_BIN_EXE_tare")))
}

fn kept(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("kept")).unwrap().count()
}

fn listens(port: u16) -> bool {
    crate::support::answers((std::net::Ipv4Addr::LOCALHOST, port).into())
}

#[test]
fn what_was_measured_before_a_server_failed_is_kept() {
    let _alone = alone();
    // With this seed the other case comes first.
    for (sut, trial, why, results) in [
        ("exit 3", "300ms", "died: exit status 3", 1),
        // Answers, and ends while it is measured: what it did until then is kept, too.
        ("timeout 1 SERVE >/dev/null", "3s", "died: exit status 124", 2),
        ("sleep 1000", "300ms", "did not answer within 5 s", 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let port = crate::support::free_port();
        let output = beside(dir.path(), sut, port, trial, &["-q"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{sut}: {}", said(&output));
        let said_why = errors.contains(&format!("the system under test of case 'ill' {why}"));
        assert!(said_why && errors.trim().lines().count() == 1, "{sut}: {errors}");
        assert_eq!(kept(dir.path()), results, "{sut}");
        assert!(!output.stdout.is_empty(), "{}", said(&output));
        assert!(!listens(port) && left_running(dir.path()).is_empty(), "{sut}");
    }
}

#[test]
fn a_server_that_left_its_group_does_not_keep_the_port() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let port = crate::support::free_port();
    let output = beside(dir.path(), "setsid SERVE & exec sleep 1000", port, "300ms", &[]);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    assert_eq!(kept(dir.path()), 4, "{}", said(&output));
    // A line for each of its launches.
    let reported = format!("tare: port {port} was still taken when the server had been stopped");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.lines().filter(|line| line.starts_with(&reported)).count(), 2, "{errors}");
    assert!(!listens(port) && left_running(dir.path()).is_empty());
}

/// As a service manager does it: who listens is started by somebody else, and not tare's to stop.
#[test]
fn a_port_that_stays_taken_ends_the_plan_with_its_number() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let port = crate::support::free_port();
    let waits = serving("while [ ! -e go ]; do sleep 0.02; done; exec SERVE", port);
    let mut manager = Command::new("sh");
    let mut manager =
        manager.args(["-c", &waits]).current_dir(dir.path()).stdout(Stdio::null()).spawn().unwrap();
    let output = beside(dir.path(), "touch go; exec sleep 1000", port, "300ms", &["-q"]);
    assert!(left_running(dir.path()).is_empty() && listens(port));
    manager.kill().unwrap();
    manager.wait().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let reported = format!("the system under test of case 'ill' left port {port} taken");
    assert!(errors.contains(&reported) && errors.trim().lines().count() == 1, "{errors}");
    // The launch that left it is among what was measured.
    assert_eq!(kept(dir.path()), 2);
    let result: serde_json::Value = crate::support::schema::read(&["plan"], &output.stdout);
    assert!(result["cells"].as_array().unwrap().iter().all(|cell| cell["blocks"] == 1), "{result:#}");
}

/// The plans that come with tare.
fn plans_of_tare() -> Vec<PathBuf> {
    let plans = pages::root().join("plans");
    let mut plans: Vec<PathBuf> =
        std::fs::read_dir(plans).unwrap().map(|plan| plan.unwrap().path()).collect();
    plans.sort_unstable();
    assert!(plans.len() >= 2, "{plans:?}");
    plans
}

#[test]
fn the_plans_that_come_with_tare_are_plans() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for plan in plans_of_tare() {
        let output = tare(dir.path(), &["plan", "--dry-run", plan.to_str().unwrap()]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        // Every case is judged: it is a cell, or it is left out for want of CPUs.
        let text = std::fs::read_to_string(&plan).unwrap();
        let cases = text.split("[[case]]").skip(1);
        let names: Vec<&str> = cases.filter_map(|case| case.split('"').nth(1)).collect();
        assert!(names.len() > 1 && names.iter().all(|name| is_listed(&said, name)), "{names:#?}\n{said}");
    }
}

/// A line of its own: names of cases are in others' lines, too.
fn is_listed(said: &str, name: &str) -> bool {
    said.lines().any(|line| {
        let rest = line.trim_start().strip_prefix(name);
        rest.map(str::trim_start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('(') || rest.starts_with("is left out"))
    })
}

#[test]
fn the_plan_of_the_page_is_a_plan() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let page = Page::read("docs/how-to/plan.md");
    let lines = page.lines().into_iter().filter(|line| line.block == Some("toml"));
    let plan: String = lines.map(|line| format!("{}\n", line.text)).collect();
    std::fs::write(dir.path().join("plan.toml"), plan).unwrap();
    let output = tare(dir.path(), &["plan", "--dry-run", "plan.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("expects sut.voluntary_switches up"), "{}", said(&output));
}

#[test]
fn every_plan_that_comes_with_tare_is_a_plan() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let plans = std::fs::read_dir(pages::root().join("plans")).unwrap().map(|entry| entry.unwrap().path());
    let plans: Vec<PathBuf> =
        plans.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(plans.len() > 2, "{plans:?}");
    for plan in plans {
        let output = tare(dir.path(), &["plan", "--dry-run", plan.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", plan.display(), said(&output));
        assert!(said(&output).contains("expects "), "{}", plan.display());
    }
}

/// What runs beside a launch sees the setting as it is to be for it.
#[test]
fn a_cell_has_its_settings_and_what_runs_beside_it() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = "/proc/sys/net/core/somaxconn";
    let before = std::fs::read_to_string(file).unwrap().trim().to_owned();
    let other = (before.parse::<u64>().unwrap() + 1).to_string();
    let beside = |name: &str| format!("beside = \"cat {file} >> {name}; exec sleep 1000\"\n");
    let plan = format!(
        "blocks = 2\ntrial = \"100ms\"\nwarmup = \"20ms\"\nconnections = 4\n\
         [[case]]\nname = \"plain\"\n{}[[case]]\nname = \"set\"\nset = \"somaxconn={other}\"\n{}",
        beside("plain"),
        beside("set"),
    );
    std::fs::write(dir.path().join("plan.toml"), plan).unwrap();
    let output = tare(dir.path(), &["plan", "plan.toml", "--json", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let result: serde_json::Value = crate::support::schema::read(&["plan"], &output.stdout);
    assert!(result["cells"].as_array().unwrap().iter().all(|cell| cell["blocks"] == 2), "{result:#}");
    let seen = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(seen("plain").split_whitespace().collect::<Vec<_>>(), [&before, &before]);
    assert_eq!(seen("set").split_whitespace().collect::<Vec<_>>(), [&other, &other]);
    assert_eq!(std::fs::read_to_string(file).unwrap().trim(), before);
    assert!(left_running(dir.path()).is_empty());
    // What a program alone can have is no setting of a cell, and nothing is started for it.
    for (set, wanted) in [("LONG=1", "sut = \"env NAME=VALUE"), ("hugepages=auto", "a number of pages")] {
        std::fs::write(dir.path().join("plan.toml"), format!("set = \"{set}\"")).unwrap();
        let output = tare(dir.path(), &["plan", "plan.toml"]);
        assert!(output.status.code() == Some(2) && said(&output).contains(wanted), "{}", said(&output));
    }
}

/// As short as can be: what it expects may hold or not.
#[test]
fn a_plan_that_comes_with_tare_is_carried_out() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let plan = pages::root().join("plans/architectures.toml");
    let short = ["--set", "blocks=2", "--set", "trial=200ms", "--set", "warmup=50ms"];
    let asked = ["plan", plan.to_str().unwrap(), "--json", "-q", "-o", "kept"];
    // Its servers are started as 'tare'.
    let binaries = Path::new(env!("CARGO_BIN_EXE_tare")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.args(asked).args(short).env("TARE_STATE_DIR", dir.path()).env("PATH", path);
    let output = command.current_dir(dir.path()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let result: serde_json::Value = crate::support::schema::read(&["plan"], &output.stdout);
    let cells = result["cells"].as_array().unwrap();
    assert!(cells.len() > 4 && cells.iter().all(|cell| cell["blocks"] == 2), "{result:#}");
    assert_eq!(kept(dir.path()), 2 * cells.len());
    let text = std::fs::read_to_string(&plan).unwrap();
    let left_out = result["left_out"].as_object().unwrap().len();
    assert_eq!(cells.len() + left_out, text.matches("[[case]]").count(), "{result:#}");
    // Every expectation of a cell has its verdict, whatever it is, and the exit code follows from them.
    let judged = |cell: &serde_json::Value| cell["expectations"].as_array().unwrap().clone();
    let verdicts: Vec<serde_json::Value> =
        cells.iter().flat_map(judged).map(|one| one["verdict"].clone()).collect();
    let code = if verdicts.iter().any(|verdict| verdict == "did-not-hold") { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(verdicts.len() > 4, "{result:#}");
    assert!(left_running(dir.path()).is_empty() && !listens(8080));
}
