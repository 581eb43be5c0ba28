//! Server and generator on the two threads of one core.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "shared-core",
    about: "the generator on the sibling of the server's CPU",
    needs: &[Need::Sibling],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    // Without a sibling it is not made.
    scene.server.load_cpus = ground.place.sibling.into_iter().collect();
    Ok(())
}
