//! Nothing in the way: what is found then is always there.

use super::{Ground, Injection, LabError, Need, Scene};
use std::time::Duration;

pub(super) static INJECTION: Injection = Injection {
    name: "none",
    about: "nothing: the server and a fast generator",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    // Trials enough that chance alone makes no drift and no noise of them: a core that is shared is slow for most of a second.
    (scene.trials, scene.trial) = (12, Duration::from_millis(600));
    Ok(())
}
