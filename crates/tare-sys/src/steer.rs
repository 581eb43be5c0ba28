//! Options of listeners that decide when a connection is handed over, and to which of several listeners.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::net::set_option;

/// Hands a connection over only when its first bytes are there, or after `seconds` (`TCP_DEFER_ACCEPT`): one
/// wake-up less for each connection whose client speaks first.
pub fn set_defer_accept(listener: impl AsFd, seconds: u32) -> io::Result<()> {
    set_option(listener, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, &seconds.min(i32::MAX as u32))
}

/// Prefers this listener, among those that share its port, for connections whose packets are handled on `cpu`
/// (`SO_INCOMING_CPU`; among `SO_REUSEPORT` listeners since Linux 6.1).
pub fn set_incoming_cpu(listener: impl AsFd, cpu: u32) -> io::Result<()> {
    set_option(listener, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, &cpu.min(i32::MAX as u32))
}

/// Most CPUs that [`steer_by_cpu`] can tell apart.
pub const STEERED_CPUS_MAX: usize = 1024;

/// Distributes the connections of all listeners that share the port of `listener` by the CPU that handles
/// their packets: those of `cpus[i]` go to the `i`-th listener in the order of binding, those of other CPUs to number
/// `cpu % cpus.len()` (`SO_ATTACH_REUSEPORT_CBPF`). One call serves the whole group.
///
/// # Errors
/// `InvalidInput` for no CPUs or more than [`STEERED_CPUS_MAX`]; else what the kernel says.
pub fn steer_by_cpu(listener: impl AsFd, cpus: &[u32]) -> io::Result<()> {
    if cpus.is_empty() || cpus.len() > STEERED_CPUS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut program = program(cpus);
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let raw = listener.as_fd().as_raw_fd();
    // SAFETY: `filter` points to `len` instructions; both live through the call, which copies them.
    let result = unsafe {
        libc::setsockopt(
            raw,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `A = cpu; if A == cpus[0] return 0; …; return A % cpus.len()` in classic BPF.
fn program(cpus: &[u32]) -> Vec<libc::sock_filter> {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let cpu_number = (libc::SKF_AD_OFF + libc::SKF_AD_CPU) as u32;
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, cpu_number)];
    for (i, cpu) in cpus.iter().enumerate() {
        program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *cpu));
        program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, i as u32));
    }
    program.push(instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, 0, cpus.len() as u32));
    program.push(instruction(libc::BPF_RET | libc::BPF_A, 0, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;
    use crate::net::{self, ListenOptions};

    #[test]
    fn connections_go_to_the_listener_of_their_cpu() {
        let cpus = affinity::get(0).unwrap();
        // On loopback the packets of a connection are handled on the CPU of its client.
        affinity::set(0, &cpus[..1]).unwrap();
        let options = |sharing| ListenOptions { sharing, ..ListenOptions::default() };
        let first = net::listen("127.0.0.1:0".parse().unwrap(), options(net::Sharing::First)).unwrap();
        let address = net::local_addr(&first).unwrap();
        let second = net::listen(address, options(net::Sharing::Next)).unwrap();
        // The second listener stands for our CPU, the first for a CPU that nobody uses.
        steer_by_cpu(&first, &[cpus[0] + 1, cpus[0]]).unwrap();
        set_defer_accept(&first, 1).unwrap();
        set_incoming_cpu(&first, cpus[0]).unwrap();
        let clients: Vec<_> = (0..16).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        for _ in &clients {
            net::accept(&second).unwrap();
        }
        assert!(net::accept(&first).is_err());
        affinity::set(0, &cpus).unwrap();
        assert!(steer_by_cpu(&first, &[]).is_err());
    }
}
