//! What an engine says that reads answers by itself, each request in a place of its own: a stream of HTTP/2.

use super::{Client, Verdict};
use crate::body_file::BodyFile;
use crate::fault::Fault;
use std::sync::Arc;
use tare_http::response::{Answer, Listener};

impl Client {
    /// The request of place `c` was given away whole.
    pub(crate) fn gave_away(&mut self, c: u32) {
        self.places.at_mut(c).unsent = 0;
    }

    /// What follows each request's head, where that stays in its file.
    pub(crate) fn upload(&self) -> Option<Arc<BodyFile>> {
        self.requests.upload()
    }

    /// What inspects the answer at place `c`.
    pub(crate) fn listener(&mut self, c: u32) -> Option<impl Listener + '_> {
        self.inspect.as_mut().map(|inspect| inspect.listener(c))
    }

    /// The head of the answer at place `c` came at `now_ns`, and its end did not.
    pub(crate) fn began(&mut self, c: u32, now_ns: u64) {
        let connection = self.places.at_mut(c);
        if connection.first_ns == 0 {
            connection.first_ns = now_ns;
        }
    }

    /// The answer at place `c` is whole.
    pub(crate) fn was_answered(&mut self, c: u32, answer: Answer, now_ns: u64) -> Verdict {
        let before = self.tally.answers;
        let verdict = self.answered(c, answer, now_ns);
        self.settle(before, now_ns);
        verdict
    }

    /// The request at place `c` failed, and its stream is gone.
    pub(crate) fn lost(&mut self, c: u32, fault: impl Into<Fault>) {
        if self.places.at(c).in_flight > 0 {
            self.fail(c, fault);
        }
    }

    /// The stream of place `c` is gone, and the server has done nothing for its request: that is sent again when the
    /// place is opened again.
    pub(crate) fn interrupted(&mut self, c: u32) {
        self.close(c);
    }

    /// The connection of place `c` is gone, after it had `answered` anything at all.
    pub(crate) fn disconnected(&mut self, c: u32, answered: bool) {
        self.close(c);
        if answered {
            self.places.at_mut(c).failures = 0;
        }
        self.places.count_failure(c);
    }

    /// Counts what passed a connection.
    pub(crate) fn passed(&mut self, bytes_in: u64, bytes_out: u64) {
        self.tally.bytes_in += bytes_in;
        self.tally.bytes_out += bytes_out;
    }
}
