//! Whether a server is the one that its URL names: chain and name of its certificate, or neither.

use crate::spec::Trust;
use crate::tls_files::{self, Places, TlsFileError};
use rustls::RootCertStore;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError as Fault, DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;
use tare_model::load::TlsCertificate;

/// Whether the certificate of a server is verified.
pub(crate) fn check(trust: &Trust, on_this_host: bool) -> TlsCertificate {
    match trust {
        Trust::Anyone => TlsCertificate::Insecure,
        Trust::System if on_this_host => TlsCertificate::ThisHost,
        Trust::System | Trust::With(_) => TlsCertificate::Verified,
    }
}

/// What judges a server's certificate.
pub(crate) fn verifier(
    trust: &Trust,
    check: TlsCertificate,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsFileError> {
    if check != TlsCertificate::Verified {
        return Ok(Arc::new(AnyCertificate(Arc::clone(provider))));
    }
    let (roots, given) = match trust {
        Trust::With(path) => with(path)?,
        Trust::System | Trust::Anyone => (Places::of_system().roots()?, Vec::new()),
    };
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    match inner {
        Ok(inner) => Ok(Arc::new(Verifier { inner, given })),
        Err(why) => Err(TlsFileError::NoRoots { searched: why.to_string() }),
    }
}

/// What this machine trusts, if anything, and what a file has, which is given too.
pub(crate) fn with(
    path: &std::path::Path,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsFileError> {
    let given = tls_files::certificates(path)?;
    let mut roots = Places::of_system().roots().unwrap_or_else(|_| RootCertStore::empty());
    for certificate in &given {
        roots.add(certificate.clone()).map_err(|why| TlsFileError::File {
            path: path.to_path_buf(),
            why: why.to_string(),
            hint: "it must be the certificate of an issuer, or the server's own",
        })?;
    }
    Ok((roots, given))
}

/// Why a certificate is not taken, in words, and what to do about it.
pub(crate) fn words(fault: &Fault) -> (String, &'static str) {
    const OTHER: &str = "--cacert FILE names an issuer to trust; --insecure does not verify";
    let days = |from: UnixTime, to: UnixTime| (to.as_secs().saturating_sub(from.as_secs())).div_ceil(86_400);
    match fault {
        Fault::UnknownIssuer => ("nobody who is trusted has signed it (unknown issuer)".to_owned(), OTHER),
        Fault::Expired => ("it has expired".to_owned(), EXPIRED),
        Fault::ExpiredContext { time, not_after } => {
            (format!("it expired {} days ago", days(*not_after, *time)), EXPIRED)
        }
        Fault::NotValidYet => ("it is not valid yet".to_owned(), EXPIRED),
        Fault::NotValidYetContext { time, not_before } => {
            (format!("it will be valid in {} days", days(*time, *not_before)), EXPIRED)
        }
        Fault::NotValidForName => ("it is for another name".to_owned(), NAME),
        Fault::NotValidForNameContext { expected, presented } => {
            let names = if presented.is_empty() {
                "no name".to_owned()
            } else {
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            };
            (format!("it is for {names} and not for {}", expected.to_str()), NAME)
        }
        Fault::BadSignature => {
            ("its issuer has the name of one who is trusted, and another key".to_owned(), OTHER)
        }
        // What WebPKI says of it has no type here.
        Fault::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            (SIGNED_ITSELF.to_owned(), OWN)
        }
        other => (other.to_string(), OTHER),
    }
}

/// The name in what rustls calls `DnsName("name")` or `IpAddress(address)`.
fn bare(presented: &str) -> &str {
    let inside = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(presented).trim_matches('"')
}

const SIGNED_ITSELF: &str = "it has signed for itself as an issuer, and is not trusted (unknown issuer)";
const OWN: &str = "--cacert FILE with this very certificate trusts it; --insecure does not verify";
const EXPIRED: &str = "is this machine's clock right? --insecure does not verify";
const NAME: &str =
    "write the name in the URL and the address with --connect-to HOST:PORT; --insecure does not verify";

/// Verifies chain and name; a certificate that the user has given is its own chain.
#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // `openssl req -x509` makes certificates that are issuers, and WebPKI has none of those as a server's. Their
            // validity is judged before this.
            Err(rustls::Error::InvalidCertificate(Fault::Other(_))) if self.given.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Takes every certificate.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
