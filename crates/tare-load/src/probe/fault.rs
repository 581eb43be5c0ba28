//! Why a probe got no answer.

use std::io;
use thiserror::Error;

/// Longest piece of what a server says that is kept, in characters.
const SAID_CHARS_MAX: usize = 160;

/// Why a probe got no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProbeFault {
    /// Not within the time limit.
    #[error("no answer within the time limit")]
    TimedOut,
    /// The connection could not be opened.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server closed the connection before its answer was whole.
    #[error("the server closed the connection")]
    Closed,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(String),
    /// What came is not the protocol.
    #[error("the answer is not {protocol}: {what}")]
    Protocol {
        /// Which protocol.
        protocol: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The server answered with an error.
    #[error("the server answered: {0}")]
    Refused(String),
    /// A way to log in that is not spoken here.
    #[error("the server asks for the login method {0}, which is not supported")]
    Login(String),
    /// The command did not succeed.
    #[error("the command failed: {0}")]
    Command(String),
}

impl ProbeFault {
    /// The answer breaks the rules of the protocol.
    pub(super) fn malformed(protocol: &'static str, what: impl Into<String>) -> ProbeFault {
        ProbeFault::Protocol { protocol, what: what.into() }
    }

    /// What the server said, cut and without what moves a cursor.
    pub(super) fn said(bytes: &[u8]) -> ProbeFault {
        ProbeFault::Refused(printable(bytes))
    }

    /// What to do about it, where a probe of this kind meets it the first time.
    pub fn hint(&self, scheme: &str) -> String {
        match self {
            ProbeFault::TimedOut => {
                "is it the right port, and does a firewall drop what goes there? --timeout lengthens the limit".into()
            }
            ProbeFault::Connect(_) => "is the server running, and does it listen on this address and port?".into(),
            ProbeFault::Closed | ProbeFault::Io(_) | ProbeFault::Protocol { .. } => format!(
                "is it a {scheme} server? One that speaks TLS alone can be probed by a command: --probe 'NAME=command:…'"
            ),
            ProbeFault::Refused(said) if said.contains("pg_hba") || said.contains("ncryption") => {
                "the server wants TLS: probe it by a command, --probe 'NAME=command:psql …'".into()
            }
            ProbeFault::Refused(_) => login_hint(scheme),
            ProbeFault::Login(_) => format!(
                "use a user with another login method, or a command: --probe 'NAME=command:…'. {}",
                login_hint(scheme)
            ),
            ProbeFault::Command(_) => "run the command by hand: it must end with exit status 0".into(),
        }
    }
}

fn login_hint(scheme: &str) -> String {
    let variable = match scheme {
        "redis" => "REDISCLI_AUTH",
        "mysql" | "mariadb" => "MYSQL_PWD",
        "postgres" | "postgresql" => "PGPASSWORD",
        _ => return "choose a path that the server answers with a status below 400".into(),
    };
    format!(
        "user and password stand in the URL ({scheme}://USER:PASSWORD@HOST), or the password in {variable}"
    )
}

/// What a server or a program said, cut and without what moves a cursor.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = text.trim().chars().map(|char| if char.is_control() { ' ' } else { char });
    plain.take(SAID_CHARS_MAX).collect()
}

impl From<io::Error> for ProbeFault {
    fn from(error: io::Error) -> ProbeFault {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock,
        };
        match error.kind() {
            TimedOut | WouldBlock => ProbeFault::TimedOut,
            UnexpectedEof | ConnectionReset | BrokenPipe | ConnectionAborted => ProbeFault::Closed,
            _ => ProbeFault::Io(error.to_string()),
        }
    }
}
