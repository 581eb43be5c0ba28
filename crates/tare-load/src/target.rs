//! Where the load goes: an `http://` or `https://` URL, taken apart.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// Longest URL that is taken, in bytes: what common servers accept as a request line.
const URL_BYTES_MAX: usize = 8000;

/// A URL that no load can be sent to, or a name that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing like `http://` at the start.
    #[error("`{url}` is not a URL (hint: write http://HOST[:PORT]/PATH)")]
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

/// Where the load goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    tls: bool,
    host: Host,
    port: u16,
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

impl Target {
    /// Takes `http[s]://host[:port][/path][?query]` apart; a `#fragment` is dropped, as it is never sent.
    /// Touches no network.
    ///
    /// # Errors
    /// [`TargetError`], each with what to write instead.
    pub fn parse(url: &str) -> Result<Target, TargetError> {
        if url.len() > URL_BYTES_MAX {
            return Err(TargetError::TooLong);
        }
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| TargetError::NoScheme { url: url.to_owned() })?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(TargetError::UnknownScheme { scheme: scheme.to_owned() }),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(TargetError::Credentials);
        }
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::BadPath);
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None => default_port(tls),
            Some(text) => parse_port(text)?,
        };
        let host = parse_host(host, url)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Target { tls, host, port, path })
    }

    /// Whether both are on the same scheme, host and port.
    pub fn same_place(&self, other: &Target) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// This path on the scheme, host and port of `place`.
    #[must_use]
    pub fn moved_to(&self, place: &Target) -> Target {
        Target { path: self.path.clone(), ..place.clone() }
    }

    /// Whether it is `https`.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host's name or address, an IPv6 address in brackets.
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// The port, 80 (`https`: 443) when the URL has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, as they stand in the request line.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the `Host` header: no port when it is the scheme's own.
    pub fn authority(&self) -> String {
        if self.port == default_port(self.tls) {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
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

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)
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

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
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
    use proptest::prelude::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, authority, port, path) in [
            ("http://127.0.0.1:8080/", "127.0.0.1:8080", 8080, "/"),
            ("HTTP://Example.org", "example.org", 80, "/"),
            ("http://[::1]:80/a/b?c=d/e#f", "[::1]", 80, "/a/b?c=d/e"),
            ("http://[2001:DB8::1]:81?x", "[2001:db8::1]:81", 81, "/?x"),
            ("https://h/x", "h", 443, "/x"),
            ("https://h:80/", "h:80", 80, "/"),
            ("http://a-b.c_d:1?q=1", "a-b.c_d:1", 1, "/?q=1"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!((target.authority().as_str(), target.port(), target.path()), (authority, port, path));
            assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
        }
    }

    #[test]
    fn each_mistake_has_its_own_word() {
        let error = |url: &str| Target::parse(url).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                "",
                "127.0.0.1:8080",
                "https:/x/",
                "ftp://x/",
                "://x",
                "http://",
                "http:///path",
                "http://:80/",
                "http://[]/",
                "http://x:0/",
                "http://x:65536/",
                "http://x:/",
                "http://x:+1/",
                "http://x:8o/",
                "http://a b/",
                "http://::1/",
                "http://[::1/",
                "http://[::1]x/",
                "http://[zz]/",
                "http://u:p@x/",
                "http://x/a b",
                "http://x/é",
            ]
            .map(|url| format!("{url:?}: {}", error(url)))
            .join("\n")
        );
        assert_eq!(Target::parse(&format!("http://x/{}", "y".repeat(9000))), Err(TargetError::TooLong));
    }

    #[test]
    fn names_are_resolved_addresses_are_not_asked_for() {
        let address = Target::parse("http://127.0.0.1:81/").unwrap().resolve().unwrap();
        assert_eq!(address, ["127.0.0.1:81".parse().unwrap()]);
        assert!(
            Target::parse("http://localhost:81/").unwrap().resolve().unwrap().iter().all(|a| a.port() == 81)
        );
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,40}", scheme in prop_oneof![Just(""), Just("http://"), Just("http://[")]) {
            if let Ok(target) = Target::parse(&format!("{scheme}{text}")) {
                prop_assert_eq!(Target::parse(&target.to_string()), Ok(target));
            }
        }
    }
}
