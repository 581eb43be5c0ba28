//! `clock-dropped`: the CPUs ran below the clock they are known to reach in this record.

use super::{Draft, Input, Rule, Scope, number_if};
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, TareCause};

/// Below this the median's distance from the 95th percentile is the probe's own spread.
const NOTICE_LN: f64 = 0.05;

pub(super) static RULE: Rule = Rule {
    cause: Cause::ClockDropped,
    scope: Scope::Any,
    needs: &[Input::Clock, Input::Net],
    applies,
    describe,
};

fn applies(accounting: &Accounting) -> bool {
    accounting.effect(TareCause::Clock) >= NOTICE_LN
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let clock_hz = pool.clock_hz();
    let reference_hz =
        accounting.net_estimate.as_ref().ok().and_then(|net_estimate| net_estimate.reference_hz);
    let ghz = |hz: Option<f64>| hz.map_or("unknown".to_owned(), |hz| format!("{:.2} GHz", hz / 1e9));
    let mut evidence = Vec::new();
    evidence.extend(number_if("effective clock", clock_hz, "Hz"));
    evidence.extend(number_if("reference clock", reference_hz, "Hz"));
    evidence.extend(number_if("samples", Some(pool.hardware.clocks_hz.len() as f64), "count"));
    let threshold = reference_hz.map_or(0.0, |hz| hz * (-NOTICE_LN).exp());
    Draft {
        summary: format!("The CPUs ran at {} where the reference is {}.", ghz(clock_hz), ghz(reference_hz)),
        effect_ln: accounting.effect(TareCause::Clock),
        confidence: 1.0 - accounting.support(crate::accounting::Closed::clock_hz, threshold),
        evidence,
        remedy:
            "hold the clock (governor, power profile, cooling); under a hypervisor that is the host's to do"
                .to_owned(),
        confirm: "with the clock held the part is gone and the cost in cycles stays".to_owned(),
    }
}
