//! The server that answers at a URL.

use super::answer::{find_server, landed, reach};
use super::subject::Subject;
use super::sut::Sut;
use crate::error::LabError;
use crate::plan::Resolved;
use crate::request::SutRequest;
use crate::running::Running;
use std::sync::atomic::AtomicBool;
use tare_load::LoadSpec;
use tare_machine::sockets::NotFound;
use tare_model::plan::{self, Transport};

/// Whoever answers at the URL.
pub(super) struct Found;

impl Subject for Found {
    fn is_asked(&self, resolved: &Resolved) -> bool {
        resolved.request.sut == SutRequest::Find && !resolved.by_connections
    }

    fn why(&self) -> &'static str {
        "it has the socket at which the load's first request was answered"
    }

    fn open(&self, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError> {
        let sut = find(&resolved.request.traffic, running.interrupt)?;
        if let plan::Sut::Unseen { why } = &sut.kind {
            running.notice(
                "sut-unseen",
                why,
                "the accounting has the generator's side only; --sut-pid names the server's process",
            )?;
        }
        Ok(sut)
    }
}

/// Finds the server that answers the load's first request.
fn find(load: &LoadSpec, interrupt: &AtomicBool) -> Result<Sut, LabError> {
    let preflight = reach(load, interrupt)?;
    let target = landed(load, &preflight)?;
    let sut = match find_server(&preflight) {
        Ok(server) => {
            let pids = server.pids;
            let mut sut = Sut::answering(target, pids.clone(), plan::Sut::Attached { pids });
            if !server.same_namespace {
                sut.transport = Transport::Namespace;
            }
            sut
        }
        Err(not_found) => {
            let unseen = plan::Sut::Unseen { why: not_found.to_string() };
            let mut sut = Sut::answering(target, Vec::new(), unseen);
            sut.transport = match not_found {
                NotFound::OtherHost => Transport::Remote,
                NotFound::OtherNamespace => Transport::Namespace,
                _ => Transport::Loopback,
            };
            sut
        }
    };
    Ok(sut.answered(&preflight).reached_by(&load.route))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use tare_load::Target;

    /// A server that only this load's own request can find out to be one.
    #[test]
    fn a_server_is_found_by_what_it_will_be_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::parse(&format!("http://{}/form", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = vec![0; 1024];
            let length = connection.read(&mut request).unwrap();
            connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            request.truncate(length);
            String::from_utf8(request).unwrap()
        });
        let mut load = LoadSpec::new(target.clone());
        (load.content.method, load.content.body) = ("POST".to_owned(), b"a=1".to_vec());
        let sut = find(&load, &AtomicBool::new(false)).unwrap();
        assert_eq!((&sut.target, sut.address), (&Some(target), Some([127, 0, 0, 1].into())));
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /form HTTP/1.1\r\n") && request.ends_with("\r\na=1"), "{request}");
    }
}
