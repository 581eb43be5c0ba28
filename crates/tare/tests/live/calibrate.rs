//! `tare calibrate` on this machine: known causes are put up for real, found, and taken down again, whatever the end.

use crate::support::{Tare, alive, alone, descendants, eventually};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Groups that tare has made and not removed: below the root of a tree, or below our own group there.
fn groups() -> BTreeSet<PathBuf> {
    let trees = ["", "cpu", "cpu,cpuacct", "memory"].map(|tree| format!("/sys/fs/cgroup/{tree}"));
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let below_own = own.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some(format!("/sys/fs/cgroup/{controllers}{path}"))
    });
    let folders = trees.into_iter().chain(below_own);
    let folders = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        // Those of other tests have names of their own.
        name.starts_with("tare-") && !name.starts_with("tare-test-")
    };
    folders.map(|entry| entry.path()).filter(is_ours).collect()
}

fn left_in(tare: &Tare) -> Vec<String> {
    let entries = std::fs::read_dir(tare.state.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name != "calibration.json" && name != "reference.json" && name != "records").collect()
}

#[test]
fn what_can_be_injected_is_listed_and_nothing_is_done() {
    let _alone = alone();
    let tare = Tare::new();
    let (list, code) = tare.json(&["calibrate", "--list", "--json"]);
    assert_eq!(code, 0);
    let list = list.as_array().unwrap();
    let names: BTreeSet<&str> = list.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 20 && names.contains("none") && names.contains("quota"), "{names:?}");
    for one in list {
        assert!(!one["expected"].as_array().unwrap().is_empty() && one["about"].as_str().unwrap().len() > 5);
    }
    let text = String::from_utf8(tare.run(&["calibrate", "--list"]).stdout).unwrap();
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    for one in list.iter().filter(|one| !one["not_here"].is_null()) {
        // Lines are broken where they would be too long.
        let first_words = one["not_here"].as_str().unwrap().split(' ').next().unwrap();
        assert!(text.contains("not injectable here") && text.contains(first_words), "{text}");
    }
    assert!(left_in(&tare).is_empty());
}

