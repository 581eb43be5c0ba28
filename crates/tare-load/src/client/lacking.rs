//! Requests that can no longer be sent: the files that they are read from changed underway.

use super::{Client, Verdict};
use crate::fault::Fault;

impl Client {
    /// What connection `c` has to send [is not there](Client::unsent): its current request failed.
    #[cold]
    pub(crate) fn cannot_be_sent(&mut self, c: u32) -> Verdict {
        if self.is_lacking(c) {
            return self.fail(c, Fault::request_file());
        }
        self.broke(c, Fault::body_file())
    }

    /// Whether the file of requests had none for the current one of connection `c`.
    #[inline]
    pub(super) fn is_lacking(&self, c: u32) -> bool {
        self.requests.are_lines()
            && self.places.at(c).in_flight > 0
            && self.places.current(c).written.is_lacking()
    }
}
