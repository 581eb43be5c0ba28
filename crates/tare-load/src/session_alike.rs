//! Answers that are like the last one, to requests that are all the same: of a pipeline they come many at a time, and
//! cost no more than their comparison and their counting.

use super::{Sent, Session};
use crate::request::Written;
use tare_http::response::Repeated;

impl Session {
    /// Reads whole answers that are like the last one, to requests that are alike, as long as they come, with nothing
    /// else to be done for each; how many bytes they had. Whatever is different is left to the reader.
    #[inline]
    pub(super) fn read_alike(&mut self, c: u32, bytes: &[u8], now_ns: u64) -> usize {
        let connection = &mut self.connections[c as usize];
        if self.alike_bytes == 0 || connection.first_ns != 0 || connection.reader.in_body() {
            return 0;
        }
        let left = (connection.outstanding - connection.unsent) / self.alike_bytes as usize;
        let Some(Repeated { count, bytes_each, answer }) = self.heads[0].repeated(bytes, left) else {
            return 0;
        };
        if count == 0 || answer.status >= 400 || !answer.keep_alive {
            return 0;
        }
        for _ in 0..count {
            let origin_ns = self.rings[(c * self.depth + connection.first) as usize].origin_ns;
            self.tally.answered(origin_ns, now_ns, answer.status);
            connection.first = if connection.first + 1 == self.depth { 0 } else { connection.first + 1 };
        }
        connection.in_flight -= count as u32;
        connection.outstanding -= count * self.alike_bytes as usize;
        connection.failures = 0;
        count * bytes_each
    }

    /// Fills connection `c` in a closed loop.
    #[inline]
    pub(super) fn fill_alike(&mut self, c: u32, now_ns: u64) {
        let connection = &mut self.connections[c as usize];
        let room = self.depth - connection.in_flight;
        let count = self.quota.spend_up_to(room);
        let ring = &mut self.rings[(c * self.depth) as usize..][..self.depth as usize];
        let written = Written { len: self.alike_bytes, heads: 0 };
        let mut slot = connection.first + connection.in_flight;
        for _ in 0..count {
            slot = if slot >= self.depth { slot - self.depth } else { slot };
            ring[slot as usize] = Sent { origin_ns: now_ns, sent_ns: now_ns, written };
            slot += 1;
        }
        connection.in_flight += count;
        connection.outstanding += count as usize * self.alike_bytes as usize;
        connection.unsent += count as usize * self.alike_bytes as usize;
        if count < room {
            self.leave(c, now_ns);
        }
    }
}
