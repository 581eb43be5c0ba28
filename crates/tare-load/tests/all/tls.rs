//! Whether servers are who they say they are, and who we are: real handshakes with rustls servers.

use crate::epoll::support::{echo_hello, requests, sample, whole};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tare_load::{ClientCertificate, Generator, LoadError, LoadSpec, Target, Trust, preflight};
use tare_model::load::TlsCertificate;
#[cfg(feature = "http2")]
use tare_model::trial::ErrorKind;

const PATIENCE: Duration = Duration::from_secs(10);

/// A certificate with its key, as rcgen makes them.
struct Made {
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

/// Issues certificates; all files are in one folder.
struct Issuer {
    params: rcgen::CertificateParams,
    made: Made,
    folder: tempfile::TempDir,
}

impl Issuer {
    fn new() -> Issuer {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        // Each under a name of its own.
        let key = rcgen::KeyPair::generate().unwrap();
        let name: String = key.public_key_raw().iter().map(|byte| format!("{byte:02x}")).take(16).collect();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Issuer { params, made: Made { certificate, key }, folder: tempfile::tempdir().unwrap() }
    }

    fn issue(&self, name: &str, change: impl FnOnce(&mut rcgen::CertificateParams)) -> Made {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::Issuer::from_params(&self.params, &self.made.key);
        Made { certificate: params.signed_by(&key, &issuer).unwrap(), key }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn root(&self) -> Trust {
        Trust::With(self.file("root.pem", &self.made.certificate.pem()))
    }
}

/// What a server with this certificate begins with; with `clients`, whoever asks needs a certificate of theirs.
fn config(made: &Made, clients: Option<&Issuer>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(issuer) => {
            let mut roots = RootCertStore::empty();
            roots.add(issuer.made.certificate.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(made.key.serialize_der()).unwrap();
    builder.with_single_cert(vec![made.certificate.der().clone()], key).unwrap()
}

/// Answers every request with hello.
fn serve(config: ServerConfig) -> SocketAddr {
    let (listener, config) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(config));
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let server = rustls::ServerConnection::new(config).unwrap();
                echo_hello(rustls::StreamOwned::new(server, tcp.unwrap()));
            });
        }
    });
    address
}

fn spec(url: &str, trust: Trust) -> LoadSpec {
    let mut spec = LoadSpec::new(Target::parse(url).unwrap());
    (spec.route.tls.trust, spec.requests_max, spec.connections) = (trust, Some(100), 2);
    spec
}

/// What both of them say that ask: before the load, and the load itself.
fn refused(spec: &LoadSpec) -> String {
    let errors = [preflight(spec, PATIENCE).map(drop), Generator::start(spec).map(drop)];
    let texts = errors.map(|error| {
        let error = error.unwrap_err();
        assert!(matches!(error, LoadError::NotTrusted { .. }), "{error}");
        error.to_string()
    });
    assert_eq!(texts[0], texts[1]);
    texts[0].clone()
}

#[test]
fn a_server_on_this_host_is_verified_where_somebody_is_named_to_trust() {
    let issuer = Issuer::new();
    let address = serve(config(&issuer.issue("127.0.0.1", |_| {}), None));
    let url = format!("https://{address}/");
    for (trust, check) in [
        (Trust::System, TlsCertificate::ThisHost),
        (Trust::Anyone, TlsCertificate::Insecure),
        (issuer.root(), TlsCertificate::Verified),
    ] {
        let spec = spec(&url, trust);
        assert_eq!(preflight(&spec, PATIENCE).unwrap().tls_certificate, Some(check));
        assert_eq!(Generator::start(&spec).unwrap().tls_certificate(), Some(check));
        let sample = whole(&spec);
        assert_eq!((requests(&sample), sample.errors.len()), (100, 0), "{:?}", sample.errors);
    }
}

