//! Whether an answer leads elsewhere, and where.

use crate::error::LoadError;
use crate::location;
use crate::spec::LoadSpec;
use crate::target::Target;
use std::borrow::Cow;
use tare_http::response::{Listener, header};

/// Most redirects that are followed one after the other.
pub(super) const REDIRECTS_MAX: u32 = 10;

/// The `Location` of an answer.
#[derive(Debug, Default)]
pub(super) struct Location(Option<Vec<u8>>);

impl Listener for Location {
    fn head(&mut self, head: &[u8]) {
        self.0 = header(head, "location").map(Cow::into_owned);
    }

    fn body(&mut self, _: &[u8]) {}
}

impl Listener for &mut Location {
    fn head(&mut self, head: &[u8]) {
        Location::head(self, head);
    }

    fn body(&mut self, _: &[u8]) {}
}

impl Location {
    /// Where an answer with this status leads; `None` where it is the answer that was asked for.
    ///
    /// # Errors
    /// [`LoadError::Redirect`]: somewhere that the load may not go.
    pub(super) fn leads(&self, spec: &LoadSpec, status: u16) -> Result<Option<Target>, LoadError> {
        let Some(location) = self.0.as_ref().filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308)) else {
            return Ok(None);
        };
        let (route, from) = (&spec.route, &spec.route.target);
        let refused = |why: &str| LoadError::Redirect {
            from: from.to_string(),
            to: String::from_utf8_lossy(location).trim().to_owned(),
            why: why.to_owned(),
        };
        let to = location::resolve(from, location).map_err(|why| refused(&why.to_string()))?;
        // Load goes nowhere that the user has not named.
        if !to.at().same_host(from.at()) {
            return Err(refused("redirect to another server (hint: to load that one, give its URL)"));
        }
        if from.is_tls() && !to.is_tls() {
            return Err(refused("from https to http (hint: to load that one, give its URL)"));
        }
        let fixed = route.unix_socket.is_some() || route.connect_to.is_some();
        if fixed && !to.same_place(from) {
            return Err(refused(
                "another port than that of --unix or --connect-to (hint: give this URL, with where to connect for it)",
            ));
        }
        let method = spec.content.method.as_str();
        // Of others than 303, POST alone is changed (RFC 9110, 15.4.2 and 15.4.3).
        let changes = match status {
            303 => !matches!(method, "GET" | "HEAD"),
            301 | 302 => method == "POST",
            _ => false,
        };
        if changes {
            return Err(refused(&format!(
                "after {status} a {method} goes on as GET (hint: load either URL by itself)"
            )));
        }
        Ok(Some(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn post_alone_is_changed_by_a_redirect_that_is_no_303() {
        for (method, status, goes_on) in [
            ("PUT", 301, true),
            ("DELETE", 302, true),
            ("OPTIONS", 302, true),
            ("PATCH", 303, false),
            ("POST", 301, false),
            ("POST", 308, true),
            ("HEAD", 303, true),
        ] {
            let mut spec = LoadSpec::new(Target::parse("http://h/a").unwrap());
            spec.content.method = method.to_owned();
            let led = Location(Some(b"/b".to_vec())).leads(&spec, status);
            assert_eq!(led.is_ok(), goes_on, "{method} {status}: {led:?}");
        }
    }

    #[test]
    fn nobody_is_led_out_of_tls_or_to_another_server() {
        let leads = |from: &str, location: &str| {
            let spec = LoadSpec::new(Target::parse(from).unwrap());
            let led = Location(Some(location.as_bytes().to_vec())).leads(&spec, 302);
            led.map(|to| to.map(|to| to.to_string())).map_err(|error| error.to_string())
        };
        assert_eq!(leads("http://h/a", "https://h/b"), Ok(Some("https://h/b".to_owned())));
        assert_eq!(leads("https://h/a", "/b"), Ok(Some("https://h/b".to_owned())));
        for (location, word) in [("http://h/b", "from https to http"), ("https://other/", "another server")] {
            let why = leads("https://h/a", location).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
