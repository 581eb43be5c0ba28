//! `tare load` on real servers: what it counts, what it says of itself, what it does not see.

use crate::support::{Server, Tare, alone, free_port, number};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What `tare load` with these options printed as JSON, and how it ended.
fn load(options: &[&str], url: &str) -> (serde_json::Value, i32) {
    Tare::new().json(&[&["load", "-q", "--json"], options, &[url]].concat())
}

fn warnings(result: &serde_json::Value) -> Vec<&str> {
    result["warnings"].as_array().unwrap().iter().map(|warning| warning["id"].as_str().unwrap()).collect()
}

#[test]
fn a_closed_loop_in_the_words_of_wrk() {
    let _alone = alone();
    let server = Server::embedded();
    let tare = Tare::new();
    let output = tare.run(&["load", "-q", "-t1", "-c8", "-d1s", "--latency", &server.url("/plaintext")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for word in ["Requests/sec", "Transfer/sec", "Latency", "p99.99", "99.99%", "2xx", "Errors", "In flight"]
    {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}

#[test]
fn above_what_the_server_can_do_the_generator_sleeps_and_does_not_blame_itself() {
    let _alone = alone();
    let server = Server::embedded();
    // 10,000 a second are the most that one thread can answer.
    let options = ["-R", "20000", "-c16", "-t1", "-d2s", "--load-cpus", "1"];
    let (result, code) = load(&options, &server.url("/spin?ns=100000"));
    println!(
        "busy {}, {} requests",
        number(&result, "/generator/busy/0"),
        number(&result, "/requests/count")
    );
    assert_eq!((code, result["valid"].as_bool()), (4, Some(false)), "{result:#}");
    assert!(number(&result, "/generator/busy/0") < 0.6, "it looked for answers again and again");
    assert!(warnings(&result).contains(&"schedule-missed"), "{:#}", result["warnings"]);
    assert!(!warnings(&result).contains(&"generator-saturated"), "{:#}", result["warnings"]);
    assert_eq!(result["rate_is"], "lower-bound");
}

/// Answers for 0.7 s from its first connection on, and ends.
const DIES: &str = r#"
import os, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(client):
    while client.recv(4096):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        time.sleep(0.001)
def end():
    time.sleep(0.7)
    os._exit(0)
begun = False
while True:
    client, _ = listener.accept()
    if client.recv(4096, socket.MSG_PEEK) and not begun and b"/load" in client.recv(4096, socket.MSG_PEEK):
        begun = True
        threading.Thread(target=end).start()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"#;

#[test]
fn a_server_that_dies_during_the_load_is_no_slow_one() {
    let _alone = alone();
    let port = free_port();
    let server = Server::python(DIES, port, &[&port.to_string()]);
    let (result, code) = load(&["-c4", "-t1", "-d3s"], &server.url("/load"));
    assert_eq!((code, result["valid"].as_bool()), (3, Some(false)), "{result:#}");
    assert!(warnings(&result).contains(&"server-gone"), "{:#}", result["warnings"]);
}

/// Reads some of each upload, and answers that it is too large, or says nothing; then it closes. What asks without a body gets an answer.
const REFUSES: &str = r#"
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
def serve(client):
    head = client.recv(16384)
    if head.startswith(b"GET"):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    elif b"/early" in head:
        client.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        client.settimeout(0.05)
        try:
            client.recv(1000)
        except OSError:
            pass
    client.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn uploads_that_are_refused_or_cut_off_are_counted() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let body = dir.path().join("body");
    std::fs::write(&body, vec![b'x'; 1_000_000]).unwrap();
    let port = free_port();
    let server = Server::python(REFUSES, port, &[&port.to_string()]);
    let upload = |path: &str| {
        let options = ["-c4", "-t1", "-d1s", "--method", "POST", "--body-file", body.to_str().unwrap()];
        load(&options, &server.url(path))
    };
    // Each is answered, and the answer is an error; a few may lose it to the reset of their connection.
    let (early, code) = upload("/early");
    assert_eq!((code, early["valid"].as_bool()), (4, Some(false)), "{early:#}");
    let [answers, status, malformed] = ["count", "errors/status", "errors/malformed"]
        .map(|what| number(&early, &format!("/requests/{what}")));
    assert!(answers > 0.0 && answers == status && malformed == 0.0, "{:#}", early["requests"]);
    assert_eq!(early["status_codes"]["413"], early["requests"]["count"], "{early:#}");
    let (cut, code) = upload("/cut");
    assert_eq!((code, number(&cut, "/requests/count")), (4, 0.0), "{cut:#}");
    assert!(number(&cut, "/requests/errors/io") > 0.0, "{:#}", cut["requests"]);
}

/// Answers each path in a way of its own; a reset is one before any answer.
const STRANGE: &str = r#"
import socket, struct, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64)
ANSWERS = {
    b"/moved": b"301 Moved\r\nLocation: https://example.org/\r\nContent-Length: 0\r\n\r\n",
    b"/cached": b"304 Not Modified\r\n\r\n",
    b"/chunks": b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 bytes\r\nhello\r\n0\r\n\r\n",
    b"/": b"200 OK\r\nContent-Length: 2\r\n\r\nok",
}
def serve(client):
    while head := client.recv(4096):
        path = head.split(b" ")[1]
        if path == b"/reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            break
        client.sendall(b"HTTP/1.1 " + ANSWERS[path])
    client.close()
def begin(client):
    try:
        serve(client)
    except OSError:
        pass
while True:
    threading.Thread(target=begin, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn loads_that_measured_something_else_say_what() {
    let _alone = alone();
    let port = free_port();
    let server = Server::python(STRANGE, port, &[&port.to_string()]);
    let text_of = |result: &serde_json::Value, id: &str| {
        let warnings = result["warnings"].as_array().unwrap();
        let text = warnings.iter().find(|warning| warning["id"] == id).map(|warning| &warning["text"]);
        text.unwrap_or_else(|| panic!("{id}: {result:#}")).as_str().unwrap().to_owned()
    };
    let options = ["-c4", "-t1", "-d1s"];
    let (moved, code) = load(&options, &server.url("/moved"));
    assert!(code == 0 && text_of(&moved, "only-redirects").contains("to https://example.org/"), "{moved:#}");
    let (cached, _) = load(&options, &server.url("/cached"));
    assert!(!warnings(&cached).contains(&"only-redirects"), "{cached:#}");
    let (reset, code) = load(&options, &server.url("/reset"));
    assert_eq!((code, reset["valid"].as_bool()), (4, Some(false)));
    assert!(text_of(&reset, "no-requests").ends_with("connections were reset by the server"), "{reset:#}");
    let (broken, code) = load(&options, &server.url("/chunks"));
    assert_eq!((code, broken["valid"].as_bool()), (4, Some(false)));
    let why = "white space after a chunk size or extension";
    assert!(text_of(&broken, "no-requests").contains(why), "{broken:#}");
    let errors = &broken["requests"]["errors"]["malformed"];
    assert_eq!(&broken["requests"]["error_reasons"]["malformed"][why], errors, "{broken:#}");
    let output = Tare::new().run(&[&["load", "-q"][..], &options, &[&server.url("/chunks")]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("malformed: {why} (")), "{text}");
}

/// A socket whose queue is full, and nobody who accepts.
const FULL: &str = r#"
import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(0)
clients = []
try:
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        client.connect(sys.argv[1])
        clients.append(client)
except BlockingIOError:
    print("full", flush=True)
time.sleep(60)
"#;

#[test]
fn a_full_queue_of_a_unix_socket_is_waited_for_within_a_limit() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("full");
    let mut python = Command::new("python3");
    python.args(["-c", FULL]).arg(&path).stdout(Stdio::piped());
    let mut full = python.spawn().unwrap();
    let mut said = [0; 5];
    full.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let tare = Tare::new();
    let run = |arguments: &[&str]| {
        let mut command = tare.command();
        command.args(arguments).arg("--unix").arg(&path).arg("http://localhost/");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let begun = Instant::now();
    let ended = run(&["run", "-q", "-d1s", "--timeout", "2s"]).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(2) && said.contains("nobody accepts"), "{}: {said}", ended.status);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // Whoever has had enough need not wait for the limit.
    let waiting = run(&["run", "-q", "-d1s", "--timeout", "30s"]);
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    tare_sys::process::kill(waiting.id(), tare_sys::process::Signal::Int).unwrap();
    let ended = waiting.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    full.kill().unwrap();
    full.wait().unwrap();
}

#[test]
fn bounds_on_figures_make_a_gate() {
    let _alone = alone();
    let server = Server::embedded();
    let gate = |bounds: &[&str]| {
        let bounds = bounds.iter().flat_map(|bound| ["--fail-if", bound]);
        let options: Vec<&str> = ["load", "-q", "-c4", "-t1", "-d300ms"].into_iter().chain(bounds).collect();
        let url = server.url("/plaintext");
        let output = Tare::new().run(&[options.as_slice(), &[&url]].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(gate(&["p99 > 2s", "errors > 50%", "throughput < 1"]), (Some(0), String::new()));
    assert_eq!(gate(&["p99 > 2s", "p50 > 1ns"]), (Some(1), "tare: failed: p50 > 1ns\n".to_owned()));
    let (code, said) = gate(&["p98 > 2s"]);
    assert!(code == Some(2) && said.contains("there is no figure 'p98'"), "{said}");
}

#[test]
fn each_stage_is_a_result_and_the_first_that_is_not_followed_shows_the_capacity() {
    let _alone = alone();
    let server = Server::embedded();
    // 1,000 a second are the most that one thread can answer.
    let options = ["--steps", "50:1s,100:1s,4k:1s,8k:1s", "-c16", "-t1", "--load-cpus", "1"];
    let url = server.url("/spin?ns=1000000");
    let (result, code) = load(&options, &url);
    assert_eq!(code, 0, "{result:#}");
    let stages = result["stages"].as_array().unwrap();
    let of = |key: &str| stages.iter().map(|stage| stage[key].as_bool()).collect::<Vec<_>>();
    assert_eq!(of("followed"), [Some(true), Some(true), Some(false), Some(false)], "{stages:#?}");
    assert_eq!(of("valid"), [Some(true), Some(true), Some(false), Some(false)], "{stages:#?}");
    let followed = &result["followed"];
    assert!((number(followed, "/held_hz") - 100.0).abs() < 10.0, "{followed:#}");
    let capacity_hz = number(followed, "/capacity_hz");
    assert!((100.0..=1050.0).contains(&capacity_hz), "{followed:#}");
    let output = Tare::new().run(&[&["load", "-q"], options.as_slice(), &[&url]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("not followed") && text.contains("that is its capacity"), "{text}");
}

#[test]
fn the_result_is_counted_once_in_every_form() {
    let _alone = alone();
    let server = Server::embedded();
    let tare = Tare::new();
    let file = |name: &str| tare.state.path().join(name).to_str().unwrap().to_owned();
    let (hdr, series) = (file("x.hdr"), file("x.csv"));
    let url = server.url("/plaintext");
    let (result, code) = load(&["-c4", "-t1", "-R500", "-d2500ms", "--hdr", &hdr, "--series", &series], &url);
    assert_eq!(code, 0, "{result:#}");
    let count = number(&result, "/requests/count");
    assert_eq!(number(&result, "/statuses/2xx"), count);
    assert_eq!(number(&result, "/status_codes/200"), count);
    assert_eq!(result["rate_is"], "offered");
    assert!(count + number(&result, "/in_flight") >= number(&result, "/scheduled") - 1.0, "{result:#}");
    // The log is read back by the library's own reader.
    let log = std::fs::read(&hdr).unwrap();
    let (mut whole, mut begins_s, mut lengths_s) = (None::<Histogram<u64>>, Vec::new(), Vec::new());
    let (mut started, mut based) = (false, false);
    for entry in IntervalLogIterator::new(&log) {
        match entry.unwrap() {
            LogEntry::StartTime(_) => started = true,
            LogEntry::BaseTime(_) => based = true,
            LogEntry::Interval(interval) => {
                let encoded = base64(interval.encoded_histogram());
                let read: Histogram<u64> = Deserializer::new().deserialize(&mut encoded.as_slice()).unwrap();
                assert!((interval.max() - read.max() as f64 / 1e6).abs() < 0.001, "in milliseconds");
                begins_s.push(interval.start_timestamp().as_secs_f64());
                lengths_s.push(interval.duration().as_secs_f64());
                match &mut whole {
                    None => whole = Some(read),
                    Some(whole) => whole.add(read).unwrap(),
                }
            }
        }
    }
    assert!(started && based);
    assert_eq!(begins_s.len(), 3, "one for each second that was begun: {begins_s:?}");
    let ends_s = begins_s.iter().zip(&lengths_s).map(|(begin, length)| begin + length);
    assert!(ends_s.zip(&begins_s[1..]).all(|(end, begin)| (end - begin).abs() < 0.002), "{begins_s:?}");
    assert!((lengths_s.iter().sum::<f64>() - number(&result, "/elapsed_s")).abs() < 0.01);
    let whole = whole.unwrap();
    assert_eq!(whole.len() as f64, count);
    assert_eq!(whole.value_at_quantile(0.99) as f64, number(&result, "/latency_ns/p99"));
    let lines = std::fs::read_to_string(&series).unwrap();
    assert_eq!(lines.lines().count() - 1, result["series"].as_array().unwrap().len());
}

/// Standard base64, as the log has it.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        bits = bits << 6 | DIGITS.iter().position(|known| *known == digit).unwrap() as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

#[test]
fn it_ends_after_so_many_requests() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let (result, code) = load(&["-n", "5000", "-t1", "-c8", "-d60s"], &url);
    assert_eq!((number(&result, "/requests/count"), code), (5000.0, 0));
    assert_eq!(number(&result, "/in_flight"), 0.0);
}

#[test]
fn pipelined_requests_have_latencies_of_their_own() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let (result, _) = load(&["-t1", "-c8", "--pipeline", "16", "-d1s"], &url);
    // wrk prints 0.00us from p75 on at this depth.
    for quantile in ["p50", "p75", "p90", "p99"] {
        assert!(number(&result, &format!("/latency_ns/{quantile}")) > 1000.0, "{result:#}");
    }
    assert!(number(&result, "/requests/count") > 1000.0);
}

#[test]
fn a_schedule_is_kept_with_sleeps_and_without() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    // How exactly it sleeps is tested in `tare-sys`: here the host has a say in it.
    for more in [&[][..], &["--busy-poll"]] {
        let always = ["load", "-q", "--json", "-t1", "-c16", "-R2k", "-d1s", &url];
        let (result, _) = Tare::new().json(&[&always, more].concat());
        assert!(number(&result, "/requests/count") + number(&result, "/in_flight") > 1900.0, "{result:#}");
        assert!(number(&result, "/lateness_ns/p50") >= 0.0 && number(&result, "/latency_ns/p50") > 0.0);
    }
}

#[test]
fn a_generator_that_sleeps_says_that_it_measures_its_own_wake_up() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let run = |more: &[&str]| {
        Tare::new()
            .json(&[&["load", "-q", "--json", "-t1", "-c1", "-R200", "-d1s"], more, &[&url]].concat())
            .0
    };
    assert!(warnings(&run(&[])).contains(&"wake-up"));
    assert!(!warnings(&run(&["--busy-poll"])).contains(&"wake-up"));
}

