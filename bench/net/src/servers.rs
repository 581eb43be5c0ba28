//! The servers that are measured, started anew for each cell.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_sys::process::{Confinement, spawn};
use tempfile::TempDir;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Embedded,
    Nginx,
    /// Node with one event loop.
    Node,
    /// Go's `net/http`.
    Go,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Embedded, Kind::Nginx, Kind::Node, Kind::Go];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Embedded => "embedded",
            Kind::Nginx => "nginx",
            Kind::Node => "node",
            Kind::Go => "go",
        }
    }
}

/// How long one may take until it answers, or ends.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// A server on CPU 0, which ends with this value.
pub struct Server {
    child: Child,
    pub url: String,
    _folder: TempDir,
}

impl Server {
    pub fn start(kind: Kind, tare: &Path) -> Result<Server> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = tempfile::tempdir()?;
        let (mut command, path) = command(kind, tare, folder.path(), port)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let there = Confinement { cpus: vec![0], ..Confinement::default() };
        let child = spawn(&mut command, &there).with_context(|| format!("cannot start {}", kind.name()))?;
        let server = Server { child, url: format!("http://127.0.0.1:{port}{path}"), _folder: folder };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect_timeout(&address, PATIENCE).is_err() {
            if Instant::now() > deadline {
                bail!("{} does not answer", kind.name());
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }

    /// Its processes.
    pub fn pids(&self) -> Vec<u32> {
        let own = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        std::iter::once(own).chain(children).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's master ends its worker on SIGTERM; SIGKILL would leave that.
        Command::new("kill").arg(self.child.id().to_string()).status().ok();
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                self.child.kill().ok();
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How it is started, and the path to ask for.
fn command(kind: Kind, tare: &Path, folder: &Path, port: u16) -> Result<(Command, &'static str)> {
    let put = |name: &str, text: &str| -> Result<std::path::PathBuf> {
        let file = folder.join(name);
        std::fs::write(&file, text)?;
        Ok(file)
    };
    let mut command;
    match kind {
        Kind::Embedded => {
            command = Command::new(tare);
            command.args(["serve", "--threads", "1", "--listen"]).arg(format!("127.0.0.1:{port}"));
            return Ok((command, "/plaintext"));
        }
        Kind::Nginx => {
            command = Command::new("/usr/sbin/nginx");
            command.arg("-c").arg(put("nginx.conf", &nginx(folder, port))?);
        }
        Kind::Node => {
            command = Command::new("node");
            command.arg(put("server.js", include_str!("../server.js"))?).arg(port.to_string());
        }
        Kind::Go => {
            let source = put("server.go", include_str!("../server.go"))?;
            let program = folder.join("server");
            let mut build = Command::new("go");
            let built = build.args(["build", "-o"]).arg(&program).arg(source).status();
            if !built.context("cannot start go")?.success() {
                bail!("the Go server could not be built");
            }
            command = Command::new(program);
            command.arg(port.to_string());
        }
    }
    Ok((command, "/"))
}

fn nginx(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; keepalive_requests 1000000000;\n\
         client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n\
         uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"ok\\n\"; }} }} }}\n"
    )
}
