//! Host and port: where connections go.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// Longest URL that is taken, in bytes: what common servers accept as a request line.
pub(crate) const URL_BYTES_MAX: usize = 8000;

/// A URL that no load can be sent to, or a name that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing like `http://` at the start.
    #[error("`{url}` is not a URL (hint: write {})", with_scheme(url))]
    NoScheme {
        /// As given.
        url: String,
    },
    /// Another protocol.
    #[error("unknown scheme `{scheme}` (hint: write http://HOST[:PORT]/PATH)")]
    UnknownScheme {
        /// As given.
        scheme: String,
    },
    /// The URL names no host.
    #[error("`{url}` has no host (hint: write http://HOST[:PORT]/PATH)")]
    NoHost {
        /// As given.
        url: String,
    },
    /// The host is neither a name nor an address.
    #[error("`{host}` is not a host name, an IPv4 address or an IPv6 address in brackets")]
    BadHost {
        /// As given.
        host: String,
    },
    /// The port is not a number from 1 to 65535.
    #[error("`{port}` is not a port (hint: a number from 1 to 65535)")]
    BadPort {
        /// As given.
        port: String,
    },
    /// Not `HOST:PORT`.
    #[error(
        "`{given}` is not a host and a port (hint: write HOST:PORT; an IPv6 address in brackets, as [::1]:443)"
    )]
    NotHostPort {
        /// As given.
        given: String,
    },
    /// `user:password@`.
    #[error("credentials in a URL are not sent (hint: give an Authorization header)")]
    Credentials,
    /// The path has bytes that no request line can carry.
    #[error("the path has spaces, control or non-ASCII characters (hint: percent-encode them)")]
    BadPath,
    /// Longer than any server would take.
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    /// The name could not be resolved.
    #[error("cannot find the host `{host}`: {why} (hint: check the name, or give an address)")]
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver said.
        why: String,
    },
}

/// The URL that was meant by one without a scheme, or its form where nothing like a host stands there.
fn with_scheme(given: &str) -> String {
    let (authority, path) = given.split_once('/').unwrap_or((given, ""));
    let is_host = authority == "localhost" || (!authority.starts_with('.') && authority.contains(['.', ':']));
    match HostPort::of_url(authority, 80, given) {
        Ok(_) if is_host => format!("http://{authority}/{path}"),
        _ if given.is_empty() || given.contains(':') => "http://HOST[:PORT]/PATH".to_owned(),
        _ => {
            let given = shell_words::quote(given);
            format!("http://HOST[:PORT]/PATH; a program is measured by: tare run -- {given}")
        }
    }
}

/// A host, by name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    host: Host,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

impl HostPort {
    /// Takes the authority of `url` apart.
    pub(crate) fn of_url(authority: &str, default_port: u16, url: &str) -> Result<HostPort, TargetError> {
        let (host, port) = split_port(authority)?;
        let port = match port {
            None => default_port,
            Some(text) => parse_port(text)?,
        };
        Ok(HostPort { host: parse_host(host, url)?, port })
    }

    /// Whether both have the same host.
    pub(crate) fn same_host(&self, other: &HostPort) -> bool {
        self.host == other.host
    }

    /// The host's name or address, an IPv6 address in brackets.
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the resolver has to be asked for its addresses, which may take it half a minute.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self.host, Host::Name(_))
    }

    /// The addresses of the host, in the resolver's order, at least one. Asks the resolver for names.
    ///
    /// # Errors
    /// [`TargetError::Unresolved`].
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, TargetError> {
        let name = match &self.host {
            Host::Address(address) => return Ok(vec![SocketAddr::new(*address, self.port)]),
            Host::Name(name) => name,
        };
        let unresolved = |why: String| TargetError::Unresolved { host: name.clone(), why };
        let found: Vec<_> =
            (name.as_str(), self.port).to_socket_addrs().map_err(|e| unresolved(e.to_string()))?.collect();
        if found.is_empty() { Err(unresolved("no address".to_owned())) } else { Ok(found) }
    }
}

impl FromStr for HostPort {
    type Err = TargetError;

    /// Takes `HOST:PORT` apart.
    fn from_str(text: &str) -> Result<HostPort, TargetError> {
        let incomplete = || TargetError::NotHostPort { given: text.to_owned() };
        let (host, port) = split_port(text)?;
        let port = port.ok_or_else(incomplete)?;
        if host.is_empty() || host == "[]" {
            return Err(incomplete());
        }
        Ok(HostPort { host: parse_host(host, text)?, port: parse_port(port)? })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

/// Host and port of an authority; the colons of an IPv6 address stand in brackets.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), TargetError> {
    if !authority.starts_with('[') {
        return Ok(authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))));
    }
    let bad_host = || TargetError::BadHost { host: authority.to_owned() };
    let (inside, after) = authority.split_once(']').ok_or_else(bad_host)?;
    let host = &authority[..inside.len() + 1];
    match after.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if after.is_empty() => Ok((host, None)),
        None => Err(bad_host()),
    }
}

fn parse_port(text: &str) -> Result<u16, TargetError> {
    let bad_port = || TargetError::BadPort { port: text.to_owned() };
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad_port());
    }
    text.parse().ok().filter(|&port| port != 0).ok_or_else(bad_port)
}

fn parse_host(host: &str, url: &str) -> Result<Host, TargetError> {
    let bad_host = || TargetError::BadHost { host: host.to_owned() };
    if host.is_empty() || host == "[]" {
        return Err(TargetError::NoHost { url: url.to_owned() });
    }
    if let Some(inside) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inside.parse::<Ipv6Addr>().map(|v6| Host::Address(v6.into())).map_err(|_| bad_host());
    }
    if let Ok(v4) = host.parse() {
        return Ok(Host::Address(IpAddr::V4(v4)));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.len() > 253 || !host.bytes().all(plain) {
        return Err(bad_host());
    }
    Ok(Host::Name(host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_connect_to_has_a_port() {
        for text in ["127.0.0.1:80", "[::1]:443", "a-b.c:65535"] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
        for (text, word) in [
            ("localhost", "not a host and a port"),
            ("[::1]", "not a host and a port"),
            ("::1", "not a host and a port"),
            (":80", "not a host and a port"),
            ("", "not a host and a port"),
            ("h:0", "not a port"),
            ("h:80/x", "not a port"),
            ("http://h:80", "not a port"),
            ("a b:80", "not a host name"),
        ] {
            let error = text.parse::<HostPort>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
