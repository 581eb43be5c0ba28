//! A program that waits.

use super::{Ground, Injection, LabError, Scene};

pub(super) static INJECTION: Injection =
    Injection { name: "program-sleeps", about: "a program that sleeps", needs: &[], put_up };

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.command = Some(vec!["sleep".into(), "0.2".into()]);
    Ok(())
}
