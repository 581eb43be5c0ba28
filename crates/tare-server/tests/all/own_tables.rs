//! Loops with tables of descriptors of their own. In a process of its own: each loop has copies of all that is open.

use std::fs::File;
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::epoll::common::{Running, config, get, last_get, read_all, start, threads, until};
use crate::own_process;
use tare_server::{
    BackendChoice, Config, Request, Responder, Server, ServerError, StopHandle, Timeouts, architecture,
    tables,
};

/// The handlers use what was open before the loops began, and one of them ends the server: the wakers of all loops
/// have the same numbers in each table.
fn serve(backend: BackendChoice) {
    let stop = Arc::new(OnceLock::<StopHandle>::new());
    let to_stop = Arc::clone(&stop);
    let file = File::open("/proc/self/comm").unwrap();
    let builder = Server::builder()
        .route("/file", move |_: &Request<'_>, answer: Responder<'_>| {
            let mut text = [0; 4];
            file.read_exact_at(&mut text, 0).unwrap();
            answer.ok().body(&text)
        })
        .route("/stop", move |_: &Request<'_>, answer: Responder<'_>| {
            to_stop.get().unwrap().stop();
            answer.ok().empty()
        });
    let timeouts = Timeouts { linger: Duration::from_millis(300), ..Timeouts::default() };
    let config = Config {
        own_tables: true,
        listening: threads(3),
        connections_max: 300,
        backend,
        timeouts,
        ..config()
    };
    let server = start(builder, config);
    // From now on the loops have their tables, without copies of what clients open.
    server.exchange(last_get("/file").as_bytes());
    stop.set(server.stop.clone()).unwrap();
    let mut all: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    for stream in &mut all {
        std::io::Write::write_all(stream, get("/file").as_bytes()).unwrap();
    }
    until("all loops have some", || {
        let counts = server.stop.report().threads;
        counts.iter().all(|thread| thread.counts.answers_2xx > 0)
            && server.stop.report().sum().answers() == 61
    });
    end(server, all);
}

fn end(server: Running, all: Vec<TcpStream>) {
    let address = server.address;
    let answer = server.exchange(get("/stop").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for mut stream in all {
        let answer = read_all(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    assert_eq!(server.finish().sum().answers(), 62);
    assert!(TcpStream::connect(address).is_err(), "no table has a listener left");
}

/// One test, for one process.
#[test]
fn each_loop_has_a_table_of_its_own() {
    if !own_process::entered(module_path!(), "each_loop_has_a_table_of_its_own") {
        return;
    }
    tare_sys::process::raise_open_files_limit().unwrap();
    serve(BackendChoice::Epoll);
    serve(BackendChoice::IoUring);
    let limit = tare_sys::process::open_files_limit().unwrap();
    let room = tables::room(limit, 2);
    let bind = |config: Config| {
        Server::builder().bind(Config { own_tables: true, listening: threads(2), ..config }).err()
    };
    assert!(bind(Config { connections_max: 2 * room, ..config() }).is_none());
    let more = bind(Config { connections_max: 2 * room + 1, ..config() });
    assert!(matches!(more, Some(ServerError::NoRoom { threads: 2, enough: Some(3), .. })), "{more:?}");
    let dispatch = architecture::find("dispatch").unwrap();
    let dispatch = bind(Config { connections_max: 1, architecture: dispatch, ..config() });
    assert!(matches!(dispatch, Some(ServerError::OneTable { name: "dispatch" })), "{dispatch:?}");
}
