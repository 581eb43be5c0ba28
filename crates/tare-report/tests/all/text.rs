//! The result in the terminal, in Markdown, as CSV and as JSON.

use insta::assert_snapshot;
use proptest::prelude::*;
use tare_model::outcome::{
    Cause, Confirmation, Confirmed, Followed, LatencySummary, NotTried, Outcome, StageOutcome, Tried,
    WatchedStage,
};
use tare_model::{Missing, Reading};
use tare_report::{Style, csv, json, markdown, terminal};

const PLAIN: Style = Style { color: false, width: 100, unicode: true };

#[test]
fn every_kind_of_result_in_the_terminal() {
    for (name, record, outcome) in crate::support::all() {
        assert_snapshot!(format!("terminal-{name}"), terminal(&record, &outcome, PLAIN));
    }
}

#[test]
fn every_kind_of_result_in_markdown() {
    for (name, record, outcome) in crate::support::all() {
        assert_snapshot!(format!("markdown-{name}"), markdown(&record, &outcome));
    }
}

#[test]
fn every_kind_of_result_as_csv() {
    for (name, _, outcome) in crate::support::all() {
        assert_snapshot!(format!("csv-{name}"), csv(&outcome));
    }
}

#[test]
fn what_was_tried_instead_of_the_bottleneck_is_said_of_both() {
    let (_, record, mut outcome) =
        crate::support::all().into_iter().find(|(name, ..)| *name == "throttled").unwrap();
    let bottleneck = Cause::BlockedOnDisk;
    (outcome.verdict.bottleneck, outcome.verdict.findings[1].cause) = (bottleneck, bottleneck);
    // Of little effect, and yet shown in full: it was tried.
    outcome.verdict.findings[0].effect_ln = 0.001;
    let tried = Tried {
        what: "the quota of /demo".into(),
        unit: "CPUs".into(),
        before: 0.3,
        changed: 0.45,
        pairs: 8,
        elasticity: 0.1,
        ci95: [-0.1, 0.3],
        floor: 0.5,
        verdict: Confirmed::Refuted,
    };
    outcome.verdict.confirmation = Some(Confirmation {
        cause: Cause::CpuQuotaThrottled,
        instead_of: Some(NotTried {
            cause: bottleneck,
            why: Missing::with_remedy("a disk is a disk", "use tmpfs"),
        }),
        tried: Reading::Measured(tried),
    });
    let text = terminal(&record, &outcome, PLAIN).replace('\u{a0}', " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "not possible here: a disk is a disk; use tmpfs; cpu-quota-throttled was tried instead"
        ),
        "{text}"
    );
    assert!(text.contains("refuted: the quota of /demo from 0.30 CPUs to 0.45 CPUs"), "{text}");
    let kept: Outcome = serde_json::from_str(&json(&outcome).unwrap()).unwrap();
    assert_eq!(kept.verdict.confirmation, outcome.verdict.confirmation);
}

fn stage(stage: u32, ends_hz: (f64, f64), rate_hz: f64, followed: bool) -> WatchedStage {
    let ms = |ms: f64| Some(1e6 * ms);
    let latency_ns =
        LatencySummary { p50: ms(1.0), p99: ms(4.0), p99_9: ms(9.0), max: ms(12.0), ..Default::default() };
    let counted = StageOutcome {
        from_hz: ends_hz.0,
        to_hz: ends_hz.1,
        elapsed_s: 6.0,
        offered_hz: Some(0.5 * (ends_hz.0 + ends_hz.1)),
        rate_hz: Some(rate_hz),
        errors: 0,
        followed: Some(followed),
        left_before: 0,
        valid: followed,
        warnings: Vec::new(),
        latency_ns,
    };
    let bottleneck = if followed { Cause::OfferedLoad } else { Cause::ServerCpuBound };
    WatchedStage {
        stage,
        counted,
        trials: 3,
        bottleneck,
        bottleneck_confidence: None,
        finding: None,
        decides: false,
    }
}

