//! What came of known injections: the calibration report, and what there is to inject.

use crate::block::{Block, Column, Field, Note, Row, Rows, Table, Text, Tone};
use crate::comparison::disturbance;
use crate::figures::signed;
use crate::format::{count, percent, seconds};
use crate::sections::Part;
use crate::words::things;
use crate::{Report, words};
use std::collections::BTreeMap;
use tare_model::calibration::{
    AaControl, Calibration, Found, Injection, NET_RUNS_MIN, NetSpread, Run, RunResult, SelfComparison,
    SelfResult, Summary,
};
use tare_model::outcome::Cause;

/// The result, laid out.
pub fn report(calibration: &Calibration) -> Report {
    let mut parts = vec![
        Part { title: "", blocks: vec![Block::Headline(headline(calibration))] },
        Part { title: "Injected and found", blocks: vec![confusion(calibration), rule(calibration)] },
    ];
    let figures: Vec<(String, String)> = [
        calibration.aa_control.as_ref().map(itself),
        calibration.aa_control.as_ref().map(detectable),
        calibration.net_spread.as_ref().map(spread),
    ]
    .into_iter()
    .flatten()
    .map(|(label, text)| (label.to_owned(), text))
    .collect();
    if !figures.is_empty() {
        parts.push(Part { title: "How far to trust figures", blocks: vec![Block::Pairs(figures)] });
    }
    let runs = calibration.runs.iter().filter_map(wrong);
    let comparisons = calibration.comparisons.iter().filter_map(not_compared);
    let wrong: Vec<Block> = runs.chain(comparisons).map(Block::Line).collect();
    if !wrong.is_empty() {
        parts.push(Part { title: "Not right, or not counted", blocks: wrong });
    }
    parts.push(Part { title: "", blocks: footer(calibration) });
    Report { parts, rows: rows(calibration) }
}

fn rows(calibration: &Calibration) -> Rows {
    let row = |run: &Run| {
        let (found, is_right) = match &run.result {
            RunResult::Measured(found) => (words::id(found.found), found.right),
            RunResult::Failed { .. } => ("failed".to_owned(), false),
        };
        let head = [run.injection.as_str().into(), found.into(), is_right.to_string().into()];
        head.into_iter().chain([run.begin_s.into(), run.took_s.into()]).collect()
    };
    let header = &["injection", "found", "right", "begin_s", "took_s"];
    Rows { header, rows: calibration.runs.iter().map(row).collect() }
}

/// The result as one JSON object.
///
/// # Errors
/// None that is known: every key is a string.
pub fn json(calibration: &Calibration) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(calibration).map(|text| text + "\n")
}

/// What there is to inject, laid out.
pub fn list(injections: &[Injection]) -> Report {
    let note = |injection: &Injection| {
        let not_here = injection.not_here.iter().map(|why| ("not injectable here", why.clone()));
        Note {
            title: Text::strong(&injection.name),
            aside: ids(&injection.expected),
            body: injection.about.clone(),
            lines: not_here.collect(),
        }
    };
    let row = |injection: &Injection| -> Vec<Field> {
        let Injection { name, about, expected, not_here, .. } = injection;
        let not_here = not_here.as_deref().unwrap_or_default();
        vec![name.as_str().into(), about.as_str().into(), ids(expected).into(), not_here.into()]
    };
    let header = &["injection", "about", "expected", "not_here"];
    let notes = Block::Notes(injections.iter().map(note).collect());
    Report {
        parts: vec![Part { title: "", blocks: vec![notes] }],
        rows: Rows { header, rows: injections.iter().map(row).collect() },
    }
}

/// The same as JSON.
///
/// # Errors
/// As [`json`].
pub fn list_json(injections: &[Injection]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(injections).map(|text| text + "\n")
}

fn ids(causes: &[Cause]) -> String {
    causes.iter().map(|cause| cause.id()).collect::<Vec<_>>().join(" or ")
}