#[test]
fn a_certificate_that_is_not_right_ends_it_before_any_load() {
    let (issuer, other) = (Issuer::new(), Issuer::new());
    let expired = |params: &mut rcgen::CertificateParams| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    };
    let early = |params: &mut rcgen::CertificateParams| {
        params.not_before = rcgen::date_time_ymd(4000, 1, 1);
    };
    for (made, trust, words) in [
        (issuer.issue("127.0.0.1", |_| {}), other.root(), "unknown issuer"),
        (issuer.issue("127.0.0.1", expired), issuer.root(), "it expired "),
        (issuer.issue("127.0.0.1", early), issuer.root(), "it will be valid in "),
        (issuer.issue("other.test", |_| {}), issuer.root(), "not for 127.0.0.1"),
    ] {
        let error = refused(&spec(&format!("https://{}/", serve(config(&made, None))), trust));
        assert!(error.contains(words) && error.contains("--insecure"), "{error}");
    }
}

#[test]
fn a_server_that_signed_for_itself_is_trusted_where_its_own_certificate_is_given() {
    // As `openssl req -x509` makes them: an issuer too.
    let issuer = Issuer::new();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let made = Made { certificate: params.self_signed(&key).unwrap(), key };
    let url = format!("https://{}/", serve(config(&made, None)));
    let own = Trust::With(issuer.file("own.pem", &made.certificate.pem()));
    assert_eq!(requests(&whole(&spec(&url, own.clone()))), 100);
    let error = refused(&spec(&url, issuer.root()));
    assert!(error.contains("unknown issuer") && error.contains("this very certificate"), "{error}");
    // The name must be right all the same.
    params.subject_alt_names = vec![rcgen::SanType::DnsName("other.test".try_into().unwrap())];
    let made = Made { certificate: params.self_signed(&made.key).unwrap(), key: made.key };
    let own = Trust::With(issuer.file("own.pem", &made.certificate.pem()));
    let error = refused(&spec(&format!("https://{}/", serve(config(&made, None))), own));
    assert!(error.contains("it is for "), "{error}");
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let (issuer, clients) = (Issuer::new(), Issuer::new());
    let address = serve(config(&issuer.issue("127.0.0.1", |_| {}), Some(&clients)));
    let url = format!("https://{address}/");
    let mine = |from: &Issuer| {
        let made = from.issue("me", |_| {});
        ClientCertificate {
            chain: from.file("me.pem", &made.certificate.pem()),
            key: from.file("me.key", &made.key.serialize_pem()),
        }
    };
    let mut spec = spec(&url, Trust::System);
    spec.route.tls.client = Some(mine(&clients));
    let sample = whole(&spec);
    assert_eq!((requests(&sample), sample.errors.len()), (100, 0), "{:?}", sample.errors);

    for client in [None, Some(mine(&issuer))] {
        spec.route.tls.client = client;
        let error = preflight(&spec, PATIENCE).unwrap_err();
        assert!(matches!(error, LoadError::TlsRefused { .. }), "{error}");
        assert!(error.to_string().contains("--client-cert"), "{error}");
    }

    #[cfg(feature = "http2")]
    {
        let mut config = config(&issuer.issue("127.0.0.1", |_| {}), Some(&clients));
        config.alpn_protocols = vec![b"h2".to_vec()];
        let mut spec = self::spec(&format!("https://{}/", serve(config)), Trust::System);
        spec.protocol = tare_load::Protocol::Http2;
        for error in [preflight(&spec, PATIENCE).unwrap_err(), Generator::start(&spec).unwrap_err()] {
            assert!(matches!(error, LoadError::TlsRefused { .. }), "{error}");
            assert!(error.to_string().contains("CertificateRequired"), "{error}");
        }
    }

    let stranger = ClientCertificate { key: mine(&issuer).key, ..mine(&clients) };
    spec.route.tls.client = Some(stranger);
    let error = Generator::start(&spec).unwrap_err();
    assert!(matches!(error, LoadError::TlsFiles(_)), "{error}");
    assert!(error.to_string().contains("me.key"), "{error}");
}

/// Wants a certificate of whoever comes after the first client.
#[cfg(feature = "http2")]
#[derive(Debug)]
struct FromTheSecondOn {
    verifier: Arc<dyn rustls::server::danger::ClientCertVerifier>,
    seen: std::sync::atomic::AtomicUsize,
}

