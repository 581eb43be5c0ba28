//! `tare load` on real servers: what it counts, what it says of itself, what it does not see.

use crate::serving::{Serve, metric};
use crate::support::{Server, Tare, alone, free_port, number};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What `tare load` with these options printed as JSON, and how it ended.
pub fn load(options: &[&str], url: &str) -> (serde_json::Value, i32) {
    Tare::new().json(&[&["load", "-q", "--json"], options, &[url]].concat())
}

pub fn warnings(result: &serde_json::Value) -> Vec<&str> {
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
    assert_eq!(followed["missed_hz"], stages[2]["offered_hz"], "{followed:#}");
    assert_eq!(followed["capacity_hz"], stages[2]["rate_hz"], "{followed:#}");
    assert_eq!(followed["held_hz"], stages[1]["rate_hz"], "{followed:#}");
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
        Tare::new().json(&["load", "-q", "--json", "-t2", "-c2", "-R20", "-n40", "-d60s", &url]);
    // The fortieth is due after 1.95 s; by one thread of the two it would be sent after 3.9.
    assert_eq!((number(&result, "/requests/count"), code), (40.0, 0), "{result:#}");
    assert!(number(&result, "/rate_hz") > 15.0, "{result:#}");
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
    let mut server = Serve::start(&["--metrics", "127.0.0.1:0"]);
    let metrics = server.metrics_address();
    let tare = Tare::new();
    let mut command = tare.command();
    let url = format!("http://{}/plaintext", server.address);
    command.args(["load", "-q", "--json", "-t1", "-c2", "-d60s", &url]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    crate::support::eventually("load is made", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        tasks.flatten().any(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("tare-load"))
        })
    });
    crate::support::eventually("it is answered", || metric(metrics, "answers_2xx_total") > 1000);
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
