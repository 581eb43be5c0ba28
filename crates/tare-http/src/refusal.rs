//! Why a request is refused, and with which status.

use crate::status::Status;

/// A request that is answered with an error and the end of the connection: after any of these the start of
/// the next request cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The request line or a field line is not of the grammar (RFC 9112, 2.2, 3, 5).
    #[error("malformed request head: {0}")]
    Malformed(&'static str),
    /// A line ended with LF alone. Accepting it is allowed (RFC 9112, 2.2) and a way to smuggle requests.
    #[error("line ended with a bare LF")]
    BareLineFeed,
    /// The request-target is of no form that fits the method (RFC 9112, 3.2).
    #[error("bad request-target: {0}")]
    Target(&'static str),
    /// HTTP/1.1 without Host, two Hosts, or one that names no host (RFC 9112, 3.2).
    #[error("bad Host: {0}")]
    Host(&'static str),
    /// Content-Length that is no number, or given twice (RFC 9112, 6.3).
    #[error("bad Content-Length")]
    ContentLength,
    /// Both Content-Length and Transfer-Encoding (RFC 9112, 6.1).
    #[error("both Content-Length and Transfer-Encoding")]
    AmbiguousLength,
    /// Transfer-Encoding in HTTP/1.0, or without chunked as the last coding (RFC 9112, 6.1, 6.3).
    #[error("bad Transfer-Encoding")]
    TransferEncoding,
    /// A transfer coding other than chunked (RFC 9112, 6.1).
    #[error("transfer coding not implemented")]
    TransferCoding,
    /// A chunk or a trailer field is not of the grammar (RFC 9112, 7.1).
    #[error("malformed chunked body: {0}")]
    Chunk(&'static str),
    /// The method is not one that this server knows (RFC 9110, 9.1).
    #[error("method not implemented")]
    Method,
    /// A major version other than 1 (RFC 9110, 15.6.6).
    #[error("HTTP version not supported")]
    Version,
    /// An expectation other than 100-continue (RFC 9110, 10.1.1).
    #[error("expectation not supported")]
    Expectation,
    /// The request-target is longer than the limit (RFC 9112, 3).
    #[error("request-target too long")]
    TargetTooLong,
    /// The head or the trailer is longer than the limit, or has too many fields (RFC 6585, 5).
    #[error("request head too large")]
    HeadTooLarge,
    /// The body is longer than the limit (RFC 9110, 15.5.14).
    #[error("body too large")]
    BodyTooLarge,
}

impl Refusal {
    /// The status to answer with.
    pub fn status(self) -> Status {
        match self {
            Refusal::TargetTooLong => Status::URI_TOO_LONG,
            Refusal::HeadTooLarge => Status::HEADER_FIELDS_TOO_LARGE,
            Refusal::BodyTooLarge => Status::CONTENT_TOO_LARGE,
            Refusal::Expectation => Status::EXPECTATION_FAILED,
            Refusal::Method | Refusal::TransferCoding => Status::NOT_IMPLEMENTED,
            Refusal::Version => Status::VERSION_NOT_SUPPORTED,
            _ => Status::BAD_REQUEST,
        }
    }
}
