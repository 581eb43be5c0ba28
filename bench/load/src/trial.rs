//! One trial: a fresh server on CPU 0, one generator on CPU 1, and what each used.

use crate::generators::{GENERATORS, Generator, WRK_PIPELINE};
use crate::load::{Load, Serves};
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_sys::process::{self, Confinement, Ended, Signal};

const SERVER_CPU: u32 = 0;
const GENERATOR_CPU: u32 = 1;
/// A trial's server has a port of its own, so that what lingers of the last one is not met.
const PORTS: std::ops::Range<u16> = 22_100..22_900;
/// A generator that takes longer for a second of load is ended.
const TRIAL_MAX: Duration = Duration::from_secs(10);

/// What a trial showed. CPU time is of the whole process, start and end included, by `wait4`.
pub struct Trial {
    pub requests: f64,
    pub cpu_s: f64,
    pub wall_s: f64,
    pub server_cpu_s: f64,
}

impl Trial {
    /// Requests per second of the generator's CPU time.
    pub fn per_cpu_s(&self) -> f64 {
        self.requests / self.cpu_s
    }

    /// Requests per second, start and end of the process included.
    pub fn rate_hz(&self) -> f64 {
        self.requests / self.wall_s
    }
}

/// Programs and scratch files.
pub struct Workshop {
    tare: PathBuf,
    floor: PathBuf,
    peers: Option<PathBuf>,
    scratch: PathBuf,
    script: PathBuf,
    tls: bool,
    trials: u16,
}