#[test]
fn requests_of_a_schedule_are_sent_as_they_fall_due() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let (result, code) =
        Tare::new().json(&["load", "-q", "--json", "-t2", "-c2", "-R20", "-n10", "-d60s", &url]);
    // The tenth is due after 450 ms; by one thread of the two it would be sent after 900.
    assert_eq!((number(&result, "/requests/count"), code), (10.0, 0), "{result:#}");
    assert!(number(&result, "/rate_hz") > 16.0, "{result:#}");
}

#[test]
fn http2_on_a_real_server() {
    let _alone = alone();
    let server = Server::nginx();
    let socket = server.http2_socket();
    let by_http2 = ["load", "-q", "--json", "-t1", "-c4", "--http2", "--unix", socket.to_str().unwrap()];
    let run = |more: &[&str]| Tare::new().json(&[&by_http2[..], more, &["http://localhost/"]].concat());
    // nginx says goodbye after 200 requests, many times: none is lost.
    let (result, code) = run(&["--streams", "8", "-n", "5000"]);
    assert_eq!((number(&result, "/requests/count"), code), (5000.0, 0), "{result:#}");
    assert_eq!((number(&result, "/statuses/2xx"), number(&result, "/in_flight")), (5000.0, 0.0));
    assert!(number(&result, "/latency_ns/p50") > 1000.0 && result["asked"]["http2"] == true);
    let (result, _) = run(&["-R", "500", "-d1s"]);
    assert_eq!(result["rate_is"], "offered");
    assert!(number(&result, "/requests/count") + number(&result, "/in_flight") >= 499.0, "{result:#}");
    // 128 are what it allows.
    let (result, _) = run(&["--streams", "200", "-d1s"]);
    assert!(warnings(&result).contains(&"few-streams"), "{:#}", result["warnings"]);
    let output = Tare::new().run(&["load", "-q", "--http2", "-d1s", &server.url("/")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("HTTP/2"));
}

#[test]
fn what_is_in_flight_at_the_end_is_no_error() {
    let _alone = alone();
    let server = Server::embedded();
    // 0.2 s for each answer on one thread: most connections wait at any time, the end included.
    let url = server.url("/sleep?us=200000");
    let (result, _) = load(&["-t1", "-c4", "--timeout", "10s", "-d1s"], &url);
    let errors = result["requests"]["errors"].as_object().unwrap();
    assert!(errors.values().all(|count| count == 0), "{errors:?}");
    assert_eq!(number(&result, "/in_flight"), 4.0);
}

#[test]
fn errors_make_the_result_invalid_and_have_a_kind() {
    let _alone = alone();
    let server = Server::nginx();
    let (result, code) = load(&["-c2", "-t1", "-d1s"], &server.url("/missing"));
    assert_eq!(code, 4);
    assert!(number(&result, "/requests/errors/status") > 0.0 && number(&result, "/statuses/4xx") > 0.0);
    assert!(warnings(&result).contains(&"errors"));
    let url = format!("http://127.0.0.1:{}/", free_port());
    let output = Tare::new().run(&["load", "-q", "-d1s", &url]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cannot connect"), "{stderr}");
}

/// Answers at once, but for one stall.
fn stalling_server(after: Duration, stall: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut begin = None;
        for stream in listener.incoming() {
            let begin = *begin.get_or_insert_with(Instant::now);
            let stream = stream.unwrap();
            std::thread::spawn(move || answer(stream, begin + after, stall));
        }
    });
    port
}

