//! `too-noisy`: the trials differ so much that a comparison could show little.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if};
use crate::capacity::levels::Accounting;
use crate::timeline::trend;
use tare_model::outcome::{Cause, GrossIs};

/// Half of the interval of the gross figure, on the log.
pub(crate) const NOISE_LN: f64 = 0.1;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::TooNoisy,
    title: "The measurement is too noisy to name a bottleneck",
    scope: Scope::Any,
    needs: &[],
    gross_is: GrossIs::Capacity,
    holds: |_| None,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "an effect would not be seen in this noise either",
        instead: "run again when the machine is quieter",
    },
    injections: &[],
    page: &PAGE,
};

fn applies(accounting: &Accounting) -> bool {
    trend::half_width_ln(accounting).is_some_and(|half| half > NOISE_LN)
}

fn describe(accounting: &Accounting) -> Draft {
    let half = trend::half_width_ln(accounting);
    let mut evidence = Vec::new();
    evidence.extend(number_if("half of the 95 % interval of gross", half, "ln"));
    evidence.push(number("trials", accounting.gross_level().trials.len() as f64, "count"));
    Draft {
        summary: format!(
            "The trials differ: the gross figure is known to ±{:.0} % only.",
            100.0 * crate::capacity::stopping::half_width_ratio(half.unwrap_or(0.0))
        ),
        effect_ln: 0.0,
        confidence: if half.is_some_and(|half| half > NOISE_LN) { 1.0 } else { 0.0 },
        evidence,
        remedy: "take more trials (--trials), or longer ones (of a server: -d), and look at the parts of the tare that vary"
            .to_owned(),
        confirm: "four times as many trials halve the interval".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The trials differ so much that a comparison shows little.",
    means: &[
        "Half of the 95 % interval of gross is more than 10 %. A change smaller than that cannot be seen in \
         this run.",
        "It is a finding about the measurement. What made the trials differ is mostly another finding, or \
         the host's interference.",
    ],
    evidence: &["Half of the 95 % interval of the gross figure, as a logarithm, and the number of trials."],
    looks_the_same: &[
        "`not-steady`: the trials differ in one direction.",
        "`steal`, `cpu-contended`, `clock-dropped`: what differs has a name. Remove it first.",
        "Two modes (for example a thread that lands on one core or on another) look like noise. The \
         timeline in `tare report` shows levels.",
    ],
    to_do: &[
        "Take more or longer trials: `tare run --precision 2% --budget 5m URL`. Four times as many halve \
         the interval.",
        "Make the machine quieter: `tare doctor` says what disturbs, `tare tune --apply` holds the clock.",
        "For a difference, compare interleaved: `tare compare`. What both lose alike goes out of the ratio.",
    ],
    to_confirm: &[
        "There is no intervention: an effect would not be seen in this noise either. With four times as \
         many trials the interval is half as wide.",
    ],
    source: &["The spread of gross over the trials (jackknife, Student's t). A. Georges, D. Buytaert, L. \
         Eeckhout, Statistically Rigorous Java Performance Evaluation, OOPSLA 2007."],
};
