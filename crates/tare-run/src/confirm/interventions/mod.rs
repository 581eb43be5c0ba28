//! What is tried on each cause: one file each, and the registry.

mod concurrency;
mod cpu;
mod placement;
mod quota;
mod rate;
mod weight;

use super::intervention::{Change, Ground, Intervention, Lever, Toggle};
use tare_explain::bottlenecks::{self, Confirm};
use tare_model::Missing;
use tare_model::outcome::Cause;

/// Every intervention. Which one is tried on a cause is said by the bottleneck that names it.
static INTERVENTIONS: &[&Intervention] = &[
    &cpu::GENERATOR,
    &cpu::SERVER,
    &cpu::ONE_THREAD,
    &quota::INTERVENTION,
    &concurrency::INTERVENTION,
    &rate::INTERVENTION,
    &placement::INTERVENTION,
    &weight::INTERVENTION,
];

/// What is tried on a cause.
///
/// # Errors
/// Nothing can be: why not, and what to do instead.
pub(super) fn of(cause: Cause) -> Result<&'static Intervention, Missing> {
    match bottlenecks::of(cause).confirm {
        Confirm::By(name) => INTERVENTIONS
            .iter()
            .find(|intervention| intervention.name == name)
            .copied()
            .ok_or_else(|| Missing::new(format!("there is no intervention '{name}'"))),
        Confirm::Cannot { why, instead } => Err(Missing::with_remedy(why, instead)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_cause_is_tried_or_says_why_not() {
        let (mut tried, mut reported) = (BTreeSet::new(), 0);
        for bottleneck in bottlenecks::all() {
            let cause = bottleneck.cause;
            match (of(cause), bottleneck.confirm) {
                (Ok(intervention), _) => {
                    assert!(intervention.floor > 0.0 && intervention.floor < 1.0, "{cause:?}");
                    tried.insert(intervention.name);
                }
                (Err(missing), Confirm::By(name)) => panic!("{cause:?} names {name}: {missing:?}"),
                (Err(missing), Confirm::Cannot { .. }) => {
                    assert!(missing.why.len() > 10 && missing.remedy.len() > 10, "{cause:?}: {missing:?}");
                    reported += 1;
                }
            }
        }
        let all: BTreeSet<&str> = INTERVENTIONS.iter().map(|intervention| intervention.name).collect();
        assert_eq!((tried, all.len()), (all, INTERVENTIONS.len()));
        assert!(reported > 10, "{reported}");
    }
}
