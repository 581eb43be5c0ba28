//! Mains or battery.

use super::files;
use crate::root::Root;
use tare_model::Missing;
use tare_model::survey::{Power, Supply};

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
            online: files::switch(root, &file("online")).into(),
            status: files::word(root, &file("status")).into(),
            name,
        }
    };
    Ok(root.names(DIR)?.into_iter().map(supply).collect())
}
