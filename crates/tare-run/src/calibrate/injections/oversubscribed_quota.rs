//! A CPU quota on a server of several threads, which use it up together.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::{MANY_PERIODS, Quota};

pub(super) static INJECTION: Injection = Injection {
    name: "oversubscribed-quota",
    about: "a quota of 30 % on a server of four threads",
    needs: &[Need::Cpus(2), Need::Controller("cpu")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let quota = Quota::of(0.3, ground)?;
    quota.holds(&mut scene.server);
    scene.server.threads(4, &[ground.place.sut_cpu]);
    scene.trial = MANY_PERIODS;
    scene.hold(quota);
    Ok(())
}
