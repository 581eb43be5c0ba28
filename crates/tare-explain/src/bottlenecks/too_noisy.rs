//! `too-noisy`: the trials differ so much that a comparison could show little.

use super::{Draft, Rule, Scope, number, number_if};
use crate::capacity::levels::Accounting;
use crate::timeline::trend;
use tare_model::outcome::Cause;

/// Half of the interval of the gross figure, on the log.
pub(crate) const NOISE_LN: f64 = 0.1;

pub(super) static RULE: Rule =
    Rule { cause: Cause::TooNoisy, scope: Scope::Any, needs: &[], applies, describe };

fn applies(accounting: &Accounting) -> bool {
    trend::half_width_ln(accounting).is_some_and(|half| half > NOISE_LN)
}

fn describe(accounting: &Accounting) -> Draft {
    let half = trend::half_width_ln(accounting);
    let mut evidence = Vec::new();
    evidence.extend(number_if("half of the 95 % interval of gross", half, "ln"));
    evidence.push(number("trials", accounting.asked.trials.len() as f64, "count"));
    Draft {
        summary: format!(
            "The trials differ: the gross figure is known to ±{:.0} % only.",
            100.0 * trend::half_width_ratio(half.unwrap_or(0.0))
        ),
        effect_ln: 0.0,
        confidence: if half.is_some_and(|half| half > NOISE_LN) { 1.0 } else { 0.0 },
        evidence,
        remedy: "take more or longer trials (--trials, -d), and look at the parts of the tare that vary"
            .to_owned(),
        confirm: "four times as many trials halve the interval".to_owned(),
    }
}
