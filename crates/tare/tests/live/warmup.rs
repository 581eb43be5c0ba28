//! Servers that are slower at first: how long that takes is found from their own rate.

use crate::support::{Server, Tare, alone, free_port, http_in_python, number};
use std::process::Command;

/// Else this server sends header and body apart, and every answer waits 40 ms for an acknowledgement.
const NO_DELAY: &str = "-Dsun.net.httpserver.nodelay=true";

/// A JVM interprets before it compiles, and compiles in steps. A session in which the machine moves more than the compiler shows no
/// level; that one is found where there is one is tested on a record.
#[test]
fn a_jvm_is_loaded_for_as_long_as_was_asked() {
    let _alone = alone();
    let timeline = load_a_jvm();
    let length_s = number(&timeline, "/warm_up/length_s");
    assert!((7.8..12.0).contains(&length_s), "{timeline:#}");
    let [floor, typical, burst] =
        ["floor", "typical", "burst"].map(|stage| number(&timeline, &format!("/{stage}/rate_hz")));
    assert!(0.0 < floor && floor <= typical && typical <= burst, "{timeline:#}");
}

/// The warm-up of one that was only just started.
fn load_a_jvm() -> serde_json::Value {
    let port = free_port();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/Server.java");
    let mut command = Command::new("taskset");
    command.args(["-c", "0", "java", "-XX:+UseSerialGC", NO_DELAY, source, &port.to_string()]);
    let server = Server::of(command, port);
    let (mut reported, code) = Tare::new().json(&arguments(&server.url("/"), &["--warmup", "8s"]));
    assert_eq!(code, 0, "{reported:#}");
    reported["timeline"].take()
}

/// What is asked for: eight connections take 1.6 s for the first time, so that half of the CPUs taken away later does not hide it.
const PATHS: usize = 160;

#[test]
fn a_cold_cache_is_loaded_until_it_is_warm() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let requests = folder.path().join("requests.txt");
    std::fs::write(&requests, (0..PATHS).map(|number| format!("GET /{number}\n")).collect::<String>())
        .unwrap();
    let port = free_port();
    let mut command = Command::new("python3");
    // Takes long for what it is asked for the first time, and keeps it. A disk would do: but how long one takes is the host's luck.
    let work = "if self.path not in kept:\n    time.sleep(0.08)\n    kept.add(self.path)";
    command.args(["-c", &http_in_python("kept = set()", work), &port.to_string()]);
    let server = Server::of(command, port);
    let url = server.url("/");
    let arguments = arguments(&url, &["--request-file", requests.to_str().unwrap()]);
    let (reported, code) = Tare::new().json(&arguments);
    assert_eq!(code, 0, "{reported:#}");
    let timeline = &reported["timeline"];
    assert!(number(timeline, "/warm_up/steady_from_s") >= 0.1, "{timeline:#}");
    assert!(number(timeline, "/warm_up/growth") > 1.2, "{timeline:#}");
    // The same once more is warm from the first request on.
    let (reported, _) = Tare::new().json(&arguments);
    let again = &reported["timeline"];
    let growth = again.pointer("/warm_up/growth").and_then(serde_json::Value::as_f64);
    assert!(growth.is_none_or(|growth| growth < number(timeline, "/warm_up/growth")), "{again:#}");
}

/// A rate that was asked for is there from the first slice on: at such a load it is latencies that come to a level.
#[test]
fn at_a_given_rate_latencies_tell_when_a_server_is_warm() {
    let _alone = alone();
    let port = free_port();
    let mut command = Command::new("python3");
    // Gets faster by two thirds in each second from its first request on, to a level.
    let work = "begun or begun.append(time.monotonic())\ntime.sleep(0.002 + 0.03 * math.exp(begun[0] - time.monotonic()))";
    command.args(["-c", &http_in_python("begun = []", work), &port.to_string()]);
    let server = Server::of(command, port);
    let url = server.url("/");
    let arguments = arguments(&url, &["--rate", "100"]);
    let (reported, code) = Tare::new().json(&arguments);
    assert_eq!(code, 0, "{reported:#}");
    let warm_up = &reported["timeline"]["warm_up"];
    assert!(number(warm_up, "/steady_from_s") < 0.5, "the rate is as asked: {warm_up:#}");
    assert!(number(warm_up, "/latency_fall/from_s") > 0.5, "{warm_up:#}");
    assert!(number(warm_up, "/latency_fall/times") > 1.3, "{warm_up:#}");
    // After 5 s it is slower by a twelfth.
    assert!(number(warm_up, "/length_s") > 3.0, "{warm_up:#}");
    // It is warm now, and that takes the shortest warm-up, or what a disturbed moment adds to it.
    let (reported, _) = Tare::new().json(&arguments);
    assert!(
        number(&reported, "/timeline/warm_up/length_s") < number(warm_up, "/length_s"),
        "{:#}",
        reported["timeline"]
    );
}

fn arguments<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let run =
        ["run", "--json", "-q", "--no-levels", "--stacks=0", "--trials", "2", "-d", "1500ms", "-c", "8"];
    run.into_iter().chain(more.iter().copied()).chain([url]).collect()
}
