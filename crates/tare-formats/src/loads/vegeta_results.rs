//! [vegeta](https://github.com/tsenart/vegeta)'s results, one for each request: as Go's gob (what `attack` writes), JSON lines and CSV
//! (`encode`).

use super::time::{rfc3339, seconds_between};
use super::vegeta_gob::{self, Hit};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::rows::fields;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tare_model::outcome::Better;

/// Fields of a row; before version 12.8 there were none for method and URL, then none for headers.
const FIELDS: [usize; 4] = [8, 9, 11, 12];

pub(crate) const READER: Reader = Reader {
    name: "vegeta-results",
    gets_wrong: &[
        "latencies are from the time at which a request was sent: when vegeta sends late, they leave that out",
        "latencies of requests that failed, also of connections that were refused, are among the others",
        "it does not say which of its workers sent a request",
    ],
    detect: |input| {
        vegeta_gob::begins(input.bytes)
            || input.head().any(|line| is_json(line) || of_row(&fields(line)).is_some())
    },
    read,
};

fn is_json(line: &str) -> bool {
    line.starts_with("{\"attack\":") && line.contains("\"seq\":") && line.contains("\"bytes_out\":")
}

// Body and headers are passed over.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    attack: Cow<'a, str>,
    #[serde(default)]
    code: u64,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    latency: f64,
    #[serde(default)]
    bytes_in: f64,
    #[serde(borrow, default)]
    error: Cow<'a, str>,
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut hits = Hits::default();
    if vegeta_gob::begins(input.bytes) {
        let read = vegeta_gob::read(input.bytes, |hit| hits.add(1, &hit, metrics));
        if let Err(why) = read {
            metrics.skip(1, "gob", &format!("{why} (hint: vegeta encode --to json)"));
        }
        return hits.finish(metrics);
    }
    for (line, number) in input.text.lines().zip(1..) {
        if line.starts_with("{\"attack\":") {
            match serde_json::from_str::<Line<'_>>(line) {
                Ok(line) => match rfc3339(&line.timestamp) {
                    Some(at) => {
                        let Line { attack, code, latency, bytes_in, error, .. } = line;
                        let hit = Hit { attack, code, at, latency_ns: latency, bytes_in, error };
                        hits.add(number, &hit, metrics);
                    }
                    None => metrics.skip(number, line.timestamp.as_ref(), "the time is none"),
                },
                Err(why) if why.is_eof() => metrics.skip(number, line, "the line is cut off"),
                Err(why) => metrics.skip(number, line, &format!("it is no result of vegeta: {why}")),
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            match of_row(&fields(line)) {
                Some(hit) => hits.add(number, &hit, metrics),
                // A row without its end; lines of a log have no such number in front.
                None if line.split(',').next().is_some_and(|time| time.len() == 19) => {
                    metrics.skip(number, line, "the line is cut off, or no row");
                }
                None => {}
            }
        }
    }
    hits.finish(metrics);
}

/// Time in nanoseconds, code, latency in nanoseconds, bytes out and in, error, body in base64, attack, number, and what came later.
fn of_row<'a>(row: &[Cow<'a, str>]) -> Option<Hit<'a>> {
    let [time, code, latency, out, bytes_in, error, _body, attack, rest @ ..] = row else { return None };
    let number = |text: &str| text.parse::<u64>().ok();
    let whole = FIELDS.contains(&row.len()) && rest.first().is_none_or(|seq| number(seq).is_some());
    let time = number(time).filter(|_| time.len() == 19 && whole && number(out).is_some())?;
    Some(Hit {
        attack: attack.clone(),
        code: number(code).filter(|code| *code < 1000)?,
        at: ((time / 1_000_000_000) as i64, (time % 1_000_000_000) as u32),
        latency_ns: number(latency)? as f64,
        bytes_in: number(bytes_in)? as f64,
        error: error.clone(),
    })
}

#[derive(Default)]
struct Hits {
    begun: Option<(i64, u32)>,
    /// For each attack: requests, and those without an answer or with an error status.
    counts: BTreeMap<String, (u64, u64)>,
    codes: BTreeMap<u64, u64>,
    first_error: Option<String>,
    lost: u64,
}

