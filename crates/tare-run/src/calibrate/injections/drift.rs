//! A server that gets slower and slower, as with a table that grows.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::many_short_trials;

pub(super) static INJECTION: Injection = Injection {
    name: "drift",
    about: "a server that gets slower all along",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    // A nanosecond more for each request that was answered before.
    scene.server.traffic.content.templates = true;
    scene.server.path = "/spin?ns={{counter:60000}}".into();
    many_short_trials(scene);
    Ok(())
}
