//! Latency of the asked level, and what a request cost.

use super::source::{Medium, Section, Source};
use super::text::join;
use crate::block::{Axis, Block, Chart, Hue, Line, Panel, Point};
use crate::format::{bytes, count, seconds};
use crate::plot;
use crate::words;
use tare_model::Reading;
use tare_model::latency::Latencies;
use tare_model::observation::Role;
use tare_model::outcome::{LatencySummary, Outcome, OwnCount};
use tare_model::plan::Purpose;
use tare_model::trial::{HttpSample, Measure, Trial};

pub(crate) static SECTION: Section =
    Section { title: "Requests", media: &[Medium::Terminal, Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    let mut pairs = Vec::new();
    let latency = outcome.answers.latency_ns.as_ref().map(latency).unwrap_or_default();
    if !latency.is_empty() {
        pairs.push(("latency".to_string(), latency));
    }
    if let Some(cost) = cost(outcome) {
        pairs.push(("cost".into(), cost));
    }
    if let Some(answers) = answers(outcome) {
        pairs.push(("answers".into(), answers));
    }
    pairs.extend(outcome.answers.own_count.as_ref().map(|own| ("counted".into(), counted(own))));
    let mut blocks = Vec::new();
    blocks.extend((!pairs.is_empty()).then_some(Block::Pairs(pairs)));
    blocks.extend(percentiles(source).map(Block::Chart));
    blocks
}

/// Points of the percentile plot for each factor of ten.
const POINTS_PER_DECADE: usize = 24;
/// Six nines: a longer tail has too few requests in it to be drawn.
const NINES_MAX: f64 = 6.0;

/// Latency by percentile, the horizontal axis stretched towards the tail as HdrHistogram's plots are.
fn percentiles(source: &Source) -> Option<Chart> {
    let all = asked_latencies(source)?;
    let nines = (all.count() as f64).log10().clamp(1.0, NINES_MAX);
    let points = (nines * POINTS_PER_DECADE as f64).ceil() as usize;
    let point = |at: usize| {
        let x = nines * at as f64 / points as f64;
        let quantile = 1.0 - 10f64.powf(-x);
        let ns = all.quantile_ns(quantile)? as f64;
        let words = format!("{} % of the answers came within {}", percentile(x), seconds(ns / 1e9));
        Some(Point { x, y: ns, words })
    };
    let points: Vec<Point> = (0..=points).filter_map(point).collect();
    let highest = points.last()?.y;
    let whole_nines = (0..=nines.floor() as u32).map(f64::from);
    let x = Axis {
        label: "% of the answers".into(),
        ends: [0.0, nines],
        ticks: whole_nines.map(|x| (x, percentile(x))).collect(),
    };
    let line = Line { name: "latency".into(), hue: Hue::Server, joined: true, runs: vec![points] };
    let y = plot::from_zero("latency", highest, |ns| seconds(ns / 1e9));
    Some(Chart {
        caption: "Latency by percentile".into(),
        x,
        panels: vec![Panel { y, lines: vec![line], bands: Vec::new() }],
    })
}

/// All latencies of the asked level together: histograms are merged, percentiles never averaged.
fn asked_latencies(source: &Source) -> Option<Latencies> {
    let levels = &source.http()?.levels;
    source.outcome.answers.latency_ns?;
    let deciding = source.outcome.answers.stages.iter().find(|stage| stage.decides).map(|stage| stage.stage);
    let asked = |trial: &&Trial| {
        let is_asked = levels.get(trial.level as usize).is_some_and(|level| level.purpose == Purpose::Asked);
        is_asked && deciding.is_none_or(|stage| stage == trial.level + 1)
    };
    let mut all = Latencies::new();
    for trial in source.record.trials.iter().filter(asked) {
        if let Measure::Http(HttpSample { latency: Reading::Measured(latency), .. }) = &trial.sample {
            all.merge(latency);
        }
    }
    (all.count() > 0).then_some(all)
}

/// `0`, `90`, `99`, `99.9` … for 0, 1, 2, 3 … nines, and what lies between.
fn percentile(nines: f64) -> String {
    let decimals = (nines.ceil() as usize).saturating_sub(2) + usize::from(nines.fract() > 0.0);
    format!("{:.decimals$}", (1.0 - 10f64.powf(-nines)) * 100.0)
}

fn latency(latency: &LatencySummary) -> String {
    let named = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
        ("mean", latency.mean),
    ];
    join(named.iter().filter_map(|(name, ns)| ns.map(|ns| format!("{name} {}", seconds(ns / 1e9)))))
}

fn cost(outcome: &Outcome) -> Option<String> {
    let requests = outcome.answers.requests.as_ref()?;
    let cpu = [("server", requests.cpu_ns_per_request.sut), ("generator", requests.cpu_ns_per_request.load)];
    let switches = [
        ("voluntary", requests.switches_per_request.voluntary),
        ("involuntary", requests.switches_per_request.involuntary),
    ];
    let cpu = cpu.iter().filter_map(|(role, ns)| ns.map(|ns| format!("{role} CPU {}", seconds(ns / 1e9))));
    let switches = switches
        .iter()
        .filter_map(|(kind, rate)| rate.map(|rate| format!("{kind} switches {}", count(rate))));
    // A thread alone wakes no other.
    let has_others = outcome.accounting.threads_of(Role::Sut).len() > 1;
    let wakeups = requests.sut_wakeups_per_request.value().filter(|_| has_others);
    let wakeups = wakeups.map(|others| format!("wake-ups of other SUT threads {}", count(others.sut)));
    let reported: Vec<String> = cpu.chain(switches).chain(wakeups).collect();
    (!reported.is_empty()).then(|| join(reported))
}

/// What the generator's connections received, to be held against what it reports.
fn counted(own: &OwnCount) -> String {
    let bytes_of = |figure: Option<u64>| figure.map(|figure| format!(" and {}", bytes(figure as f64)));
    let (segments, received) = match (&own.segments, &own.bytes) {
        (Reading::Measured(segments), Reading::Measured(received)) => (*segments, *received),
        (Reading::Missing(why), _) | (_, Reading::Missing(why)) => {
            let by = if own.reported_answers.is_some() { "by the generator alone" } else { "by nobody" };
            return format!("{by}: {}", why.why);
        }
        _ => return "by the generator alone".to_owned(),
    };
    let reported = match own.reported_answers {
        Some(all) => {
            let bytes = bytes_of(own.reported_bytes).unwrap_or_default();
            format!("; it reports {} answers{bytes}", count(all as f64))
        }
        None => String::new(),
    };
    let until = own.unread_s.map_or_else(String::new, |unread_s| {
        format!(" until {} before the end of their windows, in all", seconds(unread_s))
    });
    format!(
        "the generator's connections received {} segments{}{until}{reported}",
        count(segments as f64),
        bytes_of(Some(received)).unwrap_or_default()
    )
}

fn answers(outcome: &Outcome) -> Option<String> {
    let requests = outcome.answers.requests.as_ref()?;
    let mut reported: Vec<String> = requests.count.map(|all| count(all as f64)).into_iter().collect();
    let errors = requests.errors.iter().filter(|(_, errors)| **errors > 0);
    reported.extend(errors.map(|(kind, errors)| format!("{kind} errors {}", count(*errors as f64))));
    reported.extend(words::reasons(requests));
    if requests.errors.values().all(|errors| *errors == 0) && !reported.is_empty() {
        reported.push("no errors".into());
    }
    (!reported.is_empty()).then(|| join(reported))
}
