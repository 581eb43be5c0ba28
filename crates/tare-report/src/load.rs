//! The summary of a load: what wrk's users look for where they look for it, and what wrk does not say.

use crate::block::{Block, Column, Field, Row, Rows, Table, Text};
use crate::format::{bytes, count, percent, seconds};
use crate::sections::{Part, warnings};
use crate::{Report, stages, words};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};
use tare_model::latency::Latencies;
use tare_model::load::{LoadOutcome, LoadRun, TlsCertificate};
use tare_model::outcome::{Followed, GrossIs, LatencySummary};

/// The summary, laid out; `distribution` adds the table of percentiles.
pub fn report(outcome: &LoadOutcome, distribution: bool) -> Report {
    let mut parts =
        vec![Part { title: "", blocks: vec![headline(outcome), latencies(outcome), totals(outcome)] }];
    if !outcome.stages.is_empty() {
        parts.push(Part { title: "Stages", blocks: stages_of(outcome) });
    }
    if distribution {
        parts.push(Part { title: "Latency distribution", blocks: vec![percentiles(outcome)] });
    }
    parts.extend(warnings::part(&outcome.warnings));
    Report { parts, rows: rows(outcome) }
}

fn rows(outcome: &LoadOutcome) -> Rows {
    let latencies = [
        ("latency", &outcome.latency_ns),
        ("first_byte", &outcome.first_byte_ns),
        ("connect", &outcome.connect_ns),
    ];
    let mut rows: Vec<Vec<Field>> = vec![
        vec!["rate".into(), outcome.rate_hz.into(), "1/s".into()],
        vec!["answers".into(), outcome.requests.count.map(|count| count as f64).into(), "count".into()],
        vec!["elapsed".into(), outcome.elapsed_s.into(), "s".into()],
        vec!["received".into(), outcome.bytes_in.map(|bytes| bytes as f64).into(), "bytes".into()],
        vec!["sent".into(), outcome.bytes_out.map(|bytes| bytes as f64).into(), "bytes".into()],
    ];
    for (name, of) in latencies {
        let figures = named(of).into_iter().chain([("mean", of.mean), ("stdev", of.stdev)]);
        rows.extend(
            figures.map(|(figure, ns)| vec![format!("{name} {figure}").into(), ns.into(), "ns".into()]),
        );
    }
    Rows { header: &["figure", "value", "unit"], rows }
}

/// The result as the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known.
pub fn json(outcome: &LoadOutcome) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(outcome).map(|text| text + "\n")
}

/// Rate and latency over time as CSV, base units, an empty field where nothing was answered.
pub fn series_csv(outcome: &LoadOutcome) -> String {
    let mut text = String::from("end_s,rate_hz,p50_ns,p99_ns\n");
    let field = |ns: Option<u64>| ns.map(|ns| ns.to_string()).unwrap_or_default();
    for point in &outcome.series {
        // Writing to a string cannot fail.
        let (p50, p99) = (field(point.p50_ns), field(point.p99_ns));
        writeln!(text, "{:.3},{:.3},{p50},{p99}", point.end_s, point.rate_hz).ok();
    }
    text
}

/// Why a log could not be written.
#[derive(Debug, thiserror::Error)]
pub enum HdrError {
    /// Nothing was counted.
    #[error("no latency was measured, so there is none to log")]
    Nothing,
    /// The library refused.
    #[error("cannot write the histogram: {0}")]
    Format(String),
}

