//! TLS as a client, by rustls: its records go through a socket that does not block.

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tare_sys::net;

/// HTTP/2 as ALPN calls it.
const HTTP2: &str = "h2";
/// Sessions that one thread remembers for resumption.
const SESSIONS: usize = 256;

/// What handshakes with one server begin with; each thread has its own, so that none waits for another.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Context {
    /// For the server of this name or address; with `http2` nothing else is offered to it (ALPN).
    pub(crate) fn new(host: &str, resume: bool, http2: bool) -> io::Result<Context> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let any = Arc::new(AnyCertificate(Arc::clone(&provider)));
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?.dangerous();
        let mut config = builder.with_custom_certificate_verifier(any).with_no_client_auth();
        config.resumption =
            if resume { Resumption::in_memory_sessions(SESSIONS) } else { Resumption::disabled() };
        config.alpn_protocols = if http2 { vec![HTTP2.as_bytes().to_vec()] } else { Vec::new() };
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        Ok(Context { config: Arc::new(config), name })
    }

    /// A new connection's state, its first message ready to be sent.
    pub(crate) fn connect(&self) -> io::Result<Tls> {
        Ok(Tls { connection: self.client()?, drained: false })
    }

    /// The same for somebody who blocks.
    pub(crate) fn client(&self) -> io::Result<ClientConnection> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(io::Error::other)
    }
}

/// One connection's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    connection: ClientConnection,
    /// The socket's last read left nothing behind.
    drained: bool,
}

impl Tls {
    /// Something may have come since the socket was found empty.
    pub(crate) fn wake(&mut self) {
        self.drained = false;
    }

    /// Goes on with the handshake; whether it is complete.
    pub(crate) fn shake_hands(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        self.flush(socket)?;
        while self.connection.is_handshaking() {
            match self.take_in(socket) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => self.flush(socket)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether the server chose HTTP/2, by which all else that it says has to be read.
    #[cfg(feature = "http2")]
    pub(crate) fn chose_http2(&self) -> bool {
        self.connection.alpn_protocol() == Some(HTTP2.as_bytes())
    }

    /// As [`net::recv`], of what was sent to us.
    pub(crate) fn recv(&mut self, socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Servers seldom send close_notify: the end of the stream is judged by what HTTP expects.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            if self.drained {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.take_in(socket)?;
        }
    }

    /// As [`net::send`]; what the socket does not take is sent by [`Tls::flush`].
    pub(crate) fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        match self.connection.writer().write(bytes)? {
            // Full of what the socket does not take.
            0 => {
                self.flush(socket)?;
                Err(io::ErrorKind::WouldBlock.into())
            }
            written => self.flush(socket).map(|()| written),
        }
    }

    /// Sends what is waiting to be, as far as the socket takes it.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Socket { fd: socket, drained: false }) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take_in(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        let mut from = Socket { fd: socket, drained: false };
        let read = self.connection.read_tls(&mut from)?;
        self.drained = from.drained;
        self.connection.process_new_packets().map_err(|error| io::Error::new(kind_of(&error), error))?;
        Ok(read)
    }
}

fn kind_of(error: &rustls::Error) -> io::ErrorKind {
    match error {
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::InvalidData,
    }
}

/// A socket as rustls reads and writes it.
struct Socket<'a> {
    fd: &'a OwnedFd,
    drained: bool,
}

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = net::recv(self.fd, buffer)?;
        // The end of the stream has to be read by itself.
        self.drained = read > 0 && read < buffer.len();
        Ok(read)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        net::send(self.fd, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes every certificate: what is under test seldom has a public one, and nothing secret is sent.
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
