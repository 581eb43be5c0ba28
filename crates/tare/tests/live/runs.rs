//! Whole sessions: what is started is stopped, what is killed is cleaned up, what is measured can be read again.

use crate::support::{
    Quota, Server, Tare, alive, alone, children, descendants, eventually, free_port, left_running, number,
};
use serde_json::Value;
use std::process::{Command, Stdio};

fn path(tare: &Tare, name: &str) -> String {
    tare.state.path().join(name).to_str().unwrap().to_string()
}

#[test]
fn the_embedded_default_gives_gross_tare_and_net() {
    let _alone = alone();
    let tare = Tare::new();
    let record = path(&tare, "a.tare");
    let (csv, markdown) = (path(&tare, "a.csv"), path(&tare, "a.md"));
    let arguments = [
        "run",
        "-q",
        "--json",
        "--trials",
        "5",
        "-d",
        "1s",
        "-o",
        &record,
        "--export-csv",
        &csv,
        "--export-markdown",
        &markdown,
    ];
    let (result, code) = tare.json(&arguments);
    assert_eq!(code, 0, "{:#}", result["warnings"]);
    assert!(number(&result, "/gross/value") > 1000.0);
    let (low, high) = (number(&result, "/gross/ci95/0"), number(&result, "/gross/ci95/1"));
    assert!(low < number(&result, "/gross/value") && number(&result, "/gross/value") < high);
    assert_eq!(result["net"]["transport"], "loopback", "{:#}", result["net"]);
    assert_eq!(result["trials"].as_array().unwrap().len(), 5);
    // The same from the file alone.
    let (shown, _) = tare.json(&["show", "--json", &record]);
    assert_eq!(shown, result);
    let shown = tare.run(&["show", &record]);
    assert!(String::from_utf8_lossy(&shown.stderr).starts_with("tare: tare run "), "{shown:?}");
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("gross") && text.contains("net") && !text.contains('\u{1b}'), "{text}");
    let page = path(&tare, "a.html");
    assert!(tare.run(&["report", &record, "-o", &page]).status.success());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http") && !page.contains("url(http"));
    assert!(std::fs::read_to_string(csv).unwrap().lines().count() > 3);
    assert!(std::fs::read_to_string(markdown).unwrap().contains("| "));
    assert!(!std::path::Path::new(&format!("{record}-wal")).exists());
    assert!(!std::path::Path::new(&format!("{record}-journal")).exists());
}

/// Outside of the server's group it would have the CPU to itself whenever the quota holds the server back, and take less CPU per request.
#[test]
fn the_reference_server_is_held_back_where_the_server_is() {
    let _alone = alone();
    let (server, quota, tare) = (Server::embedded(), Quota::of_30_percent(), Tare::new());
    quota.hold(&server.pids, true);
    let members = || std::fs::read_to_string(quota.group(true).join("cgroup.procs")).unwrap().lines().count();
    let ours = members();
    let url = server.url("/plaintext");
    let mut command = tare.command();
    let words =
        ["run", "--json", "-q", "--trials", "3", "-d", "500ms", "-w", "200ms", "--load-cpus", "1", &url];
    let mut run = command.args(words).stdout(Stdio::piped()).spawn().unwrap();
    eventually("the reference is in the server's group", || members() > ours);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut run.stdout.take().unwrap(), &mut text).unwrap();
    assert!(run.wait().unwrap().success());
    let result: Value = crate::support::schema::read(&["run"], text.as_bytes());
    assert!((0.7..1.4).contains(&number(&result, "/net/against_reference/ratio")), "{:#}", result["net"]);
    assert_eq!(members(), ours);
}

