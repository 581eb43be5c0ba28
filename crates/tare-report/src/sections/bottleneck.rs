//! What holds throughput where it is, in one sentence; and whether any of it may be quoted.

use super::commands;
use super::source::{Medium, Section, Source};
use super::text::capital;
use crate::block::{Block, Text, Tone};
use crate::format::{count, joined, percent, seconds, with_unit};
use crate::words;
use std::collections::BTreeMap;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, CommandSummary, Gross, GrossIs, Outcome, RoleAccounting};

pub(crate) static SECTION: Section =
    Section { title: "", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

/// The design's bounds: beyond them there is no verdict.
const RESIDUAL_RATIO_MAX: f64 = 0.05;
const ERROR_RATIO_MAX: f64 = 0.001;
/// Of the generator's CPUs, what others took while it was ready: from here on it is said with the verdict.
const KEPT_OFF_SHARE_MIN: f64 = 0.1;

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    if outcome.trials.is_empty() {
        return vec![Block::Headline(Text::new("No trial ended, so there is no result.", Tone::Bad))];
    }
    let mut blocks = Vec::new();
    if !outcome.verdict.valid {
        let text = format!("INVALID: {}. Do not quote these figures.", invalid_because(outcome));
        blocks.push(Block::Headline(Text::new(text, Tone::Bad)));
    }
    let tone = match outcome.verdict.bottleneck {
        Cause::ServerCpuBound | Cause::OneThreadBound | Cause::ProgramCpuBound | Cause::ProgramIdle => {
            Tone::Good
        }
        Cause::Errors | Cause::PortsExhausted | Cause::NotSteady | Cause::TooNoisy | Cause::Unknown => {
            Tone::Warn
        }
        _ => Tone::Strong,
    };
    let text = if outcome.answers.commands.is_empty() { sentence(source) } else { command_sentence(outcome) };
    blocks.push(Block::Headline(Text::new(text, tone)));
    blocks
}

/// One command: what its time went to. Several: which is fastest, and by how much, as far as their runs show it.
fn command_sentence(outcome: &Outcome) -> String {
    let commands = &outcome.answers.commands;
    let reported = |command: &CommandSummary| format!("`{}`", command.command);
    if let (Some(fastest), true) = (commands::fastest(commands), commands.len() > 1) {
        let others: Vec<String> = commands.iter().filter_map(commands::against_fastest).collect();
        let contrasts = commands.iter().filter_map(|command| command.against_fastest.as_ref());
        let is_fastest = contrasts.clone().all(|against| against.wall_time.distinguishable);
        let verb = if is_fastest { " is the fastest:" } else { " is" };
        return format!("{}{verb} {}.", reported(fastest), others.join("; "));
    }
    let (Some(command), bottleneck) = (commands.first(), words::bottleneck(outcome)) else {
        return String::new();
    };
    let wall = command.gross.value;
    // Where it waited for a part of its time, the finding says so.
    let mut findings = outcome.verdict.findings.iter();
    let finding = findings.find(|finding| finding.cause == outcome.verdict.bottleneck);
    let waited =
        finding.filter(|finding| finding.evidence.iter().any(|part| part.name.starts_with("waiting, ")));
    if let Some(finding) = waited {
        return format!("{} took {}. {}", reported(command), seconds(wall), finding.summary);
    }
    let busy = percent((command.user_s + command.system_s) / wall);
    format!("{bottleneck}: {} took {} and used a CPU for {busy} of it.", reported(command), seconds(wall))
}

/// Why an outcome is not valid, from its own figures where they tell.
fn invalid_because(outcome: &Outcome) -> String {
    let mut reasons = Vec::new();
    if let Some(requests) = &outcome.answers.requests {
        let errors: u64 = requests.errors.values().fold(0, |sum, count| sum.saturating_add(*count));
        // Requests that never got an answer are not in the count.
        let unanswered = errors.saturating_sub(requests.errors.get("status").copied().unwrap_or(0));
        let all = requests.count.unwrap_or(0).saturating_add(unanswered);
        let ratio = errors as f64 / all as f64;
        if ratio > ERROR_RATIO_MAX {
            reasons.push(format!("{} of the requests failed", percent(ratio)));
        }
    }
    if let Some(residual) = outcome.accounting.residual_ratio.filter(|ratio| *ratio > RESIDUAL_RATIO_MAX) {
        reasons.push(format!("the accounting is open by {}", percent(residual)));
    }
    if reasons.is_empty() {
        reasons.extend(
            outcome.verdict.warnings.first().map(|warning| warning.text.trim_end_matches('.').into()),
        );
    }
    if reasons.is_empty() { "the checks did not pass".into() } else { reasons.join(", ") }
}

