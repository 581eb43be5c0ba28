//! One run as a story: what held it, where the time of its CPUs went, and what that was made of.

use super::table::meaning;
use crate::block::{Block, Column, Row, Table, Text, Tone};
use crate::format::{NONE, count, hertz, hundredths, joined, percent, seconds};
use crate::sections::{self, Part, Source};
use crate::words::things;
use tare_model::observation::Role;
use tare_model::outcome::{Outcome, RoleAccounting};

/// Losses below this share of the CPU entitlement are one line together.
const SMALL_SHARE: f64 = 0.0005;

pub(super) fn parts(source: &Source) -> Vec<Part> {
    let mut lead = sections::bottleneck_of(source);
    lead.extend(sentences(source).into_iter().map(|text| Block::Line(Text::plain(joined(&text)))));
    let mut parts = vec![Part { title: "", blocks: lead }];
    let outcome = source.outcome;
    let tables = [
        ("Where each second of its CPUs went", entitlement(outcome)),
        ("Ready, and without a CPU", wait(outcome)),
        ("Asleep", blocked(outcome)),
        ("What a request cost", cost(outcome)),
    ];
    for (title, table) in tables {
        parts.extend(table.map(|table| Part { title, blocks: vec![Block::Table(table)] }));
    }
    parts.extend(sections::findings_and_warnings(source));
    parts
}

/// What a reader takes away besides the bottleneck.
fn sentences(source: &Source) -> Vec<String> {
    let outcome = source.outcome;
    let mut reported = Vec::new();
    let name = source.sut_name();
    if let Some(sut) = &outcome.accounting.sut {
        reported.push(busy(&name, source.outcome, sut));
        reported.extend(largest_loss(sut));
    }
    if let Some(load) = outcome.accounting.load.as_ref().filter(|load| load.entitled_cpus > 0.0) {
        reported.push(format!(
            "The load generator ran on {} of its {}.",
            count(load.busy_cpus),
            cpus(load.entitled_cpus)
        ));
    }
    if let Some(hz) = tare_stats::median(&clocks(outcome)) {
        reported.push(format!("The program's CPUs ran at {}.", hertz(hz)));
    }
    reported.push(match outcome.accounting.residual_ratio {
        Some(ratio) => format!("The accounting is open by {} at most.", percent(ratio)),
        None => "The accounting could not be checked against each other.".to_owned(),
    });
    reported
}

fn clocks(outcome: &Outcome) -> Vec<f64> {
    outcome.trials.iter().filter_map(|trial| trial.clock_hz).collect()
}

fn busy(name: &str, outcome: &Outcome, sut: &RoleAccounting) -> String {
    let threads = outcome.accounting.threads_of(Role::Sut);
    let threads = threads.iter().filter(|thread| thread.run > 0.001).count();
    format!(
        "{} had {} for {} at work and ran on {} of it.",
        sections::capital(name),
        cpus(sut.entitled_cpus),
        things(threads, "thread"),
        percent(sut.busy_cpus / sut.entitled_cpus)
    )
}

fn largest_loss(sut: &RoleAccounting) -> Option<String> {
    let (name, lost) = sut.losses_cpus.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
    let share = lost / sut.entitled_cpus;
    (share >= 0.01).then(|| format!("Of the rest most was {name} ({}): {}.", meaning(name), percent(share)))
}

fn cpus(cpus: f64) -> String {
    match cpus {
        1.0 => "1 CPU".to_owned(),
        cpus => format!("{} CPUs", count(cpus)),
    }
}

/// Columns of a table of shares of a whole.
fn columns(unit: &str) -> Vec<Column> {
    vec![Column::words("", 0), Column::figures(unit, 1), Column::figures("%", 0), Column::words("", 2)]
}

fn share_row(name: &str, amount: String, share: f64, meaning: &str) -> Row {
    Row::Cells(vec![
        Text::plain(name),
        Text::plain(amount),
        Text::plain(hundredths(share)),
        Text::dim(meaning),
    ])
}