#[cfg(feature = "http2")]
impl rustls::server::danger::ClientCertVerifier for FromTheSecondOn {
    fn client_auth_mandatory(&self) -> bool {
        self.seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0
    }

    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &rustls::pki_types::CertificateDer<'_>,
        chain: &[rustls::pki_types::CertificateDer<'_>],
        now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::server::danger::ClientCertVerified, rustls::Error> {
        self.verifier.verify_client_cert(certificate, chain, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &rustls::pki_types::CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &rustls::pki_types::CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

#[cfg(feature = "http2")]
#[test]
fn connections_of_http2_that_a_server_refuses_underway_have_its_reason() {
    let (issuer, clients) = (Issuer::new(), Issuer::new());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(clients.made.certificate.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let verifier = Arc::new(FromTheSecondOn { verifier, seen: 0.into() });
    let made = issuer.issue("127.0.0.1", |_| {});
    let key = PrivateKeyDer::try_from(made.key.serialize_der()).unwrap();
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![made.certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let server = crate::http2_server::Server::start_with(Some(Arc::new(config)), None, |_| {
        crate::http2_server::Act::Body(b"hello", Some(5))
    });
    let mut spec = spec(&format!("https://{}/", server.address), Trust::System);
    (spec.protocol, spec.requests_max, spec.route.tls.resume) = (tare_load::Protocol::Http2, None, false);
    let sample = sample(&spec, 1, 1);
    let kinds: Vec<ErrorKind> = sample.errors.keys().copied().collect();
    assert_eq!(kinds, [ErrorKind::Tls], "{:?}", sample.errors);
    let reasons: Vec<String> = sample.detail.unwrap().said.reasons[&ErrorKind::Tls].keys().cloned().collect();
    assert_eq!(reasons, ["the server wants a client certificate"]);
}

#[test]
fn who_takes_connections_and_says_nothing_gives_no_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let mut spec = spec(&url, Trust::System);
    spec.timeout_ns = 200_000_000;
    let error = Generator::start(&spec).unwrap_err();
    assert!(matches!(error, LoadError::NoAnswer { .. }), "{error}");
    assert!(error.to_string().contains("the TLS handshake was not answered"), "{error}");
}

#[test]
fn who_closes_during_the_handshake_is_said_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            // Once the hello is read, closing sends an end and no reset.
            std::io::Read::read(&mut tcp.unwrap(), &mut [0; 4096]).unwrap();
        }
    });
    let spec = spec(&url, Trust::System);
    for error in [preflight(&spec, PATIENCE).unwrap_err(), Generator::start(&spec).unwrap_err()] {
        assert!(error.to_string().contains("closed it during the TLS handshake"), "{error}");
    }
}

#[test]
fn a_unix_socket_carries_tls_too() {
    let issuer = Issuer::new();
    let config = Arc::new(config(&issuer.issue("whoever.test", |_| {}), None));
    let path = issuer.folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for unix in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let server = rustls::ServerConnection::new(config).unwrap();
                echo_hello(rustls::StreamOwned::new(server, unix.unwrap()));
            });
        }
    });
    let mut spec = spec("https://whoever.test/", issuer.root());
    spec.route.unix_socket = Some(path);
    assert_eq!(preflight(&spec, PATIENCE).unwrap().tls_certificate, Some(TlsCertificate::Verified));
    assert_eq!(sample(&spec, 50, 0).errors.len(), 0);
}

#[test]
fn it_connects_elsewhere_and_asks_for_the_url_all_the_same() {
    let issuer = Issuer::new();
    let address = serve(config(&issuer.issue("shop.test", |_| {}), None));
    let mut spec = spec("https://shop.test:9/", issuer.root());
    spec.route.connect_to = Some(address.to_string().parse().unwrap());
    let found = preflight(&spec, PATIENCE).unwrap();
    assert_eq!((found.tls_certificate, found.peer_addr), (Some(TlsCertificate::Verified), Some(address)));
    assert_eq!(requests(&whole(&spec)), 100);
    spec.route.target = Target::parse("https://other.test/").unwrap();
    assert!(refused(&spec).contains("it is for shop.test and not for other.test"), "{}", refused(&spec));
}
