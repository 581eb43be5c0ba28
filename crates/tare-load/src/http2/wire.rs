//! The bytes below: what `h2` reads and writes by, over any socket that does not block.

use crate::tls;
use std::cell::{OnceCell, RefCell, RefMut};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tare_sys::time::monotonic_ns;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket, perhaps with TLS; `WouldBlock` where it has nothing, or no room.
pub(crate) trait Transport {
    /// Takes what came; 0 at the end of the stream.
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Sends as much as it takes.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
}

/// Pieces that are read of a connection that took no more, to learn why.
const READS_MAX: usize = 64;

/// Why TLS ended a connection: `h2` keeps of an error only its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsEnd(Rc<OnceCell<rustls::Error>>);

impl TlsEnd {
    /// The error, as the socket reported it; `None` where it was none of TLS.
    pub(crate) fn error(&self) -> Option<io::Error> {
        self.0.get().cloned().map(tls::failure)
    }

    fn note(&self, error: &io::Error) {
        if let Some(why) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            // The first one ended it.
            self.0.set(why.clone()).ok();
        }
    }
}

/// Whether it says of a send that the other side takes no more.
pub(crate) fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// A transport that `h2` and its owner share, with what passed through.
#[derive(Debug)]
pub(crate) struct Wire<T>(Rc<RefCell<Metered<T>>>);

#[derive(Debug)]
pub(crate) struct Metered<T> {
    pub(crate) transport: T,
    /// Since they were last taken.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// When something came last, and when the socket took something.
    pub(crate) received_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) tls_end: TlsEnd,
}

impl<T: Transport> Metered<T> {
    /// Why nothing more could be sent: who ends a connection may have said why before. `h2` would read nothing of it any more.
    fn reason(&mut self, error: io::Error) -> io::Error {
        self.tls_end.note(&error);
        if is_broken(&error) {
            let mut piece = [0; 4096];
            for _ in 0..READS_MAX {
                match self.transport.recv(&mut piece) {
                    Ok(bytes) if bytes > 0 => {}
                    Ok(_) => break,
                    Err(why) => {
                        self.tls_end.note(&why);
                        break;
                    }
                }
            }
        }
        self.tls_end.error().unwrap_or(error)
    }
}

impl<T> Wire<T> {
    pub(crate) fn new(transport: T) -> Self {
        let now_ns = monotonic_ns();
        Wire(Rc::new(RefCell::new(Metered {
            transport,
            bytes_in: 0,
            bytes_out: 0,
            received_ns: now_ns,
            sent_ns: now_ns,
            tls_end: TlsEnd::default(),
        })))
    }

    /// The transport, once nothing else refers to it.
    pub(crate) fn into_transport(self) -> Option<T> {
        Rc::into_inner(self.0).map(|metered| metered.into_inner().transport)
    }

    /// The owner's side; not to be held while `h2` runs.
    pub(crate) fn metered(&self) -> RefMut<'_, Metered<T>> {
        self.0.borrow_mut()
    }
}

impl<T> Clone for Wire<T> {
    fn clone(&self) -> Self {
        Wire(Rc::clone(&self.0))
    }
}

/// Nobody is woken by it: the owner polls when the socket is ready again.
fn pending_if_blocked<V>(result: io::Result<V>) -> Poll<io::Result<V>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}

impl<T: Transport> AsyncRead for Wire<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut metered = self.metered();
        let received = metered.transport.recv(buffer.initialize_unfilled());
        if let Ok(bytes) = received {
            metered.bytes_in += bytes as u64;
            metered.received_ns = monotonic_ns();
            buffer.advance(bytes);
        }
        received.as_ref().err().inspect(|why| metered.tls_end.note(why));
        pending_if_blocked(received.map(drop))
    }
}

impl<T: Transport> AsyncWrite for Wire<T> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut metered = self.metered();
        let sent = metered.transport.send(bytes);
        if let Ok(bytes) = sent {
            metered.bytes_out += bytes as u64;
            metered.sent_ns = monotonic_ns();
        }
        pending_if_blocked(sent.map_err(|error| metered.reason(error)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The socket is closed with its owner.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::AlertDescription;
    use std::task::Waker;

    /// Takes nothing more; its last word came before.
    struct Refused;

    impl Transport for Refused {
        fn recv(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(tls::failure(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)))
        }

        fn send(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn why_nothing_more_is_taken_is_read() {
        let mut wire = Wire::new(Refused);
        let sent = Pin::new(&mut wire).poll_write(&mut Context::from_waker(Waker::noop()), b"PRI");
        let Poll::Ready(Err(why)) = sent else { panic!("{sent:?}") };
        assert!(why.to_string().contains("CertificateRequired"), "{why}");
        assert!(wire.metered().tls_end.error().is_some());
    }
}
