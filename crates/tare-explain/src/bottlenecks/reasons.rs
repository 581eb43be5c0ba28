//! How the bottleneck was chosen, so that a reader can check it: which rules were considered, and why each lost (`-v`, `-vv`).

use crate::bottlenecks::bottleneck::Bottleneck;
use crate::bottlenecks::rank::Claim;
use crate::capacity::levels::Accounting;
use std::collections::BTreeSet;
use tare_model::outcome::Evidence;
use tracing::{Level, debug, enabled, info};

/// What a rule saw, at most: the first figures are those that it goes by.
const FIGURES_MAX: usize = 5;

type Claimed = (&'static Bottleneck, Claim);

/// Of all rules and their claims, the `first` one. `open`: the time accounting does not close.
pub(super) fn report(
    accounting: &Accounting,
    claims: &[(&'static Bottleneck, Option<Claim>)],
    first: Option<Claimed>,
    open: bool,
) {
    if enabled!(target: "readings", Level::DEBUG) {
        report_unread(accounting);
    }
    if !enabled!(target: "rules", Level::INFO) {
        return;
    }
    for (bottleneck, claim) in claims {
        match (claim, first) {
            (Some(claim), Some((named, _))) if named.cause == bottleneck.cause => {
                let figures = figures(bottleneck, accounting);
                let named = match open && claim.by_time {
                    true => "would be named, if the time accounting closed",
                    false => "is named",
                };
                info!(target: "rules", "{} {named}: {}; {figures}", bottleneck.cause.id(), claim.rank.says());
            }
            (Some(claim), Some(best)) => {
                info!(target: "rules", "{} holds too, {}", bottleneck.cause.id(), why_less(*claim, best));
            }
            (Some(_) | None, _) => report_idle(bottleneck, accounting),
        }
    }
}

fn why_less(claim: Claim, (named, best): Claimed) -> String {
    match claim.rank == best.rank {
        true => format!(
            "as much as {}, and with a smaller share ({:.3} to {:.3})",
            named.cause.id(),
            claim.share,
            best.share
        ),
        false => format!(
            "and counts less than {}: '{}' comes before '{}'",
            named.cause.id(),
            best.rank.says(),
            claim.rank.says()
        ),
    }
}

/// A rule that does not hold, and what it saw; or what it could not see.
fn report_idle(bottleneck: &Bottleneck, accounting: &Accounting) {
    let missing = bottleneck.needs.iter().find_map(|input| input.missing(accounting));
    match missing {
        Some(missing) => {
            debug!(target: "rules", "{} was not judged: {}", bottleneck.cause.id(), missing.why);
        }
        None => {
            let figures = figures(bottleneck, accounting);
            debug!(target: "rules", "{} does not hold; {figures}", bottleneck.cause.id());
        }
    }
}

fn figures(bottleneck: &Bottleneck, accounting: &Accounting) -> String {
    let evidence = (bottleneck.describe)(accounting).evidence;
    // Adding 0 takes the sign from a zero.
    let figure = |Evidence { name, value, unit }: &Evidence| format!("{name} {:.4} {unit}", value + 0.0);
    let figures: Vec<String> =
        evidence.iter().filter(|number| number.value.is_finite()).take(FIGURES_MAX).map(figure).collect();
    if figures.is_empty() { "nothing that it looks at was seen".to_owned() } else { figures.join(", ") }
}

/// What the observers could not read, once each.
fn report_unread(accounting: &Accounting) {
    let absences = accounting.record.trials.iter().flat_map(|trial| &trial.observation.absences);
    let unread: BTreeSet<(&str, &str)> =
        absences.map(|absence| (absence.metric.as_str(), absence.reason.why.as_str())).collect();
    for (metric, why) in unread {
        debug!(target: "readings", "{metric}: no figure: {why}");
    }
}