fn sentence(source: &Source) -> String {
    let outcome = source.outcome;
    let gross = rate(&outcome.figures.gross);
    let name = source.sut_name();
    let threads = outcome.accounting.threads_of(Role::Sut);
    let text = match (outcome.verdict.bottleneck, &outcome.accounting.sut) {
        (Cause::ServerCpuBound, Some(sut)) => {
            format!("{} is the bottleneck: it {} at {gross}", capital(&name), busy(sut))
        }
        (Cause::LoadGeneratorBound, sut) => generator_bound(outcome, &name, sut.as_ref()),
        (Cause::OfferedLoad, Some(sut)) => format!(
            "Nothing is short: {name} answered all {gross} that were offered with {} of its CPU",
            share_busy(sut)
        ),
        (Cause::OneThreadBound, Some(_)) if !threads.is_empty() => format!(
            "One thread of {name} is the bottleneck: {} ({}) was on its CPU {} of the time at {gross}",
            threads[0].name,
            threads[0].tid,
            percent(threads[0].run)
        ),
        (Cause::CpuQuotaThrottled, Some(sut)) if lost(sut, "throttled") > 0.0 => format!(
            "A CPU quota is the bottleneck: it held {name} back {} of the time, at {gross}",
            percent(lost(sut, "throttled"))
        ),
        (Cause::Errors, _) if outcome.answers.requests.is_some() => error_path(outcome),
        (Cause::TooLittleConcurrency, Some(sut)) => too_few(outcome, &name, sut),
        (bottleneck, _) => {
            let finding = outcome.verdict.findings.iter().find(|finding| finding.cause == bottleneck);
            match finding.map(|finding| finding.summary.trim_end_matches('.')) {
                Some(summary) if !summary.is_empty() => {
                    format!("{}: {}", words::bottleneck(outcome), joined(&within_sentence(summary)))
                }
                _ => format!("{}, at {gross}", words::bottleneck(outcome)),
            }
        }
    };
    // Of what is not known nothing more is to be said.
    let bound = outcome.figures.gross_is == GrossIs::LowerBound
        && outcome.verdict.bottleneck != Cause::LoadGeneratorBound
        && outcome.figures.gross.value().is_some();
    match bound {
        true if text.ends_with(&gross) => format!("{text}, a lower bound."),
        true => format!("{text}; {gross} is a lower bound."),
        false => format!("{text}."),
    }
}

/// Gross as it stands in a sentence.
fn rate(gross: &Gross) -> String {
    gross
        .value()
        .map_or_else(|| "a rate that is not known".to_owned(), |value| with_unit(value, gross.unit()))
}

fn generator_bound(outcome: &Outcome, name: &str, sut: Option<&RoleAccounting>) -> String {
    let gross = rate(&outcome.figures.gross);
    let generator = outcome.accounting.load.as_ref().map(|load| match lost(load, "preempted") {
        kept_off if kept_off >= KEPT_OFF_SHARE_MIN => {
            format!("it {} and other programs kept it off {}", busy(load), percent(kept_off))
        }
        _ => format!("it {}", busy(load)),
    });
    let server = sut.map(|sut| format!("{name} was busy {}", share_busy(sut)));
    let why: Vec<String> = generator.into_iter().chain(server).collect();
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(" while ")) };
    match outcome.figures.gross_is {
        GrossIs::LowerBound => {
            format!("The load generator was the bottleneck{why}, so {gross} is a lower bound")
        }
        _ => format!("The load generator was the bottleneck{why}, at {gross}"),
    }
}

fn error_path(outcome: &Outcome) -> String {
    let kinds = outcome.answers.requests.iter().flat_map(|requests| &requests.errors);
    let kinds = kinds.filter(|(_, errors)| **errors > 0);
    let reasons = outcome.answers.requests.as_ref().map(|requests| &requests.error_reasons);
    // Of one status its number says more.
    let name = |kind: &str| match reasons.and_then(|reasons| reasons.get(kind)).map(BTreeMap::keys) {
        Some(mut why) if why.len() == 1 => why.next().filter(|why| why.starts_with(kind)).cloned(),
        _ => None,
    };
    let kinds: Vec<String> = kinds
        .map(|(kind, errors)| {
            format!("{} {}", name(kind).unwrap_or_else(|| kind.clone()), count(*errors as f64))
        })
        .collect();
    format!("Failures were measured, not the workload: errors by kind: {}", kinds.join(", "))
}

fn too_few(outcome: &Outcome, name: &str, sut: &RoleAccounting) -> String {
    let asked = outcome.trials.iter().find(|trial| trial.level == "asked");
    let connections = match asked.and_then(|trial| trial.connections) {
        Some(connections) => words::things(connections as usize, "connection"),
        None => "these connections".into(),
    };
    let generator = outcome.accounting.load.as_ref();
    let generator =
        generator.map(|load| format!(" and the generator {}", share_busy(load))).unwrap_or_default();
    let gross = rate(&outcome.figures.gross);
    let busy = share_busy(sut);
    format!(
        "Too few connections are the bottleneck: {connections} kept {name} busy {busy}{generator}, at {gross}"
    )
}

/// The beginning of a sentence as it stands after a colon; a name keeps its capital letter.
fn within_sentence(sentence: &str) -> String {
    match sentence.split_once(' ') {
        Some((first @ ("The" | "A" | "An" | "Too" | "There" | "With" | "What"), rest)) => {
            format!("{} {rest}", first.to_lowercase())
        }
        _ => sentence.into(),
    }
}

fn share_busy(role: &RoleAccounting) -> String {
    percent(role.busy_cpus / role.entitled_cpus)
}

/// How busy a role was, as a part of a sentence.
fn busy(role: &RoleAccounting) -> String {
    let share = share_busy(role);
    if role.entitled_cpus > 1.5 {
        format!("kept its {:.0} CPUs busy {share} of the time", role.entitled_cpus.min(1e6))
    } else {
        format!("was on its CPU {share} of the time")
    }
}

/// Share of its CPU entitlement that a role lost to a cause.
fn lost(role: &RoleAccounting, cause: &str) -> f64 {
    role.losses_cpus.get(cause).copied().unwrap_or(0.0) / role.entitled_cpus
}
