//! Final status codes and their reason phrases.

/// A final status code, 200 to 599.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal)*) => {
        impl Status {
            $(#[doc = concat!(stringify!($code), " ", $reason)] pub const $name: Status = Status($code);)*

            /// The registered reason phrase; empty for a code without one.
            pub fn reason(self) -> &'static str {
                match self.0 { $($code => $reason,)* _ => "" }
            }
        }
    };
}

statuses! {
    OK 200 "OK"
    CREATED 201 "Created"
    ACCEPTED 202 "Accepted"
    NO_CONTENT 204 "No Content"
    RESET_CONTENT 205 "Reset Content"
    PARTIAL_CONTENT 206 "Partial Content"
    MOVED_PERMANENTLY 301 "Moved Permanently"
    FOUND 302 "Found"
    SEE_OTHER 303 "See Other"
    NOT_MODIFIED 304 "Not Modified"
    TEMPORARY_REDIRECT 307 "Temporary Redirect"
    PERMANENT_REDIRECT 308 "Permanent Redirect"
    BAD_REQUEST 400 "Bad Request"
    UNAUTHORIZED 401 "Unauthorized"
    FORBIDDEN 403 "Forbidden"
    NOT_FOUND 404 "Not Found"
    METHOD_NOT_ALLOWED 405 "Method Not Allowed"
    NOT_ACCEPTABLE 406 "Not Acceptable"
    REQUEST_TIMEOUT 408 "Request Timeout"
    CONFLICT 409 "Conflict"
    GONE 410 "Gone"
    PRECONDITION_FAILED 412 "Precondition Failed"
    CONTENT_TOO_LARGE 413 "Content Too Large"
    URI_TOO_LONG 414 "URI Too Long"
    UNSUPPORTED_MEDIA_TYPE 415 "Unsupported Media Type"
    RANGE_NOT_SATISFIABLE 416 "Range Not Satisfiable"
    EXPECTATION_FAILED 417 "Expectation Failed"
    UNPROCESSABLE_CONTENT 422 "Unprocessable Content"
    TOO_MANY_REQUESTS 429 "Too Many Requests"
    HEADER_FIELDS_TOO_LARGE 431 "Request Header Fields Too Large"
    INTERNAL_SERVER_ERROR 500 "Internal Server Error"
    NOT_IMPLEMENTED 501 "Not Implemented"
    BAD_GATEWAY 502 "Bad Gateway"
    SERVICE_UNAVAILABLE 503 "Service Unavailable"
    GATEWAY_TIMEOUT 504 "Gateway Timeout"
    VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported"
}

impl Status {
    /// The status of a code, if it is a final one (200 to 599).
    pub fn new(code: u16) -> Option<Status> {
        (200..600).contains(&code).then_some(Status(code))
    }

    /// The code.
    #[inline]
    pub fn code(self) -> u16 {
        self.0
    }

    /// Whether an answer with this status never has a body (RFC 9110, 6.4.1).
    #[inline]
    pub fn is_bodiless(self) -> bool {
        matches!(self.0, 204 | 304)
    }
}
