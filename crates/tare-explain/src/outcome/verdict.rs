//! What holds the figure of the asked level, what was lost beside it, and whether that can be trusted.

use super::{ceiling, confirmation, generator_report, own_count, warnings};
use crate::accounting::NO_VERDICT;
use crate::bottlenecks;
use crate::bottlenecks::signs::concurrency::little_more;
use crate::bottlenecks::signs::requests::fails;
use crate::capacity::levels::Accounting;
use crate::capacity::schedule;
use tare_model::outcome::{Cause, GrossIs, Verdict};

/// The verdict, and what the gross figure measures.
pub(crate) fn verdict(accounting: &Accounting) -> (Verdict, GrossIs) {
    let (verdict, gross_is) = verdict_on_answers(accounting);
    let valid = verdict.valid && !schedule::missed(&accounting.asked.pool);
    (Verdict { valid, ..verdict }, gross_is)
}

/// The same of a stage that shows what the server can do: its figure is that of its answers, not of the rate that was asked for.
pub(crate) fn verdict_on_capacity(accounting: &Accounting) -> (Verdict, GrossIs) {
    let (mut verdict, gross_is) = verdict_on_answers(accounting);
    verdict.warnings.retain(|warning| warning.id != warnings::SCHEDULE_MISSED);
    (verdict, gross_is)
}

fn verdict_on_answers(accounting: &Accounting) -> (Verdict, GrossIs) {
    let open = accounting.asked.pool.residuals().0.is_some_and(|residual| residual > NO_VERDICT);
    let bottleneck = bottlenecks::decide(accounting, open);
    let judgement = bottlenecks::judge(accounting, bottleneck.cause);
    let own = judgement.findings.iter().find(|finding| finding.cause == bottleneck.cause);
    let counted = accounting.asked.pool.answered.rate_hz();
    let gross =
        accounting.http.map_or_else(|| crate::capacity::runs::mean_s(&accounting.asked.pool), |_| counted);
    let verdict = Verdict {
        valid: (gross.is_some_and(|value| value > 0.0 && value.is_finite()) || is_uncounted(accounting))
            && !open
            && accounting.asked.pool.unclaimed_share().is_none()
            // Errors show in the requests, whatever the time accounting says.
            && !fails(accounting)
            && generator_report::other_time(accounting).is_none()
            && own_count::other_count(accounting).is_none()
            && ceiling::above_link(accounting).is_none(),
        warnings: warnings::warnings(accounting, bottleneck, &judgement.unjudged),
        bottleneck: bottleneck.cause,
        bottleneck_confidence: own.map(|finding| finding.confidence),
        findings: judgement.findings,
        confirmation: accounting.record.intervention.as_ref().map(confirmation::confirmation),
    };
    let gross_is = match accounting.http {
        None => GrossIs::Capacity,
        // What holds it has no name, and more connections hardly helped.
        Some(_) if bottleneck.cause == Cause::Unknown && little_more(accounting).is_some() => {
            GrossIs::Capacity
        }
        Some(_) => bottleneck.gross_is,
    };
    (verdict, gross_is)
}

/// Whether a server that is not asked over HTTP was loaded, and nobody counted what it did: its CPU time and time accounting stand
/// for themselves.
fn is_uncounted(accounting: &Accounting) -> bool {
    let any_protocol = accounting.http.is_some_and(|server| server.url.is_none());
    any_protocol && !accounting.asked.trials.is_empty() && accounting.asked.pool.answered.requests.is_none()
}
