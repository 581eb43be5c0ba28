//! The bytes of a request, built once.

use crate::spec::LoadSpec;

/// The same request as often in a row as a connection may have in flight, so that any number of them, and the
/// unsent end of them, is one slice.
#[derive(Debug)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    len: usize,
}

impl Requests {
    /// `spec` has been validated.
    pub(crate) fn new(spec: &LoadSpec) -> Self {
        let one = request_bytes(spec);
        Requests { len: one.len(), bytes: one.repeat(spec.pipeline as usize) }
    }

    /// Length of one request in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The last `unsent` bytes of any number of requests in a row.
    #[inline]
    pub(crate) fn tail(&self, unsent: usize) -> &[u8] {
        &self.bytes[self.bytes.len() - unsent.min(self.bytes.len())..]
    }
}

/// One request; nothing is added to what was asked for but `Host`, and `Content-Length: 0` where the method
/// announces a body.
pub(crate) fn request_bytes(spec: &LoadSpec) -> Vec<u8> {
    let mut text = format!("{} {} HTTP/1.1\r\n", spec.method, spec.target.path());
    let given = |name: &str| spec.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("host") {
        text.push_str(&format!("Host: {}\r\n", spec.target.authority()));
    }
    for (name, value) in &spec.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !spec.keep_alive && !given("connection") {
        text.push_str("Connection: close\r\n");
    }
    if matches!(spec.method.as_str(), "POST" | "PUT" | "PATCH") {
        text.push_str("Content-Length: 0\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn what_is_sent() {
        let mut spec = LoadSpec::new(Target::parse("http://h:81/p?q").unwrap());
        spec.pipeline = 2;
        assert_eq!(request_bytes(&spec), b"GET /p?q HTTP/1.1\r\nHost: h:81\r\n\r\n");
        let requests = Requests::new(&spec);
        assert_eq!(requests.tail(3), b"\n\r\n");
        assert_eq!(requests.tail(requests.len()), request_bytes(&spec));
        assert_eq!(requests.tail(1000).len(), 2 * requests.len());

        spec.method = "POST".to_owned();
        spec.headers = vec![("HOST".to_owned(), "other".to_owned()), ("X".to_owned(), "1".to_owned())];
        assert_eq!(
            request_bytes(&spec),
            b"POST /p?q HTTP/1.1\r\nHOST: other\r\nX: 1\r\nContent-Length: 0\r\n\r\n"
        );
    }
}
