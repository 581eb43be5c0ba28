//! `tare compare --set-b`: what is applied is put back, also after kill -9, and what cannot be is refused before anything is changed. Whether
//! a setting helps takes luck, and is not asserted (`bench/settings`).

use crate::support::{Tare, alone, eventually};
use std::process::Stdio;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const RPS: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";
const ALL: [&str; 4] = [SOMAXCONN, HUGE_PAGES, AUTOGROUP, RPS];
/// How long B sleeps that is to be killed, seconds: no other process is started so.
const LONG: &str = "600.0417";

fn now(file: &str) -> String {
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Whether the program of B runs.
fn b_runs() -> bool {
    let is_it = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).eq([b"sleep".as_slice(), LONG.as_bytes(), b""])
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(is_it)
}

/// Other values than those that stand: as options, and as files show them. A kernel without autogroup has no file of it.
fn others() -> (Vec<String>, Vec<(&'static str, String)>) {
    let somaxconn = (now(SOMAXCONN).parse::<u64>().unwrap() + 1).to_string();
    let mask = u32::from_str_radix(&now(RPS).replace(',', ""), 16).unwrap();
    let (rps, shown) = if mask == 1 { ("off", 0) } else { ("0", 1) };
    let mut set = vec![format!("somaxconn={somaxconn}"), format!("rps={rps}")];
    let mut files = vec![(SOMAXCONN, somaxconn), (RPS, shown.to_string())];
    if std::path::Path::new(AUTOGROUP).exists() {
        let is_on = now(AUTOGROUP) == "1";
        set.push(format!("autogroup={}", if is_on { "off" } else { "on" }));
        files.push((AUTOGROUP, u8::from(!is_on).to_string()));
    }
    (set.into_iter().flat_map(|set| ["--set-b".to_owned(), set]).collect(), files)
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_changed() {
    let _alone = alone();
    let before = ALL.map(|file| std::fs::read_to_string(file).ok());
    let tare = Tare::new();
    let stands = format!("somaxconn={}", now(SOMAXCONN));
    // More huge pages than there is memory; a setting that stands so; one that no machine has; places that are the same.
    for (arguments, wanted) in [
        (&["--set-b", "hugepages=100000000", "--", "true"][..], "available"),
        (&["--set-b", &stands, "--", "true"], "already: A and B would be the same"),
        (&["--set-b", "somaxcon=1", "--", "true"], "there is no setting 'somaxcon'"),
        (&["--set-b", "rps=8000", "--", "true"], "there is no CPU 8000 here"),
        (
            &["--sut-cpus", "0", "--set-b", "placement=same-node", "--", "true"],
            "placement=auto and placement=same-node both choose CPUs 0 here",
        ),
    ] {
        let output = tare.run(&[&["compare"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(wanted) && said.contains("hint"), "{arguments:?}: {said}");
        assert_eq!(ALL.map(|file| std::fs::read_to_string(file).ok()), before, "{arguments:?}");
    }
    // The generator's CPUs are not the servers'.
    let output = tare.run(&[
        "compare",
        "--sut-cpus",
        "0",
        "--load-cpus",
        "0",
        "--set-b",
        "placement=spread",
        "/plaintext",
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("both choose CPUs"), "{said}");
    assert!(!said.contains("CPUs 0 here"), "{said}");
}

/// B sleeps until it is killed, with its settings applied; A does not.
#[test]
fn settings_are_put_back_after_kill_9() {
    let _alone = alone();
    let (set, others) = others();
    let before: Vec<String> = others.iter().map(|(file, _)| now(file)).collect();
    let standing = || others.iter().map(|(file, _)| now(file)).collect::<Vec<_>>();
    let tare = Tare::new();
    let mut killed = tare
        .command()
        .args(["compare", "-q", "--budget", "60s", "--set-b", &format!("LONG={LONG}")])
        .args(&set)
        .args(["--", "sh", "-c", "exec sleep ${LONG:-0.01}"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("B runs", b_runs);
    let wanted: Vec<String> = others.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(standing(), wanted, "applied while B runs");
    assert!(before.iter().zip(&wanted).all(|(before, wanted)| before != wanted), "{before:?} {wanted:?}");
    let refused = tare.run(&["compare", "--set-b", "somaxconn=7", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("are held by"), "{said}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(standing(), wanted, "nobody is left who could put them back");
    tare.run(&["recover"]);
    assert_eq!(standing(), before);
    eventually("B is gone", || !b_runs());
}

#[test]
fn a_setting_is_put_back_and_has_its_verdict() {
    let _alone = alone();
    let (set, others) = others();
    let before: Vec<String> = others.iter().map(|(file, _)| now(file)).collect();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let asked =
        ["compare", "-q", "--json", "--budget", "1s", "--window", "100ms", "--set-b", "thp-process=never"];
    let (result, code) = Tare::new().json(&[&asked[..], &set, &["--", "sleep", "0.03"]].concat());
    assert_eq!(code, 0, "{result:#}");
    let treated = &result["treatments"][0];
    assert_eq!(treated["program"], "B");
    let setting = |name: &str| {
        let all = treated["settings"].as_array().unwrap();
        all.iter().find(|setting| setting["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(setting("somaxconn")["verified"]["in_use"], true, "{treated:#}");
    let applied = setting("rps")["applied"].to_string();
    assert!(applied.contains("/sys/class/net/lo/queues/rx-0/rps_cpus: "), "{treated:#}");
    // It may have ended before it was read; if not, it went without.
    let without = setting("thp-process");
    assert!(
        without["verified"]["in_use"] == true || without["verified"]["missing"].is_string(),
        "{treated:#}"
    );
    let words = treated["result"]["words"].as_str().unwrap_or("too few launches");
    assert!(
        ["helped", "hurt", "no difference above", "too few", "not known"]
            .iter()
            .any(|start| words.starts_with(start)),
        "{words}"
    );
    assert_eq!(others.iter().map(|(file, _)| now(file)).collect::<Vec<_>>(), before);
}
