//! A CPU quota that the server's own group does not show.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::{MANY_PERIODS, Quota};

pub(super) static INJECTION: Injection = Injection {
    name: "parent-quota",
    about: "a quota of 30 % on the parent of the server's group",
    needs: &[Need::Cpus(2), Need::Controller("cpu")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let quota = Quota::of(0.3, ground)?;
    let inner = quota.inner()?;
    inner.holds(&mut scene.server);
    scene.trial = MANY_PERIODS;
    // The inner one is taken down first.
    scene.hold(quota);
    scene.hold(inner);
    Ok(())
}
