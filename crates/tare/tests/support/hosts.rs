//! Two hosts on this machine: network namespaces with a link between them that is nobody else's.
#![allow(dead_code)] // each test binary uses its own part

use crate::support::{Tare, eventually, terminate};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A server's host and a client's; gone with all that is in them when dropped.
pub struct Hosts {
    server: String,
    client: String,
    subnet: u32,
}

/// Something that runs on one of them.
pub struct Running(Child);

impl Running {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        terminate(&mut self.0);
    }
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status().is_ok_and(|status| status.success());
    assert!(done, "ip {arguments:?}: the tests need root and iproute2");
}

impl Hosts {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("t{}{end}{number}", std::process::id());
        let hosts = Hosts { server: name("s"), client: name("c"), subnet: std::process::id() % 200 + 1 };
        for (own, other) in [(&hosts.server, &hosts.client), (&hosts.client, &hosts.server)] {
            ip(&["netns", "add", own]);
            if own == &hosts.client {
                let peer = ["type", "veth", "peer", "name", "eth", "netns", other];
                ip(&[["-n", own, "link", "add", "eth"].as_slice(), &peer].concat());
            }
        }
        for (name, end) in [(&hosts.server, 1), (&hosts.client, 2)] {
            ip(&["-n", name, "addr", "add", &format!("10.214.{}.{end}/24", hosts.subnet), "dev", "eth"]);
            ip(&["-n", name, "link", "set", "eth", "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
            hosts.reported(&Self::on(name, &["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"]));
        }
        hosts
    }

    /// The server's.
    pub fn address(&self) -> String {
        format!("10.214.{}.1", self.subnet)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}:8080{path}", self.address())
    }

    fn on(host: &str, words: &[&str]) -> Vec<String> {
        let net = format!("--net=/run/netns/{host}");
        ["nsenter", net.as_str()].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    fn reported(&self, words: &[String]) {
        let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a command on the server's host to its end.
    pub fn at_server(&self, words: &[&str]) {
        self.reported(&Self::on(&self.server, words));
    }

    /// The same on the client's.
    pub fn at_client(&self, words: &[&str]) {
        self.reported(&Self::on(&self.client, words));
    }

    /// What is lost of what comes to the client's host, as a rule of nftables. What a host drops of its own output its TCP is
    /// reported at once, and takes for not yet sent: no loss, then.
    pub fn drop_before_client(&self, rule: &str) {
        let table = format!(
            "add table ip t; add chain ip t in {{ type filter hook prerouting priority 0; }}; add rule ip t in {rule} drop"
        );
        self.at_client(&["nft", &table]);
    }

    /// Starts something on a host.
    fn start(&self, host: &str, words: &[&str]) -> Running {
        let words = Self::on(host, words);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }

    /// `tare serve` with one thread on CPU 0.
    pub fn serve(&self) -> Running {
        let listen = format!("{}:8080", self.address());
        let tare = env!("CARGO_BIN_EXE_tare");
        self.serve_by(&[tare, "serve", "--listen", &listen, "--threads", "1", "--cpus", "0"])
    }

    /// A server of somebody's that listens on port 8080.
    pub fn serve_by(&self, words: &[&str]) -> Running {
        let server = self.start(&self.server, words);
        let probe = format!("exec 3<>/dev/tcp/{}/8080", self.address());
        let words = Self::on(&self.client, &["bash", "-c", &probe]);
        eventually("the server listens", || {
            let mut asked = Command::new(&words[0]);
            asked.args(&words[1..]).stderr(Stdio::null());
            asked.status().is_ok_and(|status| status.success())
        });
        server
    }

    /// `tare run --json` on the client's host.
    pub fn measure(&self, server: &Running, path: &str, options: &[&str]) -> (Value, i32) {
        let (url, pid) = (self.url(path), server.pid().to_string());
        let run = [env!("CARGO_BIN_EXE_tare"), "run", "--json", "-q", "--sut-pid", &pid, "--load-cpus", "1"];
        let words = Self::on(&self.client, &[run.as_slice(), options, &[&url]].concat());
        let tare = Tare::new();
        let mut command = Command::new(&words[0]);
        let output = command.args(&words[1..]).env("TARE_STATE_DIR", tare.state.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let result = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
        crate::support::schema::check(&["run"], &result);
        (result, output.status.code().unwrap())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            Command::new("ip").args(["netns", "del", name]).status().ok();
        }
    }
}
