//! A handler that waits for the disk.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "fsync",
    about: "a handler that waits until the disk has a byte",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.traffic.connections = 4;
    scene.server.path = "/fsync".into();
    Ok(())
}
