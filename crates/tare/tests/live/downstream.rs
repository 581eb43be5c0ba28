//! A proxy before a backend: the backend is found by the sockets, its CPU time is the system's, and who waits for it is seen.

use crate::support::{Server, Tare, alone, free_port, number};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// nginx on CPU 0, which asks `backend` for everything.
fn proxy(dir: &Path, backend: &Server) -> Server {
    let port = free_port();
    let config = format!(
        "worker_processes 1; daemon off; pid {0}/pid; error_log {0}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {0}/b; proxy_temp_path {0}/p;\n\
         fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;\n\
         upstream other {{ server 127.0.0.1:{1}; keepalive 64; }}\n\
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://other; proxy_http_version 1.1;\n\
         proxy_set_header Connection \"\"; }} }} }}\n",
        dir.display(),
        backend.port
    );
    let file = dir.join("nginx.conf");
    std::fs::write(&file, config).unwrap();
    let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists());
    let mut command = Command::new("taskset");
    command.args(["-c", "0", program.expect("nginx is installed by tests/run"), "-c"]).arg(file);
    Server::of(command, port)
}

fn measure(path: &str, connections: &str) -> (Value, Vec<u32>) {
    let dir = tempfile::tempdir().unwrap();
    let backend = Server::embedded();
    let proxy = proxy(dir.path(), &backend);
    let url = proxy.url(path);
    let options =
        ["run", "--json", "-q", "--no-levels", "--stacks=0", "-d", "1s", "--trials", "2", "-w", "300ms"];
    let load = ["-c", connections, "--load-cpus", "1", url.as_str()];
    let (result, _) = Tare::new().json(&[&options[..], &load[..]].concat());
    (result, backend.pids.clone())
}

/// The row of the backend.
fn row<'r>(result: &'r Value, pids: &[u32]) -> &'r Value {
    let rows = result["accounting"]["downstream"].as_array().unwrap();
    let is_it = |row: &&Value| row["pids"].as_array().unwrap().iter().any(|pid| *pid == pids[0]);
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{rows:#?}"))
}

#[test]
fn a_backend_on_the_proxys_cpu_is_a_class_of_its_own() {
    let _alone = alone();
    let (result, pids) = measure("/plaintext", "32");
    let row = row(&result, &pids);
    assert_eq!(row["caller"], Value::Null);
    assert!(row["busy_cpus"].as_f64().unwrap() > 0.05, "{row:#}");
    let threads = result["accounting"]["threads"].as_array().unwrap();
    assert!(threads.iter().any(|thread| thread["role"] == "downstream" && thread["pid"] == pids[0]));
    assert!(number(&result, "/accounting/cpus/0/downstream") > 0.05, "{:#}", result["accounting"]["cpus"]);
    assert!(number(&result, "/accounting/sut/losses_cpus/downstream-cpu") > 0.02);
}

/// The embedded server sleeps on its one event loop: requests queue there.
#[test]
fn a_backend_that_sleeps_is_what_the_proxy_waits_for() {
    let _alone = alone();
    let (result, pids) = measure("/sleep?us=20000", "8");
    let row = row(&result, &pids);
    assert!(row["waited"].as_f64().unwrap() > 0.5, "{row:#}");
    assert_eq!(result["bottleneck"], "blocked-on-downstream", "{:#}", result["findings"]);
}
