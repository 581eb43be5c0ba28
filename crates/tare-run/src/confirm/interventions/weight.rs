//! CPU time that a neighbour takes: now and then the server is put into a group that measures so much against whoever else wants its CPUs
//! that it has them nearly to itself. The neighbour waits as if it were paused, and nothing of it is changed, as it is somebody's.

use super::{Change, Ground, Intervention, Lever, Toggle};
use std::rc::Rc;
use tare_machine::Root;
use tare_machine::journal::{Journal, MadeGroup, Members};
use tare_model::Missing;

pub(super) static INTERVENTION: Intervention = Intervention { name: "weight", floor: 0.5, prepare };

/// Against one that takes half of a CPU all but a fiftieth are the server's then.
const TIMES: u32 = 50;
/// Who loses less to others has hardly anything to get back.
const TAKEN_MIN: f64 = 0.05;

fn prepare<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let accounting = ground.server()?;
    let there_is = accounting.entitled_cpus;
    let own = 1.0 - accounting.losses_cpus.get("preempted").copied().unwrap_or(0.0) / there_is;
    if !(own > 0.0 && own < 1.0 - TAKEN_MIN) {
        return Err(Missing::new("what others take of its CPUs is too little to be given back"));
    }
    let threads = u32::try_from(accounting.serving.threads.max(1)).unwrap_or(u32::MAX);
    let mut weight = Weight { journal: ground.journal, pids: ground.pids, threads, group: None };
    // Whether it can be done is known before the first trial.
    weight.set(true)?;
    weight.set(false)?;
    Ok(Change {
        what: format!("the server's part of its CPUs ({TIMES} times the weight against its neighbours)"),
        unit: "CPUs",
        before: own * there_is,
        changed: share(own, f64::from(TIMES)) * there_is,
        by: Lever::Toggle(Box::new(weight)),
    })
}

/// What becomes of a share of a CPU when its owner measures so many times as much against those who have the rest.
fn share(own: f64, times: f64) -> f64 {
    times * own / (times * own + 1.0 - own)
}

/// A group that measures more, there only while it does: in a group of its own a server has another part of its CPUs than without, however little
/// that measures.
struct Weight<'a> {
    journal: &'a Rc<Journal>,
    pids: &'a [u32],
    threads: u32,
    group: Option<MadeGroup>,
}

impl Toggle for Weight<'_> {
    fn set(&mut self, changed: bool) -> Result<(), Missing> {
        self.group = None;
        if changed {
            let reported = |error: &dyn std::fmt::Display| Missing::new(error.to_string());
            let group = MadeGroup::around(self.journal, &Root::live(), Members::Processes(self.pids));
            let group = self.group.insert(group.map_err(|error| reported(&error))?);
            group.set_weight(self.threads.saturating_mul(TIMES)).map_err(|error| reported(&error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_by_less_than_the_weight() {
        assert!((share(0.5, 3.0) - 0.75).abs() < 1e-12 && (share(0.2, 1.0) - 0.2).abs() < 1e-12);
        assert!(share(0.9, f64::from(TIMES)) < 1.0);
    }
}
