//! Words that several sections use.

use serde::Serialize;
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::outcome::{Cause, GrossIs, Outcome, Requests, TareCause, TarePart, TrialSummary};

/// The stable id of a cause, as it stands in the JSON result.
pub(crate) fn id(cause: impl Serialize) -> String {
    match serde_json::to_value(cause) {
        Ok(serde_json::Value::String(id)) => id,
        _ => "unknown".into(),
    }
}

/// What a part of the tare is.
pub(crate) fn meaning(cause: TareCause) -> &'static str {
    match cause {
        TareCause::NoWork => "waited for work",
        TareCause::Throttled => "a quota held it back",
        TareCause::Preempted => "others ran while it was ready",
        TareCause::Placement => "the generator or tare ran on its CPUs",
        TareCause::Steal => "the hypervisor ran somebody else",
        TareCause::Irq => "interrupts",
        TareCause::Scheduler => "ready, yet the CPU idled",
        TareCause::SelfContention => "its own threads waited for each other",
        TareCause::Clock => "clock below its reference",
        TareCause::Cost => "request cost above saturation cost",
        TareCause::Interference => "the machine made every program cost more",
        TareCause::ColdAfterThrottling => "caches cold after throttling",
    }
}

/// What a part of this size is, of a server or of a program that nobody loads.
pub(crate) fn meaning_of(part: &TarePart, is_server: bool) -> &'static str {
    match part.cause {
        TareCause::Placement if !is_server => "tare ran on its CPUs",
        TareCause::Clock if part.ln_share < 0.0 => "clock above its reference",
        TareCause::Cost if part.ln_share < 0.0 => "request cost below saturation cost",
        TareCause::Interference if part.ln_share < 0.0 => "the machine disturbed it less than usual",
        cause => meaning(cause),
    }
}

/// What a gross figure measures.
pub(crate) fn gross_is(gross_is: GrossIs) -> &'static str {
    match gross_is {
        GrossIs::Capacity => "measured, as it stands",
        GrossIs::LowerBound => "at least: it could do more",
        GrossIs::Offered => "measured, as it was asked for",
    }
}

/// The bottleneck as the subject of a sentence: from its finding, else its id.
pub(crate) fn bottleneck(outcome: &Outcome) -> String {
    let finding = outcome.verdict.findings.iter().find(|finding| finding.cause == outcome.verdict.bottleneck);
    titled(outcome.verdict.bottleneck, finding.map_or("", |finding| &finding.title))
}

/// A cause's title, or where an older result has none its id.
pub(crate) fn titled(cause: Cause, title: &str) -> String {
    if title.is_empty() { format!("The bottleneck is {}", cause.id()) } else { title.to_owned() }
}

/// The level of a trial, or its stage.
pub(crate) fn level(trial: &TrialSummary) -> String {
    trial.stage.map_or_else(|| trial.level.clone(), |stage| format!("stage {stage}"))
}

/// Why something is missing, and in brackets what would bring it.
pub(crate) fn with_remedy(missing: &Missing) -> String {
    match missing.remedy.as_str() {
        "" => missing.why.clone(),
        remedy => format!("{} ({remedy})", missing.why),
    }
}

/// The same within a sentence: `too few answers; give a longer --window`.
pub(crate) fn then_remedy(missing: &Missing) -> String {
    match missing.remedy.as_str() {
        "" => missing.why.clone(),
        remedy => format!("{}; {remedy}", missing.why),
    }
}

/// A number of things: `1 trial`, `3 trials`.
pub(crate) fn things(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

/// Why requests failed, each reason with its kind: `malformed: chunk size is not a number (5)`.
pub(crate) fn reasons(requests: &Requests) -> Vec<String> {
    let of_kind = |(kind, reasons): (&String, &BTreeMap<String, u64>)| {
        let why = |why: &str| {
            if why.starts_with(kind.as_str()) { why.to_owned() } else { format!("{kind}: {why}") }
        };
        reasons.iter().map(|(reason, count)| format!("{} ({count})", why(reason))).collect::<Vec<_>>()
    };
    requests.error_reasons.iter().flat_map(of_kind).collect()
}
