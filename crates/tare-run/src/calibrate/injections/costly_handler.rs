//! A handler that computes.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "costly-handler",
    about: "a handler that computes for 50 µs",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.path = "/spin?ns=50000".into();
    Ok(())
}