fn headline(calibration: &Calibration) -> Text {
    let summary = &calibration.summary;
    let share = 100.0 * summary.right as f64 / summary.runs.max(1) as f64;
    let alarms = match (summary.undisturbed, summary.false_alarms) {
        (0, _) => String::new(),
        (runs, 0) => format!(", no false alarm in {}", things(runs, "undisturbed run")),
        (runs, alarms) => {
            format!(", {} in {}", things(alarms, "false alarm"), things(runs, "undisturbed run"))
        }
    };
    let disturbed = match summary.disturbed {
        0 => String::new(),
        runs => format!(
            "; {} with nothing injected {} disturbed from outside and not counted",
            things(runs, "run"),
            if runs == 1 { "was" } else { "were" }
        ),
    };
    let text = format!(
        "{} of {} right ({share:.0} %){alarms}{disturbed}.",
        summary.right,
        things(summary.runs, "run")
    );
    Text::new(text, if summary.is_good() { Tone::Good } else { Tone::Bad })
}

/// A row for each injection that was measured, with what was found in its runs, most often first.
fn confusion(calibration: &Calibration) -> Block {
    let columns = vec![
        Column::words("injected", 0),
        Column::words("to be found", 2),
        Column::figures("right", 0),
        Column::words("found", 0),
    ];
    let rows = calibration.injections.iter().filter_map(|injection| {
        let runs: Vec<&Run> = calibration.runs.iter().filter(|run| run.injection == injection.name).collect();
        let runs: Vec<&Run> = runs.into_iter().filter(|run| run.disturbed.is_empty()).collect();
        let right = runs.iter().filter(|run| measured(run).is_some_and(|found| found.right)).count();
        let tone = if right == runs.len() { Tone::Good } else { Tone::Bad };
        let found = calibration.summary.confusion.get(&injection.name);
        let cells = vec![
            Text::plain(&injection.name),
            Text::dim(ids(&injection.expected)),
            Text::new(format!("{right}/{}", runs.len()), tone),
            Text::plain(counted(found, runs.len())),
        ];
        (!runs.is_empty()).then_some(Row::Cells(cells))
    });
    Block::Table(Table { columns, rows: rows.collect() })
}

/// What counts as right above, and how many are by the list alone.
fn rule(calibration: &Calibration) -> Block {
    let note = calibration.note_ln.map(|ln| {
        let share = percent(-(-ln).exp_m1());
        let text = format!(
            "costs something, and less than {share}: no alarm, and passed over for the first finding beside the bottleneck"
        );
        ("a note", text)
    });
    let Summary { runs, right_as_listed, .. } = &calibration.summary;
    let listed = right_as_listed.map(|right| {
        let text = format!(
            "{right} of {} right were nothing passed over: by the bottleneck or the very first finding of the list, be it the \
             limit's own, and with no other finding where nothing was injected",
            things(*runs, "run")
        );
        ("as listed", text)
    });
    Block::Pairs([note, listed].into_iter().flatten().map(|(label, text)| (label.to_owned(), text)).collect())
}

