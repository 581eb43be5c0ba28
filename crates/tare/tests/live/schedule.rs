//! Where the threads of real programs were when they did not run: the reason that was made on purpose is by far the largest, by
//! switches and by samples; and the accounting of threads and CPUs closes, with quotas too. How exact the shares are is tested on records,
//! where nobody else can disturb them.

use crate::serving::ask;
use crate::support::{Quota, Server, Tare, alone, free_port, go_program, number};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tare_model::observation::Role;
use tare_model::schedule::UNSEEN_WAKE_SHARE_MAX;

/// Above this the accounting is open, and there is no verdict. What opens it by less is the host, which no test can keep away.
const OPEN: f64 = 0.05;

/// Measures a server with so many connections. For 3 s, of which the 10 ms that steal is counted in are a third of a
/// hundredth; of a hundred samples a second 300 tell a share to three points (its standard error).
fn measure(server: &Server, path: &str, connections: u32, trace: bool) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let result = measure_into(&dir.path().join("a.tare"), server, path, connections, trace);
    by_switches(&result, 0.0);
    result
}

/// The same into a record.
fn measure_into(record: &Path, server: &Server, path: &str, connections: u32, trace: bool) -> Value {
    let url = server.url(path);
    let connections = connections.to_string();
    let length = "3s";
    let mut arguments = vec![
        "run",
        "--json",
        "-q",
        "--no-levels",
        "--stacks=0",
        "-d",
        length,
        "--trials",
        "1",
        "-w",
        "200ms",
    ];
    arguments.extend(["-c", &connections, "--load-cpus", "1", "-o", record.to_str().unwrap()]);
    arguments.extend(trace.then_some("--trace"));
    arguments.push(&url);
    let (result, _) = Tare::new().json(&arguments);
    let source = result["accounting"]["switches"]["blocked_source"].as_str();
    assert_eq!(
        source,
        Some(if trace { "tracepoints" } else { "samples" }),
        "{:#}",
        result["accounting"]["switches"]
    );
    result
}

/// Samples stand in for switches in so much of the serving threads' lives at most; in all of them where the kernel keeps wake-ups to
/// itself (a virtual machine's idle CPUs report nothing, it was seen): the time between a wake-up and the run then looks like sleep.
fn by_switches(result: &Value, sampled_max: f64) {
    let switches = &result["accounting"]["switches"];
    let unseen = switches["unseen_wake_share"].as_f64().unwrap_or(0.0);
    let sampled = number(result, "/accounting/switches/sampled_share");
    assert!(sampled <= sampled_max || unseen > UNSEEN_WAKE_SHARE_MAX, "{switches:#}");
}

/// Seconds of the SUT's threads in a part of the accounting, for each second of the window.
fn share(result: &Value, pointer: &str) -> f64 {
    number(result, &format!("/accounting/sut/{pointer}")) / window_s(result)
}

/// Sleep of its serving threads, for each second of the window.
fn slept(result: &Value, why: &str) -> f64 {
    // Where no sample found a thread asleep, nothing was split: it slept between the samples alone.
    let reasons = result["accounting"]["sut"]["serving"]["blocked_s"].as_object().unwrap();
    let unsplit = reasons.get("unsplit").and_then(Value::as_f64).unwrap_or(0.0) / window_s(result);
    match reasons.len() {
        0 | 1 if unsplit < 0.05 => 0.0,
        _ => share(result, &format!("serving/blocked_s/{why}")),
    }
}

fn window_s(result: &Value) -> f64 {
    number(result, "/accounting/sut/run_s") / number(result, "/accounting/sut/busy_cpus")
}

fn waiting(result: &Value) -> f64 {
    ["throttled", "preempted", "self_contention", "scheduler"]
        .map(|why| share(result, &format!("wait_s/{why}")))
        .iter()
        .sum()
}

/// How much of each second is spent on requests that take so long.
fn spent(result: &Value, each_s: f64) -> f64 {
    number(result, "/gross/value") * each_s
}