#[test]
fn what_is_not_there_is_not_begun() {
    let _alone = alone();
    let tare = Tare::new();
    let output = tare.run(&["calibrate", "--only", "qouta"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no injection 'qouta'") && said.contains("'quota'"), "{said}");
    assert!(output.stdout.is_empty() && left_in(&tare).is_empty());
}

fn check_of(tare: &Tare) -> Value {
    let (doctor, _) = tare.json(&["doctor", "--json", "--no-probes"]);
    let checks = doctor["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == "calibration").unwrap().clone()
}

#[test]
fn what_is_injected_is_found_taken_down_and_certified() {
    let _alone = alone();
    let before = groups();
    let tare = Tare::new();
    let never = check_of(&tare);
    assert!(never["level"] == "note" && never["fix"].as_str().unwrap().contains("tare calibrate"), "{never}");
    let file = tare.state.path().join("records").join("kept.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let kept = file.to_str().unwrap();
    let arguments = [
        "calibrate",
        "--only",
        "none",
        "--only",
        "quota",
        "--only",
        "program-quota",
        "--repeats",
        "1",
        "--comparisons",
        "1",
        "--seed",
        "7",
        "--json",
        "-o",
        kept,
    ];
    let (result, code) = tare.json(&arguments);
    let runs = result["runs"].as_array().unwrap();
    // One that the host disturbed is reported, and another one is made in its place.
    let disturbed = runs.iter().filter(|run| !run["disturbed"].is_null()).count();
    assert!((3..=3 + disturbed).contains(&runs.len()), "{result:#}");
    assert_eq!(result["summary"]["disturbed"], disturbed);
    assert!(runs.iter().all(|run| run["disturbed"].is_null() || run["injection"] == "none"), "{result:#}");
    let counted = runs.len() - disturbed;
    assert_eq!(result["summary"]["runs"], counted);
    let run = |name: &str| runs.iter().find(|run| run["injection"] == name).unwrap();
    for quota in ["quota", "program-quota"] {
        assert_eq!(run(quota)["found"], "cpu-quota-throttled", "{result:#}");
    }
    assert_eq!(result["summary"]["confusion"]["quota"]["cpu-quota-throttled"], 1);
    assert_eq!(run("none")["result"], "measured");
    assert!(
        ["none", "quota"].iter().all(|name| run(name)["gross"].as_f64().is_some_and(|gross| gross > 0.0))
    );
    // Whether the host disturbed it is no matter of the code.
    let good = result["summary"]["right"] == counted;
    assert_eq!(code, i32::from(!good), "{result:#}");
    assert!(result["complete"] == false && result["seed"] == 7);
    compared_with_itself(&result);
    // A program is no server, and has a net in seconds.
    let spread = &result["net_spread"];
    let servers: Vec<&Value> = runs.iter().filter(|run| run["injection"] != "program-quota").collect();
    let nets = servers.iter().filter(|run| run["net"].is_f64()).count();
    assert!(
        spread["runs"] == servers.len()
            && spread["with_net"] == nets
            && (nets > 3 || spread["quartiles_apart"].is_null()),
        "{spread}"
    );
    assert_eq!(serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).unwrap(), result);
    assert_eq!(groups(), before, "a group was left");
    assert!(left_in(&tare).is_empty(), "{:?}", left_in(&tare));
    let reported = check_of(&tare);
    let found = reported["found"].as_str().unwrap();
    assert!(
        found.starts_with("calibrated ") && found.contains(&format!(" of {counted} right")),
        "{reported}"
    );
    assert!(found.contains("different from itself") || found.contains("came to an end"), "{reported}");
}

/// What a single comparison was, and what is said of all, fit together. On a machine that is busy it has fewer launches, of which two are the
/// fewest that a result takes, or no time for these; nothing else may end it.
fn compared_with_itself(result: &Value) {
    let [one] = result["comparisons"].as_array().unwrap().as_slice() else { panic!("{result:#}") };
    let all = &result["aa_control"];
    assert_eq!(all["budget_s"], 10.0);
    if one["result"] == "failed" {
        let why = one["why"].as_str().unwrap();
        assert!(why.contains("launches"), "{why}");
        assert!(all["comparisons"] == 0 && all["failed"] == 1 && all["rate_ci95"].is_null(), "{all}");
        return;
    }
    let different = one["different"].as_array().unwrap().len();
    assert!(one["result"] == "compared" && one["launches"].as_u64().unwrap() >= 2, "{one}");
    assert!(all["comparisons"] == 1 && all["failed"] == 0, "{all}");
    assert!(
        all["different"] == u32::from(different > 0) && all["largest"].is_null() == (different == 0),
        "{all}"
    );
    assert!(all["detectable"] == one["detectable"] && all["detectable"].as_f64().unwrap() > 0.0, "{all}");
    let wanted = if different == 0 { [0.0, 0.975] } else { [0.025, 1.0] };
    for (end, wanted) in all["rate_ci95"].as_array().unwrap().iter().zip(wanted) {
        assert!((end.as_f64().unwrap() - wanted).abs() < 1e-6, "{all}");
    }
}

/// Kills a calibration once its server is in the group that it made, or in one below that, and has the next start put everything back.
/// `made`: how many groups; `stands`: what must have been done to the first of them by then.
fn is_taken_down_after_a_kill(injection: &str, below: &str, made: usize, stands: impl Fn(&Path) -> bool) {
    let before = groups();
    let tare = Tare::new();
    let mut killed = tare
        .command()
        .args(["calibrate", "-q", "--only", injection, "--repeats", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut inside = Vec::new();
    eventually("the server runs in its group", || {
        inside = descendants(killed.id());
        groups().len() > before.len() && !inside.is_empty()
    });
    // The group is made before the server is born in it.
    let ours: Vec<PathBuf> = groups().difference(&before).cloned().collect();
    eventually("the server is in the innermost group", || {
        let procs = std::fs::read_to_string(ours[0].join(below).join("cgroup.procs")).unwrap_or_default();
        // Afterwards, so that whoever is in the group is among them.
        inside = descendants(killed.id());
        !procs.is_empty() && !inside.is_empty()
    });
    assert!(stands(&ours[0]), "{ours:?}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(ours.iter().all(|group| group.is_dir()), "nobody has removed it yet");
    let output = tare.run(&["recover"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.matches("removed the control group").count() == made, "{said}");
    assert_eq!(groups(), before);
    // A server that had not begun to run its program yet is killed by the kernel, which takes its time where a CPU is taken.
    eventually("whoever was in the group is gone", || inside.iter().all(|pid| !alive(*pid)));
    let again = String::from_utf8(tare.run(&["recover"]).stdout).unwrap();
    assert_eq!(again, "nothing was left behind\n");
}

#[test]
fn what_a_killed_calibration_left_is_taken_down() {
    let _alone = alone();
    is_taken_down_after_a_kill("parent-quota", "tare-inner", 2, |_| true);
}

#[test]
fn a_memory_group_that_a_killed_calibration_left_is_taken_down() {
    let _alone = alone();
    is_taken_down_after_a_kill("little-memory", "", 1, |group| {
        let limit = ["memory.limit_in_bytes", "memory.max"]
            .iter()
            .find_map(|name| std::fs::read_to_string(group.join(name)).ok());
        limit.unwrap().trim() == (48 << 20).to_string()
    });
}

/// Network namespaces that processes live in.
fn namespaces(pids: &[u32]) -> BTreeSet<PathBuf> {
    pids.iter().filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()).collect()
}

#[test]
fn hosts_that_a_killed_calibration_left_are_gone_with_those_who_lived_there() {
    let _alone = alone();
    let tare = Tare::new();
    let arguments = ["calibrate", "-q", "--only", "few-ports", "--repeats", "3"];
    let mut command = tare.command();
    let mut killed = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let own = namespaces(&[std::process::id()]);
    let mut inside = Vec::new();
    eventually("there are two hosts, and somebody on them beside who keeps them", || {
        inside = descendants(killed.id());
        namespaces(&inside).difference(&own).count() == 2 && inside.len() >= 4
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let output = tare.run(&["recover"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    // One that had not executed yet ends with its parent, a moment later.
    eventually("all of them are gone", || inside.iter().all(|pid| !alive(*pid)));
    let again = String::from_utf8(tare.run(&["recover"]).stdout).unwrap();
    assert_eq!(again, "nothing was left behind\n");
}

#[test]
fn a_comparison_that_is_interrupted_is_not_counted_and_the_runs_before_it_are() {
    let _alone = alone();
    let tare = Tare::new();
    let arguments =
        ["calibrate", "-q", "--only", "error-page", "--repeats", "1", "--comparisons", "2", "--json"];
    let interrupted =
        tare.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let pid = interrupted.id();
    // A run has one server, a comparison three at once.
    let mut servers: BTreeSet<u32> = BTreeSet::new();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while servers.len() < 3 && std::time::Instant::now() < deadline {
        servers = descendants(pid).into_iter().collect();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    let output = interrupted.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = crate::support::schema::read(&["calibrate"], &output.stdout);
    assert_eq!(result["runs"].as_array().unwrap().len(), 1, "{result:#}");
    assert!(result["comparisons"].as_array().unwrap().is_empty() && result["aa_control"].is_null());
    assert!(servers.len() >= 3 && servers.iter().all(|pid| !alive(*pid)), "{servers:?}");
    assert!(left_in(&tare).is_empty(), "{:?}", left_in(&tare));
}

#[test]
fn an_interrupted_calibration_keeps_what_was_done() {
    let _alone = alone();
    let before = groups();
    let tare = Tare::new();
    let arguments = ["calibrate", "-q", "--only", "error-page", "--repeats", "100", "--json"];
    let interrupted =
        tare.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let pid = interrupted.id();
    // The second server is up when the first run is over.
    let mut servers: BTreeSet<u32> = BTreeSet::new();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while servers.len() < 2 && std::time::Instant::now() < deadline {
        servers.extend(descendants(pid));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
    let output = interrupted.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = crate::support::schema::read(&["calibrate"], &output.stdout);
    assert!(!result["runs"].as_array().unwrap().is_empty() && result["complete"] == false);
    assert!(servers.iter().all(|pid| !alive(*pid)), "{servers:?}");
    assert_eq!(groups(), before);
    assert!(left_in(&tare).is_empty(), "{:?}", left_in(&tare));
}