/// The latencies as an HdrHistogram interval log, a line for each interval that was kept (where none were, one for the
/// whole window): nanoseconds, V2 compressed. Its column of the largest value is in milliseconds, as other writers have it.
///
/// # Errors
/// [`HdrError`].
pub fn hdr_log(run: &LoadRun) -> Result<String, HdrError> {
    let latency = run.sample.latency.value().ok_or(HdrError::Nothing)?;
    let failed = |error: &dyn std::fmt::Debug| HdrError::Format(format!("{error:?}"));
    let (mut log, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(run.started_unix_s.max(0.0));
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment(&format!("tare load {}", run.url.replace(['\r', '\n'], " ")))
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut log, &mut serializer)
        .map_err(|error| failed(&error))?;
    let mut line = |begin_ns, elapsed_ns, latency: &Latencies| {
        let (begin, length) = (Duration::from_nanos(begin_ns), Duration::from_nanos(elapsed_ns));
        let written = writer.write_histogram(latency.histogram(), begin, length, None::<Tag<'_>>);
        written.map_err(|error| failed(&error))
    };
    if run.intervals.is_empty() {
        line(0, run.sample.elapsed_ns, latency)?;
    }
    for interval in &run.intervals {
        let latency = interval.latency.unpack().ok_or_else(|| failed(&"it was not kept whole"))?;
        line(interval.begin_ns, interval.elapsed_ns, &latency)?;
    }
    drop(writer);
    String::from_utf8(log).map_err(|error| failed(&error))
}

fn headline(outcome: &LoadOutcome) -> Block {
    let asked = &outcome.asked;
    let depth = match (asked.http2, asked.pipeline) {
        (false, 1) => String::new(),
        (false, depth) => format!(", {depth} in flight on each"),
        (true, streams) => format!(", HTTP/2, {} on each", words::things(streams as usize, "stream")),
    };
    let rate = match outcome.rate_is {
        GrossIs::LowerBound if is_full(outcome) => "  (a lower bound: the generator gave out)",
        GrossIs::LowerBound => "  (a lower bound: fewer than were due)",
        _ => "",
    };
    let mut pairs = vec![
        (
            "Load".to_owned(),
            format!(
                "{}, {} from {}{depth}",
                outcome.url,
                words::things(asked.connections as usize, "connection"),
                words::things(asked.threads as usize, "thread"),
            ),
        ),
        ("Requests/sec".to_owned(), format!("{}{rate}", figure(outcome.rate_hz))),
    ];
    if let Some(followed) = &outcome.redirects {
        let redirects = words::things(followed.count as usize, "redirect");
        pairs.insert(
            1,
            (
                "Followed".to_owned(),
                format!("{redirects} from {} to this URL, before the load", followed.from),
            ),
        );
    }
    if let Some(certificate) = outcome.tls_certificate {
        pairs.push(("TLS".to_owned(), verified(certificate).to_owned()));
    }
    let transfer = outcome.bytes_in_per_s.map_or_else(none, |rate| format!("{}/s", bytes(rate)));
    pairs.push(("Transfer/sec".to_owned(), transfer));
    Block::Pairs(pairs)
}

fn verified(certificate: TlsCertificate) -> &'static str {
    match certificate {
        TlsCertificate::Verified => "certificate verified",
        TlsCertificate::ThisHost => {
            "certificate not verified: the server is on this host (--cacert FILE verifies it)"
        }
        TlsCertificate::Insecure => "certificate not verified (--insecure)",
    }
}

fn is_full(outcome: &LoadOutcome) -> bool {
    outcome.warnings.iter().any(|warning| warning.id == "generator-saturated")
}

/// Each stage for itself, and how far the server followed.
fn stages_of(outcome: &LoadOutcome) -> Vec<Block> {
    let mut blocks = vec![Block::Table(stages::table(outcome.stages.iter().map(|stage| (stage, None))))];
    let is_ramp = stages::missed(outcome.stages.iter()).is_some_and(stages::is_ramp);
    if let Some(followed) = &outcome.followed {
        let text = how_far(followed, is_ramp && !is_full(outcome), outcome.asked.connections);
        blocks.push(Block::Line(Text::plain(text)));
    }
    blocks
}

/// How far the server followed, in a sentence or two; `within_ramp`: the stage that it missed had no rate of its own.
fn how_far(followed: &Followed, within_ramp: bool, connections: u32) -> String {
    let held = followed.held_hz.map_or_else(none, |hz| format!("{hz:.0} req/s"));
    match (followed.missed_hz, followed.capacity_hz) {
        (None, _) if followed.held_hz.is_none() => {
            "No stage is valid, so it is not known how far the server follows: the warnings say why."
                .to_owned()
        }
        (None, _) => format!("The server followed every stage, up to {held}."),
        (Some(missed), Some(capacity)) if capacity < 0.5 => format!(
            "The server followed up to {held}. At {missed:.0} req/s it answered nothing, which is no capacity: the warnings say why."
        ),
        (Some(missed), Some(capacity)) => format!(
            "The server followed up to {held}. At {missed:.0} req/s it answered {capacity:.0}: that is its capacity with {}, if nobody kept the generator off its CPUs.",
            words::things(connections as usize, "connection")
        ),
        (Some(missed), None) if within_ramp => format!(
            "The server followed up to {held}, and not the ramp to {missed:.0} req/s on average: within it is its capacity. Stages of one rate each (3k:5s,4k:5s) show where."
        ),
        (Some(missed), None) => format!(
            "Followed up to {held}. At {missed:.0} req/s the generator itself had no time left: the server's capacity is not known."
        ),
    }
}

/// Rates with all the digits that wrk prints.
fn figure(rate_hz: Option<f64>) -> String {
    rate_hz.map_or_else(none, |rate| format!("{rate:.2}"))
}

fn none() -> String {
    crate::format::NONE.to_owned()
}

