//! A machine's survey, topology and checks.

use crate::machines::Tree;
use std::time::Duration;
use tare_machine::doctor::{Examined, examine};
use tare_machine::facts::{Reach, survey};
use tare_machine::{Root, topology};
use tare_model::Reading;
use tare_model::check::{Check, Level};
use tare_model::survey::Survey;

pub fn surveyed(tree: &Tree) -> Survey {
    // A window is asked for, and not waited for: a tree has no time.
    survey(&Root::at(&tree.dir), Reach { company: Some(Duration::from_secs(60)), windows: true })
}

pub fn checks(tree: &Tree) -> Vec<Check> {
    let topology = topology::read(&Root::at(&tree.dir), None);
    let survey = surveyed(tree);
    let calibration = Reading::missing("not asked");
    examine(&Examined {
        survey: &survey,
        topology: &topology,
        probes: None,
        calibration: &calibration,
        now_unix_s: 0,
    })
}

/// Level and words of a check.
pub fn check(tree: &Tree, id: &str) -> Option<(Level, String)> {
    checks(tree).into_iter().find(|check| check.id == id).map(|check| (check.level, check.found))
}

pub fn text(reading: &Reading<String>) -> String {
    match reading {
        Reading::Measured(text) => text.clone(),
        Reading::Missing(missing) => format!("missing: {}", missing.why),
        Reading::NotApplicable { .. } => "not applicable".to_owned(),
    }
}

pub fn place(tree: &Tree) -> tare_model::topology::Topology {
    topology::read(&Root::at(&tree.dir), None)
}
