//! Where a probe goes, as it is written.

use super::fault::ProbeFault;
use super::login::Login;
use crate::host_port::{HostPort, TargetError};
use crate::target::Target;
use std::fmt;
use tare_model::probing::ProbeKind;
use thiserror::Error;

/// Longest text of a target, in bytes.
const BYTES_MAX: usize = 8000;

/// A protocol that probes speak, by the schemes of its URLs.
struct Protocol {
    schemes: &'static [&'static str],
    kind: ProbeKind,
    port: Option<u16>,
    /// The variable in which its own tools look for a password.
    password_variable: Option<&'static str>,
}

const PROTOCOLS: &[Protocol] = &[
    Protocol { schemes: &["tcp"], kind: ProbeKind::Tcp, port: None, password_variable: None },
    Protocol {
        schemes: &["redis"],
        kind: ProbeKind::Redis,
        port: Some(6379),
        password_variable: Some("REDISCLI_AUTH"),
    },
    Protocol {
        schemes: &["mysql", "mariadb"],
        kind: ProbeKind::Mysql,
        port: Some(3306),
        password_variable: Some("MYSQL_PWD"),
    },
    Protocol {
        schemes: &["postgres", "postgresql"],
        kind: ProbeKind::Postgres,
        port: Some(5432),
        password_variable: Some("PGPASSWORD"),
    },
];

/// All schemes, for messages.
const SCHEMES: &str = "http://, https://, tcp://, redis://, mysql://, postgres:// or command:";

/// A text that is no target of a probe.
#[derive(Debug, Error)]
pub enum ProbeTargetError {
    /// Another scheme, or none.
    #[error("'{0}' is nothing that can be probed (hint: it begins with {SCHEMES})")]
    Scheme(String),
    /// The host or the port.
    #[error("{0}")]
    Place(#[from] TargetError),
    /// A port is needed.
    #[error("'{0}' has no port (hint: write tcp://HOST:PORT)")]
    NoPort(String),
    /// The command cannot be taken apart, or is empty.
    #[error("'{0}' is no command line (hint: write command:psql -c \"select 1\", quotes closed)")]
    Command(String),
    /// An `@` stands behind a `?` or `#`, and both a host before it and one behind it could be meant.
    #[error(
        "it is not clear where the host stands (hint: write ? as %3F, # as %23 and @ as %40 in a password, and @ as %40 behind the ?)"
    )]
    TwoHosts,
    /// What stands before the `@` is not text.
    #[error("user, password or database: {0} (hint: percent-encode them as UTF-8, without zero bytes)")]
    Login(&'static str),
    /// Longer than anybody writes.
    #[error("a target of more than {BYTES_MAX} bytes")]
    TooLong,
}

/// Where a probe goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    pub(super) way: Way,
    scheme: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    Http(Target),
    Tcp(HostPort),
    Database { kind: ProbeKind, at: HostPort, login: Login },
    Command(Vec<String>),
}

impl ProbeTarget {
    /// Takes it apart. `variable` gives the variables of the environment, in which passwords may stand.
    ///
    /// # Errors
    /// [`ProbeTargetError`], each with what to write instead.
    pub fn parse(
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ProbeTarget, ProbeTargetError> {
        if text.len() > BYTES_MAX {
            return Err(ProbeTargetError::TooLong);
        }
        if let Some(line) = text.strip_prefix("command:") {
            let bad = || ProbeTargetError::Command(line.to_owned());
            let words = shell_words::split(line).map_err(|_| bad())?;
            let is_there = words.first().is_some_and(|program| !program.is_empty());
            return match is_there {
                true => Ok(ProbeTarget { way: Way::Command(words), scheme: "command".into() }),
                false => Err(bad()),
            };
        }
        let unknown = || ProbeTargetError::Scheme(text.split('@').next_back().unwrap_or_default().to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "http" || scheme == "https" {
            return Ok(ProbeTarget { way: Way::Http(Target::parse(text)?), scheme });
        }
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.schemes.contains(&scheme.as_str()));
        let protocol = protocol.ok_or_else(unknown)?;
        let way = of_database(protocol, rest, variable)?;
        Ok(ProbeTarget { way, scheme })
    }

    /// What it speaks.
    pub fn kind(&self) -> ProbeKind {
        match &self.way {
            Way::Http(_) => ProbeKind::Http,
            Way::Tcp(_) => ProbeKind::Tcp,
            Way::Database { kind, .. } => *kind,
            Way::Command(_) => ProbeKind::Command,
        }
    }

    /// Where connections go; `None`: a command.
    pub fn at(&self) -> Option<&HostPort> {
        match &self.way {
            Way::Http(target) => Some(target.at()),
            Way::Tcp(at) | Way::Database { at, .. } => Some(at),
            Way::Command(_) => None,
        }
    }

    /// What to do about a fault of the first request.
    pub fn hint(&self, fault: &ProbeFault) -> String {
        fault.hint(&self.scheme)
    }
}

/// As it was written, without a password.
impl fmt::Display for ProbeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            Way::Http(target) => target.fmt(f),
            Way::Tcp(at) => write!(f, "tcp://{at}"),
            Way::Database { at, login, .. } => {
                write!(f, "{}://", self.scheme)?;
                if let Some(user) = &login.user {
                    write!(f, "{user}@")?;
                }
                write!(f, "{at}")?;
                login.database.as_ref().map_or(Ok(()), |database| write!(f, "/{database}"))
            }
            Way::Command(words) => write!(f, "command:{}", shell_words::join(words)),
        }
    }
}

