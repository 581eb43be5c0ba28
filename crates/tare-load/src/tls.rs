//! TLS as a client, by rustls: its records go through a socket that does not block.

use crate::error::LoadError;
use crate::spec::{self, LoadSpec};
use crate::tls_files;
use crate::trust;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tare_model::load::TlsCertificate;
use tare_sys::net;

/// HTTP/2 as ALPN calls it.
const HTTP2: &str = "h2";
/// Sessions that one thread remembers for resumption.
const SESSIONS: usize = 256;

/// What all handshakes of a load have in common: its files are read.
#[derive(Debug)]
pub(crate) struct Handshakes {
    config: ClientConfig,
    name: ServerName<'static>,
    resume: bool,
    pub(crate) check: TlsCertificate,
}

impl Handshakes {
    /// With the server that `spec` names; with HTTP/2 nothing else is offered to it (ALPN).
    pub(crate) fn of(spec: &LoadSpec, on_this_host: bool) -> Result<Handshakes, LoadError> {
        let (tls, host) = (&spec.route.tls, spec.route.target.host());
        let check = trust::check(&tls.trust, on_this_host);
        let mut config = config(tls, check)?;
        config.alpn_protocols =
            if spec.is_multiplexed() { vec![HTTP2.as_bytes().to_vec()] } else { Vec::new() };
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|why| LoadError::Tls { address: host, why: io::Error::other(why) })?;
        Ok(Handshakes { config, name, resume: tls.resume, check })
    }

    /// For one thread: it remembers sessions of its own, so that none waits for another.
    pub(crate) fn context(&self) -> Context {
        let mut config = self.config.clone();
        config.resumption =
            if self.resume { Resumption::in_memory_sessions(SESSIONS) } else { Resumption::disabled() };
        Context { config: Arc::new(config), name: self.name.clone() }
    }
}

/// Whom a client trusts and who it is.
fn config(tls: &spec::Tls, check: TlsCertificate) -> Result<ClientConfig, LoadError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = trust::verifier(&tls.trust, check, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|why| LoadError::Thread { why: io::Error::other(why) })?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let Some(client) = &tls.client else { return Ok(builder.with_no_client_auth()) };
    let (chain, key) = tls_files::client(client)?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map_err(|why| tls_files::key_fault(client, why.to_string()).into())
}

/// What one thread's handshakes begin with.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Context {
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
                Ok(0) => return Err(unfinished()),
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
        self.connection.process_new_packets().map_err(failure)?;
        Ok(read)
    }
}

/// The server closed the connection instead of going on with the handshake.
pub(crate) fn unfinished() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it during the TLS handshake")
}

/// What went wrong with TLS, as sockets report it.
pub(crate) fn failure(error: rustls::Error) -> io::Error {
    let kind = match error {
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
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
