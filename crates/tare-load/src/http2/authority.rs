//! Names that HTTP/2 asks hosts for by.

use http::uri::Authority;

/// Whether a host can be asked for by this name.
pub(crate) fn is_authority(host: &str) -> bool {
    host.parse::<Authority>().is_ok()
}

#[test]
fn names_are_those_of_hosts() {
    assert!(is_authority("h:80") && is_authority("[::1]") && !is_authority("a b"));
}
