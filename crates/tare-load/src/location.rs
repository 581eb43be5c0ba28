//! Where a redirect leads: a reference against the URL that was asked for (RFC 3986, section 5.2).

use crate::host_port::TargetError;
use crate::target::Target;

/// The target that `location` names, seen from `base`. What no URL may have is percent-encoded, as browsers do.
pub(crate) fn resolve(base: &Target, location: &[u8]) -> Result<Target, TargetError> {
    let location: String = location.trim_ascii().iter().map(|byte| encoded(*byte)).collect();
    let location = location.split('#').next().unwrap_or_default();
    let scheme = if base.is_tls() { "https" } else { "http" };
    let (base_path, _) = base.path().split_once('?').unwrap_or((base.path(), ""));
    let url = if has_scheme(location) {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else {
        let path = match location.as_bytes().first() {
            None => base.path().to_owned(),
            Some(b'/') => location.to_owned(),
            Some(b'?') => format!("{base_path}{location}"),
            Some(_) => format!("{}{location}", &base_path[..=base_path.rfind('/').unwrap_or(0)]),
        };
        format!("{scheme}://{}{path}", base.authority())
    };
    Ok(Target::parse(&url)?.with_path(without_dots))
}

fn encoded(byte: u8) -> String {
    if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// A path without `.` and `..`; its query as it is.
fn without_dots(path: &str) -> String {
    let (path, query) = match path.find('?') {
        Some(at) => path.split_at(at),
        None => (path, ""),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => {
                kept.push(segment);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn from(base: &str, location: &str) -> String {
        let target = resolve(&Target::parse(base).unwrap(), location.as_bytes());
        target.map_or_else(|error| error.to_string(), |target| target.to_string())
    }

    /// The examples of RFC 3986, section 5.4, that lead somewhere by HTTP.
    #[test]
    fn references_are_resolved_as_the_standard_has_it() {
        for (location, url) in [
            ("http://g", "http://g/"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ] {
            assert_eq!(from("http://a/b/c/d;p?q", location), url, "{location}");
        }
    }

    #[test]
    fn what_servers_send_besides() {
        for (location, url) in [
            ("HTTPS://H:443/x", "https://h/x"),
            ("  /ä b ", "https://h:81/%C3%A4%20b"),
            ("//other/x", "https://other/x"),
            ("/a:b", "https://h:81/a:b"),
            ("https://h:81", "https://h:81/"),
        ] {
            assert_eq!(from("https://h:81/x?y", location), url, "{location}");
        }
        for (location, word) in [
            ("ftp://h/", "unknown scheme"),
            ("mailto:x", "is not a URL"),
            ("http:/x", "is not a URL"),
            ("http://", "no host"),
            ("//u:p@h/", "credentials"),
        ] {
            assert!(from("https://h/", location).contains(word), "{}", from("https://h/", location));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_locations_never_panic(location in prop::collection::vec(any::<u8>(), 0..40), text in "[a-z:/?#.@\\[\\]]{0,20}") {
            let base = Target::parse("http://a/b/c?d").unwrap();
            for location in [&location[..], text.as_bytes()] {
                if let Ok(target) = resolve(&base, location) {
                    prop_assert!(target.path().starts_with('/') && target.path().bytes().all(|byte| byte.is_ascii_graphic()));
                }
            }
        }
    }
}
