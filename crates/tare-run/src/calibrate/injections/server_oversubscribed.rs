//! More threads of the server than it has CPUs, all with work.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "server-oversubscribed",
    about: "eight threads of the server on one CPU",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.threads(8, &[ground.place.sut_cpu]);
    scene.server.path = "/spin?ns=50000".into();
    Ok(())
}
