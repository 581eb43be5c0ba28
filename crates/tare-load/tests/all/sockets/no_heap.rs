//! The hot loop allocates nothing: counted over the whole process while it runs, so everything else in here,
//! server included, has to hold still as well.

use crate::{HEAP, own_process};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tare_load::{Gaps, Generator, Pacing};

/// Answers from the stack; the first hundred heads differ from each other, so that the full parser runs too.
fn serve(mut connection: TcpStream) {
    let mut buffer = [0; 4096];
    let mut changing = *b"HTTP/1.1 200 OK\r\nX-Count: 00\r\nContent-Length: 2\r\n\r\nhi";
    for count in 0u64.. {
        let Ok(read @ 1..) = connection.read(&mut buffer) else { return };
        let requests = buffer[..read].windows(4).filter(|window| window == b"\r\n\r\n").count();
        for _ in 0..requests {
            changing[26] = b'0' + (count / 10 % 10) as u8;
            changing[27] = b'0' + (count % 10) as u8;
            if connection.write_all(&changing).is_err() {
                return;
            }
        }
    }
}

fn start_server(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for _ in 0..connections {
            let (connection, _) = listener.accept().unwrap();
            connection.set_nodelay(true).unwrap();
            std::thread::spawn(move || serve(connection));
        }
    });
    address
}

fn run_for(generator: &Generator, answers: u64) {
    let (goal, deadline) = (generator.live().answers + answers, Instant::now() + Duration::from_secs(30));
    while generator.live().answers < goal {
        assert!(Instant::now() < deadline, "{:?}", generator.live());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One test, not two: they would count each other's allocations.
#[test]
fn the_hot_loop_allocates_nothing() {
    if !own_process::entered(module_path!(), "the_hot_loop_allocates_nothing") {
        return;
    }
    let open = Pacing::Open { rate_hz: 20_000.0, gaps: Gaps::Poisson };
    for pacing in [Pacing::Closed, open] {
        let address = start_server(8);
        let mut spec = super::support::spec(&format!("http://{address}/"));
        (spec.connections, spec.workers.threads, spec.pipeline, spec.pacing) = (8, 2, 2, pacing.clone());
        let generator = Generator::start(&spec).unwrap();
        run_for(&generator, 1000);
        let before = HEAP.allocations();
        run_for(&generator, 2000);
        assert_eq!(HEAP.allocations() - before, 0, "{pacing:?}");
        generator.stop().unwrap();
    }
}
