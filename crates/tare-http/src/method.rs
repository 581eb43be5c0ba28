//! The methods of a request.

/// A method that this server knows (RFC 9110, 9.3; PATCH: RFC 5789). CONNECT is not one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Transfer the target's current content.
    Get,
    /// The same without the content.
    Head,
    /// Process the content.
    Post,
    /// Replace the target.
    Put,
    /// Remove the target.
    Delete,
    /// Describe how to talk to the target.
    Options,
    /// Change the target in part.
    Patch,
    /// Loop the request back.
    Trace,
}

impl Method {
    /// The method of that name.
    pub(crate) fn from_token(token: &str) -> Option<Method> {
        Some(match token {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "PATCH" => Method::Patch,
            "TRACE" => Method::Trace,
            _ => return None,
        })
    }

    /// The method's name as it is sent.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Patch => "PATCH",
            Method::Trace => "TRACE",
        }
    }
}
