//! Real servers, groups and disturbances for the tests, each stopped by pid when dropped.
#![allow(dead_code, clippy::print_stdout)] // each test binary uses its own part; a test says why it goes again

pub mod schema;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Everything here loads the machine: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A run of tare with a state directory of its own.
pub struct Tare {
    pub state: tempfile::TempDir,
}

impl Tare {
    pub fn new() -> Self {
        Tare { state: tempfile::tempdir().unwrap() }
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        command.env("TARE_STATE_DIR", self.state.path()).env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// A command that runs in a control group from its first moment on.
    pub fn command_in(&self, group: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(group.join("cgroup.procs")).arg(env!("CARGO_BIN_EXE_tare"));
        command.env("TARE_STATE_DIR", self.state.path()).env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    /// Runs and reads the JSON object; the exit code comes with it.
    pub fn json(&self, arguments: &[&str]) -> (serde_json::Value, i32) {
        let output = self.run(arguments);
        let stdout = String::from_utf8(output.stdout).unwrap();
        let value = serde_json::from_str(&stdout).unwrap_or_else(|error| {
            panic!("{error}: {arguments:?} printed {stdout:?}\n{}", String::from_utf8_lossy(&output.stderr))
        });
        schema::check(arguments, &value);
        (value, output.status.code().unwrap())
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Polls until `done`, for at most a minute: how long things take is not what is tested.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut first = [0u8; 1];
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").is_ok() && stream.read_exact(&mut first).is_ok()
}

pub fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

/// A server under test.
pub struct Server {
    child: Child,
    pub port: u16,
    pub pids: Vec<u32>,
    /// A path that is answered with 200.
    pub good_path: &'static str,
    dir: Option<tempfile::TempDir>,
}

/// An HTTP server in Python on the port of its first argument: `before` stands at its beginning, `work` is done for every answer.
pub fn http_in_python(before: &str, work: &str) -> String {
    let work: String = work.lines().map(|line| format!("        {line}\n")).collect();
    format!(
        r#"
import http.server, math, sys, time
{before}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
{work}        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#
    )
}

impl Server {
    /// The Unix socket of nginx.
    pub fn socket(&self) -> PathBuf {
        self.dir.as_ref().unwrap().path().join("socket")
    }

    /// The one where it speaks HTTP/2, 200 requests on each connection.
    pub fn http2_socket(&self) -> PathBuf {
        self.dir.as_ref().unwrap().path().join("http2")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Debian's nginx with one worker that returns 200 on `/` and 404 on `/missing`, held on CPU 0.
    pub fn nginx() -> Self {
        Self::nginx_at(free_port())
    }

    /// The same on a given port.
    pub fn nginx_at(port: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "worker_processes 1; daemon off; pid {0}/pid; error_log {0}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000;\n\
             client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;\n\
             uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;\n\
             server {{ listen 127.0.0.1:{port}; listen unix:{0}/socket; location / {{ return 200 \"ok\\n\"; }}\n\
             location /missing {{ return 404; }} }}\n\
             server {{ listen unix:{0}/http2 http2; keepalive_requests 200; location / {{ return 200 \"ok\\n\"; }} }} }}\n",
            dir.path().display()
        );
        let file = dir.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists());
        let mut command = Command::new("taskset");
        command.args(["-c", "0", program.expect("nginx is installed by tests/run"), "-c"]).arg(file);
        Self::start(command, port, "/", Some(dir))
    }

    /// The embedded server on CPU 0, started by the test so that it can be disturbed.
    pub fn embedded() -> Self {
        Self::embedded_with(1)
    }

    /// The same with so many threads.
    pub fn embedded_with(threads: u32) -> Self {
        let (port, threads) = (free_port(), threads.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        command.args([
            "serve",
            "--listen",
            &format!("127.0.0.1:{port}"),
            "--threads",
            &threads,
            "--cpus",
            "0",
        ]);
        Self::start(command, port, "/plaintext", None)
    }

    /// A script that serves on a port, held on CPU 0.
    pub fn python(script: &str, port: u16, arguments: &[&str]) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "python3", "-c", script]).args(arguments);
        Self::start(command, port, "/", None)
    }

    /// Somebody's program that serves on a port.
    pub fn of(command: Command, port: u16) -> Self {
        Self::start(command, port, "/", None)
    }

    fn start(
        mut command: Command,
        port: u16,
        good_path: &'static str,
        dir: Option<tempfile::TempDir>,
    ) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = Server { child, port, pids: Vec::new(), good_path, dir };
        eventually("the server answers", || answers(([127, 0, 0, 1], port).into()));
        let own = server.child.id();
        server.pids = std::iter::once(own).chain(children(own)).collect();
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's master ends its workers on SIGTERM; SIGKILL would leave them.
        terminate(&mut self.child);
    }
}

pub fn terminate(child: &mut Child) {
    Command::new("kill").arg(child.id().to_string()).status().ok();
    let deadline = Instant::now() + Duration::from_secs(5);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().ok();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a process group whose leader is `child`.
pub fn terminate_group(child: &mut Child) {
    Command::new("kill").args(["--", &format!("-{}", child.id())]).status().ok();
    terminate(child);
}

pub fn children(pid: u32) -> Vec<u32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect()
}

