//! Where connections go, and from which local addresses.

use crate::error::LoadError;
use crate::spec::LoadSpec;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use tare_sys::net::{self, Connecting};
use tare_sys::unix;

/// Connections to one server that a local address has ports for at once. The kernel's default range has 28,232, but it
/// gives the even ones first and searches all of them before it gives an odd one: from 14,116 on, connecting takes half a
/// millisecond. This stays below by a margin.
const CONNECTIONS_PER_ADDRESS: u32 = 13_000;

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp {
        remote: SocketAddr,
        /// One after the other; empty: the kernel's choice.
        locals: Vec<IpAddr>,
    },
    Unix(PathBuf),
}

impl Endpoint {
    /// Resolves the name in `spec`, if there is one.
    pub(crate) fn resolve(spec: &LoadSpec) -> Result<Endpoint, LoadError> {
        if let Some(path) = &spec.route.unix_socket {
            return Ok(Endpoint::Unix(path.clone()));
        }
        let remote = choose_address(&spec.route.goes_to().resolve()?);
        let locals = if spec.route.local_addresses.is_empty() {
            loopback(remote, spec.connections)
        } else {
            spec.route.local_addresses.clone()
        };
        Ok(Endpoint::Tcp { remote, locals })
    }

    /// Whether it is on this host, as the kernel routes.
    pub(crate) fn is_this_host(&self) -> bool {
        match self {
            Endpoint::Tcp { remote, .. } => is_own(*remote),
            Endpoint::Unix(_) => true,
        }
    }

    /// Begins the `n`th connection, without blocking.
    pub(crate) fn connect(&self, n: u32) -> io::Result<(OwnedFd, Connecting)> {
        let (remote, locals) = match self {
            Endpoint::Unix(path) => return unix::connect(path),
            Endpoint::Tcp { remote, locals } => (*remote, locals),
        };
        let local = locals.get(n as usize % locals.len().max(1)).map(|ip| SocketAddr::new(*ip, 0));
        let (socket, connecting) = net::connect(remote, local)?;
        net::set_nodelay(&socket, true)?;
        Ok((socket, connecting))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { remote, .. } => remote.fmt(f),
            Endpoint::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Whether the kernel would go there from that very address. Nothing is sent.
fn is_own(address: SocketAddr) -> bool {
    let ip = address.ip();
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(address)?;
        socket.local_addr()
    };
    ip.is_loopback() || ip == any || from().is_ok_and(|from: SocketAddr| from.ip() == ip)
}

/// All of 127.0.0.0/8 is this host: as many of its addresses as the connections need.
fn loopback(remote: SocketAddr, connections: u32) -> Vec<IpAddr> {
    let addresses = connections.div_ceil(CONNECTIONS_PER_ADDRESS);
    if addresses <= 1 || !remote.is_ipv4() || !remote.ip().is_loopback() {
        return Vec::new();
    }
    let first = u32::from(Ipv4Addr::LOCALHOST);
    (0..addresses).map(|k| IpAddr::V4(Ipv4Addr::from(first + k))).collect()
}

/// The first address that takes a connection, else the first one: a name may lead to both families while the
/// server listens on one.
fn choose_address(addresses: &[SocketAddr]) -> SocketAddr {
    let takes = |address: &&SocketAddr| TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok();
    let chosen = if addresses.len() > 1 { addresses.iter().find(takes) } else { None };
    *chosen.unwrap_or(&addresses[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_known_by_its_addresses() {
        for (address, own) in [
            ("127.0.0.1:1", true),
            ("127.8.9.10:1", true),
            ("0.0.0.0:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("192.0.2.1:443", false),
            ("[2001:db8::1]:443", false),
            ("255.255.255.255:9", false),
        ] {
            assert_eq!(is_own(address.parse().unwrap()), own, "{address}");
        }
    }

    #[test]
    fn loopback_has_addresses_for_as_many_as_needed() {
        let remote: SocketAddr = "127.0.0.1:80".parse().unwrap();
        assert_eq!(loopback(remote, 13_000), Vec::<IpAddr>::new());
        assert_eq!(
            loopback(remote, 26_001),
            ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|ip| ip.parse::<IpAddr>().unwrap())
        );
        assert!(loopback("10.0.0.1:80".parse().unwrap(), 1 << 20).is_empty());
        assert!(loopback("[::1]:80".parse().unwrap(), 1 << 20).is_empty());
    }
}
