//! How requests fail, and in a few words why: of a fixed number, so that each can be counted.

use rustls::AlertDescription;
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
            io::ErrorKind::InvalidData => return Fault { kind: ErrorKind::Tls, why: tls_words(error) },
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
            io::ErrorKind::InvalidData => return Some(Fault { kind: ErrorKind::Tls, why: tls_words(error) }),
            io::ErrorKind::Unsupported => return Some(Fault::malformed("another protocol than HTTP/2")),
            io::ErrorKind::ConnectionRefused => "refused",
            io::ErrorKind::ConnectionReset => RESET,
            io::ErrorKind::TimedOut => "not answered in time",
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                "closed before it could be used"
            }
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "unreachable",
            _ => "",
        };
        Some(Fault { kind: ErrorKind::Connect, why })
    }
}

/// What broke TLS, as far as its error says; a server's reason is its alert.
fn tls_words(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::AlertReceived(alert)) => alert_words(*alert),
        Some(rustls::Error::InvalidCertificate(_)) => "the server's certificate is not trusted",
        Some(rustls::Error::PeerIncompatible(_)) => "no version or cipher in common",
        Some(
            rustls::Error::InvalidMessage(_)
            | rustls::Error::InappropriateMessage { .. }
            | rustls::Error::InappropriateHandshakeMessage { .. }
            | rustls::Error::PeerMisbehaved(_),
        ) => "rules of TLS were broken",
        _ => "",
    }
}

/// The server's reason.
fn alert_words(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired => "the server wants a client certificate",
        AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA => "the server does not trust the client certificate",
        AlertDescription::AccessDenied => "the server denied access",
        AlertDescription::HandshakeFailure => "the server refused the handshake",
        AlertDescription::ProtocolVersion => "the server wants another version of TLS",
        AlertDescription::UnrecognisedName => "the server has no such name",
        AlertDescription::NoApplicationProtocol => "the server wants another protocol (ALPN)",
        AlertDescription::InternalError => "the server had an internal error",
        _ => "the server sent an alert",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_the_reason() {
        let of = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let wanted = of(rustls::Error::AlertReceived(AlertDescription::CertificateRequired));
        for fault in [Fault::broken(&wanted), Fault::unopened(&wanted).unwrap()] {
            assert_eq!(fault.to_string(), "tls: the server wants a client certificate");
        }
        let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "in the handshake");
        assert_eq!(Fault::unopened(&ended).unwrap().to_string(), "connect: closed before it could be used");
        let other = of(rustls::Error::AlertReceived(AlertDescription::DecodeError));
        assert_eq!(Fault::broken(&other).why, "the server sent an alert");
    }
}
