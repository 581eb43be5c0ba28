//! What the HTTP clients of Go and Rust say went wrong, as kinds.

use tare_model::trial::ErrorKind;

/// The kind of an error that is given in words.
pub(super) fn kind_of(error: &str) -> ErrorKind {
    let error = error.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if has(&["deadline exceeded", "timeout", "timed out", "deadlineexceeded"]) {
        ErrorKind::Timeout
    } else if has(&["assign requested address"]) {
        ErrorKind::PortsExhausted
    } else if has(&["tls:", "x509:", "certificate"]) {
        ErrorKind::Tls
    } else if has(&["connection refused", "connectionrefused", "dial tcp", "no such host", "lookup "]) {
        ErrorKind::Connect
    } else if has(&["malformed"]) {
        ErrorKind::Malformed
    } else {
        ErrorKind::Io
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_their_words() {
        for (error, kind) in [
            ("Get \"http://x/\": dial tcp 127.0.0.1:1: connect: connection refused", ErrorKind::Connect),
            ("Get \"http://x/\": context deadline exceeded (Client.Timeout exceeded)", ErrorKind::Timeout),
            ("dial tcp 127.0.0.1:1: connect: cannot assign requested address", ErrorKind::PortsExhausted),
            ("dial tcp 127.0.0.1:1: i/o timeout", ErrorKind::Timeout),
            ("unexpected EOF", ErrorKind::Io),
        ] {
            assert_eq!(kind_of(error), kind, "{error}");
        }
    }
}