#[test]
fn levels_take_turns_with_the_reference_server_on_the_same_cpu() {
    let _alone = alone();
    let (tare, server) = (Tare::new(), Server::nginx());
    let url = server.url("/");
    let short = ["run", "-q", "--json", "--trials", "3", "-d", "300ms", "-w", "200ms", "-c", "8"];
    let (result, _) = tare.json(&[&short[..], &[&url]].concat());
    let levels: Vec<&str> =
        result["trials"].as_array().unwrap().iter().map(|trial| trial["level"].as_str().unwrap()).collect();
    for block in levels.chunks(3) {
        let mut block = block.to_vec();
        block.sort_unstable();
        assert_eq!(block, ["asked", "reference", "saturating"], "{levels:?}");
    }
    assert_eq!(levels.len(), 9);
    // The same kind of server within an order of magnitude, whatever the machine does meanwhile.
    let ratio = number(&result, "/net/against_reference/ratio");
    assert!((0.1..10.0).contains(&ratio), "{ratio}");
    let costs = result["trials"].as_array().unwrap().iter().map(|trial| trial["sut_cpu_ns"].as_f64());
    assert!(costs.into_iter().all(|cost_ns| cost_ns.unwrap() > 0.0));
    // It has ended with the session.
    assert_eq!(left_running(tare.state.path()), Vec::<u32>::new());
    let (result, _) = tare.json(&[&short[..], &["--no-reference", &url]].concat());
    assert_eq!(result["trials"].as_array().unwrap().len(), 6);
    assert!(result["net"]["against_reference"].is_null());
}

#[test]
fn a_server_is_started_measured_and_stopped() {
    let _alone = alone();
    let port = free_port();
    let start = format!("exec {} serve --listen 127.0.0.1:{port} --threads 1", env!("CARGO_BIN_EXE_tare"));
    let url = format!("http://127.0.0.1:{port}/plaintext");
    let (result, code) =
        Tare::new().json(&["run", "-q", "--json", "--trials", "2", "-d", "1s", "--sut", &start, &url]);
    assert_eq!(code, 0, "{:#}", result["warnings"]);
    assert!(number(&result, "/accounting/sut/run_s") > 0.1);
    assert!(!crate::support::answers(([127, 0, 0, 1], port).into()), "the server was left running");
}

