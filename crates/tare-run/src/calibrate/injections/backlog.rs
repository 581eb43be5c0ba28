//! An accept queue that is full at every burst of connections.

use super::{Ground, Injection, LabError, Need, Scene};
use tare_load::{Gaps, Pacing};

pub(super) static INJECTION: Injection = Injection {
    name: "backlog",
    about: "an accept queue of one connection, bursts of 256",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let server = &mut scene.server;
    server.option("--backlog", "1");
    let traffic = &mut server.traffic;
    (traffic.keep_alive, traffic.connections) = (false, 256);
    // Who finds the queue full tries again after 1, 3 and 7 s: that is slow, and no error.
    traffic.timeout_ns = 15_000_000_000;
    traffic.pacing = Pacing::Thinking { mean_ns: 50_000_000, gaps: Gaps::Fixed };
    Ok(())
}
