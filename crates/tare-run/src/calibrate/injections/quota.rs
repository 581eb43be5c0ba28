//! A CPU quota on the server's own group.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::{MANY_PERIODS, Quota};

pub(super) static INJECTION: Injection = Injection {
    name: "quota",
    about: "a quota of 30 % on the server's group",
    needs: &[Need::Cpus(2), Need::Controller("cpu")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let quota = Quota::of(0.3, ground)?;
    quota.holds(&mut scene.server);
    scene.trial = MANY_PERIODS;
    scene.hold(quota);
    Ok(())
}