#[test]
fn a_server_is_found_behind_a_unix_socket() {
    let _alone = alone();
    let server = Server::nginx();
    let socket = server.socket();
    let (result, code) = Tare::new().json(&[
        "run",
        "-q",
        "--json",
        "--no-levels",
        "--trials",
        "2",
        "-d",
        "1s",
        "--unix",
        socket.to_str().unwrap(),
        "http://localhost/",
    ]);
    assert_eq!(code, 0, "{:#}", result["warnings"]);
    assert!(number(&result, "/accounting/sut/run_s") > 0.1, "{:#}", result["accounting"]["sut"]);
    let output = Tare::new().run(&["run", "-q", "--unix", socket.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "the built-in server has no such socket");
}

#[test]
fn each_stage_is_explained_and_the_first_that_is_not_followed_is_the_capacity() {
    let _alone = alone();
    let server = Server::embedded();
    let tare = Tare::new();
    let record = path(&tare, "stages.tare");
    // 1,000 a second are the most that its one thread can answer.
    let url = server.url("/spin?ns=1000000");
    let steps =
        ["--steps", "50-300:1s,300:1s,600:1s,4k:2s", "--trials", "2", "--no-levels", "-w0s", "-t1", "-c16"];
    let options = [&["run", "-q", "--json", "-o", &record, &url], steps.as_slice()].concat();
    let (result, code) = tare.json(&options);
    // What else the machine does decides how much of the time is accounted for; never that a stage was above capacity.
    assert!(code == 0 || code == 4, "{:#}", result["warnings"]);
    let stages = result["stages"].as_array().unwrap();
    let numbers = |key: &str| stages.iter().map(|stage| number(stage, key)).collect::<Vec<_>>();
    assert_eq!(numbers("/stage"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(numbers("/trials"), [2.0; 4]);
    assert!((numbers("/offered_hz")[0] - 175.0).abs() < 18.0, "{stages:#?}");
    let last = &stages[3];
    assert_eq!((&last["followed"], &last["valid"]), (&false.into(), &false.into()), "{last:#}");
    assert!(last["warnings"].as_array().unwrap().iter().any(|warning| warning["id"] == "schedule-missed"));
    let warnings = result["warnings"].as_array().unwrap();
    assert!(
        stages[2]["followed"] == false || warnings.iter().all(|warning| warning["id"] != "schedule-missed")
    );
    if stages[..3].iter().all(|stage| stage["followed"] == true) {
        assert_eq!((number(last, "/stage"), &last["decides"]), (4.0, &true.into()), "{last:#}");
        assert_eq!(result["bottleneck"], last["bottleneck"]);
        let shown = number(&result, "/gross/value");
        assert!((300.0..=1050.0).contains(&shown), "{shown} req/s of 1,000 at most");
    }
    let again = String::from_utf8(tare.run(&["show", &record]).stdout).unwrap();
    assert!(again.contains("Stages") && again.contains("not followed"), "{again}");
}

#[test]
fn a_server_that_makes_itself_a_daemon_is_found_and_stopped() {
    let _alone = alone();
    let port = free_port();
    let start = format!(
        "setsid {} serve --listen 127.0.0.1:{port} --threads 1 >/dev/null 2>&1 </dev/null &",
        env!("CARGO_BIN_EXE_tare")
    );
    let url = format!("http://127.0.0.1:{port}/plaintext");
    let (result, _) =
        Tare::new().json(&["run", "-q", "--json", "--trials", "2", "-d", "1s", "--sut", &start, &url]);
    assert!(number(&result, "/accounting/sut/run_s") > 0.1);
    assert!(!crate::support::answers(([127, 0, 0, 1], port).into()), "the daemon was left running");
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_cleans_up() {
    let _alone = alone();
    let tare = Tare::new();
    let record = path(&tare, "i.tare");
    let mut child = tare
        .command()
        .args(["run", "-d", "1s", "--trials", "100", "--json", "-o", &record])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a trial is on disk", || trials_in(&tare, &record) >= 1);
    let server = children(child.id());
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(server.iter().all(|pid| !alive(*pid)), "the embedded server was left running");
    assert!(trials_in(&tare, &record) >= 1);
}

fn trials_in(tare: &Tare, record: &str) -> usize {
    let output = tare.run(&["show", "--json", record]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    value["trials"].as_array().map_or(0, Vec::len)
}

fn affinity(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_string()
}

#[test]
fn what_a_killed_run_left_is_dealt_with_by_the_next() {
    let _alone = alone();
    let tare = Tare::new();
    let server = Server::nginx();
    let worker = *server.pids.last().unwrap();
    assert_eq!(affinity(worker), "0");
    let record = path(&tare, "k.tare");
    // Attached and pinned elsewhere, with a generator of somebody else's beside it.
    let load = format!("wrk -t1 -c4 -d60s {}", server.url("/"));
    let attached = path(&tare, "attached.tare");
    let kill = |arguments: &[&str], ready: &mut dyn FnMut(u32) -> bool| {
        let mut child =
            tare.command().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the run is under way", || ready(child.id()));
        let started = descendants(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        started
    };
    let url = server.url("/");
    let started = kill(&["run", "--load", &load, "--sut-cpus", "1", "-o", &attached, &url], &mut |pid| {
        affinity(worker) == "1" && !descendants(pid).is_empty()
    });
    assert_eq!(affinity(worker), "1", "nobody has put it back yet");
    // A server of its own in the middle of its trials, and one that left its process group.
    let port = free_port();
    let start = format!(
        "setsid {} serve --listen 127.0.0.1:{port} --threads 1 >/dev/null 2>&1 </dev/null & sleep 1000",
        env!("CARGO_BIN_EXE_tare")
    );
    let own_url = format!("http://127.0.0.1:{port}/plaintext");
    let more =
        kill(&["run", "-d", "1s", "--trials", "100", "-o", &record, "--sut", &start, &own_url], &mut |_| {
            trials_in(&tare, &record) >= 2
        });
    assert!(trials_in(&tare, &record) >= 2, "all finished trials can be read");
    assert!(!more.is_empty());
    let (result, _) = tare.json(&["run", "-q", "--json", "--trials", "2", "--", "true"]);
    assert_eq!(result["workload"], "command");
    assert_eq!(affinity(worker), "0", "the pinned server is back where it was");
    for pid in started.iter().chain(&more) {
        assert!(!alive(*pid), "{pid} was left running");
    }
    assert!(alive(worker), "what tare did not start lives on");
}

#[test]
fn two_runs_do_not_pin_the_same_server() {
    let _alone = alone();
    let tare = Tare::new();
    let server = Server::nginx();
    let worker = *server.pids.last().unwrap();
    let url = server.url("/");
    let mut first = tare
        .command()
        .args(["run", "-q", "-d", "1s", "--trials", "100", "--sut-cpus", "1", &url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the first has pinned it", || affinity(worker) == "1");
    let second = tare.run(&["run", "-q", "-d", "1s", "--trials", "1", "--sut-cpus", "0", &url]);
    let said = String::from_utf8(second.stderr).unwrap();
    Command::new("kill").args(["-INT", &first.id().to_string()]).status().unwrap();
    first.wait().unwrap();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("another run"), "{said}");
    assert_eq!(affinity(worker), "0", "the first has put it back");
}

#[test]
fn threads_that_come_and_go_are_accounted_for() {
    let _alone = alone();
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "ok").unwrap();
    // A thread for each connection, and each connection for one request.
    let mut server = Command::new("python3")
        .args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the server answers", || crate::support::answers(([127, 0, 0, 1], port).into()));
    let url = format!("http://127.0.0.1:{port}/");
    let (result, _) = Tare::new().json(&[
        "run",
        "-q",
        "--json",
        "--no-levels",
        "-c",
        "4",
        "--trials",
        "3",
        "-d",
        "1s",
        &url,
    ]);
    crate::support::terminate(&mut server);
    let threads = crate::support::threads_of(&result, "sut");
    assert!(
        threads.iter().any(|thread| thread["name"].as_str().unwrap().ends_with("ended threads")),
        "{threads:#?}"
    );
    let busy = number(&result, "/accounting/sut/busy_cpus");
    // Without the threads that ended it is next to nothing; who else has the CPUs decides how much of one it is.
    assert!(busy > 0.2, "its threads kept a CPU busy, the accounting says {busy}");
    assert!(number(&result, "/accounting/residual_ratio") < 0.05, "{:#}", result["accounting"]["residuals"]);
}

#[test]
fn a_server_in_another_network_namespace_is_found() {
    let _alone = alone();
    let name = format!("tare{}", std::process::id());
    let short = &name[..name.len().min(10)];
    let (outside, inside) = (format!("{short}a"), format!("{short}b"));
    let ip =
        |arguments: &[&str]| Command::new("ip").args(arguments).status().is_ok_and(|status| status.success());
    if !ip(&["netns", "add", &name]) {
        panic!("the tests need root and iproute2");
    }
    let _cleanup = Cleanup(|| {
        ip(&["netns", "del", &name]);
    });
    assert!(ip(&["link", "add", &outside, "type", "veth", "peer", "name", &inside, "netns", &name]));
    assert!(ip(&["addr", "add", "10.213.7.1/24", "dev", &outside]) && ip(&["link", "set", &outside, "up"]));
    assert!(ip(&["-n", &name, "addr", "add", "10.213.7.2/24", "dev", &inside]));
    assert!(ip(&["-n", &name, "link", "set", &inside, "up"]));
    let mut server = Command::new("nsenter")
        .arg(format!("--net=/run/netns/{name}"))
        .args([env!("CARGO_BIN_EXE_tare"), "serve", "--listen", "10.213.7.2:8080", "--threads", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the server answers", || crate::support::answers(([10, 213, 7, 2], 8080).into()));
    let (result, _) = Tare::new().json(&[
        "run",
        "-q",
        "--json",
        "--trials",
        "2",
        "-d",
        "1s",
        "http://10.213.7.2:8080/plaintext",
    ]);
    let pid = server.id();
    crate::support::terminate(&mut server);
    assert!(number(&result, "/gross/value") > 100.0);
    // Its process is found there. In a bad minute two trials leave net open, and then it has no transport either.
    let found = crate::support::threads_of(&result, "sut");
    assert!(found.iter().any(|thread| thread["pid"] == pid), "{found:#?}");
    let net = &result["net"];
    assert!(net["transport"] == "namespace" || net["missing"].is_string(), "{net:#}");
    assert!(number(&result, "/accounting/sut/run_s") > 0.0);
    assert!(number(&result, "/accounting/load/run_s") > 0.0);
    let warnings = result["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|warning| warning["id"] != "sut-unseen"), "{warnings:#?}");
}

struct Cleanup<F: Fn()>(F);

impl<F: Fn()> Drop for Cleanup<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_program_is_measured_as_hyperfine_does() {
    let _alone = alone();
    let tare = Tare::new();
    let log = path(&tare, "log");
    let (setup, prepare, cleanup) =
        (format!("echo setup >> {log}"), format!("echo prepare >> {log}"), format!("echo cleanup >> {log}"));
    let (result, code) = tare.json(&[
        "run",
        "-q",
        "--json",
        "--trials",
        "3",
        "--warmup",
        "1",
        "--setup",
        &setup,
        "--prepare",
        &prepare,
        "--cleanup",
        &cleanup,
        "-L",
        "t",
        "0.05,0.1",
        "--",
        "sleep {t}",
    ]);
    assert_eq!(code, 0);
    let log = std::fs::read_to_string(log).unwrap();
    let one = "setup\nprepare\nprepare\nprepare\nprepare\ncleanup\n";
    assert_eq!(log, format!("{one}{one}"));
    let commands = result["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 2);
    for (command, seconds) in commands.iter().zip([0.05, 0.1]) {
        assert_eq!(command["runs"], 3);
        let least = number(command, "/min_s");
        assert!(least >= seconds && least < seconds + 0.1, "{command:#}");
    }
    assert_eq!(commands[0]["command"], "sleep 0.05");
}

#[test]
fn a_program_reads_its_input_in_a_terminal_and_is_ended_in_time() {
    let _alone = alone();
    let tare = Tare::new();
    let run = |options: &[&str], command: &str| {
        let arguments =
            [&["run", "-q", "--json", "--trials", "2"], options, &["--", "sh", "-c", command]].concat();
        tare.json(&arguments)
    };
    let (result, code) = run(&["--input", "3\n4\n"], "read a; read b; test $a$b = 34");
    assert_eq!(code, 0, "{:#}", result["warnings"]);
    assert!(number(&result, "/commands/0/start_up/median_s") < number(&result, "/commands/0/median_s"));
    let (_, code) = run(&["--pty"], "test -t 0 && stty -echo </dev/tty");
    assert_eq!(code, 0);
    // A stop by the terminal ends in a line, not in a wait.
    let stopped = tare.run(&["run", "-q", "--trials", "2", "--", "sh", "-c", "kill -TTOU $$; sleep 60"]);
    assert_eq!(stopped.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("--pty"), "{stopped:?}");
    let (result, code) = run(&["-i", "--time-limit", "50ms"], "sleep 60");
    assert_eq!(code, 0);
    assert!(number(&result, "/commands/0/max_s") < 30.0 && result["commands"][0]["exit_codes"][0].is_null());
}

/// In a terminal or out of one, what is shown is read all the same.
#[test]
fn results_that_are_shown_are_read() {
    let _alone = alone();
    let tare = Tare::new();
    for option in ["--show-output", "--pty"] {
        let words = [
            "run",
            "-q",
            "--json",
            "--trials",
            "2",
            option,
            "--",
            "sh",
            "-c",
            "echo BenchmarkX-2 9 50 ns/op",
        ];
        let output = tare.run(&words);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let samples = &result["results"]["metrics"][0]["samples"];
        assert_eq!(samples.as_array().map(Vec::len), Some(2), "{option}: {result:#}");
        let is_shown = String::from_utf8_lossy(&output.stderr).matches("BenchmarkX").count() == 2;
        assert_eq!(is_shown, option == "--show-output", "{option}: {output:?}");
    }
    // Nothing of it is a result, and it is run no more often for that.
    let shown = tare.run(&["run", "-q", "--trials", "2", "--show-output", "--", "sh", "-c", "echo seen"]);
    assert_eq!(String::from_utf8_lossy(&shown.stderr).matches("seen").count(), 2, "{shown:?}");
}

#[test]
fn a_started_program_sees_what_fits_it_and_what_the_user_set() {
    let _alone = alone();
    let tare = Tare::new();
    let seen = path(&tare, "seen");
    let script = format!("echo $GOMAXPROCS $JAVA_TOOL_OPTIONS > {seen}");
    let arguments = ["run", "--trials", "1", "--fit-runtime", "--sut-cpus", "0", "--", "sh", "-c", &script];
    let run = |variable: Option<&str>| {
        let mut command = tare.command();
        command.env_remove("GOMAXPROCS").env_remove("JAVA_TOOL_OPTIONS").args(arguments);
        let output = command.envs(variable.map(|value| ("GOMAXPROCS", value))).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (std::fs::read_to_string(&seen).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (variables, said) = run(None);
    assert!(variables.starts_with("1 -XX:ActiveProcessorCount=1"), "{variables}");
    assert!(said.contains("GOMAXPROCS=1"), "{said}");
    let (variables, said) = run(Some("7"));
    assert!(variables.starts_with("7 -XX:ActiveProcessorCount=1"), "{variables}");
    assert!(said.contains("GOMAXPROCS stays"), "{said}");
    let refused = tare.run(&["run", "--fit-runtime", "http://127.0.0.1:9/"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_generators_layout_is_found_first() {
    let _alone = alone();
    let run = [
        "run",
        "--json",
        "-q",
        "--no-levels",
        "--trials",
        "2",
        "-d",
        "300ms",
        "-w",
        "100ms",
        "--find-layout",
    ];
    let (result, _) = Tare::new().json(&run);
    let tried = result["tried_layouts"].as_array().unwrap();
    assert!((2..=8).contains(&tried.len()), "{tried:#?}");
    let taken = &tried[0];
    let highest = tried.iter().map(|layout| layout["rate_hz"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(taken["rate_hz"].as_f64().unwrap() >= 0.95 * highest, "{tried:#?}");
    // The session goes on with it: its threads are those that the generator had.
    let threads = crate::support::threads_of(&result, "load");
    assert_eq!(
        threads.iter().filter(|thread| thread["name"].as_str().unwrap().starts_with("tare-load")).count()
            as u64,
        taken["threads"].as_u64().unwrap(),
        "{threads:#?}"
    );
}

#[test]
fn the_word_tare_in_a_command_is_this_program_whatever_is_on_the_path() {
    let _alone = alone();
    let tare = Tare::new();
    let other = tare.state.path().join("tare");
    std::fs::write(&other, "#!/bin/sh\nexit 9\n").unwrap();
    Command::new("chmod").arg("+x").arg(&other).status().unwrap();
    let port = free_port();
    let (sut, url) =
        (format!("tare serve --listen 127.0.0.1:{port}"), format!("http://127.0.0.1:{port}/plaintext"));
    let server =
        ["run", "-q", "--trials", "1", "-d", "300ms", "-w", "300ms", "--no-levels", "--sut", &sut, &url];
    let program = ["run", "-q", "--trials", "2", "--", "tare", "explain"];
    let line = ["run", "-q", "--trials", "2", "--", "tare explain > /dev/null"];
    let commands =
        ["compare", "-q", "--budget", "2s", "--command", "tare explain", "--command", "tare schema"];
    for path in [format!("{}:/usr/bin:/bin", tare.state.path().display()), "/usr/bin:/bin".to_owned()] {
        for arguments in [&server[..], &program, &line, &commands] {
            let output = tare.command().env("PATH", &path).args(arguments).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // What is measured in so short a time need not be fit to be quoted.
            assert!(matches!(output.status.code(), Some(0 | 4)), "{path}: {arguments:?}: {said}");
        }
    }
}

/// A benchmark that prints as it goes, in a group with 30 % of a CPU: each of its samples was held back.
#[test]
fn what_a_quota_took_from_the_samples_of_a_benchmark_is_said() {
    let _alone = alone();
    let (quota, tare) = (Quota::of_30_percent(), Tare::new());
    let script = "for n in 1 2 3 4; do i=0; while [ $i -lt 250000 ]; do i=$((i+1)); done; echo \"BenchmarkA-2 100 $n ns/op\"; done";
    let mut command = tare.command_in(&quota.group(false));
    let output = command.args(["run", "-q", "--json", "--", "sh", "-c", script]).output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let windows = result["results"]["metrics"][0]["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 4, "{result:#}");
    for pair in windows.windows(2) {
        assert!(pair[0]["end_s"].as_f64() <= pair[1]["begin_s"].as_f64(), "{windows:#?}");
    }
    let held_back =
        windows.iter().filter(|window| window["throttled"].as_f64().is_some_and(|cpus| cpus > 0.2));
    assert!(held_back.count() >= 3, "{windows:#?}");
    let warnings = result["results"]["warnings"].as_array().unwrap();
    let said = warnings.iter().find(|warning| warning["id"] == "tool-samples-disturbed");
    assert!(said.is_some_and(|said| said["text"].as_str().unwrap().contains("a quota")), "{warnings:#?}");
}
