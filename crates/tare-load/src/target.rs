//! Where the load goes: an `http://` or `https://` URL, taken apart.

use crate::host_port::{HostPort, TargetError, URL_BYTES_MAX};
use std::fmt;

/// Where the load goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    tls: bool,
    at: HostPort,
    path: String,
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
        let at = HostPort::of_url(authority, default_port(tls), url)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Target { tls, at, path })
    }

    /// Whether both are on the same scheme, host and port.
    pub fn same_place(&self, other: &Target) -> bool {
        (self.tls, &self.at) == (other.tls, &other.at)
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
        self.at.host()
    }

    /// Host and port.
    pub fn at(&self) -> &HostPort {
        &self.at
    }

    /// The port, 80 (`https`: 443) when the URL has none.
    pub fn port(&self) -> u16 {
        self.at.port()
    }

    /// Path and query, as they stand in the request line.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the `Host` header: no port when it is the scheme's own.
    pub fn authority(&self) -> String {
        if self.port() == default_port(self.tls) { self.host() } else { self.at.to_string() }
    }

    /// The same place with another path, which begins with `/`.
    #[must_use]
    pub(crate) fn with_path(&self, change: impl FnOnce(&str) -> String) -> Target {
        Target { path: change(&self.path), ..self.clone() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
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
        let resolve = |url| Target::parse(url).unwrap().at().resolve().unwrap();
        let address = resolve("http://127.0.0.1:81/");
        assert_eq!(address, ["127.0.0.1:81".parse().unwrap()]);
        assert!(resolve("http://localhost:81/").iter().all(|address| address.port() == 81));
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
