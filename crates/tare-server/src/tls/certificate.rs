//! The certificate of a server, read and checked.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::ServerError;

/// A certificate and its key. Clones share both.
#[derive(Clone)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its private key, both as PEM.
    ///
    /// # Errors
    /// [`ServerError::Tls`] names the file that cannot be read or used, and why.
    pub fn from_pem(certificates: &Path, key: &Path) -> Result<Tls, ServerError> {
        let refused = |file: &Path, why: String| ServerError::Tls { file: file.to_owned(), why };
        let chain = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| refused(certificates, error.to_string()))?;
        if chain.is_empty() {
            return Err(refused(certificates, "there is no certificate in it".into()));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| refused(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(|error| refused(key, error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config) })
    }
}
