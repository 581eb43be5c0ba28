//! The way to the server: where connections go, and what TLS handshakes with it begin with.

use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::spec::LoadSpec;
use crate::tls::Handshakes;

/// The way to a server.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) endpoint: Endpoint,
    /// `None`: without TLS.
    pub(crate) tls: Option<Handshakes>,
}

impl Way {
    /// The one that `spec` names; asks the resolver for names and reads certificates.
    pub(crate) fn find(spec: &LoadSpec) -> Result<Way, LoadError> {
        let endpoint = Endpoint::resolve(spec)?;
        let handshakes = || Handshakes::of(spec, endpoint.is_this_host());
        let tls = spec.route.target.is_tls().then(handshakes).transpose()?;
        Ok(Way { endpoint, tls })
    }
}
