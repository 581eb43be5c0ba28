//! Ports for servers that are started.

use crate::error::LabError;
use std::net::{Ipv4Addr, TcpListener};

/// What stands for a port in commands and URLs.
pub const PORT: &str = "{port}";

/// Ports that nobody has; held all at once, so that they differ.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>, LabError> {
    let none = |error: std::io::Error| LabError::Sut {
        what: format!(
            "has no port to listen on: {error} (hint: wait a minute for closed connections to be forgotten)"
        ),
        last_output: String::new(),
    };
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(none);
    let listeners: Vec<TcpListener> = (0..count).map(bind).collect::<Result<_, _>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr().map_err(none)?.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_differ() {
        let mut ports = free_ports(8).unwrap();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 8);
    }
}
