//! A page that is not there.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection =
    Injection { name: "error-page", about: "a page that is not there", needs: &[Need::Cpus(2)], put_up };

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.path = "/status/404".into();
    Ok(())
}
