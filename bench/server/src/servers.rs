//! The servers that are measured: how each is started, and what CPU time it has used.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PORT_FIRST: u16 = 21_100;

/// How a server is started on a port.
struct Kind {
    name: &'static str,
    command: fn(&Places, u16) -> Option<Command>,
}

/// Where programs are.
struct Places {
    own: PathBuf,
    tare: PathBuf,
}

/// Every server, the floors first.
const KINDS: &[Kind] = &[
    Kind { name: "floor-epoll", command: |own, port| own_binary(own, "floor_epoll", port) },
    Kind { name: "floor-io_uring", command: |own, port| own_binary(own, "floor_io_uring", port) },
    Kind { name: "tare serve", command: |at, port| tare(at, port, "auto") },
    Kind { name: "tare serve, io_uring", command: |at, port| tare(at, port, "io-uring") },
    Kind { name: "nginx", command: |_, port| nginx(port) },
    Kind { name: "h2o", command: |_, port| h2o(port) },
    Kind { name: "hyper", command: |own, port| own_binary(own, "peer-hyper", port) },
    Kind { name: "may_minihttp", command: |own, port| own_binary(own, "peer-may-minihttp", port) },
    Kind { name: "actix", command: |own, port| own_binary(own, "peer-actix", port) },
    Kind { name: "ntex", command: |own, port| own_binary(own, "peer-ntex", port) },
    Kind { name: "xitca", command: |own, port| own_binary(own, "peer-xitca", port) },
];

fn tare(places: &Places, port: u16, backend: &str) -> Option<Command> {
    places.tare.exists().then(|| {
        let mut command = Command::new(&places.tare);
        command.args(["serve", "--threads", "1", "--cpus", "0", "--backend", backend]);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command
    })
}

fn own_binary(places: &Places, name: &str, port: u16) -> Option<Command> {
    let path = places.own.join(name);
    path.exists().then(|| {
        let mut command = Command::new("taskset");
        command.arg("-c").arg("0").arg(path).arg(port.to_string());
        command
    })
}

fn scratch(port: u16) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bench-server-{port}"));
    let _ = fs::create_dir_all(&folder);
    folder
}

fn nginx(port: u16) -> Option<Command> {
    let folder = scratch(port);
    let text = format!(
        "worker_processes 1; daemon off; pid {dir}/pid; error_log /dev/null;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; server {{ listen 127.0.0.1:{port} backlog=4096;\n\
         location / {{ default_type text/plain; return 200 \"Hello, World!\"; }} }} }}\n",
        dir = folder.display()
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, text).ok()?;
    on_cpu_0("nginx", &["-c", file.to_str()?])
}

fn h2o(port: u16) -> Option<Command> {
    let folder = scratch(port);
    fs::write(folder.join("plaintext"), "Hello, World!").ok()?;
    let text = format!(
        "listen: {{host: 127.0.0.1, port: {port}}}\nnum-threads: 1\nuser: root\nerror-log: /dev/null\n\
         hosts:\n  default:\n    paths:\n      /:\n        file.dir: {dir}\n",
        dir = folder.display()
    );
    let file = folder.join("h2o.conf");
    fs::write(&file, text).ok()?;
    on_cpu_0("h2o", &["-c", file.to_str()?])
}

fn on_cpu_0(program: &str, arguments: &[&str]) -> Option<Command> {
    let paths = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&paths).any(|p| p.join(program).exists());
    found.then(|| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", program]).args(arguments);
        command
    })
}

/// A server that runs; stopped when dropped.
pub struct Running {
    pub name: &'static str,
    pub port: u16,
    /// As it was started.
    pub command: String,
    /// As it says itself, where it does.
    pub version: Option<String>,
    child: Child,
}

/// Starts the servers named, or all whose binary is there.
pub fn start(names: &[String], tare: &Path) -> Result<Vec<Running>, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let places = Places { own: own.parent().ok_or("no folder")?.to_owned(), tare: tare.to_owned() };
    let wanted = |k: &&Kind| names.is_empty() || names.iter().any(|n| n == k.name);
    let mut running = Vec::new();
    for (kind, port) in KINDS.iter().filter(wanted).zip(PORT_FIRST..) {
        let Some(mut command) = (kind.command)(&places, port) else {
            eprintln!("{}: not there, left out", kind.name);
            continue;
        };
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let line = format!("{} {}", command.get_program().to_string_lossy(), words.join(" "));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?;
        let version = version_of(kind.name);
        let server = Running { name: kind.name, port, command: line, version, child };
        server.wait_until_it_listens()?;
        running.push(server);
    }
    Ok(running)
}

/// Of those from Debian; the crates' are in Cargo.lock.
fn version_of(name: &str) -> Option<String> {
    let option = match name {
        "nginx" => "-v",
        "h2o" => "--version",
        _ => return None,
    };
    let output = Command::new(name).arg(option).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).lines().next().map(str::to_owned)
}

/// The floors are to answer with the bytes of `tare serve`, but for the second in Date.
pub fn check_that_floors_answer_as_tare_does(running: &[Running]) -> Result<(), String> {
    let Some(tare) = running.iter().find(|r| r.name.starts_with("tare")) else { return Ok(()) };
    let wanted = tare.answer()?;
    for floor in running.iter().filter(|r| r.name.starts_with("floor")) {
        let answer = floor.answer()?;
        if answer != wanted {
            return Err(format!("{} answers {answer:?}, not {wanted:?}", floor.name));
        }
    }
    Ok(())
}

impl Running {
    fn wait_until_it_listens(&self) -> Result<(), String> {
        for _ in 0..300 {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                return stream.write_all(b"").map_err(|e| e.to_string());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} does not listen on {}", self.name, self.port))
    }

    /// Its answer, without the Date.
    fn answer(&self) -> Result<String, String> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            let request = format!("GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port);
            stream.write_all(request.as_bytes())?;
            let mut answer = Vec::new();
            while !answer.ends_with(b"Hello, World!") {
                let mut piece = [0; 1024];
                let n = stream.read(&mut piece)?;
                if n == 0 {
                    break;
                }
                answer.extend_from_slice(&piece[..n]);
            }
            let text = String::from_utf8_lossy(&answer);
            Ok(text.lines().filter(|line| !line.starts_with("Date: ")).collect::<Vec<_>>().join("\n"))
        };
        ask().map_err(|e| format!("{}: {e}", self.name))
    }

    /// CPU time of the server's threads and of its children's, in nanoseconds.
    pub fn cpu_ns(&self) -> f64 {
        family(self.child.id()).iter().map(|pid| threads_cpu_ns(*pid)).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Children first (nginx's worker): each is a process that was started here.
        for pid in family(self.child.id()).iter().rev() {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        let _ = self.child.wait();
    }
}

/// A process and its descendants.
fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while at < all.len() {
        let path = format!("/proc/{0}/task/{0}/children", all[at]);
        let children = fs::read_to_string(path).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|w| w.parse::<u32>().ok()));
        at += 1;
    }
    all
}

fn threads_cpu_ns(pid: u32) -> f64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0.0 };
    let run = |task: fs::DirEntry| -> Option<f64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    tasks.flatten().filter_map(run).sum()
}