pub fn descendants(pid: u32) -> Vec<u32> {
    let direct = children(pid);
    let deeper: Vec<u32> = direct.iter().flat_map(|child| descendants(*child)).collect();
    direct.into_iter().chain(deeper).collect()
}

/// Processes that a `tare` of this folder has started and not stopped: all have its variable, wherever they went.
pub fn left_running(dir: &Path) -> Vec<u32> {
    let mark = format!("TARE_STATE_DIR={}", dir.display()).into_bytes();
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    };
    pids.filter(is_marked).collect()
}

/// Builds a Go program of one file. The standard library is compiled for the first of all tests, and kept.
pub fn go_program(folder: &Path, source: &str) -> PathBuf {
    let (file, program) = (folder.join("program.go"), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    let go = ["/usr/local/go/bin/go", "/usr/bin/go"].into_iter().find(|path| Path::new(path).exists());
    let mut build = Command::new(go.expect("go is installed by tests/run"));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    build.env("GOCACHE", kept).env("GO111MODULE", "off").args(["build", "-o"]).args([&program, &file]);
    assert!(build.status().unwrap().success());
    program
}

/// `yes`, held on a CPU: somebody else who is never done.
pub struct Busy(Child);

impl Busy {
    pub fn on(cpu: u32) -> Self {
        let child = Command::new("taskset")
            .args(["-c", &cpu.to_string(), "yes"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        eventually("yes runs", || std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "yes"));
        Busy(child)
    }
}

impl Busy {
    /// Ten times as heavy as another: whoever shares the CPU runs for a tenth of the time, and several times in each trial.
    pub fn heavy(self) -> Self {
        Command::new("renice").args(["-n", "-10", "-p", &self.0.id().to_string()]).output().unwrap();
        self
    }

    /// Before everybody else: also before programs of other sessions, which the kernel gives as much as all of ours together, whatever their weights.
    pub fn in_real_time(self) -> Self {
        let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
        assert_ne!(limit.trim(), "-1", "whoever else is on that CPU would never run");
        let set = Command::new("chrt").args(["-f", "-p", "1", &self.0.id().to_string()]).status().unwrap();
        assert!(set.success());
        self
    }

    /// Stops it, or lets it go on.
    pub fn pause(&self, paused: bool) {
        let signal = if paused { "-STOP" } else { "-CONT" };
        Command::new("kill").args([signal, &self.0.id().to_string()]).status().ok();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A control group with a quota, and one below it without; removed when dropped, its processes moved back.
pub struct Quota {
    parent: PathBuf,
    child: PathBuf,
}

impl Quota {
    /// 30 % of a CPU on the parent group.
    pub fn of_30_percent() -> Self {
        Self::of(30)
    }

    /// So many per cent of a CPU on the parent group.
    pub fn of(percent: u32) -> Self {
        let quota_us = (percent * 1000).to_string();
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("tare-test-{}-{number}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let v2 = Path::new("/sys/fs/cgroup");
        let root =
            if v1.join("cpu.cfs_quota_us").exists() || v1.join("cpu.shares").exists() { v1 } else { v2 };
        let parent = root.join(&name);
        let child = parent.join("inner");
        std::fs::create_dir(&parent).expect("the tests need root and a writable cpu controller");
        if root == v1 {
            std::fs::write(parent.join("cpu.cfs_period_us"), "100000").unwrap();
            std::fs::write(parent.join("cpu.cfs_quota_us"), &quota_us).unwrap();
        } else {
            std::fs::write(root.join("cgroup.subtree_control"), "+cpu").unwrap();
            std::fs::write(parent.join("cpu.max"), format!("{quota_us} 100000")).unwrap();
        }
        std::fs::create_dir(&child).unwrap();
        Quota { parent, child }
    }

    /// Another quota on the parent: this share of a CPU, or none.
    pub fn set(&self, share: Option<f64>) {
        let quota_us = share.map(|share| (share * 1e5).round() as i64);
        let (file, text) = match self.parent.join("cpu.cfs_quota_us") {
            v1 if v1.exists() => (v1, quota_us.unwrap_or(-1).to_string()),
            _ => {
                let limit = quota_us.map_or("max".to_string(), |quota_us| quota_us.to_string());
                (self.parent.join("cpu.max"), format!("{limit} 100000"))
            }
        };
        std::fs::write(file, text).unwrap();
    }

    pub fn group(&self, child: bool) -> PathBuf {
        if child { self.child.clone() } else { self.parent.clone() }
    }

    pub fn hold(&self, pids: &[u32], in_child: bool) {
        let group = self.group(in_child);
        for pid in pids {
            std::fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
        }
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let root = self.parent.parent().unwrap();
        for group in [&self.child, &self.parent] {
            for pid in std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines() {
                std::fs::write(root.join("cgroup.procs"), pid).ok();
            }
            // A group empties a moment after its last process ended.
            for _ in 0..200 {
                if std::fs::remove_dir(group).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// The threads of a role, busiest first.
pub fn threads_of<'a>(result: &'a serde_json::Value, role: &str) -> Vec<&'a serde_json::Value> {
    let threads = result["accounting"]["threads"].as_array().unwrap();
    threads.iter().filter(|thread| thread["role"] == role).collect()
}

pub fn number(value: &serde_json::Value, pointer: &str) -> f64 {
    value
        .pointer(pointer)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("{pointer} in {value:#}"))
}
