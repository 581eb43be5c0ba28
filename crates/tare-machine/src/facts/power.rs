//! Mains or battery.

use super::files;
use crate::root::Root;
use tare_model::survey::{Power, Supply};
use tare_model::{Missing, Reading};

const DIR: &str = "/sys/class/power_supply";

pub(super) fn read(root: &Root) -> Power {
    Power {
        supplies: supplies(root).into(),
        platform_profile: files::word(root, "/sys/firmware/acpi/platform_profile").into(),
    }
}

fn supplies(root: &Root) -> Result<Vec<Supply>, Missing> {
    let supply = |name: String| {
        let file = |file: &str| format!("{DIR}/{name}/{file}");
        Supply {
            kind: files::word(root, &file("type")).into(),
            online: online(root, &file("online")).into(),
            status: files::word(root, &file("status")).into(),
            scope: scope(root, &file("scope")),
            name,
        }
    };
    Ok(root.names(DIR)?.into_iter().map(supply).collect())
}

/// 2 is online as well, at a voltage that is negotiated (USB-C).
fn online(root: &Root, path: &str) -> Result<bool, Missing> {
    match files::word(root, path).as_deref() {
        Ok("2") => Ok(true),
        _ => files::switch(root, path),
    }
}

/// Drivers that serve the machine itself leave it out, or say `System`.
fn scope(root: &Root, path: &str) -> Reading<String> {
    match root.exists(path) {
        true => files::word(root, path).into(),
        false => Reading::NotApplicable {
            not_applicable: "its driver states no scope: it serves the machine".into(),
        },
    }
}
