//! Too few requests in flight.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection =
    Injection { name: "one-connection", about: "a single connection", needs: &[Need::Cpus(2)], put_up };

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.traffic.connections = 1;
    Ok(())
}