/// How far a share may be from what arithmetic says of it: the requests at a window's edges; of samples, some hundreds a window,
/// five standard errors beside that.
fn margin(trace: bool) -> f64 {
    if trace { 0.05 } else { 0.15 }
}

/// Each of these takes so long at least, however much is taken from the server meanwhile.
fn at_least(what: &str, found: f64, expected: f64, trace: bool, result: &Value) {
    // With --nocapture this is the table of what was found.
    println!("{what:28} {found:.3}  arithmetic {expected:.3}");
    assert!(
        found >= expected - margin(trace),
        "{what}: {found}, not {expected}: {:#}",
        result["accounting"]["sut"]
    );
}

/// It cannot run for longer than this, whoever else is there.
fn at_most(what: &str, found: f64, most: f64, result: &Value) {
    println!("{what:28} {found:.3}  at most {most:.3}");
    assert!(found <= most + 0.05, "{what}: {found}, not at most {most}: {:#}", result["accounting"]["sut"]);
}

/// Sleep of a smaller share of its time than this may not be met by any sample.
const UNSEEN_MAX: f64 = 0.1;

/// More than half of all sleep of the serving threads.
fn mostly(why: &str, result: &Value) {
    let reasons = result["accounting"]["sut"]["serving"]["blocked_s"].as_object().unwrap();
    let all: f64 = reasons.keys().map(|reason| slept(result, reason)).sum();
    // Where it waited for a CPU nearly all the time, samples may never have met it asleep: then nothing is named, and that is right.
    let unseen = reasons.keys().all(|reason| reason == "unsplit");
    if unseen && all < UNSEEN_MAX * number(result, "/accounting/sut/serving/wall_s") {
        return;
    }
    let share = slept(result, why) / all;
    println!("{:28} {share:.3}", format!("of all sleep, {why}"));
    assert!(share > 0.5, "{why}: {share} of all sleep: {reasons:#?}");
}

/// What the hypervisor took of a CPU, by the kernel's account of that CPU.
fn stolen(result: &Value, cpu: u64) -> f64 {
    of_cpu(result, cpu, "steal")
}

fn of_cpu(result: &Value, cpu: u64, part: &str) -> f64 {
    let cpus = result["accounting"]["cpus"].as_array().unwrap();
    cpus.iter().find(|of| of["cpu"] == cpu).unwrap()[part].as_f64().unwrap()
}

/// What others, interrupts and the hypervisor left of the server's CPU.
fn left_by_others(result: &Value) -> f64 {
    1.0 - ["others", "load", "tare", "steal", "irq"].map(|part| of_cpu(result, 0, part)).iter().sum::<f64>()
}

/// The threads' and the CPUs' accounting closes.
fn closes(result: &Value) {
    for (name, residual) in residuals(result) {
        assert!(residual <= OPEN, "{name}: {residual}");
    }
}

/// The server's threads' accounting closes. On a CPU that a disk interrupts some time is in no accounting of the CPU: what an interrupt
/// costs that ends no sleep there.
fn threads_close(result: &Value) {
    for (name, residual) in residuals(result).filter(|(name, _)| !name.starts_with("cpu ")) {
        assert!(residual <= OPEN, "{name}: {residual}");
    }
}

fn residuals(result: &Value) -> impl Iterator<Item = (&String, f64)> {
    let residuals = result["accounting"]["residuals"].as_object().unwrap();
    residuals.iter().map(|(name, residual)| (name, residual.as_f64().unwrap()))
}

/// By every switch, and by samples.
fn both(case: impl Fn(bool)) {
    for trace in [true, false] {
        case(trace);
    }
}

#[test]
fn a_handler_that_sleeps() {
    let _alone = alone();
    both(|trace| {
        let server = Server::embedded();
        let result = measure(&server, "/sleep?us=10000", 4, trace);
        mostly("timer", &result);
        at_least("sleep: timer", slept(&result, "timer"), spent(&result, 10e-3), trace, &result);
        closes(&result);
    });
}

