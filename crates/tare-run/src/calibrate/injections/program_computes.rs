//! A program that computes.

use super::{Ground, Injection, LabError, Scene};
use crate::calibrate::props::{COMPUTES, shell};

pub(super) static INJECTION: Injection =
    Injection { name: "program-computes", about: "a program that computes", needs: &[], put_up };

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.command = Some(shell(COMPUTES));
    Ok(())
}
