//! Server and generator on one CPU.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "shared-cpu",
    about: "the generator on the server's CPU",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.load_cpus = vec![ground.place.sut_cpu];
    Ok(())
}
