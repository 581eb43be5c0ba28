//! How requests fail, and in a few words why: of a fixed number, so that each can be counted.

use std::fmt::{self, Display, Formatter};
use std::io;
use tare_http::response::Malformed;
use tare_model::trial::{ErrorKind, RESET};

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    /// Empty where the kind says all that is known.
    pub(crate) why: &'static str,
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.why {
            "" => f.write_str(self.kind.name()),
            why => write!(f, "{}: {why}", self.kind.name()),
        }
    }
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Fault {
        Fault { kind, why: "" }
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault::malformed(malformed.rule())
    }
}

impl Fault {
    pub(crate) fn malformed(why: &'static str) -> Fault {
        Fault { kind: ErrorKind::Malformed, why }
    }

    /// The file of a body ended early or could not be read.
    pub(crate) fn body_file() -> Fault {
        ErrorKind::BodyFile.into()
    }

    /// The file of requests has no next one, or it could not be read.
    pub(crate) fn request_file() -> Fault {
        Fault {
            kind: ErrorKind::BodyFile,
            why: "the file of requests became empty, or has a line that is none",
        }
    }

    /// An open connection ended without an error, though an answer was to come.
    pub(crate) fn closed(in_answer: bool) -> Fault {
        let why = if in_answer { "closed in the middle of an answer" } else { "closed without an answer" };
        Fault { kind: ErrorKind::Io, why }
    }

    /// An open connection broke.
    pub(crate) fn broken(error: &io::Error) -> Fault {
        let why = match error.kind() {
            io::ErrorKind::InvalidData => return ErrorKind::Tls.into(),
            io::ErrorKind::ConnectionReset => RESET,
            io::ErrorKind::BrokenPipe => "closed while the request was sent",
            io::ErrorKind::TimedOut => "nothing was acknowledged",
            _ => "connection broke",
        };
        Fault { kind: ErrorKind::Io, why }
    }

    /// A connection could not be opened. `None`: a Unix socket's queue is full, which is no failure.
    pub(crate) fn unopened(error: &io::Error) -> Option<Fault> {
        let why = match error.kind() {
            io::ErrorKind::WouldBlock => return None,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => {
                return Some(ErrorKind::PortsExhausted.into());
            }
            io::ErrorKind::InvalidData => return Some(ErrorKind::Tls.into()),
            io::ErrorKind::Unsupported => return Some(Fault::malformed("another protocol than HTTP/2")),
            io::ErrorKind::ConnectionRefused => "refused",
            io::ErrorKind::ConnectionReset => RESET,
            io::ErrorKind::TimedOut => "not answered in time",
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
            _ => "",
        };
        Some(Fault { kind: ErrorKind::Connect, why })
    }
}
