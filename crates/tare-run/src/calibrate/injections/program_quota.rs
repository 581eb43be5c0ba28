//! A program in a group with a quota.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::{COMPUTES, Quota, shell};

pub(super) static INJECTION: Injection = Injection {
    name: "program-quota",
    about: "a program that computes under a quota of 30 %",
    needs: &[Need::Controller("cpu")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let quota = Quota::of(0.3, ground)?;
    // The program takes the server's place, in its group too.
    quota.holds(&mut scene.server);
    scene.command = Some(shell(COMPUTES));
    scene.hold(quota);
    Ok(())
}
