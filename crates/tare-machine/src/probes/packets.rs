//! How many packets the loopback device carries in a second: on every CPU at once a thread sends a few to itself and takes them, so
//! that each CPU does all of the work of its packets, and no wake-up is in it.

use super::place::on_each;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use tare_model::Missing;
use tare_sys::net::segments_sent;
use tare_sys::time::monotonic_ns;

/// Packets that are sent before any is taken, and bytes of them at most: the socket's buffer holds them.
const BATCH: usize = 16;
const BATCH_BYTES: usize = 32 << 10;

/// By which protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Datagrams that were received.
    Udp,
    /// Segments that both ends sent: data and acknowledgements.
    Tcp,
}

/// Packets per second of all CPUs together, each with `bytes` of data.
///
/// # Errors
/// Why a CPU could not be used, or what the sockets say.
pub fn run(protocol: Protocol, bytes: usize, cpus: &[u32], duration_ns: u64) -> Result<f64, Missing> {
    let one = move || {
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let found = match protocol {
            Protocol::Udp => datagrams(bytes, end_ns),
            Protocol::Tcp => segments(bytes, end_ns),
        };
        found.map_err(|error| Missing::new(format!("packets cannot be sent over loopback: {error}")))
    };
    on_each(cpus, duration_ns, one).into_iter().map(|cpu| cpu.found.ok()).sum()
}

fn batch(bytes: usize) -> usize {
    (BATCH_BYTES / bytes.max(1)).clamp(1, BATCH)
}

fn datagrams(bytes: usize, end_ns: u64) -> io::Result<f64> {
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    receiver.set_nonblocking(true)?;
    sender.set_nonblocking(true)?;
    let mut buffer = vec![7u8; bytes];
    let (mut received, begun_ns) = (0u64, monotonic_ns());
    loop {
        for _ in 0..batch(bytes) {
            if !is_done(sender.send(&buffer))? {
                break;
            }
        }
        while is_done(receiver.recv(&mut buffer))? {
            received += 1;
        }
        let now_ns = monotonic_ns();
        if now_ns >= end_ns {
            return Ok(received as f64 * 1e9 / (now_ns - begun_ns).max(1) as f64);
        }
    }
}

fn segments(bytes: usize, end_ns: u64) -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    sender.set_nodelay(true)?;
    sender.set_nonblocking(true)?;
    receiver.set_nonblocking(true)?;
    let data = vec![7u8; bytes];
    let mut taken = vec![0u8; BATCH_BYTES];
    let sent = |sender: &TcpStream, receiver: &TcpStream| {
        // A counter that goes round is subtracted that way too.
        Ok::<u32, io::Error>(segments_sent(sender)?.wrapping_add(segments_sent(receiver)?))
    };
    let (before, begun_ns) = (sent(&sender, &receiver)?, monotonic_ns());
    loop {
        for _ in 0..batch(bytes) {
            if !is_done(sender.write(&data))? {
                break;
            }
        }
        while is_done(receiver.read(&mut taken))? {}
        let now_ns = monotonic_ns();
        if now_ns >= end_ns {
            let packets = sent(&sender, &receiver)?.wrapping_sub(before);
            return Ok(f64::from(packets) * 1e9 / (now_ns - begun_ns).max(1) as f64);
        }
    }
}

/// Whether it was done; `false`: it would have to wait.
fn is_done(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
        // Somebody's packet filter, or full queues: what did not pass is not counted.
        Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// `ENOBUFS`.
const NO_BUFFERS: i32 = 105;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_every_size_pass() {
        let cpus = tare_sys::affinity::get(0).unwrap();
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            for bytes in [64, 1024, 8192] {
                let per_s = run(protocol, bytes, &cpus, 5_000_000).unwrap();
                assert!(per_s > 100.0 && per_s < 1e9, "{protocol:?} {bytes}: {per_s}");
            }
        }
    }
}