impl Hits {
    fn add(&mut self, line: u64, hit: &Hit<'_>, metrics: &mut Metrics) {
        let begun = *self.begun.get_or_insert(hit.at);
        let at_s = Some(seconds_between(begun, hit.at));
        let failed = hit.code == 0 || hit.code >= 400;
        let less = Some(Better::Lower);
        let mut note = |name, unit, better, value| {
            let kind = Kind { benchmark: &hit.attack, name, unit, better };
            metrics.sample(line, kind, Sample { value, at_s, ..Sample::default() });
        };
        // A request without an answer has the time until it was given up: no latency.
        let name = if hit.code == 0 { "time until failure" } else { "latency" };
        note(name, "s", if hit.code == 0 { None } else { less }, hit.latency_ns / 1e9);
        if hit.code > 0 {
            note("bytes in", "B", None, hit.bytes_in);
        }
        if self.codes.len() < 1000 || self.codes.contains_key(&hit.code) {
            *self.codes.entry(hit.code).or_default() += 1;
        }
        if self.counts.len() < 1000 || self.counts.contains_key(hit.attack.as_ref()) {
            let counts = self.counts.entry(hit.attack.to_string()).or_default();
            counts.0 += 1;
            counts.1 += u64::from(failed);
        }
        self.lost += u64::from(hit.code == 0);
        if self.first_error.is_none() && !hit.error.is_empty() {
            self.first_error = Some(hit.error.to_string());
        }
    }

    fn finish(self, metrics: &mut Metrics) {
        if self.begun.is_none() {
            metrics.skip(1, "vegeta", "it has no result of a request");
        }
        let (mut all, mut all_failed) = (0, 0);
        for (attack, (count, failed)) in &self.counts {
            let kind = |name| Kind { benchmark: attack, name, unit: "req", better: None };
            metrics.sample(0, kind("requests"), *count as f64);
            metrics.sample(0, Kind { better: Some(Better::Lower), ..kind("failures") }, *failed as f64);
            (all, all_failed) = (all + count, all_failed + failed);
        }
        for (code, count) in &self.codes {
            metrics.set(&format!("status {code}"), &count.to_string());
        }
        if all_failed > 0 {
            let text = format!(
                "{all_failed} of {all} requests failed, {} of them without an answer; first: {}",
                self.lost,
                self.first_error.as_deref().unwrap_or("no error is named")
            );
            let hint =
                "vegeta's own report has their times in its percentiles: make the server answer as it should";
            metrics.warn("tool-counts-failures", &text, hint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_encodings_of_one_attack_are_the_same() {
        let with = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let mut read = READER.read(&Input { bytes, ..Input::of_text(&text) });
            // Only one of them has lines.
            read.metrics.iter_mut().for_each(|metric| metric.lines.clear());
            read
        };
        let csv = with(include_bytes!("../../tests/fixtures/vegeta-results/mixed.csv"));
        let gob = with(include_bytes!("../../tests/fixtures/vegeta-results/mixed.gob"));
        assert_eq!(csv.metrics.iter().map(|metric| metric.samples.len()).sum::<usize>(), 60 + 38 + 2);
        assert_eq!(
            (&csv.metrics, &csv.configuration, &csv.warnings),
            (&gob.metrics, &gob.configuration, &gob.warnings)
        );
        assert_eq!((csv.skipped_count, gob.skipped_count), (0, 0));
    }

    #[test]
    fn rows_of_older_versions_have_fewer_fields() {
        let row = "1435331400000000000,200,65000000,0,42,,aGVsbG8=,,7";
        let hit = of_row(&fields(row)).unwrap();
        assert_eq!((hit.code, hit.latency_ns, hit.at), (200, 65e6, (1_435_331_400, 0)));
        assert_eq!(of_row(&fields(&row.replace(",7", ""))).map(|hit| hit.code), Some(200));
        for text in ["1435331400000000000,200,65000000", "1,200,65000000,0,42,,a,b,7", "a,b,c,d,e,f,g,h"] {
            assert_eq!(of_row(&fields(text)), None, "{text}");
        }
    }
}