impl Workshop {
    pub fn new(tare: &Path, peers: Option<&Path>) -> Result<Self, String> {
        let floor = std::env::current_exe().map_err(|why| why.to_string())?.with_file_name("floor_epoll");
        let scratch = std::env::temp_dir().join(format!("bench-load-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).map_err(|why| format!("{}: {why}", scratch.display()))?;
        let script = scratch.join("pipeline.lua");
        std::fs::write(&script, WRK_PIPELINE).map_err(|why| format!("{}: {why}", script.display()))?;
        let mut workshop = Workshop {
            tare: tare.to_owned(),
            floor,
            peers: peers.map(Path::to_owned),
            script,
            tls: false,
            trials: 0,
            scratch,
        };
        workshop.tls = workshop.make_certificate();
        Ok(workshop)
    }

    /// Whether what a load needs is there: nginx, and openssl for its certificate.
    pub fn can_serve(&self, server: Serves) -> bool {
        match server {
            Serves::Constant => true,
            Serves::Tls => self.tls && self.program("nginx").is_ok(),
            Serves::OneEach => self.program("nginx").is_ok(),
        }
    }

    fn make_certificate(&self) -> bool {
        let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                    -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem";
        let mut openssl = Command::new("openssl");
        openssl.args(line.split_whitespace()).current_dir(&self.scratch).stderr(Stdio::null());
        openssl.status().is_ok_and(|status| status.success())
    }

    fn program(&self, name: &str) -> Result<PathBuf, String> {
        if name == "tare" {
            return Ok(self.tare.clone()).and_then(|path| {
                if path.exists() { Ok(path) } else { Err(format!("{} is not built", path.display())) }
            });
        }
        // What this project builds stands beside the floor.
        let own = self.floor.with_file_name(name);
        if own.exists() {
            return Ok(own);
        }
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.peers.iter().cloned().chain(std::env::split_paths(&paths));
        let mut candidates = folders.chain([PathBuf::from("/usr/sbin")]).map(|folder| folder.join(name));
        candidates.find(|path| path.exists()).ok_or_else(|| format!("missing: {name} is not installed"))
    }

    /// The first line that a generator prints about its version, or why it cannot be measured.
    pub fn version(&self, generator: &Generator) -> Result<String, String> {
        if generator.program == "bare" {
            return self
                .program("bare")
                .map(|_| "one send and one receive a batch, nothing parsed".to_owned());
        }
        let output = Command::new(self.program(generator.program)?)
            .args(generator.version)
            .output()
            .map_err(|why| why.to_string())?;
        let text = [output.stdout, output.stderr].concat();
        let line = String::from_utf8_lossy(&text)
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned);
        Ok(line.unwrap_or_default())
    }

    /// One trial of one generator under one load.
    pub fn trial(&mut self, name: &str, load: &Load) -> Result<Trial, String> {
        let generator = GENERATORS.iter().find(|g| g.name == name).ok_or("no such generator")?;
        self.trials = (self.trials + 1) % (PORTS.end - PORTS.start);
        let port = PORTS.start + self.trials;
        let server = self.serve(load, port, generator.wants_keep_alive)?;
        let scheme = if load.server == Serves::Tls { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{port}/plaintext");
        let mut command = Command::new(self.program(generator.program)?);
        command.args((generator.arguments)(load, &url, &self.script.to_string_lossy()));
        let start = Instant::now();
        let (ended, text) = run(&mut command)?;
        let wall_s = start.elapsed().as_secs_f64();
        let server = server.end()?;
        if ended.exit_code != Some(0) {
            return Err(format!("ended with {:?}: {text}", ended.exit_code));
        }
        let requests = (generator.requests)(&text).ok_or_else(|| format!("no count in: {text}"))?;
        Ok(Trial { requests, cpu_s: cpu_s(&ended), wall_s, server_cpu_s: cpu_s(&server) })
    }

    fn serve(&self, load: &Load, port: u16, keep_alive: bool) -> Result<Server, String> {
        let mut command;
        if load.server != Serves::Constant {
            command = Command::new(self.program("nginx")?);
            command.arg("-c").arg(self.nginx(port, load.server)?);
        } else {
            command = Command::new(&self.floor);
            command.arg(port.to_string());
            if keep_alive {
                command.arg("keep-alive");
            }
        }
        let child = start(&mut command, SERVER_CPU)?;
        let server = Server(Some(child));
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("{command:?} does not listen on {port}"))
    }

    /// One process, so that its CPU time is all of the server's.
    fn nginx(&self, port: u16, server: Serves) -> Result<PathBuf, String> {
        let dir = self.scratch.display();
        let kind = match server {
            Serves::Tls => format!(
                "listen 127.0.0.1:{port} ssl backlog=4096; ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;"
            ),
            Serves::OneEach | Serves::Constant => {
                format!("listen 127.0.0.1:{port} backlog=4096; keepalive_timeout 0;")
            }
        };
        let text = format!(
            "master_process off; daemon off; pid {dir}/pid; error_log /dev/null;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; server {{ {kind}\n\
             location / {{ default_type text/plain; return 200 \"Hello, World!\"; }} }} }}\n"
        );
        let file = self.scratch.join("nginx.conf");
        std::fs::write(&file, text).map_err(|why| why.to_string())?;
        Ok(file)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// A server; ended when dropped.
struct Server(Option<Child>);

impl Server {
    fn end(mut self) -> Result<Ended, String> {
        let child = self.0.take().ok_or("ended twice")?;
        process::kill(child.id(), Signal::Kill).map_err(|why| why.to_string())?;
        process::wait4(child.id(), true).map_err(|why| why.to_string())?.ok_or_else(|| "not ended".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(command: &mut Command, cpu: u32) -> Result<Child, String> {
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let confinement = Confinement { cpus: vec![cpu], ..Confinement::default() };
    process::spawn(command, &confinement).map_err(|why| format!("{command:?}: {why}"))
}

/// Runs a generator to its end, which must come in time.
fn run(command: &mut Command) -> Result<(Ended, String), String> {
    let mut child = start(command.stdout(Stdio::piped()), GENERATOR_CPU)?;
    let pid = child.id();
    let deadline = Instant::now() + TRIAL_MAX;
    while !process::has_ended(pid, false).map_err(|why| why.to_string())? {
        if Instant::now() > deadline {
            process::kill(pid, Signal::Kill).map_err(|why| why.to_string())?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = process::wait4(pid, true).map_err(|why| why.to_string())?.ok_or("not ended")?;
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut text).map_err(|why| why.to_string())?;
    }
    Ok((ended, text))
}

fn cpu_s(ended: &Ended) -> f64 {
    (ended.user_ns + ended.system_ns) as f64 / 1e9
}
