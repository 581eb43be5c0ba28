//! Bad input: one clear line, exit code 2, nothing started. A SUT that dies: code 3 and its last words.

use crate::support::{Server, Tare, alone, free_port};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Runs, and checks code 2 and a single line on standard error that contains `words`.
fn refused(arguments: &[&str], words: &str) {
    let tare = Tare::new();
    let output = tare.run(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: one line, not {stderr}");
    assert!(stderr.starts_with("tare: ") && stderr.contains(words), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let kept = std::fs::read_dir(tare.state.path().join("records")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "{arguments:?} left a record");
}

#[test]
fn is_refused_in_one_line() {
    let _alone = alone();
    let refusing = format!("http://127.0.0.1:{}/", free_port());
    let marker = tempfile::tempdir().unwrap().path().join("started");
    let start = format!("touch {}; sleep 60", marker.display());
    for (arguments, words) in [
        (vec!["run", "--no-such-flag"], "--no-such-flag"),
        (vec!["run", "--stacks", "99", &refusing], "--stacks=99"),
        (vec!["run", "-q", "--sut-cpus", "999", "--sut", &start, &refusing], "CPU 999"),
        (vec!["run", "-q", "--load-cpus", "999"], "CPU 999"),
        (vec!["run", "--load-cpus", "3-1"], "3-1"),
        (vec!["run", "-q", "http://"], "host"),
        (vec!["run", "-q", "http:///path"], "host"),
        (vec!["run", "-q", "http://127.0.0.1:99999/"], "port"),
        (vec!["run", "-q", "ftp://127.0.0.1/"], "http"),
        (vec!["run", "-q", "--sut", &start, "127.0.0.1:80"], "http"),
        (vec!["run", "--trials", "0"], "trials"),
        (vec!["run", "-q", "--precision", "0"], "write it as 1%"),
        (vec!["run", "-q", "--precision", "1%", "--trials", "9"], "--precision"),
        (vec!["run", "-q", "--budget", "9s", "--runs", "9", "--", "true"], "--budget"),
        (vec!["run", "-q", "--budget", "5s", "--sut", &start, &refusing], "the budget of 5 s"),
        (vec!["run", "-q", "--budget", "60s", "--steps", "1k:10s", &refusing], "the budget of 60 s"),
        (
            vec!["run", "-q", "--budget", "60s", "--steps", "1k:1s,2k:1s", &refusing],
            "each stage of --steps has its own",
        ),
        (vec!["run", "-q", "-d", "1s", "--steps", "1k:1s", &refusing], "leave out --duration"),
        (vec!["run", "-q", "--precision", "1%", "--load-pid", "2", &refusing], "cannot be counted"),
        (vec!["run", "-c", "0"], "connections"),
        (vec!["run", "-d", "0"], "duration"),
        (vec!["run", "--rate", "-3"], "rate"),
        (vec!["run", "-q", "-o", "/no/such/folder/x.tare"], "/no/such/folder/x.tare"),
        (vec!["run", "-q", "-o", "/proc/version"], "/proc/version"),
        (vec!["run", "-q", "--export-csv", "/no/such/folder/x.csv"], "/no/such/folder/x.csv"),
        (vec!["run", "-q", "-H", "no colon", &refusing], "header"),
        (vec!["run", "-q", "--sut-pid", "4194304", &refusing], "4194304"),
        (vec!["run", "--sut", "x"], "URL"),
        (vec!["run", "-q", "--start-timeout", "5s", &refusing], "--sut"),
        (vec!["compare", "--start-timeout", "5s", "a.tare", "b.tare"], "--start-timeout"),
        (vec!["run", "-q", "--start-timeout", "0", "--sut", &start, &refusing], "--start-timeout"),
        (vec!["run", "-q", "--", "/no/such/program"], "/no/such/program"),
        (vec!["run", "-q", "-L", "x", "1,2", "--", "echo", "y"], "{x}"),
        (vec!["run", "-q", "http://127.0.0.1/", "--", "true"], "URL"),
        (vec!["run", "-q", "--load", "wrk -c1 http://127.0.0.1/", "-c", "5"], "--load"),
        (vec!["run", "-q", "-c", "5", "--", "true"], "connections"),
        (vec!["why", "/no/such/a.tare"], "/no/such/a.tare"),
        (vec!["why", "/proc/version"], "/proc/version"),
        (vec!["why", "--json", "-o", "why.html"], "--json"),
        (vec!["why"], "no record yet"),
        (vec!["load", "-q"], "URL"),
        (vec!["load", "-q", "http://"], "host"),
        (vec!["load", "-q", "-t", "3", "-c", "2", &refusing], "3 threads"),
        (vec!["load", "-q", "--poisson", &refusing], "--poisson"),
        (vec!["load", "-q", "--mix", "1:http://127.0.0.2/", &refusing], "one run loads one server"),
        (vec!["run", "-q", "--unix", "/no/such/socket"], "--unix"),
        (vec!["load", "-q", "-s", "x.lua", &refusing], "--template"),
        (vec!["load", "-q", "-c", "2M", &refusing], "connections"),
        (vec!["load", "-q", "--http2", "--engine", "io-uring", &refusing], "HTTP/2 goes by epoll"),
        (vec!["load", "-q", "--http2", "--pipeline", "2", &refusing], "--pipeline"),
        (vec!["load", "-q", "--streams", "2", &refusing], "--http2"),
        (vec!["load", "-q", "--http2", "-H", "Host: a b", &refusing], "Host"),
        (vec!["load", "-q", "-d", "1s", "-w", "1s", &refusing], "warm-up"),
        (vec!["load", "-q", "--steps", "1k", &refusing], "stage"),
        (vec!["load", "-q", "--steps", "1k:1s", "--budget", "9s", &refusing], "figures of its own"),
        (vec!["load", "-q", "-R", "1k", "--think", "1s", &refusing], "--think"),
        (vec!["load", "-q", "-H", "no colon", &refusing], "header"),
        (vec!["load", "-q", "-m", "GE T", &refusing], "method"),
        (vec!["load", "-q", "--body-file", "/no/such", &refusing], "/no/such"),
        (vec!["load", "-q", "--hdr", "/no/such/x", &refusing], "/no/such/x"),
        (vec!["show", "/no/such.tare"], "/no/such.tare"),
        (vec!["show"], "no record"),
        (vec!["report", "/proc/version"], "/proc/version"),
        (vec!["no-such-command"], "no-such-command"),
    ] {
        refused(&arguments, words);
    }
    assert!(!marker.exists(), "a refused run started its SUT");
}

#[test]
fn a_port_that_is_taken_is_not_measured_by_mistake() {
    let _alone = alone();
    let server = Server::embedded();
    refused(&["run", "-q", "--sut", "sleep 60", &server.url("/plaintext")], "already");
}

#[test]
fn a_server_that_does_not_answer_has_failed() {
    let _alone = alone();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/", silent.local_addr().unwrap());
    let refusing = format!("http://127.0.0.1:{}/", free_port());
    for (command, url, words) in [
        ("run", &silent, "nothing answers"),
        ("run", &refusing, "nothing answers"),
        ("load", &refusing, "cannot connect"),
    ] {
        let output = Tare::new().run(&[command, "-q", url]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command} {url}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(words), "{stderr}");
    }
}

#[test]
fn a_sut_that_dies_at_once_is_quoted() {
    let _alone = alone();
    let url = format!("http://127.0.0.1:{}/", free_port());
    let output = Tare::new().run(&["run", "-q", "--sut", "echo no such database >&2; exit 7", &url]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("no such database") && stderr.contains("exit status 7"), "{stderr}");
}

#[test]
fn a_sut_that_never_answers_is_waited_for_as_long_as_was_asked_and_ended() {
    let _alone = alone();
    let url = format!("http://127.0.0.1:{}/", free_port());
    let pid_file = tempfile::NamedTempFile::new().unwrap();
    let start = format!("echo $$ > {}; exec sleep 600", pid_file.path().display());
    let begun = Instant::now();
    let output = Tare::new().run(&["run", "-q", "--start-timeout", "1s", "--sut", &start, &url]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("did not answer within 1 s") && stderr.contains("--start-timeout"), "{stderr}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let pid: u32 = std::fs::read_to_string(pid_file.path()).unwrap().trim().parse().unwrap();
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(!command.starts_with(b"sleep"), "{pid} runs on");
}

#[test]
fn a_sut_that_dies_under_load_is_quoted_and_its_trials_are_kept() {
    let _alone = alone();
    let tare = Tare::new();
    let record = tare.state.path().join("dies.tare");
    let port = free_port();
    // Serves for a while, then says why it goes.
    let start = format!(
        "timeout 6 {} serve --listen 127.0.0.1:{port} --threads 1; echo out of luck >&2; exit 9",
        env!("CARGO_BIN_EXE_tare")
    );
    let url = format!("http://127.0.0.1:{port}/plaintext");
    let output = tare.run(&[
        "run",
        "-q",
        "-w",
        "300ms",
        "-d",
        "300ms",
        "--trials",
        "40",
        "-o",
        record.to_str().unwrap(),
        "--sut",
        &start,
        &url,
    ]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("out of luck") && stderr.contains("exit status 9"), "{stderr}");
    let (shown, _) = tare.json(&["show", "--json", record.to_str().unwrap()]);
    assert!(!shown["trials"].as_array().unwrap().is_empty(), "finished trials are kept");
}

#[test]
fn a_command_that_fails_is_code_3_unless_ignored() {
    let _alone = alone();
    let tare = Tare::new();
    let output = tare.run(&["run", "-q", "--trials", "2", "--", "exit 5"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("exit status 5"));
    let (result, code) = tare.json(&["run", "-q", "-i", "--json", "--trials", "2", "--", "exit 5"]);
    assert_eq!(result["commands"][0]["exit_codes"], serde_json::json!([5, 5]));
    assert_ne!(code, 3);
}

#[test]
fn a_record_cut_short_is_said_to_be() {
    let _alone = alone();
    let tare = Tare::new();
    let path = tare.state.path().join("whole.tare");
    tare.json(&["run", "-q", "--json", "--trials", "2", "-o", path.to_str().unwrap(), "--", "true"]);
    let whole = std::fs::read(&path).unwrap();
    let cut = tare.state.path().join("cut.tare");
    for length in (0..whole.len()).step_by(whole.len() / 40) {
        std::fs::write(&cut, &whole[..length]).unwrap();
        let output = tare.run(&["show", cut.to_str().unwrap()]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "cut at {length}: {stderr}");
        assert!(stderr.contains("cut.tare") && !stderr.contains("panicked"), "cut at {length}: {stderr}");
    }
}
