//! More threads of the generator than it has CPUs.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "generator-oversubscribed",
    about: "eight threads of the generator on one CPU",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.load_threads = 8;
    Ok(())
}
