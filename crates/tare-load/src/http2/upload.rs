//! A request's body that goes out of its file piece by piece, as fast as the server opens its windows.

use crate::body_file::{BodyFile, PIECE_BYTES};
use bytes::Bytes;
use h2::{Reason, SendStream};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Pieces that are handed over in one go, before others have their turn.
const PIECES_MAX: usize = 16;

/// A body that is on its way; dropped before its end, its stream is reset.
pub(super) struct Upload {
    stream: SendStream<Bytes>,
    file: Arc<BodyFile>,
    at: u64,
}

impl Upload {
    pub(super) fn new(stream: SendStream<Bytes>, file: Arc<BodyFile>) -> Self {
        Upload { stream, file, at: 0 }
    }

    /// How much of it was handed over.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Hands over what the server has room for; ready when that was the last, or the stream takes no more: why is what its answer says.
    ///
    /// `h2` keeps one waker for room and for a stream of one's own, and may lose this one: whoever owns the connection polls again when that has
    /// gone on.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..PIECES_MAX {
            let left = self.file.bytes() - self.at;
            self.stream.reserve_capacity(usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES));
            let room = match self.stream.capacity() {
                // An empty last piece needs no room.
                0 if left > 0 => match ready!(self.stream.poll_capacity(cx)) {
                    Some(Ok(room)) => room,
                    Some(Err(_)) | None => return Poll::Ready(Ok(())),
                },
                room => room,
            };
            let mut piece = vec![0; room.min(PIECE_BYTES)];
            let read = match self.file.piece(self.at, &mut piece) {
                Ok(read) => read.len(),
                Err(why) => {
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(Err(why));
                }
            };
            piece.truncate(read);
            self.at += read as u64;
            let is_last = self.at == self.file.bytes();
            if self.stream.send_data(piece.into(), is_last).is_err() || is_last {
                return Poll::Ready(Ok(()));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
