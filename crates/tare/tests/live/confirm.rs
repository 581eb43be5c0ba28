//! `tare run --confirm` on this machine: the bottleneck is tried for real, and what was changed is put back, whatever the end.

use crate::support::{Busy, Quota, Server, Tare, alone, eventually, number, terminate};
use std::path::PathBuf;
use std::process::Stdio;

/// The quota that stands on a group.
fn quota_of(quota: &Quota) -> String {
    let group = quota.group(false);
    let v1 = group.join("cpu.cfs_quota_us");
    std::fs::read_to_string(if v1.exists() { v1 } else { group.join("cpu.max") }).unwrap().trim().to_owned()
}

/// The `cpu` group of a process.
fn group_of(pid: u32) -> String {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let own =
        groups.lines().find(|line| line.split(':').nth(1).unwrap().split(',').any(|name| name == "cpu"));
    own.or(groups.lines().find(|line| line.starts_with("0::"))).unwrap().to_owned()
}

/// A short run that is confirmed, against a server of the test's.
fn arguments<'a>(url: &'a str, pid: &'a str, trial: &'a str) -> Vec<&'a str> {
    let words = [
        "run",
        "--stacks=0",
        "--confirm",
        "--json",
        "--no-levels",
        "--load-cpus",
        "1",
        "-w",
        "300ms",
        "-d",
        trial,
        "--trials",
        "2",
    ];
    words.into_iter().chain(["--sut-pid", pid, url]).collect()
}

#[test]
fn a_quota_is_confirmed_kept_in_the_record_and_put_back() {
    let _alone = alone();
    // So little that no neighbour takes more.
    let (server, quota, tare) = (Server::embedded(), Quota::of(10), Tare::new());
    quota.hold(&server.pids, true);
    let (before, group) = (quota_of(&quota), group_of(server.pids[0]));
    let record = tare.state.path().join("kept.tare");
    let (url, pid, file) = (server.url("/plaintext"), server.pids[0].to_string(), record.to_str().unwrap());
    let (result, _) = tare.json(&[arguments(&url, &pid, "1s").as_slice(), &["-o", file]].concat());
    let confirmation = &result["confirmation"];
    let tried = &confirmation["tried"];
    assert_eq!(confirmation["cause"], "cpu-quota-throttled", "{result:#}");
    // A bad minute of the host can leave it undecided; that it is confirmed is tested on a record.
    assert_ne!(tried["verdict"], "refuted", "{tried:#}");
    assert!((number(tried, "/before") - 0.1).abs() < 1e-9 && (number(tried, "/changed") - 0.15).abs() < 1e-9);
    assert_eq!((quota_of(&quota), group_of(server.pids[0])), (before, group));
    // The record holds the pairs, and the result follows from them again.
    let (shown, _) = tare.json(&["show", "--json", file]);
    assert_eq!(&shown["confirmation"], confirmation);
    let text = String::from_utf8(tare.run(&["show", file]).stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("tried") && text.contains("the quota of"), "{text}");
}

#[test]
fn what_is_changed_is_put_back_after_a_kill() {
    let _alone = alone();
    let (server, quota, tare) = (Server::embedded(), Quota::of(10), Tare::new());
    quota.hold(&server.pids, true);
    let before = quota_of(&quota);
    let (url, pid) = (server.url("/plaintext"), server.pids[0].to_string());
    let mut command = tare.command();
    let mut run = command
        .args(arguments(&url, &pid, "500ms"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the quota is changed", || quota_of(&quota) != before);
    run.kill().unwrap();
    run.wait().unwrap();
    // It may have been between two changes.
    let recovered = tare.run(&["recover"]);
    assert!(recovered.status.success(), "{}", String::from_utf8_lossy(&recovered.stderr));
    assert_eq!(quota_of(&quota), before);
}

#[test]
fn a_server_that_was_put_into_a_group_is_out_of_it_after_an_end_and_after_a_kill() {
    let _alone = alone();
    let (server, tare) = (Server::embedded(), Tare::new());
    let group = group_of(server.pids[0]);
    // A costly handler: the server is the bottleneck. In half a second a host that takes the CPU away can be.
    let (url, pid) = (server.url("/spin?ns=200000"), server.pids[0].to_string());
    let spawn = || {
        let mut command = tare.command();
        command.args(arguments(&url, &pid, "2s")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut killed = spawn();
    let mut made = PathBuf::new();
    eventually("the server is in a group", || {
        // In a bad moment something else is the bottleneck, and nothing is tried: then the next run does.
        if killed.try_wait().unwrap().is_some() {
            killed = spawn();
        }
        let now = group_of(server.pids[0]);
        made = PathBuf::from(now.rsplit_once(':').unwrap().1);
        now != group
    });
    assert!(made.file_name().unwrap().to_string_lossy().starts_with("tare-"), "{made:?}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_ne!(group_of(server.pids[0]), group);
    let recovered = tare.run(&["recover"]);
    assert!(recovered.status.success(), "{}", String::from_utf8_lossy(&recovered.stderr));
    assert_eq!(group_of(server.pids[0]), group);
    // And when it is asked to end.
    let mut ended = spawn();
    eventually("the server is in a group again", || {
        if ended.try_wait().unwrap().is_some() {
            ended = spawn();
        }
        group_of(server.pids[0]) != group
    });
    terminate(&mut ended);
    assert_eq!(group_of(server.pids[0]), group);
}

#[test]
fn a_neighbour_is_confirmed_and_left_alone() {
    let _alone = alone();
    let (server, tare) = (Server::embedded(), Tare::new());
    let neighbour = Busy::on(0).heavy();
    let group = group_of(server.pids[0]);
    let (url, pid) = (server.url("/plaintext"), server.pids[0].to_string());
    let (result, _) = tare.json(&arguments(&url, &pid, "1s"));
    assert_eq!(result["confirmation"]["cause"], "cpu-contended", "{result:#}");
    let tried = &result["confirmation"]["tried"];
    assert_ne!(tried["verdict"], "refuted", "{tried:#}");
    // Less than half of the CPU, and more of it.
    assert!(
        number(tried, "/before") < 0.6 && number(tried, "/changed") > number(tried, "/before"),
        "{tried:#}"
    );
    assert_eq!(group_of(server.pids[0]), group);
    drop(neighbour);
}

#[test]
fn what_cannot_be_tried_says_why() {
    let _alone = alone();
    let (server, tare) = (Server::embedded(), Tare::new());
    let (url, pid) = (server.url("/status/404"), server.pids[0].to_string());
    let (result, _) = tare.json(&arguments(&url, &pid, "300ms"));
    let tried = &result["confirmation"]["tried"];
    assert_eq!(result["bottleneck"], "errors");
    assert!(
        tried["missing"].as_str().unwrap().len() > 10 && tried["remedy"].as_str().unwrap().len() > 10,
        "{tried}"
    );
    let refused = tare.run(&["run", "--confirm", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
}
