//! A socket with what may lie between it and the answers.

use crate::tls::{Context, Tls};
use crate::worker::Worker;
use std::io;
use std::os::fd::OwnedFd;
use tare_sys::epoll::{Epoll, Interest};
use tare_sys::net;

/// One connection's way for bytes.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) socket: OwnedFd,
    pub(crate) tls: Option<Box<Tls>>,
}

impl Channel {
    /// Begins to connect connection `c`. Its completion is an event in any case: the socket becomes writable.
    pub(crate) fn begin(
        worker: &mut Worker,
        epoll: &Epoll,
        tls: Option<&Context>,
        c: u32,
    ) -> io::Result<Channel> {
        let (socket, _) = worker.connect(c)?;
        epoll.add(&socket, Interest::READ_WRITE.edge(), u64::from(c))?;
        let tls = tls.map(|context| context.connect().map(Box::new)).transpose()?;
        Ok(Channel { socket, tls })
    }

    /// Whether it is connected, its handshake included, or why it never will be.
    pub(crate) fn is_through(&mut self) -> io::Result<bool> {
        match net::take_error(&self.socket)? {
            None => self.shake_hands(),
            Some(why) => Err(why),
        }
    }

    /// Whether the connection that was made can be used: its handshake, if it has one, is complete.
    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => {
                tls.wake();
                tls.shake_hands(&self.socket)
            }
        }
    }

    /// Something happened to the socket: what waited to be sent may go.
    #[inline]
    pub(crate) fn wake(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => {
                tls.wake();
                tls.flush(&self.socket)
            }
        }
    }

    /// As [`net::recv`]; `thorough` where the end of the stream is known to follow.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut [u8], thorough: bool) -> io::Result<usize> {
        match &mut self.tls {
            None => net::recv(&self.socket, buffer),
            Some(tls) => {
                if thorough {
                    tls.wake();
                }
                tls.recv(&self.socket, buffer)
            }
        }
    }

    /// Whether a short read means that nothing more is there.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// As [`net::send`].
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => net::send(&self.socket, bytes),
            Some(tls) => tls.send(&self.socket, bytes),
        }
    }
}
