//! What is left of a load when it has ended.

use super::support::{Server, hello, run_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tare_load::{Gaps, Generator, Pacing};

/// A server would work it off in whatever is measured next.
#[test]
fn what_was_sent_is_answered_before_connections_are_closed() {
    for gaps in [None, Some(Pacing::Open { rate_hz: 400.0, gaps: Gaps::Fixed })] {
        let answered = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&answered);
        let server = Server::start(move |_, _| {
            std::thread::sleep(Duration::from_millis(50));
            counted.fetch_add(1, Ordering::SeqCst);
            hello()
        });
        let mut spec = server.spec();
        spec.connections = 8;
        spec.pacing = gaps.unwrap_or(spec.pacing);
        let generator = Generator::start(&spec).unwrap();
        run_until(&generator, |live| live.answers >= 12);
        generator.stop().unwrap();
        assert_eq!(answered.load(Ordering::SeqCst), server.requests());
    }
}
