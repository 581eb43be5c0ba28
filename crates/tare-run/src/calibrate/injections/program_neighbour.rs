//! A program beside somebody else.

use super::{Ground, Injection, LabError, Scene};
use crate::calibrate::props::{COMPUTES, shell};

pub(super) static INJECTION: Injection = Injection {
    name: "program-neighbour",
    about: "a program that computes beside a busy loop",
    needs: &[],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.command = Some(shell(COMPUTES));
    scene.hold(ground.neighbour(ground.place.sut_cpu)?);
    Ok(())
}
