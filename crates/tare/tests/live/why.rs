//! Differences that were made on purpose are put down to what made them, on real servers and programs.

use crate::support::{Quota, Server, Tare, alone, number};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A request that keeps the server busy for most of its cost, by the clock.
const SPIN: &str = "/spin?ns=20000";
/// The same with ten times the work.
const SPIN_MORE: &str = "/spin?ns=200000";

struct Lab {
    tare: Tare,
}

impl Lab {
    fn new() -> Self {
        Lab { tare: Tare::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.tare.state.path().join(name)
    }

    /// Measures a server into a record of this name.
    fn measure(&self, name: &str, server: &Server, path: &str) -> PathBuf {
        self.measure_by(self.tare.command(), name, server, path)
    }

    fn measure_by(&self, mut tare: Command, name: &str, server: &Server, path: &str) -> PathBuf {
        let file = self.file(name);
        tare.args(["run", "-q", "--no-levels", "-w", "500ms", "-d", "1s", "--trials", "5", "-o"]).arg(&file);
        let output = tare.arg(server.url(path)).output().unwrap();
        let code = output.status.code();
        // A lower bound with open accounting is still a record.
        assert!(matches!(code, Some(0 | 4)), "{code:?}: {}", String::from_utf8_lossy(&output.stderr));
        file
    }

    fn why(&self, a: &Path, b: &Path) -> Value {
        let (why, code) = self.tare.json(&["why", "--json", a.to_str().unwrap(), b.to_str().unwrap()]);
        assert_eq!(code, 0);
        check(&why);
        for part in why["parts"].as_array().unwrap() {
            let (id, ln) = (part["id"].as_str().unwrap(), number(part, "/ln"));
            // With --nocapture this is the table of what each disturbance comes out as.
            if ln.abs() > 0.002 {
                println!("  {id:12} {ln:+.4} of {:+.4}  {}", number(&why, "/rate/ln"), part["ci95"]);
            }
        }
        why
    }
}

/// What holds for every account.
fn check(why: &Value) {
    let parts = why["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|part| number(part, "/ln")).sum();
    let whole = number(why, "/rate/ln");
    assert!((sum - whole).abs() < 1e-9, "parts {sum}, whole {whole}: {why:#}");
    assert!((whole - (number(why, "/rate/to") / number(why, "/rate/from")).ln()).abs() < 1e-9);
    // Each run's own figures give its rate by the iron law: what the intervals and shares are of.
    for side in ["from", "to"] {
        let figure = |id: &str| {
            parts.iter().find(|part| part["id"] == id).map(|part| number(part, &format!("/{side}")))
        };
        let cpus = parts.iter().filter(|part| part["unit"] == "CPUs" && part["id"] != "entitlement");
        let lost: f64 = cpus.map(|part| number(part, &format!("/{side}"))).sum();
        // A program's run may have no accounting of its own.
        let busy = figure("busy").unwrap_or_else(|| figure("entitlement").unwrap() - lost);
        let by_pmu = || figure("instructions").unwrap() / figure("ipc").unwrap();
        let law = busy * figure("clock").unwrap_or(1.0) / figure("cost").unwrap_or_else(by_pmu);
        let rate = number(why, &format!("/rate/{side}"));
        assert!((law / rate - 1.0).abs() < 1e-6, "{side}: {law} by the law, rate {rate}: {why:#}");
    }
    for part in parts {
        let ends = part["ci95"].as_array().unwrap_or_else(|| panic!("no interval: {part:#}"));
        let width = ends[1].as_f64().unwrap() - ends[0].as_f64().unwrap();
        // No two trials cost the same; an interval that stands around another figure is none of this part.
        let varies = part["id"] == "cost";
        assert!(width.is_finite() && (width > 0.0 || !varies), "{part:#}");
        let sign = if varies { -1.0 } else { 1.0 };
        if varies || part["id"] == "clock" {
            let ln = sign * (number(part, "/to") / number(part, "/from")).ln();
            assert!((ln - number(part, "/ln")).abs() < 1e-9, "{part:#}");
        }
    }
}

fn part(why: &Value, id: &str) -> f64 {
    let parts = why["parts"].as_array().unwrap().iter();
    parts.filter(|part| part["id"] == id).map(|part| number(part, "/ln")).sum()
}

/// The share of the difference that a part is.
fn share(why: &Value, id: &str) -> f64 {
    part(why, id) / number(why, "/rate/ln")
}

fn names(why: &Value, kind: &str) -> Vec<String> {
    let differences = why["differences"].as_array().unwrap().iter();
    let mine = differences.filter(|difference| difference["kind"] == kind);
    mine.map(|difference| difference["name"].as_str().unwrap().to_owned()).collect()
}

/// What each pair differs by was made on purpose, and is so large that nothing else on the machine is more of it. How exactly the
/// parts are distinguished is tested on made-up records, which nobody disturbs.
#[test]
fn a_quota_and_more_cpu_per_request_are_distinguished_alone_and_together() {
    let _alone = alone();
    let (lab, server) = (Lab::new(), Server::embedded());
    let [base, spin] = [("base", SPIN), ("spin", SPIN_MORE)]
        .map(|(name, path)| lab.measure(&format!("{name}.tare"), &server, path));
    let quota = Quota::of(10);
    quota.hold(&server.pids, false);
    let [held, both] = [("held", SPIN), ("both", SPIN_MORE)]
        .map(|(name, path)| lab.measure(&format!("{name}.tare"), &server, path));
    let [by_quota, by_spin, by_both] = [&held, &spin, &both].map(|other| lab.why(&base, other));
    spins(&lab, &spin, &by_spin);
    assert!(!names(&by_quota, "quota").is_empty(), "{:#}", by_quota["differences"]);
    assert_eq!(names(&by_spin, "request").len(), 1, "{:#}", by_spin["differences"]);
    for (why, id) in
        [(&by_quota, "throttled"), (&by_spin, "cost"), (&by_both, "throttled"), (&by_both, "cost")]
    {
        // A tenth of a CPU, or ten times the work: each is ln 10 at most, and far more than ln 2 beside any neighbour.
        assert!(part(why, id) < -std::f64::consts::LN_2, "{id}: {:#}", why["parts"]);
    }
    assert!(share(&by_quota, "throttled") > 0.5 && share(&by_spin, "cost") > 0.5);
}

/// Nobody asked for call stacks: the profile after the trials has them, and names the function that spins.
fn spins(lab: &Lab, record: &Path, why: &Value) {
    let folded = lab.tare.run(&["flame", record.to_str().unwrap(), "--folded"]).stdout;
    let folded = String::from_utf8(folded).unwrap();
    let of = |part: &str| -> u64 {
        let lines = folded.lines().filter(|line| line.contains(part));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    let (spun, all) = (of("spin_for"), of(""));
    println!("{spun} of {all} samples in the function that spins");
    assert!(all > 0 && spun as f64 > 0.3 * all as f64, "{folded}");
    let frames = why["frames"].as_array().unwrap_or_else(|| panic!("no functions: {:#}", why["frames"]));
    let named = frames.iter().find(|frame| frame["function"].as_str().unwrap().contains("spin_for"));
    let named = named.unwrap_or_else(|| panic!("not named: {frames:#?}"));
    // By the clock a request spins for 20, then for 200 µs.
    let more_ns = number(named, "/per_request/after_ns") - number(named, "/per_request/before_ns");
    assert!(more_ns > 0.0, "{named:#}");
}

#[test]
fn a_generator_slowed_by_a_quota_leaves_the_server_without_work() {
    let _alone = alone();
    let (lab, server) = (Lab::new(), Server::embedded());
    let base = lab.measure("base.tare", &server, server.good_path);
    let quota = Quota::of(10);
    let tare = lab.tare.command_in(&quota.group(false));
    let slowed = lab.measure_by(tare, "slowed.tare", &server, server.good_path);
    let why = lab.why(&base, &slowed);
    assert!(names(&why, "quota").contains(&"tare's own quota".to_owned()), "{:#}", why["differences"]);
    assert_eq!(why["parts"][0]["id"], "no-work", "{:#}", why["parts"]);
    let generator = why["generator"].as_str().unwrap_or_default();
    assert!(generator.contains("our own generator was slowed by a quota"), "{generator}");
    let text = lab.tare.run(&["why", base.to_str().unwrap(), slowed.to_str().unwrap()]);
    // Whichever way its lines are broken.
    let text = String::from_utf8(text.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("no-work (waited for work)") && text.contains("slowed by a quota"), "{text}");
}

/// The same program with another variable, and a wrapper of it with other content.
#[test]
fn what_else_differed_is_listed_and_secrets_are_not() {
    let _alone = alone();
    let lab = Lab::new();
    let run = |name: &str, program: &Path, variables: &[(&str, &str)]| {
        let file = lab.file(name);
        let mut tare = lab.tare.command();
        tare.args(["run", "-q", "--trials", "3", "-o"]).arg(&file).arg("--").arg(program).arg("7");
        let output = tare.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        file
    };
    let program = |name: &str, text: &str| {
        let file = lab.file(name);
        std::fs::write(&file, text).unwrap();
        assert!(Command::new("chmod").arg("755").arg(&file).status().unwrap().success());
        file
    };
    let loops = "#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n";
    let first = run("a.tare", &program("one", loops), &[("MODE", "slow"), ("API_TOKEN", "hunter2")]);
    let second = run(
        "b.tare",
        &program("two", &format!("{loops}# built again\n")),
        &[("MODE", "fast"), ("API_TOKEN", "hunter3")],
    );
    let why = lab.why(&first, &second);
    assert_eq!(names(&why, "environment"), ["API_TOKEN", "MODE"], "{:#}", why["differences"]);
    let binaries = names(&why, "binary");
    assert!(binaries.iter().any(|name| name.contains("binary")), "{binaries:?}");
    let said = why.to_string();
    assert!(said.contains("slow") && !said.contains("hunter"), "{said}");
    for record in [&first, &second] {
        let bytes = std::fs::read(record).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"hunter2" || window == b"hunter3"));
    }
    let same = lab.tare.run(&["why", first.to_str().unwrap(), first.to_str().unwrap()]);
    let said = String::from_utf8(same.stderr).unwrap();
    assert!(same.status.code() == Some(2) && said.contains("nothing can differ"), "{said}");
    // One run alone, as text and as a page; two as a page.
    let story = lab.tare.run(&["why", first.to_str().unwrap()]);
    assert!(String::from_utf8(story.stdout).unwrap().contains("Where each second of its CPUs went"));
    let page = lab.tare.run(&["why", first.to_str().unwrap(), second.to_str().unwrap(), "-o", "-"]);
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("API_TOKEN"), "{page}");
}