fn entitlement(outcome: &Outcome) -> Option<Table> {
    let sut = outcome.accounting.sut.as_ref().filter(|sut| sut.entitled_cpus > 0.0)?;
    let whole = sut.entitled_cpus;
    let mut rows = vec![share_row("ran", count(sut.busy_cpus), sut.busy_cpus / whole, "on a CPU")];
    let mut losses: Vec<(&String, f64)> = sut.losses_cpus.iter().map(|(name, lost)| (name, *lost)).collect();
    losses.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named = |(name, lost): &(&String, f64)| share_row(name, count(*lost), lost / whole, meaning(name));
    rows.extend(losses.iter().filter(|(_, lost)| lost / whole >= SMALL_SHARE).map(named));
    let lost: f64 = losses.iter().map(|(_, lost)| lost).sum();
    let rest = whole - sut.busy_cpus - lost;
    let rest = if (rest / whole).abs() < SMALL_SHARE { 0.0 } else { rest };
    rows.push(share_row("unexplained", count(rest), rest / whole, "in no account, or in two"));
    rows.push(Row::Total(vec![
        Text::strong("entitlement"),
        Text::strong(count(whole)),
        Text::strong(hundredths(1.0)),
        Text::dim("CPUs that it may use, at most its threads at work"),
    ]));
    Some(Table { columns: columns("CPUs"), rows })
}

fn wait(outcome: &Outcome) -> Option<Table> {
    let sut = outcome.accounting.sut.as_ref().filter(|sut| sut.wall_s > 0.0)?;
    let wait = sut.wait_s;
    let parts = [
        ("throttled", wait.throttled, meaning("throttled")),
        ("preempted", wait.preempted, "somebody else ran"),
        ("self-contention", wait.self_contention, meaning("self-contention")),
        ("scheduler", wait.scheduler, meaning("scheduler")),
    ];
    let parts = parts.into_iter().map(|(name, spent, meaning)| (name.to_owned(), spent, meaning));
    shares("all threads", sut.wall_s, parts)
}

/// Of the threads that serve: one that only waits for its workers would hide what these sleep for.
fn blocked(outcome: &Outcome) -> Option<Table> {
    let serving = &outcome.accounting.sut.as_ref().filter(|sut| sut.serving.wall_s > 0.0)?.serving;
    let reported = |reason: &str| match reason {
        "event" => "waited for something to do",
        "other" => "in another system call",
        "unsplit" => "the reason could not be sampled",
        known => meaning(known),
    };
    let parts = serving.blocked_s.iter().map(|(reason, spent)| (reason.clone(), *spent, reported(reason)));
    shares("serving threads", serving.wall_s, parts)
}

/// Shares of the lives of these threads; nothing where none is worth a line.
fn shares(
    threads: &str,
    wall_s: f64,
    parts: impl Iterator<Item = (String, f64, &'static str)>,
) -> Option<Table> {
    let rows: Vec<Row> = parts
        .filter(|(_, spent_s, _)| spent_s / wall_s >= SMALL_SHARE)
        .map(|(name, spent_s, meaning)| share_row(&name, seconds(spent_s), spent_s / wall_s, meaning))
        .collect();
    (!rows.is_empty()).then(|| Table { columns: columns(threads), rows })
}

fn cost(outcome: &Outcome) -> Option<Table> {
    let requests = outcome.answers.requests.as_ref()?;
    let ns = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |ns| seconds(ns / 1e9));
    let number = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), count);
    let row = |name: &str, value: String| Row::Cells(vec![Text::plain(name), Text::new(value, Tone::Plain)]);
    let mut rows = vec![
        row("CPU time of the server", ns(requests.cpu_ns_per_request.sut)),
        row("CPU time of the generator", ns(requests.cpu_ns_per_request.load)),
        row("it went to sleep", number(requests.switches_per_request.voluntary)),
        row("it was pushed off", number(requests.switches_per_request.involuntary)),
    ];
    if let Some(peers) = requests.sut_wakeups_per_request.value() {
        rows.push(row("its threads woke each other", count(peers.sut)));
    }
    Some(Table { columns: vec![Column::words("", 0), Column::figures("", 0)], rows })
}
