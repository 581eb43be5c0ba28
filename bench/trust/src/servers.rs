//! What is compared: the built-in server, nginx, and one of Go's net/http, each on one CPU.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    Embedded,
    Nginx,
    Go,
}

impl Server {
    pub const ALL: [Server; 3] = [Server::Embedded, Server::Nginx, Server::Go];

    pub fn name(self) -> &'static str {
        match self {
            Server::Embedded => "embedded",
            Server::Nginx => "nginx",
            Server::Go => "go",
        }
    }

    /// Whether it can be made dearer.
    pub fn can_spin(self) -> bool {
        self != Server::Nginx
    }
}

/// Those that this machine has, ready to be started.
pub struct Servers {
    folder: TempDir,
    nginx: Option<PathBuf>,
    go: Option<PathBuf>,
}

impl Servers {
    /// Builds Go's server, where there is Go.
    pub fn prepare() -> Result<Servers> {
        let folder = tempfile::tempdir()?;
        let there = |path: &str| Some(PathBuf::from(path)).filter(|path| path.exists());
        let nginx = there("/usr/sbin/nginx");
        if nginx.is_some() {
            std::fs::write(folder.path().join("nginx.conf"), nginx_conf(folder.path()))?;
        }
        let go = ["/usr/local/go/bin/go", "/usr/bin/go"].into_iter().find_map(there);
        let go = go.map(|go| build(&go, folder.path())).transpose()?;
        Ok(Servers { folder, nginx, go })
    }

    pub fn all(&self) -> impl Iterator<Item = Server> {
        Server::ALL.into_iter().filter(|server| match server {
            Server::Embedded => true,
            Server::Nginx => self.nginx.is_some(),
            Server::Go => self.go.is_some(),
        })
    }

    pub fn page(&self, server: Server) -> &'static str {
        if server == Server::Embedded { "/plaintext" } else { "/" }
    }

    /// What `tare compare` is to start.
    pub fn command(&self, server: Server) -> String {
        let shown = |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("")).display().to_string();
        match server {
            Server::Embedded => "embedded".to_owned(),
            Server::Go => format!("exec {} {{port}}", shown(&self.go)),
            Server::Nginx => {
                let (folder, program) = (self.folder.path().display(), shown(&self.nginx));
                format!(
                    "mkdir -p {folder}/{{port}} && sed s/PORT/{{port}}/g {folder}/nginx.conf > {folder}/{{port}}/conf && \
                     exec {program} -c {folder}/{{port}}/conf"
                )
            }
        }
    }
}

fn build(go: &Path, folder: &Path) -> Result<PathBuf> {
    let (source, program) = (concat!(env!("CARGO_MANIFEST_DIR"), "/server.go"), folder.join("server"));
    let status = Command::new(go)
        .args(["build", "-o"])
        .arg(&program)
        .arg(source)
        .env("GOCACHE", folder.join("cache"))
        .env("GO111MODULE", "off")
        .status()
        .context("cannot run go")?;
    ensure!(status.success(), "{source} does not build");
    Ok(program)
}

fn nginx_conf(folder: &Path) -> String {
    let folder = format!("{}/PORT", folder.display());
    format!(
        "worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; keepalive_requests 1000000000;\n\
         client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n\
         uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         server {{ listen 127.0.0.1:PORT; location / {{ return 200 \"ok\\n\"; }} }} }}\n"
    )
}
