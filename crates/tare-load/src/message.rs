//! What is asked, what is kept of the answers, and what they must be: plain data.

use crate::target::Target;
use std::path::PathBuf;

/// Most URLs, and the highest weight of one.
pub const URLS_MAX: usize = 1000;
/// See [`URLS_MAX`].
pub const WEIGHT_MAX: u32 = 10_000;
/// Most values that are captured from each answer.
pub const CAPTURES_MAX: usize = 16;
/// Most of a body that is looked at, for checks and captures, in bytes.
pub const BODY_KEPT_BYTES_MAX: usize = 64 * 1024;

/// Longest head of a request in bytes, and longest body that is held, without its templates' values.
const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// See [`HEAD_BYTES_MAX`].
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Longest line of a request file.
pub(crate) const LINE_BYTES_MAX: usize = HEAD_BYTES_MAX + BODY_BYTES_MAX;

/// A URL among several.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedUrl {
    /// On the same scheme, host and port as [`crate::LoadSpec::target`].
    pub target: Target,
    /// Its share of the requests is this over the sum of all weights, 1 to [`WEIGHT_MAX`].
    pub weight: u32,
}

/// What to keep of each answer, for `{{capture:NAME}}` in later requests on the same connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// What templates call it.
    pub name: String,
    /// Where it stands.
    pub from: CaptureFrom,
}

/// Where a captured value stands in an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum CaptureFrom {
    /// The value of a header, up to its first `;` (so that a `Set-Cookie` can be sent back).
    Header(String),
    /// In the body's first 64 KiB, what stands between these two texts (the second may be empty: up to the end).
    Body {
        /// What comes before it.
        after: String,
        /// What comes after it.
        before: String,
    },
}

/// What every answer must be; one that is not is counted as [`tare_model::trial::ErrorKind::Unexpected`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// One of these; empty: any (and 400 and above count as errors). A status that is listed is never an error.
    pub statuses: Vec<u16>,
    /// Headers that must be there and whose values must contain these texts.
    pub headers: Vec<(String, String)>,
    /// Exact length of the body.
    pub body_bytes: Option<u64>,
    /// A text that must stand in the body's first 64 KiB.
    pub body_contains: Option<String>,
}

/// A message that cannot be sent, or an expectation that cannot be met, as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MessageError {
    /// The number of URLs.
    #[error("{given} URLs are too many (hint: at most {URLS_MAX}; a request file takes any number)")]
    Urls {
        /// How many.
        given: usize,
    },
    /// A weight.
    #[error("the weight of a URL must be from 1 to {WEIGHT_MAX}, not {given}")]
    Weight {
        /// As given.
        given: u32,
    },
    /// Another host than the first URL's.
    #[error(
        "`{other}` is not on the same host and port as `{first}` (hint: one run loads one server; load others beside it with runs of their own)"
    )]
    OtherHost {
        /// The first.
        first: String,
        /// The other one.
        other: String,
    },
    /// The method.
    #[error("`{given}` cannot be used as a method (hint: GET, HEAD, POST …, in capitals)")]
    Method {
        /// As given.
        given: String,
    },
    /// The path.
    #[error(
        "`{given}` cannot be used as a path (hint: begin with /, percent-encode spaces and what is not ASCII)"
    )]
    Path {
        /// As given.
        given: String,
    },
    /// A header that would break the request, or contradict its framing.
    #[error("the header `{given}` cannot be sent: {why}")]
    Header {
        /// Its name.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A request of this length.
    #[error(
        "a request of {bytes} bytes is too long (hint: at most 1 MiB each for head and body; a file of any length may be the body)"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A template.
    #[error("the template `{{{{{text}` cannot be used: {why}")]
    Template {
        /// Its beginning.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file that cannot be read, or used.
    #[error("{}: {why}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A line of a request file.
    #[error("{}, line {number}: {why}", path.display())]
    Line {
        /// The file's path.
        path: PathBuf,
        /// From 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The number of captures.
    #[error("{given} captured values are too many (hint: at most {CAPTURES_MAX})")]
    Captures {
        /// How many.
        given: usize,
    },
}

/// Checks what can be checked without looking into files.
pub(crate) fn validate(
    target: &Target,
    urls: &[WeightedUrl],
    captures: &[Capture],
) -> Result<(), MessageError> {
    if urls.len() > URLS_MAX {
        return Err(MessageError::Urls { given: urls.len() });
    }
    for url in urls {
        if !(1..=WEIGHT_MAX).contains(&url.weight) {
            return Err(MessageError::Weight { given: url.weight });
        }
        if !url.target.same_place(target) {
            return Err(MessageError::OtherHost { first: target.to_string(), other: url.target.to_string() });
        }
    }
    if captures.len() > CAPTURES_MAX {
        return Err(MessageError::Captures { given: captures.len() });
    }
    Ok(())
}

/// One request as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Whether it can be sent: nothing in it may break the request or contradict its framing.
    pub(crate) fn check(&self) -> Result<(), MessageError> {
        let capitals = !self.method.is_empty() && self.method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !capitals || self.method.len() > 32 || self.method == "CONNECT" {
            return Err(MessageError::Method { given: self.method.clone() });
        }
        // Templates may have spaces within their braces.
        let path: String = self.path.replace("{{ ", "{{").replace(" }}", "}}");
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(MessageError::Path { given: self.path.chars().take(100).collect() });
        }
        for (name, value) in &self.headers {
            if let Some(why) = header_fault(name, value) {
                return Err(MessageError::Header { given: name.clone(), why });
            }
        }
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let head = self.path.len() + headers;
        if head > HEAD_BYTES_MAX || self.body.len() > BODY_BYTES_MAX {
            return Err(MessageError::TooLong { bytes: head + self.body.len() });
        }
        Ok(())
    }
}

impl Message {
    /// Whether HTTP/2 can ask the host that it names.
    #[cfg(feature = "http2")]
    pub(crate) fn check_http2(&self) -> Result<(), MessageError> {
        let host = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        match host.filter(|(_, host)| !crate::http2::is_authority(host.trim())) {
            None => Ok(()),
            Some((name, _)) => {
                let why = "HTTP/2 needs a host, perhaps with a port, and no template in it";
                Err(MessageError::Header { given: name.clone(), why })
            }
        }
    }

    #[cfg(not(feature = "http2"))]
    pub(crate) fn check_http2(&self) -> Result<(), MessageError> {
        Ok(())
    }
}

fn header_fault(name: &str, value: &str) -> Option<&'static str> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Some("its name has characters that names may not have");
    }
    if !value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)) {
        return Some("its value has control characters");
    }
    if ["content-length", "transfer-encoding"].iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
        return Some("where the request ends is decided by the generator");
    }
    None
}
