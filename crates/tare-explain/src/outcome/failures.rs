//! What most failures of a load were, in words.

use std::collections::BTreeMap;
use tare_model::trial::{ErrorKind, RESET, Reasons};

/// The kind that most attempts failed by.
pub(super) struct Mostly {
    kind: ErrorKind,
    count: u64,
    /// Why most of these did.
    why: Option<String>,
}

/// `None` where nothing failed.
pub(super) fn mostly(errors: &BTreeMap<ErrorKind, u64>, reasons: &Reasons) -> Option<Mostly> {
    let (kind, count) = errors.iter().filter(|(_, count)| **count > 0).max_by_key(|(_, count)| **count)?;
    let why = reasons.get(kind).and_then(|of_kind| of_kind.iter().max_by_key(|(_, count)| **count));
    Some(Mostly { kind: *kind, count: *count, why: why.map(|(why, _)| why.clone()) })
}

impl Mostly {
    fn is_reset(&self) -> bool {
        self.kind == ErrorKind::Io && self.why.as_deref() == Some(RESET)
    }

    /// How many, and what they were.
    pub(super) fn text(&self) -> String {
        let Mostly { kind, count, why } = self;
        match why {
            Some(_) if self.is_reset() => format!("{count} connections were reset by the server"),
            Some(why) => format!("{count} {} (most: {why})", what_failed(*kind)),
            None => format!("{count} {}", what_failed(*kind)),
        }
    }

    /// What to do where nothing was answered.
    pub(super) fn hint(&self) -> &'static str {
        match self.kind {
            ErrorKind::Io if self.is_reset() => {
                "ask for the URL by hand, and see the server's log: it takes connections and resets them (another protocol, as https, or a limit)"
            }
            ErrorKind::Tls => {
                "is this the port for https? a server that wants a client certificate gets it by --client-cert and --client-key"
            }
            ErrorKind::BodyFile => "leave the file of the body as it is while the load runs",
            _ => NO_REQUESTS_HINT,
        }
    }
}

pub(super) const NO_REQUESTS_HINT: &str = "ask for the URL by hand; is the server up and the path right?";

/// The text of a load without an answer.
pub(super) fn no_requests_text(mostly: Option<&Mostly>) -> String {
    match mostly {
        None => "no request was answered".to_owned(),
        Some(mostly) => format!("no request was answered: {}", mostly.text()),
    }
}

/// The text of a load of which too much failed.
pub(super) fn errors_text(share: f64, mostly: Option<&Mostly>) -> String {
    let most = mostly.map_or_else(String::new, |mostly| format!(": {}", mostly.text()));
    format!("{:.2} % of the attempts failed{most}", 100.0 * share)
}

/// The end of a sentence that begins with how many.
fn what_failed(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "connections could not be opened",
        ErrorKind::PortsExhausted => "connections found no local port",
        ErrorKind::Io => "connections were reset or closed before an answer was whole",
        ErrorKind::Timeout => "requests had no answer in the allowed time",
        ErrorKind::Malformed => "answers broke the rules of HTTP",
        ErrorKind::Tls => "TLS handshakes or connections failed",
        ErrorKind::Status => "answers had a status of 400 or above",
        ErrorKind::Unexpected => "answers were not what was expected",
        ErrorKind::StreamReset | ErrorKind::StreamRefused => "streams were ended by the server",
        ErrorKind::GoAway => "connections were ended by the server (GOAWAY)",
        ErrorKind::BodyFile => {
            "uploads ended because the file of their body became shorter or could not be read"
        }
    }
}
