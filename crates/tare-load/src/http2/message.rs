//! Requests: from the bytes that HTTP/1 would send to what `h2` takes.

use crate::body_file::BodyFile;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};
use std::sync::Arc;

/// Headers that are about one connection of HTTP/1; `Host` becomes the authority.
const LEFT_OUT: [&str; 6] =
    ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(super) request: Request<()>,
    pub(super) body: Bytes,
    /// What the body is instead, where that stays in its file.
    pub(super) upload: Option<Arc<BodyFile>>,
}

/// Makes requests of one scheme, and remembers the last one: it is often the next one too.
#[derive(Debug)]
pub(crate) struct Asks {
    scheme: Scheme,
    upload: Option<Arc<BodyFile>>,
    last: Option<(Vec<u8>, Ask)>,
}

impl Asks {
    /// With this body, where the requests' own are empty.
    pub(crate) fn new(tls: bool, upload: Option<Arc<BodyFile>>) -> Self {
        Asks { scheme: if tls { Scheme::HTTPS } else { Scheme::HTTP }, upload, last: None }
    }

    /// The request in these bytes of HTTP/1; `None` for one that [`super::is_authority`] would have refused.
    pub(crate) fn of(&mut self, bytes: &[u8]) -> Option<Ask> {
        match &self.last {
            Some((known, ask)) if known == bytes => Some(ask.clone()),
            _ => {
                let ask = Ask { upload: self.upload.clone(), ..translate(bytes, &self.scheme)? };
                self.last = Some((bytes.to_vec(), ask.clone()));
                Some(ask)
            }
        }
    }
}

fn translate(bytes: &[u8], scheme: &Scheme) -> Option<Ask> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let mut request = Request::new(());
    let mut host = None;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("host") {
            host = Some(value);
        } else if !is_left_out(name, value) {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            request.headers_mut().append(name, HeaderValue::from_str(value).ok()?);
        }
    }
    let authority: Authority = host?.parse().ok()?;
    let uri = Uri::builder().scheme(scheme.clone()).authority(authority).path_and_query(path_of(path)?);
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = uri.build().ok()?;
    *request.version_mut() = Version::HTTP_2;
    Some(Ask { request, body: Bytes::copy_from_slice(&bytes[end + 4..]), upload: None })
}

fn is_left_out(name: &str, value: &str) -> bool {
    let trailers = name.eq_ignore_ascii_case("te") && !value.eq_ignore_ascii_case("trailers");
    trailers || LEFT_OUT.iter().any(|left_out| name.eq_ignore_ascii_case(left_out))
}

/// A path; characters that no URL may have are percent-encoded.
fn path_of(path: &str) -> Option<PathAndQuery> {
    // What parses a path ends it at a `#`.
    if !path.contains('#')
        && let Ok(path) = path.parse()
    {
        return Some(path);
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    let encoded: String = path
        .bytes()
        .map(|byte| if allowed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    encoded.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(bytes: &[u8]) -> Ask {
        Asks::new(false, None).of(bytes).unwrap()
    }

    #[test]
    fn a_request_is_translated() {
        let bytes =
            b"POST /p?q=1 HTTP/1.1\r\nHost: h:81\r\nX-A: 1\r\nx-a: 2\r\nConnection: close\r\nTE: gzip\r\n\
            Content-Length: 7\r\n\r\na\r\n\r\nbc";
        let Ask { request, body, .. } = ask(bytes);
        assert_eq!(
            (request.method().as_str(), request.uri().to_string().as_str()),
            ("POST", "http://h:81/p?q=1")
        );
        assert_eq!(request.headers().get_all("x-a").iter().count(), 2);
        assert_eq!((request.headers().len(), &body[..]), (3, &b"a\r\n\r\nbc"[..]));
    }

    #[test]
    fn every_path_that_http1_takes_can_be_asked_for() {
        for byte in b'!'..=b'~' {
            let path = format!("/a{}b", char::from(byte));
            let Ask { request, .. } = ask(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
            let asked = request.uri().path_and_query().unwrap().as_str();
            assert!(asked == path || asked == format!("/a%{byte:02X}b"), "{path} became {asked}");
        }
    }

    #[test]
    fn the_last_one_is_remembered() {
        let mut asks = Asks::new(true, None);
        for path in ["/a", "/a", "/b"] {
            let bytes = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(
                asks.of(bytes.as_bytes()).unwrap().request.uri().to_string(),
                format!("https://h{path}")
            );
        }
        assert!(asks.of(b"GET / HTTP/1.1\r\n\r\n").is_none(), "nobody is asked");
    }
}