fn answer(mut stream: TcpStream, stall_at: Instant, stall: Duration) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = [0; 4096];
    while matches!(stream.read(&mut buffer), Ok(read) if read > 0) {
        let now = Instant::now();
        if now >= stall_at && now < stall_at + stall {
            std::thread::sleep(stall_at + stall - now);
        }
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn an_open_loop_sees_a_stall_and_a_closed_one_says_that_it_cannot() {
    let _alone = alone();
    let (after, stall) = (Duration::from_millis(500), Duration::from_millis(600));
    let url = format!("http://127.0.0.1:{}/", stalling_server(after, stall));
    let (closed, _) = load(&["-t1", "-c2", "-d2s"], &url);
    assert!(warnings(&closed).contains(&"coordinated-omission"), "{:#}", closed["warnings"]);
    assert!(number(&closed, "/latency_ns/p99") < 300e6, "{:#}", closed["latency_ns"]);
    let url = format!("http://127.0.0.1:{}/", stalling_server(after, stall));
    let (open, _) = load(&["-t1", "-c2", "-d2s", "-R500"], &url);
    // 30 % of the run: a tenth of all requests waited 400 ms and more, of the 600.
    assert!(number(&open, "/latency_ns/p90") > 300e6, "{:#}", open["latency_ns"]);
    assert!(!warnings(&open).contains(&"coordinated-omission"));
}

#[test]
fn what_is_asked_and_what_must_be_answered() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let mix = ["--mix", "3:/plaintext", "--mix", "1:/status/404", "--expect-status", "200,404"];
    let (result, code) = load(&[&["-n400", "-t1", "-c4"], &mix[..]].concat(), &url);
    assert_eq!(code, 0, "{result:#}");
    let share = number(&result, "/statuses/4xx") / number(&result, "/requests/count");
    assert!((share - 0.25).abs() < 0.02, "{result:#}");
    let template = server.url("/bytes/{{random:5-5}}");
    let (result, code) = load(&["-n200", "-t1", "-c2", "--template", "--expect-length", "5"], &template);
    assert_eq!((code, number(&result, "/requests/errors/unexpected")), (0, 0.0), "{result:#}");
    let (result, code) = load(&["-n200", "-t1", "-c2", "--expect-body", "Goodbye"], &url);
    assert_eq!((code, number(&result, "/requests/errors/unexpected")), (4, 200.0), "{result:#}");
}