#[test]
fn each_stage_has_a_line_and_the_capacity_is_said_with_its_reason() {
    let (_, record, outcome) = crate::support::all().swap_remove(0);
    let shown = |mut stages: Vec<WatchedStage>, followed: [Option<f64>; 3], decides: usize| {
        let mut outcome = outcome.clone();
        let [held_hz, missed_hz, capacity_hz] = followed;
        stages[decides].decides = true;
        stages[decides].finding = outcome.verdict.findings.first().cloned();
        (outcome.answers.stages, outcome.answers.followed) =
            (stages, Some(Followed { held_hz, missed_hz, capacity_hz }));
        let text = terminal(&record, &outcome, PLAIN);
        text.split("Stages\n").nth(1).unwrap().split("\n\n").next().unwrap().to_owned()
    };
    let low = || stage(1, (3e3, 3e3), 3e3, true);
    let high = || stage(3, (9e3, 9e3), 5e3, false);
    let ramp = || stage(2, (3e3, 9e3), 4.5e3, false);
    assert_snapshot!(
        [
            shown(vec![low(), high()], [Some(3e3), Some(9e3), Some(5e3)], 1),
            shown(vec![low(), ramp(), high()], [Some(3e3), Some(6e3), Some(5e3)], 2),
            shown(vec![low(), ramp()], [Some(3e3), Some(6e3), None], 0),
            shown(vec![high()], [None, Some(9e3), None], 0),
            shown(vec![low()], [Some(3e3), None, None], 0),
        ]
        .join("\n\n")
    );
}

#[test]
fn json_is_the_outcome() {
    for (name, _, outcome) in crate::support::all() {
        let text = json(&outcome).unwrap();
        // The figure of the empty record is not a number, so it has no way back.
        if name != "empty" {
            assert_eq!(
                serde_json::from_str::<tare_model::outcome::Outcome>(&text).unwrap(),
                outcome,
                "{name}"
            );
        }
    }
}

#[test]
fn a_narrow_terminal_without_unicode() {
    let style = Style { color: false, width: 80, unicode: false };
    let text = terminal(&crate::support::record(), &crate::support::throttled(), style);
    assert!(text.is_ascii());
    assert_snapshot!("terminal-narrow-ascii", text);
}

#[test]
fn colour_only_when_asked_for_and_nothing_else_changes() {
    for (name, record, outcome) in crate::support::all() {
        let plain = terminal(&record, &outcome, PLAIN);
        let coloured = terminal(&record, &outcome, Style { color: true, ..PLAIN });
        assert!(!plain.contains('\x1b'), "{name}");
        assert!(coloured.contains("\x1b["), "{name}");
        let mut bare = String::new();
        for piece in coloured.split('\x1b') {
            bare.push_str(
                piece.strip_prefix('[').and_then(|rest| rest.split_once('m')).map_or(piece, |(_, text)| text),
            );
        }
        assert_eq!(bare, plain, "{name}");
    }
}

/// Figures that arithmetic on broken accounting could produce, and honest ones.
fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::ANY,
        Just(0.0),
        Just(-1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MAX),
        -1.0..1.0f64,
        0.0..1e7f64,
    ]
}

proptest! {
    #[test]
    fn no_outcome_breaks_a_text(
        kind in 0usize..8,
        figures in prop::collection::vec(figure(), 1..60),
        text in prop_oneof!["\\PC{0,80}", "(?s).{0,30}", Just("\x1b[31m\r\n\0|`*,\"".to_string())],
        width in 0usize..140,
        unicode: bool,
    ) {
        let (_, mut record, mut outcome) = crate::support::all().swap_remove(kind);
        crate::support::scramble::scramble(&mut outcome, &figures, &text);
        crate::support::scramble::scramble_record(&mut record, &figures, &text);
        let shown = terminal(&record, &outcome, Style { color: false, width, unicode });
        prop_assert!(!shown.contains(['\x1b', '\r', '\0', '\t']));
        prop_assert!(unicode || shown.is_ascii());
        for line in shown.lines() {
            // Only tables whose figures are all needed may pass the width.
            prop_assert!(unicode_width::UnicodeWidthStr::width(line) <= width.max(92), "{line}");
        }
        let all = [shown, markdown(&record, &outcome), csv(&outcome)];
        let named = text.to_lowercase();
        if !named.contains("nan") && !named.contains("inf") {
            for figure in all.iter().flat_map(|text| text.split([' ', ',', '\n', '\u{a0}', '±', '…', '|'])) {
                prop_assert!(!["NaN", "inf", "-inf", "−inf", "infs"].contains(&figure), "{figure}");
            }
        }
        json(&outcome).unwrap();
    }
}
