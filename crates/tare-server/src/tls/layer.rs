//! TLS between a socket and its connection: bytes in, bytes out, no I/O.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::ServerConnection;

use crate::connection::{Connection, Engine, Waiting};
use crate::tls::certificate::Tls;

/// What the last bytes said about the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    More,
    /// It sends nothing more.
    End,
}

/// The TLS side of one connection.
#[derive(Debug)]
pub(crate) struct Layer {
    tls: ServerConnection,
    /// Bytes came in which there was nothing yet for the connection: a handshake, or a record that is cut.
    unanswered: bool,
    /// The end was written.
    ended: bool,
}

impl Layer {
    /// The layer of one connection; `None` where there is no memory or randomness for it.
    pub(crate) fn of(tls: &Tls) -> Option<Layer> {
        let tls = ServerConnection::new(Arc::clone(&tls.config)).ok()?;
        Some(Layer { tls, unanswered: false, ended: false })
    }

    /// Whether the peer has begun something and not ended it.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Opens what the socket brought, lets the connection answer, and seals the answers.
    pub(crate) fn receive(
        &mut self,
        connection: &mut Connection,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        engine: &mut Engine,
    ) -> Heard {
        let (mut opened, mut answers) = (engine.pool.take(), engine.pool.take());
        let mut heard = Heard::More;
        self.unanswered = true;
        while !bytes.is_empty() && heard == Heard::More {
            heard = self.open(&mut bytes, &mut opened);
            if !opened.is_empty() {
                self.unanswered = false;
                connection.receive(&opened, &mut answers, engine);
                opened.clear();
            }
        }
        self.seal(&answers, out);
        self.end_after(connection, heard, out);
        engine.pool.give(opened);
        engine.pool.give(answers);
        heard
    }

    /// Goes on with the connection and seals what it writes.
    pub(crate) fn resume(&mut self, connection: &mut Connection, out: &mut Vec<u8>, engine: &mut Engine) {
        self.sealed(connection, out, engine, Connection::resume);
    }

    /// The peer of the connection took too long.
    pub(crate) fn time_out(&mut self, connection: &mut Connection, out: &mut Vec<u8>, engine: &mut Engine) {
        self.sealed(connection, out, engine, Connection::time_out);
    }

    fn sealed(
        &mut self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        engine: &mut Engine,
        act: fn(&mut Connection, &mut Vec<u8>, &mut Engine),
    ) {
        let mut answers = engine.pool.take();
        act(connection, &mut answers, engine);
        self.seal(&answers, out);
        self.end_after(connection, Heard::More, out);
        engine.pool.give(answers);
    }

    /// Takes some of the bytes and appends what was in them.
    fn open(&mut self, bytes: &mut &[u8], opened: &mut Vec<u8>) -> Heard {
        // Reading from a slice cannot fail; a layer that takes nothing more has seen the end.
        if self.tls.read_tls(bytes).unwrap_or(0) == 0 {
            return Heard::End;
        }
        let Ok(state) = self.tls.process_new_packets() else {
            // No TLS, or broken: the alert that says so is written with the next seal.
            return Heard::End;
        };
        let start = opened.len();
        opened.resize(start + state.plaintext_bytes_to_read(), 0);
        if self.tls.reader().read_exact(&mut opened[start..]).is_err() {
            opened.truncate(start);
            return Heard::End;
        }
        if state.peer_has_closed() { Heard::End } else { Heard::More }
    }

    /// Seals the answers, and sends what TLS itself has to say.
    fn seal(&mut self, mut answers: &[u8], out: &mut Vec<u8>) {
        loop {
            // Its own buffer is bounded: it takes a part at a time.
            let taken = self.tls.writer().write(answers).unwrap_or(0);
            answers = &answers[taken..];
            while self.tls.wants_write() {
                // Writing to a Vec cannot fail.
                if self.tls.write_tls(out).is_err() {
                    return;
                }
            }
            if answers.is_empty() || taken == 0 {
                return;
            }
        }
    }

    /// Says the end once nothing more is to come, so that the peer can distinguish it from a cut.
    fn end_after(&mut self, connection: &Connection, heard: Heard, out: &mut Vec<u8>) {
        let last = heard == Heard::End || connection.waiting() == Waiting::End;
        if last && !connection.is_held_back() && !self.ended {
            self.ended = true;
            self.tls.send_close_notify();
            self.seal(b"", out);
        }
    }
}
