//! The real `tare serve` on a free port.
#![allow(dead_code)] // each test binary uses its own part

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A running `tare serve` and what it prints.
pub struct Serve {
    pub child: Child,
    pub output: BufReader<ChildStdout>,
    pub first_line: String,
    pub address: SocketAddr,
}

impl Serve {
    pub fn start(arguments: &[&str]) -> Serve {
        Serve::start_by(&mut Command::new(env!("CARGO_BIN_EXE_tare")), arguments)
    }

    /// With a limit on open files, which it cannot raise.
    pub fn start_limited(open_files: u64, arguments: &[&str]) -> Serve {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {open_files} && exec \"$0\" \"$@\"");
        Serve::start_by(command.args(["-c", &script, env!("CARGO_BIN_EXE_tare")]), arguments)
    }

    fn start_by(command: &mut Command, arguments: &[&str]) -> Serve {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        output.read_line(&mut first_line).unwrap();
        let address = first_line.split(' ').nth(2).and_then(|word| word.parse().ok());
        let address = address.unwrap_or_else(|| panic!("{arguments:?} printed {first_line:?}"));
        Serve { child, output, first_line, address }
    }

    /// Where its second line says that `/metrics` is.
    pub fn metrics_address(&mut self) -> SocketAddr {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics at http://").unwrap();
        address.strip_suffix("/metrics").unwrap().parse().unwrap()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Ends it with SIGTERM; what it printed after the first line.
    pub fn stop(self) -> String {
        self.signal("TERM");
        self.end()
    }

    /// Waits for the end of one that was asked to end; what it printed after the first line.
    pub fn end(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }

    pub fn get(&self, path: &str) -> String {
        ask(self.address, path)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A GET on a connection of its own; the answer to its end.
pub fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // In one piece: `write!` sends each part alone, and a test's server may read once.
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The sum of a metric over the loops.
pub fn metric(address: SocketAddr, name: &str) -> u64 {
    let line = format!("tare_serve_{name}{{");
    let text = ask(address, "/metrics");
    let values = text.lines().filter(|l| l.starts_with(&line)).map(|l| l.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<u64>().unwrap()).sum()
}

/// What a process holds of memory now (`VmRSS`), or held at most (`VmHWM`).
pub fn memory_bytes(pid: u32, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(which)?.strip_prefix(':')).unwrap();
    value.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}
