//! `not-steady`: the figure drifts from trial to trial, so its mean describes no state of the server.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number};
use crate::capacity::levels::Accounting;
use crate::timeline::trend;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::NotSteady,
    title: "There is no steady state yet",
    scope: Scope::Any,
    needs: &[],
    gross_is: GrossIs::Capacity,
    holds: |_| None,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "there is no level to compare with",
        instead: "warm up for longer (-w), and run again",
    },
    injections: &["cold-start", "drift"],
    page: &PAGE,
};

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

static PAGE: Page = Page {
    brief: "The figure moves from the first trials to the last.",
    means: &[
        "The second half of the trials differs from the first by more than chance allows. Caches fill, code \
         is compiled, memory grows, the clock falls, or somebody else begins to work.",
        "The effect is how far the figure moved. Compare runs only in the same state.",
    ],
    evidence: &["Second half of the trials against the first, as a logarithm, and the number of trials."],
    looks_the_same: &[
        "`too-noisy`: the trials differ without a direction.",
        "`clock-dropped`, `steal`, `cpu-contended`: they name what moved, if it moved during the run.",
        "A leak or a growing table never becomes steady. A longer warm-up does not end it.",
    ],
    to_do: &[
        "Warm up for longer: `tare run -w 30s URL`. Without `-w` tare warms up until the rate keeps one \
         level, for 20 s at most.",
        "Look at the timeline of the rate in `tare report`, and at what changed between two records: `tare \
         why a.tare b.tare`.",
        "For a series of your own, `tare steady` finds where it becomes steady.",
    ],
    to_confirm: &[
        "There is no intervention: there is no level to compare with. In a longer run the later trials \
         agree with each other.",
    ],
    source: &[
        "The gross figure of each trial, a test for a difference of halves. E. Barrett and others, Virtual \
         Machine Warmup Blows Hot and Cold, OOPSLA 2017.",
    ],
};
