//! One row for each rule of RFC 9110 and RFC 9112 that a server can keep or break on the wire.
//!
//! Every row is run whole, cut in two at every byte, byte by byte, and pipelined between two good requests: what
//! is answered must not depend on how the bytes arrive.

mod bodies;
mod heads;
mod row;
mod semantics;
mod served;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use row::{After, Row};
use served::{LIMITS, routes, run, split_answers};
use tare_server::{BackendChoice, Config, Server};

fn all_rows() -> Vec<Row> {
    [heads::rows(), bodies::rows(), semantics::rows()].into_iter().flatten().collect()
}

fn check(row: &Row, how: &str, pieces: &[&[u8]], before: usize, good_follows: bool) {
    let (answers, after, text) = run(pieces);
    let place = || format!("{} ({}), {how}:\n{:?}\n{text}", row.section, row.rule, row.request);
    let mut wanted: Vec<&str> = vec!["200 A"; before];
    wanted.extend(row.answers);
    if good_follows && row.after == After::Stays {
        wanted.push("200 A");
    }
    compare(&answers, &wanted, &place);
    assert_eq!(after, row.after, "{}", place());
}

fn compare(answers: &[String], wanted: &[&str], place: &dyn Fn() -> String) {
    assert_eq!(answers.len(), wanted.len(), "{}", place());
    for (answer, wanted) in answers.iter().zip(wanted) {
        let same = answer == wanted || (wanted.len() == 3 && answer.starts_with(wanted));
        assert!(same, "{answer:?}, not {wanted:?}: {}", place());
    }
}

#[test]
fn there_are_enough_rows_and_each_names_its_section() {
    let rows = all_rows();
    assert!(rows.len() >= 150, "{} rows", rows.len());
    for row in &rows {
        let (rfc, section) = row.section.split_once(' ').unwrap();
        assert!(matches!(rfc, "9110" | "9112") && section.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!row.rule.is_empty());
    }
    let mut names: Vec<_> = rows.iter().map(|r| (r.section, r.rule)).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len(), "a rule stands there twice");
}

#[test]
fn every_row_holds_whole_and_cut_anywhere() {
    for row in all_rows() {
        let bytes = row.request.as_bytes();
        check(&row, "whole", &[bytes], 0, false);
        for at in 1..bytes.len() {
            check(&row, &format!("cut at {at}"), &[&bytes[..at], &bytes[at..]], 0, false);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        check(&row, "byte by byte", &single, 0, false);
    }
}

#[test]
fn every_row_holds_between_other_requests() {
    let good = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    for row in all_rows() {
        let mut all = good.to_vec();
        all.extend_from_slice(row.request.as_bytes());
        all.extend_from_slice(good);
        check(&row, "pipelined", &[&all], 1, true);
        for at in 1..all.len() {
            check(&row, &format!("pipelined, cut at {at}"), &[&all[..at], &all[at..]], 1, true);
        }
        let single: Vec<&[u8]> = all.chunks(1).collect();
        check(&row, "pipelined, byte by byte", &single, 1, true);
    }
}

#[test]
fn every_row_holds_on_sockets_of_every_backend() {
    for backend in [BackendChoice::Epoll, BackendChoice::IoUring] {
        let config = Config { backend, limits: LIMITS, ..Config::new("127.0.0.1:0".parse().unwrap()) };
        let server = Server::builder().routes(routes()).bind(config).unwrap();
        let (address, stop) = (server.local_addr(), server.stop_handle());
        let running = std::thread::spawn(move || server.run());
        for row in all_rows() {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // Where the server closes first, what it does not want any more may be refused.
            let _ = stream.write_all(row.request.as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            let place =
                || format!("{} ({}), {}:\n{:?}\n{text}", row.section, row.rule, backend.name(), row.request);
            compare(&split_answers(&text), row.answers, &place);
        }
        stop.stop();
        running.join().unwrap().unwrap();
    }
}
