//! What every engine does in each pass of its event loop.

use crate::worker::Worker;
use std::io;
use tare_sys::time::monotonic_ns;

/// Pieces that are sent to one socket before the others, the timeouts and the caller are served: a server may take a long
/// body as fast as it is sent.
pub(super) const SENDS_MAX: usize = 16;

/// What every engine does when the events of a pass have been served.
pub(super) trait EventLoop {
    fn worker(&mut self) -> &mut Worker;

    /// Sends the request that `place` was just given.
    fn send_from(&mut self, place: u32) -> io::Result<()>;

    /// Hands requests that are due to free places, each with a stamp of its own.
    #[inline]
    fn send_due(&mut self) -> io::Result<()> {
        self.worker().now_ns = monotonic_ns();
        loop {
            let worker = self.worker();
            let Some(place) = worker.client.assign(worker.now_ns) else { return Ok(()) };
            self.send_from(place)?;
            self.worker().now_ns = monotonic_ns();
        }
    }

    /// Looks after what no event reports.
    fn keep_house(&mut self);

    /// Ends a pass in which somebody did or did not wake this thread; true: that was to stop it.
    #[inline]
    fn end_pass(&mut self, woken: bool) -> io::Result<bool> {
        if self.worker().keeps_time() {
            self.send_due()?;
        }
        if self.worker().is_housekeeping_due() {
            self.keep_house();
        }
        self.worker().end_pass();
        if woken {
            if self.worker().answer_the_door() {
                return Ok(true);
            }
            self.send_due()?;
        }
        Ok(false)
    }
}
