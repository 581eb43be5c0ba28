//! Which work on packets a network interface takes over (`ETHTOOL_G…`).

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

/// The questions that kernels answered long before the feature lists of today, and the names of what is asked.
const QUESTIONS: [(u32, &str); 5] =
    [(0x14, "rx-checksum"), (0x16, "tx-checksum"), (0x1e, "tso"), (0x23, "gso"), (0x2b, "gro")];

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// The offloads of an interface and whether each is on.
///
/// # Errors
/// `ENODEV` when there is none of that name, `EOPNOTSUPP` when its driver does not tell.
pub fn read(interface: &str) -> io::Result<Vec<(&'static str, bool)>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    QUESTIONS.iter().map(|&(command, name)| Ok((name, ask(&socket, interface, command)?))).collect()
}

fn ask(socket: &UdpSocket, interface: &str, command: u32) -> io::Result<bool> {
    let mut name: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    let mut value = Value { command, data: 0 };
    let data = (&raw mut value).cast::<libc::c_char>();
    let mut request =
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data } };
    // SAFETY: `request` holds a name that ends with a zero (it is shorter than the field) and a pointer to `value`, which
    // is the structure that these commands read and write; both live through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value.data != 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_tells_its_offloads() {
        let found = read("lo").unwrap();
        assert_eq!(found.len(), QUESTIONS.len());
        assert!(read("no-such-if").is_err() && read("a name longer than names can be").is_err());
    }
}