#[test]
fn a_handler_that_spins() {
    let _alone = alone();
    both(|trace| {
        let server = Server::embedded();
        let result = measure(&server, "/spin?ns=1000000", 4, trace);
        // By the clock on the wall: what others ran meanwhile is in it, and in no run.
        at_most("spin: run", share(&result, "run_s"), spent(&result, 1e-3), &result);
        for why in ["timer", "lock", "disk", "fault", "downstream"] {
            at_most(&format!("spin: {why}"), slept(&result, why), 0.0, &result);
        }
        closes(&result);
    });
}

#[test]
fn handlers_that_share_a_lock() {
    let _alone = alone();
    both(|trace| {
        let server = Server::embedded_with(4);
        let result = measure(&server, "/lock?us=1000", 32, trace);
        // Of four, one at a time holds the lock and runs; the others wait for the lock or, given it, for the CPU. The
        // main thread sleeps in a futex all the while and serves nobody.
        assert_eq!(result["accounting"]["sut"]["serving"]["threads"], 4);
        at_most("lock: run", share(&result, "run_s"), spent(&result, 1e-3), &result);
        mostly("lock", &result);
        closes(&result);
    });
}

/// Two threads that take turns at one mutex, which one of them has all the time.
const ONE_MUTEX: &str = r"
#include <pthread.h>
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused) {
    for (int turn = 0; turn < 200; turn++) {
        pthread_mutex_lock(&shared_lock);
        for (volatile int i = 0; i < 1000000; i++) {}
        pthread_mutex_unlock(&shared_lock);
    }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";

#[test]
fn a_traced_lock_has_a_name() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("mutex.c"), dir.path().join("mutex"));
    std::fs::write(&source, ONE_MUTEX).unwrap();
    let built = Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&program, &source]).status();
    assert!(built.unwrap().success());
    let arguments = ["run", "--json", "-q", "--trace", "--trials", "2", "-w", "0", "-N", "--"];
    let (result, _) = Tare::new().json(&[arguments.as_slice(), &[program.to_str().unwrap()]].concat());
    let lock = &result["accounting"]["switches"]["locks"][0];
    let at = lock["at"].as_str().unwrap_or_else(|| panic!("{:#}", result["accounting"]["switches"]));
    println!("{lock:#}");
    assert_eq!(at, format!("shared_lock in {}", program.display()));
    assert!(lock["holders"].as_array().unwrap().len() <= 4, "two threads in each of two runs: {lock:#}");
}

/// Four threads, of which the one that has the lock sleeps in it.
const HOLDS: &str = r#"
import socket, sys, threading, time
lock, listener = threading.Lock(), socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve():
    while True:
        client, _ = listener.accept()
        try:
            while client.recv(4096):
                with lock:
                    time.sleep(0.004)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except ConnectionError:
            pass
for _ in range(4):
    threading.Thread(target=serve).start()
"#;

#[test]
fn a_lock_that_is_held_over_a_sleep() {
    let _alone = alone();
    both(|trace| {
        let port = free_port();
        let server = Server::python(HOLDS, port, &[&port.to_string()]);
        let result = measure(&server, "/", 4, trace);
        // Always one sleeps and three wait for it, but for the hand-overs: nobody has to wait for a CPU.
        assert_eq!(result["accounting"]["sut"]["serving"]["threads"], 4);
        at_least("held: timer", slept(&result, "timer"), spent(&result, 4e-3), trace, &result);
        // CPython's locks are semaphores: the sleep in one looks like that of a thread which waits for work, and is called no lock.
        mostly("parked", &result);
        closes(&result);
    });
}

#[test]
fn a_handler_that_waits_for_the_disk() {
    let _alone = alone();
    both(|trace| {
        let server = Server::embedded();
        let result = measure(&server, "/fsync", 4, trace);
        mostly("disk", &result);
        threads_close(&result);
    });
}

