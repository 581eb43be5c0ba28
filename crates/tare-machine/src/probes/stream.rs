//! How many bytes TCP carries over loopback in a second: a thread that writes 128 KiB at a time, as `iperf3` does, and one that
//! takes them, for each pair of CPUs.

use super::place::{on_first, pin};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;
use tare_model::Missing;
use tare_sys::time::monotonic_ns;

/// Bytes of a write and of a read.
const BLOCK_BYTES: usize = 128 << 10;
/// Longest that a write or a read waits.
const PATIENCE: Duration = Duration::from_millis(300);
/// This part of the time passes before anything is counted: the window of a connection grows first.
const WARM_UP: u64 = 5;

/// Bytes per second from the second CPU of each pair to its first, all pairs together.
///
/// # Errors
/// Why a CPU could not be used, or what the sockets say.
pub fn run(pairs: &[[u32; 2]], duration_ns: u64) -> Result<f64, Missing> {
    let started: Vec<_> = pairs
        .iter()
        .map(|&cpus| {
            std::thread::spawn(move || on_first(cpus, duration_ns, move || pair(cpus[1], duration_ns)))
        })
        .collect();
    let ended = |thread: std::thread::JoinHandle<Result<f64, Missing>>| {
        thread.join().unwrap_or_else(|_| Err(Missing::new("the probe's thread ended early")))
    };
    started.into_iter().map(ended).sum()
}

fn pair(sender_cpu: u32, duration_ns: u64) -> Result<f64, Missing> {
    let failed = |error: io::Error| Missing::new(format!("no bytes pass over loopback: {error}"));
    let end_ns = monotonic_ns().saturating_add(duration_ns);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let sender = TcpStream::connect(listener.local_addr().map_err(failed)?).map_err(failed)?;
    let (receiver, _) = listener.accept().map_err(failed)?;
    // It ends when the other end is closed, or nothing is taken any more.
    let send = move || pin(sender_cpu).map(|()| send(sender));
    std::thread::Builder::new().name("tare-probe".into()).spawn(send).map_err(failed)?;
    take(receiver, duration_ns, end_ns).map_err(failed)
}

fn send(mut socket: TcpStream) -> io::Result<()> {
    socket.set_write_timeout(Some(PATIENCE))?;
    let block = vec![7u8; BLOCK_BYTES];
    loop {
        socket.write_all(&block)?;
    }
}

fn take(mut socket: TcpStream, duration_ns: u64, end_ns: u64) -> io::Result<f64> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut block = vec![0u8; BLOCK_BYTES];
    let count_from_ns = end_ns.saturating_sub(duration_ns - duration_ns / WARM_UP);
    let (mut bytes, mut begun_ns) = (0u64, None);
    loop {
        let got = socket.read(&mut block)?;
        let now_ns = monotonic_ns();
        match begun_ns {
            _ if got == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            None if now_ns >= count_from_ns => begun_ns = Some(now_ns),
            None => {}
            Some(_) => bytes += got as u64,
        }
        if let Some(begun_ns) = begun_ns.filter(|_| now_ns >= end_ns && bytes > 0) {
            return Ok(bytes as f64 * 1e9 / (now_ns - begun_ns).max(1) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_pass_between_two_cpus_and_on_one() {
        let allowed = tare_sys::affinity::get(0).unwrap();
        let (first, last) = (allowed[0], *allowed.last().unwrap());
        for pairs in [&[[first, last]][..], &[[first, first]], &[[first, last], [last, first]]] {
            let per_s = super::run(pairs, 20_000_000).unwrap();
            assert!(per_s > 1e5 && per_s < 1e13, "{pairs:?}: {per_s}");
        }
        assert!(super::run(&[[tare_sys::affinity::CPUS_MAX - 1, first]], 1_000_000).is_err());
    }
}
