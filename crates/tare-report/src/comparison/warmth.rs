//! How warm servers were when they were counted, and what they cost beside each other.

use crate::format::{change, seconds};
use std::collections::BTreeMap;
use tare_model::comparison::{ArmWarmUp, Change, Comparison, LaunchWarmUp};

/// A fall by less is no news.
const NEWS: f64 = 1.1;

/// `9.5 s of load before each launch is counted; the JVM of A cost 15.2 times as much at first`
pub(super) fn warm_up(comparison: &Comparison) -> Option<String> {
    let all: Vec<&LaunchWarmUp> =
        comparison.launches.iter().filter_map(|launch| launch.warm_up.as_ref()).collect();
    let length_s = tare_stats::median(&all.iter().map(|warm_up| warm_up.length_s).collect::<Vec<_>>())?;
    let mut said = vec![format!("{} of load before a launch is counted", seconds(length_s))];
    for (at, program) in comparison.programs.iter().enumerate() {
        // The second arm is the first program as well.
        let arm = if at == 0 { 0 } else { at + 1 };
        let arms: Vec<&ArmWarmUp> = all.iter().filter_map(|warm_up| warm_up.arms.get(arm)).collect();
        let Some(runtime) = arms.iter().find_map(|arm| arm.runtime.as_deref()) else { continue };
        let falls: Vec<f64> = arms.iter().filter_map(|arm| arm.cost_fall).collect();
        let fall = tare_stats::median(&falls).filter(|fall| *fall > NEWS);
        let fell = fall
            .map_or_else(String::new, |fall| format!(", a request cost {fall:.1} times as much at first"));
        said.push(format!("{} ({runtime}){fell}", program.name));
    }
    let cold = all.iter().filter(|warm_up| !warm_up.is_steady).count();
    if cold > 0 {
        said.push(format!("{cold} of {} launches were not steady after it", all.len()));
    }
    Some(said.join("; "))
}

/// How the cost went from window to window of a launch: `A −0.4 %, B +0.2 %`, of runtimes that compile.
pub(super) fn windows(comparison: &Comparison) -> Option<String> {
    let mut trends: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut windows = 0;
    for launch in &comparison.launches {
        for (at, program) in comparison.programs.iter().enumerate() {
            let Some(arm) = launch.arms.get(if at == 0 { 0 } else { at + 1 }) else { continue };
            if let [first, .., last] = arm.windows_s.as_slice() {
                trends.entry(&program.name).or_default().push(last / first - 1.0);
                windows = windows.max(arm.windows_s.len());
            }
        }
    }
    let each: Vec<String> = trends
        .iter()
        .filter_map(|(name, trends)| Some(format!("{name} {}", change(tare_stats::median(trends)?))))
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "{windows} counted in each launch; CPU time of a request in the last against the first: {}",
            each.join(", ")
        )
    })
}

/// `A +1.2 % (−0.4 to +2.8) against the same server alone`
pub(super) fn interleaving(comparison: &Comparison, whole: fn(Change) -> String) -> Option<String> {
    let each: Vec<String> =
        comparison.interleaving.iter().map(|one| format!("{} {}", one.program, whole(one.change))).collect();
    (!each.is_empty())
        .then(|| format!("CPU time of a request against the same server alone: {}", each.join(", ")))
}