fn latencies(outcome: &LoadOutcome) -> Block {
    let columns = ["mean", "stdev", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let columns = std::iter::once(Column::words("", 0)).chain(columns.map(|title| Column::figures(title, 0)));
    let row = |name: &str, of: &LatencySummary| {
        let figures = [of.mean, of.stdev, of.p50, of.p90, of.p99, of.p99_9, of.p99_99, of.max];
        let cells = figures.map(|ns| Text::plain(ns.map_or_else(none, |ns| seconds(ns / 1e9))));
        Row::Cells(std::iter::once(Text::dim(name)).chain(cells).collect())
    };
    let mut rows = vec![row("Latency", &outcome.latency_ns)];
    let several = [
        ("First byte", Some(&outcome.first_byte_ns)),
        ("Connect", Some(&outcome.connect_ns)),
        ("Sent late by", outcome.lateness_ns.as_ref()),
    ];
    rows.extend(
        several.iter().filter_map(|(name, of)| of.filter(|of| of.max.is_some()).map(|of| row(name, of))),
    );
    Block::Table(Table { columns: columns.collect(), rows })
}

/// Percentiles as they are called.
fn named(of: &LatencySummary) -> [(&'static str, Option<f64>); 7] {
    [
        ("50%", of.p50),
        ("75%", of.p75),
        ("90%", of.p90),
        ("99%", of.p99),
        ("99.9%", of.p99_9),
        ("99.99%", of.p99_99),
        ("100%", of.max),
    ]
}

fn percentiles(outcome: &LoadOutcome) -> Block {
    let rows = named(&outcome.latency_ns).into_iter().map(|(name, ns)| {
        Row::Cells(vec![Text::plain(name), Text::plain(ns.map_or_else(none, |ns| seconds(ns / 1e9)))])
    });
    Block::Table(Table {
        columns: vec![Column::figures("", 0), Column::figures("", 0)],
        rows: rows.collect(),
    })
}

fn totals(outcome: &LoadOutcome) -> Block {
    let requests = &outcome.requests;
    let answered = requests.count.map_or_else(none, |count| count.to_string());
    let read = outcome.bytes_in.map_or_else(none, |all| bytes(all as f64));
    // Of uploads more is sent than comes back.
    let sent = outcome.bytes_out.filter(|sent| outcome.bytes_in.is_some_and(|read| *sent > read));
    let sent = sent.map_or_else(String::new, |sent| format!(", {} sent", bytes(sent as f64)));
    let requests_row = format!("{answered} in {}, {read} read{sent}", seconds(outcome.elapsed_s));
    let mut pairs = vec![("Requests".to_owned(), requests_row)];
    if !outcome.statuses.is_empty() {
        let reported: Vec<String> =
            outcome.statuses.iter().map(|(class, count)| format!("{class} {count}")).collect();
        let codes: Vec<String> =
            outcome.status_codes.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        let codes = if codes.is_empty() { String::new() } else { format!(" ({})", codes.join(", ")) };
        pairs.push(("Status".to_owned(), format!("{}{codes}", reported.join(", "))));
    }
    let errors: Vec<String> = requests
        .errors
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    pairs.push(("Errors".to_owned(), if errors.is_empty() { "none".to_owned() } else { errors.join(", ") }));
    let reasons = words::reasons(requests);
    if !reasons.is_empty() {
        pairs.push(("Why".to_owned(), reasons.join(", ")));
    }
    if let Some(in_flight) = outcome.in_flight.filter(|in_flight| *in_flight > 0) {
        pairs.push(("In flight".to_owned(), format!("{in_flight} at the end")));
    }
    let busiest = outcome
        .generator
        .busy
        .iter()
        .copied()
        .fold(None, |most: Option<f64>, busy| Some(most.map_or(busy, |most| most.max(busy))));
    if let Some(busiest) = busiest {
        let cost = requests
            .cpu_ns_per_request
            .load
            .map_or_else(String::new, |ns| format!(", {} of CPU a request", seconds(ns / 1e9)));
        pairs.push(("Generator".to_owned(), format!("busiest thread {}{cost}", percent(busiest))));
    }
    if let Some(scheduled) = outcome.scheduled {
        pairs.push(("Schedule".to_owned(), format!("{} requests fell due", count(scheduled as f64))));
    }
    if let Some(capacity) = &outcome.capacity {
        let rate = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{rate:.0} req/s"));
        let (held, missed) = (rate(capacity.held_hz), rate(capacity.missed_hz));
        pairs.push(("Capacity".to_owned(), format!("{held} held {}, {missed} did not", capacity.objective)));
    }
    Block::Pairs(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_followed_is_said_where_that_is_known() {
        let said = |held_hz, missed_hz, capacity_hz| {
            how_far(&Followed { held_hz, missed_hz, capacity_hz }, false, 2)
        };
        for (text, word) in [
            (said(None, None, None), "No stage is valid"),
            (said(Some(50.0), None, None), "every stage, up to 50 req/s"),
            (said(None, Some(52.0), Some(0.0)), "At 52 req/s it answered nothing"),
            (
                said(Some(50.0), Some(90.0), Some(70.0)),
                "it answered 70: that is its capacity with 2 connections",
            ),
        ] {
            assert!(
                text.contains(word) && (word.contains('7') || !text.contains("that is its capacity")),
                "{text}"
            );
        }
    }
}