fn of_database(
    protocol: &Protocol,
    rest: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Way, ProbeTargetError> {
    let rest = without_query(rest)?;
    let (authority, path) = match rest.rsplit_once('@') {
        // A password may hold a slash.
        Some((login, place)) => {
            let (at, path) = place.split_once('/').unwrap_or((place, ""));
            ((Some(login), at), path)
        }
        None => {
            let (at, path) = rest.split_once('/').unwrap_or((rest, ""));
            ((None, at), path)
        }
    };
    let (login, at) = authority;
    if protocol.port.is_none() && !at.rsplit(']').next().unwrap_or(at).contains(':') {
        return Err(ProbeTargetError::NoPort(at.to_owned()));
    }
    let at = HostPort::of_url(at, protocol.port.unwrap_or_default(), at)?;
    if protocol.kind == ProbeKind::Tcp {
        return Ok(Way::Tcp(at));
    }
    let text = |text: &str| Some(text).filter(|text| !text.is_empty()).map(decoded).transpose();
    let (user, password) = login.map_or(("", None), |login| match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    });
    let from_variable =
        || protocol.password_variable.and_then(&variable).filter(|password| !password.is_empty());
    let password = match password {
        Some(password) => text(password)?,
        None => from_variable(),
    };
    let login = Login { user: text(user)?, password, database: text(path)? };
    Ok(Way::Database { kind: protocol.kind, at, login })
}

/// What stands before the query. A password may hold a `?` or `#`, as it may hold a slash: what stands before that is then no place that could be
/// connected to.
fn without_query(rest: &str) -> Result<&str, ProbeTargetError> {
    let Some((head, tail)) = rest.split_once(['?', '#']) else { return Ok(rest) };
    let Some((_, behind)) = tail.rsplit_once('@') else { return Ok(head) };
    let place = head.rsplit_once('@').map_or(head, |(_, place)| place);
    let place = place.split_once('/').map_or(place, |(at, _)| at);
    if HostPort::of_url(place, 1, place).is_ok() {
        return Err(ProbeTargetError::TwoHosts);
    }
    // All of the login, and the place without its query.
    let place = behind.split(['?', '#']).next().unwrap_or_default();
    Ok(&rest[..rest.len() - behind.len() + place.len()])
}

/// Percent-decoded.
fn decoded(text: &str) -> Result<String, ProbeTargetError> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        bytes.push(match byte {
            b'%' => {
                let pair = digit(rest.next()).zip(digit(rest.next()));
                let (high, low) =
                    pair.ok_or(ProbeTargetError::Login("a % without two hexadecimal digits"))?;
                (16 * high + low) as u8
            }
            other => other,
        });
    }
    if bytes.contains(&0) {
        return Err(ProbeTargetError::Login("a zero byte"));
    }
    String::from_utf8(bytes).map_err(|_| ProbeTargetError::Login("not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<ProbeTarget, ProbeTargetError> {
        ProbeTarget::parse(text, |name| (name == "PGPASSWORD").then(|| "from there".to_owned()))
    }

    #[test]
    fn targets_are_taken_apart_and_shown_without_a_password() {
        for (text, shown, kind) in [
            ("http://h:8080/ping?x=1", "http://h:8080/ping?x=1", ProbeKind::Http),
            ("https://h", "https://h/", ProbeKind::Http),
            ("tcp://[::1]:9", "tcp://[::1]:9", ProbeKind::Tcp),
            ("redis://h", "redis://h:6379", ProbeKind::Redis),
            ("redis://:secret@h:1", "redis://h:1", ProbeKind::Redis),
            ("MariaDB://me:s%40/x@h", "mariadb://me@h:3306", ProbeKind::Mysql),
            ("postgres://me@h/db?sslmode=disable", "postgres://me@h:5432/db", ProbeKind::Postgres),
            ("command:psql -c 'select 1'", "command:psql -c 'select 1'", ProbeKind::Command),
        ] {
            let target = parse(text).unwrap();
            assert_eq!((target.to_string().as_str(), target.kind()), (shown, kind));
            assert!(!format!("{target:?}").contains("secret"));
        }
        let password = |text: &str| match parse(text).unwrap().way {
            Way::Database { login, .. } => login.password,
            _ => None,
        };
        assert_eq!(password("mysql://me:s%40/x@h").as_deref(), Some("s@/x"));
        assert_eq!(password("mysql://me:@h"), None);
        // Characters that begin a query elsewhere.
        assert_eq!(password("postgres://me:s?cr#t@h/db?sslmode=disable").as_deref(), Some("s?cr#t"));
        assert_eq!(password("redis://:12?3@h:1").as_deref(), Some("12?3"));
        assert_eq!(parse("postgres://me:s?cr#t@h/db?a=b#c").unwrap().to_string(), "postgres://me@h:5432/db");
        assert_eq!(password("postgres://me@h").as_deref(), Some("from there"));
    }

    #[test]
    fn what_is_wrong_has_a_hint() {
        for text in [
            "",
            "h:80",
            "ftp://x",
            "tcp://h",
            "tcp://[::1]",
            "command:",
            "command:'",
            "redis://",
            "mysql://%zz@h",
            "postgres://%00@h",
            // A password with a '?', or a query with an '@'.
            "postgres://me:12?3@h",
            "postgres://me@h/db?name=a@b",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("hint: "), "{text}: {error}");
        }
        assert!(!parse("psql:me:secret@h").unwrap_err().to_string().contains("secret"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_target_or_an_error(scheme in "(redis|mysql|postgres|tcp|command|http)", rest in ".*") {
            let _ = parse(&format!("{scheme}://{rest}"));
            let _ = parse(&format!("{scheme}:{rest}"));
        }
    }
}
