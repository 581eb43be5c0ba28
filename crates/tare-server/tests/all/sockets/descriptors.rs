//! A server that runs out of file descriptors backs off, serves whom it has, and recovers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::common::{config, get, start_builtin, until};

const INNER: &str = "TARE_TEST_SERVE_WITH_FEW_DESCRIPTORS";

/// Not a test of its own: the server process of the other one, which ends when its stdin does.
#[test]
fn serve_when_asked() {
    if std::env::var_os(INNER).is_none() {
        return;
    }
    let server = start_builtin(config());
    println!("\nlistening {}", server.address);
    let mut end = Vec::new();
    std::io::stdin().read_to_end(&mut end).unwrap();
    let counts = server.finish().threads[0].counts;
    println!("\npauses {}", counts.accept_pauses);
}

struct Server {
    child: Child,
    address: SocketAddr,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

fn start_with_few_descriptors() -> Server {
    let own = std::env::current_exe().unwrap();
    let inner = format!("{}::serve_when_asked", module_path!());
    let (_crate, name) = inner.split_once("::").unwrap();
    let script = format!("ulimit -n 40; exec {own:?} --exact {name} --nocapture");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .env(INNER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = find(&mut lines, "listening ").parse().unwrap();
    Server { child, address, lines }
}

fn find(lines: &mut std::io::Lines<BufReader<std::process::ChildStdout>>, start: &str) -> String {
    let line = lines.map(Result::unwrap).find(|l| l.starts_with(start)).expect("the server says it");
    line[start.len()..].to_owned()
}

fn answers(stream: &mut TcpStream) -> bool {
    let (mut answer, mut got) = ([0; 256], 0);
    if stream.write_all(get("/plaintext").as_bytes()).is_err() {
        return false;
    }
    while !answer[..got].ends_with(b"Hello, World!") {
        match stream.read(&mut answer[got..]) {
            Ok(n) if n > 0 => got += n,
            _ => return false,
        }
    }
    true
}

/// Ticks of CPU that a process has used, in clock ticks of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn running_out_of_descriptors_does_not_spin_and_is_survived() {
    let mut server = start_with_few_descriptors();
    let connect = || {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    let mut first = connect();
    assert!(answers(&mut first));
    let many: Vec<TcpStream> = (0..80).map(|_| connect()).collect();
    let (before, begin) = (cpu_ticks(server.child.id()), std::time::Instant::now());
    // Open connections are served meanwhile.
    while begin.elapsed() < Duration::from_secs(1) {
        assert!(answers(&mut first));
        std::thread::sleep(Duration::from_millis(50));
    }
    // A loop that spins on accept would have used all of the second, 100 ticks.
    let used = cpu_ticks(server.child.id()) - before;
    assert!(used < 50, "{used} ticks of CPU in a second of nothing to do");
    drop(many);
    until("newcomers are served again", || answers(&mut connect()));
    drop((server.child.stdin.take(), first));
    let pauses: u64 = find(&mut server.lines, "pauses ").parse().unwrap();
    assert!(pauses > 0);
    assert!(server.child.wait().unwrap().success());
}
