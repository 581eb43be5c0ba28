//! Answers that are like the last one, to requests that are all the same: of a pipeline they come many at a time, and
//! cost no more than their comparison and their counting.

use super::places::{Places, Sent};
use crate::quota::Quota;
use crate::request::Written;
use crate::tally::Tally;
use tare_http::response::{Heads, Repeated};

/// Requests that are all the same, of so many bytes each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alike {
    bytes: u32,
}

impl Alike {
    pub(super) fn new(bytes: u32) -> Self {
        Alike { bytes }
    }

    /// Reads whole answers that are like the last one, to requests of place `c`, as long as they come, with nothing
    /// else to be done for each; how many bytes they had. Whatever is different is left to the reader.
    #[inline]
    pub(super) fn read(
        self,
        places: &mut Places,
        c: u32,
        heads: &mut Heads,
        tally: &mut Tally,
        (bytes, now_ns): (&[u8], u64),
    ) -> usize {
        let place = &mut places.all[c as usize];
        if place.first_ns != 0 || place.reader.in_body() {
            return 0;
        }
        let left = (place.outstanding - place.unsent) / self.bytes as usize;
        let Some(Repeated { count, bytes_each, answer }) = heads.repeated(bytes, left) else {
            return 0;
        };
        if count == 0 || answer.status >= 400 || !answer.keep_alive {
            return 0;
        }
        for _ in 0..count {
            let origin_ns = places.rings[(c * places.depth + place.first) as usize].origin_ns;
            tally.answered(origin_ns, now_ns, answer.status);
            place.first = if place.first + 1 == places.depth { 0 } else { place.first + 1 };
        }
        place.in_flight -= count as u32;
        place.outstanding -= count * self.bytes as usize;
        place.failures = 0;
        count * bytes_each
    }

    /// Fills place `c` in a closed loop; whether it is full then.
    #[inline]
    pub(super) fn fill(self, places: &mut Places, c: u32, quota: &mut Quota, now_ns: u64) -> bool {
        let place = &mut places.all[c as usize];
        let room = places.depth - place.in_flight;
        let count = quota.spend_up_to(room);
        let ring = &mut places.rings[(c * places.depth) as usize..][..places.depth as usize];
        let written = Written::new(u64::from(self.bytes), 0);
        let mut slot = place.first + place.in_flight;
        for _ in 0..count {
            slot = if slot >= places.depth { slot - places.depth } else { slot };
            ring[slot as usize] = Sent { origin_ns: now_ns, sent_ns: now_ns, written };
            slot += 1;
        }
        place.in_flight += count;
        place.outstanding += count as usize * self.bytes as usize;
        place.unsent += count as usize * self.bytes as usize;
        count == room
    }
}