#[test]
fn a_capacity_is_found_between_a_rate_that_held_and_one_that_did_not() {
    let _alone = alone();
    let server = Server::embedded();
    // One thread that sleeps 2 ms for each answer: never more than 500 a second.
    let url = server.url("/sleep?us=2000");
    let (result, _) = load(&["-t1", "-c8", "-d8s", "--find", "p90<100ms"], &url);
    let held = number(&result, "/capacity/held_hz");
    assert!(held > 50.0 && held < 520.0, "{:#}", result["capacity"]);
    assert_eq!(result["capacity"]["objective"], "p90<100ms");
}

#[test]
fn an_interrupted_run_prints_what_there_is() {
    let _alone = alone();
    let server = Server::embedded();
    let tare = Tare::new();
    let mut command = tare.command();
    command.args(["load", "-q", "--json", "-t1", "-c2", "-d60s", &server.url("/plaintext")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    crate::support::eventually("load is made", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        tasks.flatten().any(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("tare-load"))
        })
    });
    std::thread::sleep(Duration::from_millis(300));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: serde_json::Value = crate::support::schema::read(&["load"], &output.stdout);
    assert!(number(&result, "/requests/count") > 0.0);
}

/// Asks for everything again at `/new`.
fn moved_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            std::thread::spawn(move || {
                let (mut connection, mut request) = (connection.unwrap(), [0; 4096]);
                while let Ok(read @ 1..) = connection.read(&mut request) {
                    let request = String::from_utf8_lossy(&request[..read]);
                    assert!(request.contains("\r\nHost: shop.test\r\n"), "{request}");
                    let answer = match request.starts_with("GET /new ") {
                        true => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                        false => "HTTP/1.1 302 Found\r\nLocation: new\r\nContent-Length: 0\r\n\r\n",
                    };
                    if connection.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn redirects_are_followed_before_the_load_at_another_address() {
    let _alone = alone();
    let address = format!("127.0.0.1:{}", moved_server());
    let options = ["-n100", "-t1", "-c2", "--connect-to", &address];
    let (result, code) = load(&[&options[..], &["--follow"]].concat(), "http://shop.test/old");
    assert_eq!((code, number(&result, "/statuses/2xx")), (0, 100.0), "{result:#}");
    assert_eq!(result["url"], "http://shop.test/new");
    assert_eq!(result["redirects"], serde_json::json!({ "from": "http://shop.test/old", "count": 1 }));
    let (result, _) = load(&options, "http://shop.test/old");
    assert!(warnings(&result).contains(&"only-redirects"), "{result:#}");
}