/// Answers every request with what another server answers to one of its own.
const ASKS: &str = r#"
import socket, sys
other = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    try:
        while client.recv(4096):
            other.sendall(b"GET /sleep?us=20000 HTTP/1.1\r\nHost: x\r\n\r\n")
            other.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except ConnectionError:
        pass
"#;

#[test]
fn a_handler_that_asks_another_server() {
    let _alone = alone();
    both(|trace| {
        let other = Server::embedded();
        let port = free_port();
        let server = Server::python(ASKS, port, &[&port.to_string(), &other.port.to_string()]);
        let result = measure(&server, "/", 1, trace);
        mostly("downstream", &result);
        at_least("downstream", slept(&result, "downstream"), spent(&result, 20e-3), trace, &result);
        let peers = result["accounting"]["switches"]["downstream"].as_array().unwrap();
        assert_eq!(peers[0]["peer"], format!("127.0.0.1:{}", other.port), "{peers:?}");
        assert!(number(&result, "/accounting/switches/downstream/0/share") > 0.9);
        assert_eq!(result["bottleneck"], "blocked-on-downstream", "{:#}", result["findings"]);
        closes(&result);
    });
}

#[test]
fn accounting_closes_under_quotas() {
    let _alone = alone();
    for (threads, by_parent) in [(1, false), (1, true), (4, false), (4, true)] {
        both(|trace| {
            let server = Server::embedded_with(threads);
            let quota = Quota::of(10);
            quota.hold(&server.pids, by_parent);
            let result = measure(&server, "/plaintext", 32, trace);
            closes(&result);
            // The quota allows 0.1; most of what is left of the window was held back, for each thread that was ready.
            at_most("quota: run", share(&result, "run_s"), 0.1, &result);
            let throttled = share(&result, "wait_s/throttled") / f64::from(threads);
            println!("{:28} {throttled:.3}", format!("throttled, of {threads} threads"));
            assert!(throttled > 0.2 && throttled <= 0.95, "{throttled}: {:#}", result["accounting"]["sut"]);
        });
    }
}

#[test]
fn who_ran_instead_is_named() {
    let _alone = alone();
    let server = Server::embedded();
    // Before everybody else, so that nobody else on this CPU counts.
    let _busy = crate::support::Busy::on(0).in_real_time();
    let result = measure(&server, "/plaintext", 32, true);
    closes(&result);
    let first = &result["accounting"]["switches"]["preempted_by"][0];
    assert_eq!((first["name"].as_str(), first["role"].as_str()), (Some("yes"), Some("other")), "{first}");
    assert!(first["share"].as_f64().unwrap() > 0.5, "{first}");
}

/// A Go server whose every request leaves garbage.
const GARBAGE: &str = r#"package main
import ("net/http"; "os")
var kept [64][]byte
func main() {
	n := 0
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 64; i++ { n++; kept[n%64] = make([]byte, 16384) }
		w.Write([]byte("ok"))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"#;

#[test]
fn a_go_server_with_a_garbage_collector() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    both(|trace| {
        // Built while nobody measures.
        let program = go_program(dir.path(), GARBAGE);
        let port = free_port();
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(&program).arg(port.to_string()).env("GOMAXPROCS", "1");
        let server = Server::of(command, port);
        let record = dir.path().join(format!("{trace}.tare"));
        let result = measure_into(&record, &server, "/", 16, trace);
        // The runtime starts a thread when another one blocks. One that begins within the window is not traced before it is found, a
        // quarter of a second later at most, so its switches are not all of its life.
        let tasks = &tare_store::read(&record).unwrap().trials[0].observation.tasks;
        let begins = tasks.iter().any(|task| task.role == Role::Sut && !task.present_at_begin);
        by_switches(&result, if begins { 1.0 } else { 0.0 });
        closes(&result);
        // One CPU: its threads have at most what others leave of it.
        at_most("go: run", share(&result, "run_s"), left_by_others(&result), &result);
    });
}

