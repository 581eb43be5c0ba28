//! Latency of the asked level, and what a request cost.

use super::{Medium, Section, Source, join};
use crate::block::Block;
use crate::format::{count, seconds};
use tare_record::outcome::{LatencySummary, Outcome};

pub(crate) static SECTION: Section =
    Section { title: "Requests", media: &[Medium::Terminal, Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    let mut pairs = Vec::new();
    let latency = outcome.latency_ns.as_ref().map(latency).unwrap_or_default();
    if !latency.is_empty() {
        pairs.push(("latency".to_string(), latency));
    }
    if let Some(cost) = cost(outcome) {
        pairs.push(("cost".into(), cost));
    }
    if let Some(answers) = answers(outcome) {
        pairs.push(("answers".into(), answers));
    }
    if pairs.is_empty() { Vec::new() } else { vec![Block::Pairs(pairs)] }
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
    let requests = outcome.requests.as_ref()?;
    let cpu = [("server", requests.cpu_ns_per_request.sut), ("generator", requests.cpu_ns_per_request.load)];
    let switches = [
        ("voluntary", requests.switches_per_request.voluntary),
        ("involuntary", requests.switches_per_request.involuntary),
    ];
    let cpu = cpu.iter().filter_map(|(role, ns)| ns.map(|ns| format!("{role} CPU {}", seconds(ns / 1e9))));
    let switches = switches
        .iter()
        .filter_map(|(kind, rate)| rate.map(|rate| format!("{kind} switches {}", count(rate))));
    let told: Vec<String> = cpu.chain(switches).collect();
    (!told.is_empty()).then(|| join(told))
}

fn answers(outcome: &Outcome) -> Option<String> {
    let requests = outcome.requests.as_ref()?;
    let mut told: Vec<String> = requests.count.map(|all| count(all as f64)).into_iter().collect();
    let errors = requests.errors.iter().filter(|(_, errors)| **errors > 0);
    told.extend(errors.map(|(kind, errors)| format!("{kind} errors {}", count(*errors as f64))));
    if requests.errors.values().all(|errors| *errors == 0) && !told.is_empty() {
        told.push("no errors".into());
    }
    (!told.is_empty()).then(|| join(told))
}
