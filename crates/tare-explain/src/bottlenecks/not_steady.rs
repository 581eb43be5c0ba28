//! `not-steady`: the figure drifts from trial to trial, so its mean describes no state of the server.

use super::{Draft, Rule, Scope, number};
use crate::capacity::levels::Accounting;
use crate::timeline::trend;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule =
    Rule { cause: Cause::NotSteady, scope: Scope::Any, needs: &[], applies, describe };

fn applies(accounting: &Accounting) -> bool {
    trend::drift(accounting).is_some_and(|drift| drift.is_clear())
}

fn describe(accounting: &Accounting) -> Draft {
    let Some(drift) = trend::drift(accounting) else {
        return Draft { summary: "There are too few trials to see a drift.".to_owned(), ..Draft::default() };
    };
    Draft {
        summary: format!(
            "The figure moved by {:+.1} % from the first trials to the last: this was not a steady state.",
            100.0 * (drift.ln.exp() - 1.0)
        ),
        // What the worse half of the trials had less than the better one, whichever came first.
        effect_ln: drift.ln.abs(),
        confidence: drift.confidence(),
        evidence: vec![
            number("second half of the trials against the first", drift.ln, "ln"),
            number("trials", drift.trials as f64, "count"),
        ],
        remedy: "warm up longer, or find what changes (clock, memory, caches) and take later trials only"
            .to_owned(),
        confirm: "in a longer run the later trials agree with each other".to_owned(),
    }
}