/// Pages of a mapped file, out of the page cache, are read in for every request; how long that took beyond its CPU time is
/// reported to who asks for `/reported` of a time, by the program's own clocks. They are many for each request: a sample holds up
/// a generator that has only the observers' CPU, and a program that asks it 900 times a second sleeps 0.02 for that alone.
const FAULTS: &str = r#"
import mmap, os, random, socket, sys, time
path, size = sys.argv[2], 64 << 20
with open(path, "wb") as file:
    for _ in range(size >> 20):
        file.write(os.urandom(1 << 20))
    file.flush()
    os.fsync(file.fileno())
file = open(path, "rb")
memory = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
memory.madvise(mmap.MADV_RANDOM)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
requests = []
while True:
    client, _ = listener.accept()
    try:
        while request := client.recv(4096):
            if b"/reported/" in request:
                begin, end = map(int, request.split()[1].split(b"/")[2:])
                inside = lambda first, last: max(0, min(last, end) - max(first, begin)) / (last - first)
                body = b"%.9f" % sum(slept * inside(first, last) for first, last, slept in requests)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                client.close()
                break
            first, cpu = time.monotonic_ns(), time.thread_time()
            memory.madvise(mmap.MADV_DONTNEED)
            os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
            for _ in range(64):
                memory[random.randrange(size)]
            last = time.monotonic_ns()
            requests.append((first, last, (last - first) / 1e9 - (time.thread_time() - cpu)))
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except ConnectionError:
        pass
"#;

#[test]
fn a_program_that_waits_for_pages() {
    let _alone = alone();
    both(|trace| {
        let dir = tempfile::tempdir().unwrap();
        let (port, pages, record) = (free_port(), dir.path().join("pages"), dir.path().join("a.tare"));
        let server = Server::python(FAULTS, port, &[&port.to_string(), pages.to_str().unwrap()]);
        let result = measure_into(&record, &server, "/", 1, trace);
        by_switches(&result, 0.0);
        let window = &tare_store::read(&record).unwrap().trials[0].observation;
        // The program cannot tell a sleep from a wait for the CPU; and where others compete for that, it waits outside of faults as well.
        let (found, waited) = (slept(&result, "fault"), waiting(&result));
        let expected = reported_s(port, window.begin_ns, window.end_ns) / window_s(&result);
        let apart = margin(trace) + stolen(&result, 0);
        println!(
            "{:28} {found:.3} and {waited:.3}  by its own clocks {expected:.3}",
            "fault: fault and wait"
        );
        assert!(
            (found - apart..=found + waited + apart).contains(&expected),
            "{found} to {}, not {expected}: {:#}",
            found + waited,
            result["accounting"]["sut"]
        );
        threads_close(&result);
    });
}

/// Seconds in a time, by the program's own account.
fn reported_s(port: u16, begin_ns: u64, end_ns: u64) -> f64 {
    let text = ask(([127, 0, 0, 1], port).into(), &format!("/reported/{begin_ns}/{end_ns}"));
    text.rsplit("\r\n").next().unwrap().parse().unwrap_or_else(|_| panic!("reported {text:?}"))
}

/// Pages that are taken away and touched again are no sleep: making them is run time.
const TOUCHES: &str = r#"
import mmap, socket, sys
memory = mmap.mmap(-1, 16 << 20)
zeros = bytes(16 << 20)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    try:
        while client.recv(4096):
            memory.madvise(mmap.MADV_DONTNEED)
            memory[:] = zeros
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except ConnectionError:
        pass
"#;

#[test]
fn a_program_that_makes_pages_runs() {
    let _alone = alone();
    both(|trace| {
        let port = free_port();
        let server = Server::python(TOUCHES, port, &[&port.to_string()]);
        let result = measure(&server, "/", 1, trace);
        at_most("touch: fault", slept(&result, "fault"), 0.0, &result);
        closes(&result);
    });
}
