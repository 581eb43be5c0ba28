//! Somebody else on the generator's CPU.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "generator-neighbour",
    about: "a busy loop on the generator's CPU",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.hold(ground.neighbour(ground.place.load_cpu)?);
    Ok(())
}
