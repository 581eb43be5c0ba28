//! Servers that are slower at first: how long that takes is found from their own rate.

use crate::support::{Server, Tare, alone, free_port, number};
use std::io::Write;
use std::path::Path;
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

/// Files come from the disk at first, and from memory from the second time on.
#[test]
fn a_cold_cache_is_loaded_until_it_is_warm() {
    let _alone = alone();
    let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")).unwrap();
    let requests = files(folder.path());
    let (port, root) = (free_port(), folder.path().to_str().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--threads", "1", "--cpus", "0"]);
    command.args(["--root", root]);
    let server = Server::of(command, port);
    let url = server.url("/");
    let arguments = arguments(&url, &["--request-file", &requests]);
    let (reported, code) = Tare::new().json(&arguments);
    assert_eq!(code, 0, "{reported:#}");
    let timeline = &reported["timeline"];
    assert!(number(timeline, "/warm_up/steady_from_s") >= 0.1, "{timeline:#}");
    assert!(number(timeline, "/warm_up/growth") > 1.2, "{timeline:#}");
    // The same files once more are warm from the first request on.
    let (reported, _) = Tare::new().json(&arguments);
    let again = &reported["timeline"];
    let growth = again.pointer("/warm_up/growth").and_then(serde_json::Value::as_f64);
    assert!(growth.is_none_or(|growth| growth < number(timeline, "/warm_up/growth")), "{again:#}");
}

/// Gets faster by two thirds in each second from its first request on, to a level.
const SLOW_AT_FIRST: &str = r#"
import http.server, math, sys, time
begun = []
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
        begun or begun.append(time.monotonic())
        time.sleep(0.002 + 0.03 * math.exp(begun[0] - time.monotonic()))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A rate that was asked for is there from the first slice on: at such a load it is latencies that come to a level.
#[test]
fn at_a_given_rate_latencies_tell_when_a_server_is_warm() {
    let _alone = alone();
    let port = free_port();
    let mut command = Command::new("python3");
    command.args(["-c", SLOW_AT_FIRST, &port.to_string()]);
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
    let run = ["run", "--json", "-q", "--no-levels", "--trials", "2", "-d", "1500ms", "-c", "8"];
    run.into_iter().chain(more.iter().copied()).chain([url]).collect()
}

/// Small ones: what a disk takes to find each, and not how fast it streams, is what makes them slow.
const FILES: usize = 8000;
const FILE_BYTES: usize = 8 << 10;
/// About how long all are to come from the disk: a rate that stays at one low level for longer than the shortest warm-up cannot be
/// distinguished from the server's own.
const COLD_S: f64 = 0.7;

/// Has the disk written to, takes all files out of memory, and says how many seconds it takes to read one of them then.
const FORGET: &str = r#"
import os, sys, time
os.sync()
names = [os.path.join(sys.argv[1], name) for name in sorted(os.listdir(sys.argv[1]))]
def each(names, of_file):
    for name in names:
        file = os.open(name, os.O_RDONLY)
        of_file(file)
        os.close(file)
forget = lambda file: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
each(names, forget)
some = names[::len(names) // 400]
begin = time.monotonic()
each(some, lambda file: os.read(file, 1 << 20))
print((time.monotonic() - begin) / len(some))
each(some, forget)
"#;

/// Files that no memory holds, and the file of requests for as many of them as the disk reads in a moment.
fn files(folder: &Path) -> String {
    let bytes = vec![b'x'; FILE_BYTES];
    for number in 0..FILES {
        std::fs::write(folder.join(format!("{number}")), &bytes).unwrap();
    }
    let output = Command::new("python3").args(["-c", FORGET]).arg(folder).output().unwrap();
    let each_s: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let asked = ((COLD_S / each_s) as usize).clamp(FILES / 20, FILES);
    let requests: String = (0..asked).map(|number| format!("GET /{number}\n")).collect();
    let list = folder.join("requests.txt");
    std::fs::File::create(&list).unwrap().write_all(requests.as_bytes()).unwrap();
    list.to_str().unwrap().to_owned()
}