/// `cpu-quota-throttled 2, unknown 1`; how often where it was not always the same.
fn counted(found: Option<&BTreeMap<Cause, usize>>, runs: usize) -> String {
    let mut counts: Vec<(&Cause, usize)> = found.into_iter().flatten().map(|(c, n)| (c, *n)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let failed = runs - counts.iter().map(|(_, count)| count).sum::<usize>().min(runs);
    let mut words: Vec<String> = match counts.as_slice() {
        [(cause, count)] if *count == runs => vec![cause.id()],
        counts => counts.iter().map(|(cause, count)| format!("{} {count}", cause.id())).collect(),
    };
    if failed > 0 {
        words.push(format!("failed {failed}"));
    }
    words.join(", ")
}

fn measured(run: &Run) -> Option<&Found> {
    match &run.result {
        RunResult::Measured(found) => Some(found),
        RunResult::Failed { .. } => None,
    }
}

/// An interval of a rate that is wider leaves open whether comparisons hold what they promise.
const TELLS_LITTLE: f64 = 0.1;

/// How often a comparison of the built-in server with itself called something different.
fn itself(itself: &AaControl) -> (&'static str, String) {
    let failed = match itself.failed {
        0 => String::new(),
        failed => format!("; {failed} more could not be counted"),
    };
    let Some([low, high]) = itself.rate_ci95 else {
        return ("A/A", format!("no comparison of the built-in server with itself came to an end{failed}"));
    };
    let largest = itself.largest.map_or(String::new(), |called| {
        format!(", by up to {}\u{a0}% ({})", signed(called.change.value), called.figure.title())
    });
    let [low_percent, high_percent] = [low, high].map(percent);
    let little = if high - low > TELLS_LITTLE { ": so few tell little" } else { "" };
    let text = format!(
        "in {} of {} the built-in server was called different from itself{largest}; how often that happens lies between \
         {low_percent} and {high_percent} (95\u{a0}%){little}{failed}",
        itself.different,
        things(itself.comparisons, "comparison")
    );
    ("A/A", text)
}

fn detectable(itself: &AaControl) -> (&'static str, String) {
    let text = match itself.detectable {
        Some(share) => format!(
            "{} of throughput, in nine of ten comparisons of {:.0}\u{a0}s (their median)",
            percent(share),
            itself.budget_s
        ),
        None => "not known from any comparison".to_owned(),
    };
    ("would show", text)
}

fn spread(spread: &NetSpread) -> (&'static str, String) {
    let NetSpread { runs, with_net, median_hz, quartiles_apart } = *spread;
    let all = match runs - with_net.min(runs) {
        0 => things(runs, "run"),
        _ => format!("the {with_net} of {} that have one", things(runs, "run")),
    };
    let around = median_hz.map_or(String::new(), |hz| format!(", around {} req/s", count(hz)));
    let text = match quartiles_apart {
        Some(apart) => format!(
            "{} between the quartiles of {all}{around}; the server was the same in these, what the host did to it was not",
            percent(apart)
        ),
        None => format!("no spread of {all}{around}: there are quartiles from {NET_RUNS_MIN} nets on"),
    };
    ("net moves", text)
}

/// Why a comparison is not counted.
fn not_compared(comparison: &SelfComparison) -> Option<Text> {
    match &comparison.result {
        SelfResult::Compared(_) => None,
        SelfResult::Failed { why } => Some(Text::plain(format!("comparison with itself: {why}"))),
    }
}

/// What a run that is not right said.
fn wrong(run: &Run) -> Option<Text> {
    let from_outside = match run.disturbed.as_slice() {
        [] => String::new(),
        all => {
            let words: Vec<&str> = all.iter().map(|what| disturbance(*what)).collect();
            format!(" (disturbed from outside: {}; not counted)", words.join(", "))
        }
    };
    let text = match &run.result {
        RunResult::Measured(found) if found.right && run.disturbed.is_empty() => return None,
        RunResult::Measured(found) => {
            let first = found.first_finding.map_or(String::new(), |first| format!(", then {}", first.id()));
            let alarms = match found.alarms.as_slice() {
                [] => String::new(),
                alarms => format!("; alarms: {}", ids(alarms).replace(" or ", ", ")),
            };
            format!("{}: {}{first}{alarms}{from_outside}", run.injection, found.bottleneck.id())
        }
        RunResult::Failed { why } => format!("{}: {why}{from_outside}", run.injection),
    };
    Some(Text::plain(text))
}

fn footer(calibration: &Calibration) -> Vec<Block> {
    let not_here = calibration.injections.iter().filter_map(|injection| {
        let why = injection.not_here.as_ref()?;
        Some(Block::Line(Text::dim(format!("{} was not injectable here: {why}", injection.name))))
    });
    let (measured, there) = calibration.covered();
    let how = format!(
        "{measured} of {} injected, {} each, in {}; order: seed {}",
        things(there, "cause"),
        things(calibration.repeats as usize, "time"),
        seconds(calibration.took_s),
        calibration.seed
    );
    not_here.chain([Block::Line(Text::dim(how))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use tare_model::calibration::{CalledDifferent, Compared, Listed, Place, SCHEMA};
    use tare_model::comparison::{Change, Disturbance, Figure};

    fn shown(calibration: &Calibration) -> String {
        let text = report(calibration).terminal(Style { color: false, width: 100, unicode: true });
        // Lines are broken where they would be too long.
        text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_figures_say_what_they_are_of_and_how_little_they_tell() {
        let change = Change { value: -0.031, interval: [-0.05, -0.01] };
        let called = CalledDifferent { figure: Figure::P99, change };
        let compared = Compared { seed: 1, launches: 10, different: vec![called], detectable: Some(0.041) };
        let of = |result| SelfComparison { begin_s: 0.0, took_s: 10.0, result };
        let found = Found {
            bottleneck: Cause::ServerCpuBound,
            first_finding: Some(Cause::TooNoisy),
            found: Cause::ServerCpuBound,
            right: false,
            alarms: vec![Cause::TooNoisy],
            gross: None,
            net: None,
            findings: vec![Listed { cause: Cause::TooNoisy, effect_ln: 0.0 }],
            right_as_listed: Some(false),
        };
        let shaken = Run {
            injection: "none".into(),
            begin_s: 0.0,
            took_s: 7.0,
            disturbed: vec![Disturbance::Steal],
            result: RunResult::Measured(found),
        };
        let mut calibration = Calibration {
            schema: SCHEMA,
            argv: Vec::new(),
            started_unix_s: 1,
            took_s: 40.0,
            seed: 7,
            repeats: 3,
            complete: true,
            machine: Place { kernel: "6".into(), cpu_model: None, cpus: 2 },
            injections: Vec::new(),
            runs: vec![shaken],
            summary: Summary {
                runs: 4,
                right: 4,
                right_as_listed: Some(3),
                disturbed: 1,
                ..Summary::default()
            },
            comparisons: vec![
                of(SelfResult::Compared(compared)),
                of(SelfResult::Failed { why: "no port".into() }),
            ],
            aa_control: Some(AaControl {
                budget_s: 10.0,
                comparisons: 3,
                failed: 1,
                different: 1,
                rate_ci95: Some([0.0084, 0.9057]),
                largest: Some(called),
                detectable: Some(0.041),
            }),
            net_spread: Some(NetSpread {
                runs: 12,
                with_net: 11,
                median_hz: Some(99e3),
                quartiles_apart: Some(0.032),
            }),
            note_ln: Some(0.03),
        };
        let text = shown(&calibration);
        for wanted in [
            "in 1 of 3 comparisons the built-in server was called different from itself, by up to −3.10 % (p99)",
            "lies between 0.84 % and 91 % (95 %): so few tell little; 1 more could not be counted",
            "4.1 % of throughput, in nine of ten comparisons of 10 s (their median)",
            "3.2 % between the quartiles of the 11 of 12 runs that have one, around 99",
            "comparison with itself: no port",
            "costs something, and less than 3.0 %: no alarm, and passed over for the first finding",
            "3 of 4 runs right were nothing passed over",
            "4 of 4 runs right (100 %); 1 run with nothing injected was disturbed from outside and not counted.",
            "none: server-cpu-bound, then too-noisy; alarms: too-noisy (disturbed from outside: steal; not counted)",
        ] {
            assert!(text.contains(wanted), "{wanted} in\n{text}");
        }
        let table = report(&calibration).csv();
        assert_eq!(table, "injection,found,right,begin_s,took_s\nnone,server-cpu-bound,false,0,7\n");
        assert!(report(&calibration).markdown().contains("### Injected and found"));
        let back: Calibration = serde_json::from_str(&json(&calibration).unwrap()).unwrap();
        assert_eq!(back, calibration);
        let itself = calibration.aa_control.as_mut().unwrap();
        *itself = AaControl { rate_ci95: Some([0.0, 0.0362]), comparisons: 100, failed: 0, ..itself.clone() };
        calibration.net_spread =
            Some(NetSpread { runs: 3, with_net: 3, median_hz: Some(99e3), quartiles_apart: None });
        let text = shown(&calibration);
        assert!(!text.contains("so few") && !text.contains("more could not"), "{text}");
        assert!(text.contains("no spread of 3 runs, around 99") && text.contains("from 4 nets on"), "{text}");
        (calibration.aa_control, calibration.net_spread) = (None, None);
        (calibration.note_ln, calibration.summary.right_as_listed) = (None, None);
        let text = shown(&calibration);
        assert!(!text.contains("How far to trust figures") && !text.contains("a note"), "{text}");
    }
}
