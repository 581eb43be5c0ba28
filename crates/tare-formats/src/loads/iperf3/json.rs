//! `-J` and `--json-stream`: objects of the same names, whole or one event a line.

use super::run::{Row, Run, Side};
use crate::documents::with_keys;
use crate::json::{number, text};
use crate::reader::DETECT_LINES;
use crate::result::RESULTS_MAX;
use serde_json::Value;

/// Of a whole result, and of each event of a stream.
const KEYS: &[&[&str]] = &[&["\"start\""], &["\"event\""]];

pub(super) fn detect(printed: &str) -> bool {
    let mut head = printed.lines().take(DETECT_LINES);
    head.any(|line| line.contains("\"version\"") && line.contains("\"iperf 3"))
}

pub(super) fn runs(printed: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for document in with_keys(printed, KEYS) {
        match document.parse() {
            Ok(value) => add(document.line, &value, &mut runs),
            Err((line, why)) => {
                // What stands before it in the same stream is of the same test.
                if runs.is_empty() {
                    runs.push(Run { protocol: "TCP", ..Run::default() });
                }
                runs.last_mut().into_iter().for_each(|run| run.skip(line, "JSON of iperf3", &why));
            }
        }
    }
    runs
}

fn add(line: u64, value: &Value, runs: &mut Vec<Run>) {
    let event = value["event"].as_str().unwrap_or_default();
    let is_whole = event.is_empty() && value["start"].is_object();
    if (is_whole || event == "start") && runs.len() < RESULTS_MAX {
        runs.push(Run { protocol: "TCP", ..Run::default() });
    }
    let Some(run) = runs.last_mut() else { return };
    match event {
        "" if is_whole => {
            run.start(&value["start"]);
            for interval in value["intervals"].as_array().into_iter().flatten() {
                run.interval(line, interval);
            }
            run.end(line, &value["end"]);
            run.failed(line, &value["error"]);
        }
        "start" => run.start(&value["data"]),
        "interval" => run.interval(line, &value["data"]),
        "end" => run.end(line, &value["data"]),
        "error" => run.failed(line, &value["data"]),
        _ => {}
    }
}

/// Of one thread until this version.
const THREADS_SINCE: (u32, u32) = (3, 16);

impl Run {
    fn start(&mut self, start: &Value) {
        let test = &start["test_start"];
        self.protocol = match test["protocol"].as_str() {
            Some("UDP") => "UDP",
            Some("SCTP") => "SCTP",
            _ => "TCP",
        };
        self.streams =
            start["connected"].as_array().map(Vec::len).and_then(|count| u32::try_from(count).ok());
        let said = [
            ("version", &start["version"]),
            ("system", &start["system_info"]),
            ("time", &start["timestamp"]["time"]),
        ];
        let of_test =
            ["protocol", "num_streams", "blksize", "omit", "duration", "reverse", "target_bitrate", "bidir"]
                .map(|name| (name, &test[name]));
        for (name, value) in said.into_iter().chain(of_test).filter(|(_, value)| !value.is_null()) {
            self.settings.push((name.to_owned(), text(value)));
        }
        let version = start["version"].as_str().and_then(version);
        let streams = number(&test["num_streams"]).unwrap_or(1.0);
        if streams > 1.0 && version.is_some_and(|version| version < THREADS_SINCE) {
            let text = format!(
                "all {streams} streams are of one thread: {} has no more",
                start["version"].as_str().unwrap_or_default()
            );
            self.warnings.push((
                "tool-has-one-thread",
                text,
                "use iperf3 3.16 or later, or several processes",
            ));
        }
        let bits_hz = number(&test["target_bitrate"]).unwrap_or(0.0);
        if self.protocol == "UDP" && bits_hz == 1_048_576.0 {
            let text =
                "it was sent at 1 Mbit/s, which is what iperf3 sends over UDP unless it is given a rate"
                    .to_owned();
            self.warnings.push(("tool-paces-by-default", text, "give a rate with -b, or -b 0 for none"));
        }
    }

    fn interval(&mut self, line: u64, interval: &Value) {
        for (at, stream) in (0..).zip(interval["streams"].as_array().into_iter().flatten()) {
            // With --bidir each direction has streams of its own.
            let reverse =
                interval["sum_bidir_reverse"]["sender"] == stream["sender"] && stream["sender"].is_boolean();
            self.row(line, stream, Some(at), false, reverse);
        }
        self.row(line, &interval["sum"], None, false, false);
        self.row(line, &interval["sum_bidir_reverse"], None, false, true);
    }

    fn end(&mut self, line: u64, end: &Value) {
        for (name, side, reverse) in [
            ("sum_sent", Side::Sent, false),
            ("sum_received", Side::Received, false),
            ("sum_sent_bidir_reverse", Side::Sent, true),
            ("sum_received_bidir_reverse", Side::Received, true),
        ] {
            self.row(line, &end[name], None, true, reverse);
            // The flag tells whether this process sent, not whose count it is.
            if let Some(last) = self.rows.last_mut().filter(|last| last.is_total && end[name].is_object()) {
                last.side = side;
            }
        }
        // Before 3.7 the only sum of UDP: what was sent, and the receiver's losses.
        if !end["sum_sent"].is_object() {
            self.row(line, &end["sum"], None, true, false);
        }
        for (name, value) in end["cpu_utilization_percent"].as_object().into_iter().flatten() {
            self.settings.push((format!("CPU use in %: {name}"), text(value)));
        }
        for name in ["sender_tcp_congestion", "receiver_tcp_congestion"] {
            if let Some(value) = end[name].as_str() {
                self.settings.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    fn failed(&mut self, line: u64, error: &Value) {
        if let Some(error) = error.as_str() {
            self.error = Some((line, error.to_owned()));
        }
    }

    fn row(&mut self, line: u64, found: &Value, stream: Option<u32>, is_total: bool, reverse: bool) {
        let Some(bits_hz) = number(&found["bits_per_second"]) else {
            if found.is_object() {
                self.skip(line, "bits_per_second", "there is no number");
            }
            return;
        };
        let said = |name: &str| number(&found[name]);
        let more = [
            ("retransmits", "segments", said("retransmits")),
            ("round trip time", "s", said("rtt").map(|us| us / 1e6)),
            ("congestion window", "B", said("snd_cwnd")),
            ("jitter", "s", said("jitter_ms").map(|ms| ms / 1e3)),
            ("lost datagrams", "datagrams", said("lost_packets")),
            ("datagrams", "datagrams", said("packets")),
        ];
        let sends = found["sender"].as_bool();
        // Without a flag, a version before 3.7: who counts retransmits has sent.
        let sends = sends.unwrap_or(found["retransmits"].is_number() || found["packets"].is_number());
        self.add(Row {
            line,
            side: if sends { Side::Sent } else { Side::Received },
            reverse,
            stream,
            is_total,
            omitted: found["omitted"].as_bool().unwrap_or(false),
            start_s: said("start").unwrap_or(0.0),
            end_s: said("end").unwrap_or(0.0),
            bytes: said("bytes").unwrap_or(0.0),
            bytes_hz: bits_hz / 8.0,
            more: more.into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?))).collect(),
        });
    }
}

/// The numbers of `iperf 3.12`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.strip_prefix("iperf ")?.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_events_is_read_as_the_whole_is() {
        let text = "{\"event\":\"start\",\"data\":{\"connected\":[{}],\"version\":\"iperf 3.17\",\"test_start\":{\"protocol\":\"TCP\",\"num_streams\":2}}}\n\
            iperf3: a line between\n\
            {\"event\":\"interval\",\"data\":{\"streams\":[{\"start\":0,\"end\":1,\"bytes\":1000,\"bits_per_second\":8000,\"retransmits\":1,\"sender\":true}],\
            \"sum\":{\"start\":0,\"end\":1,\"bytes\":1000,\"bits_per_second\":8000,\"sender\":true}}}\n\
            {\"event\":\"end\",\"data\":{\"sum_received\":{\"start\":0,\"end\":1,\"bytes\":900,\"bits_per_second\":7200,\"sender\":true}}}\n";
        assert!(detect(text));
        let [run] = &runs(text)[..] else { panic!() };
        let rows: Vec<_> =
            run.rows.iter().map(|row| (row.line, row.side, row.stream, row.bytes_hz, row.is_total)).collect();
        assert_eq!(
            rows,
            [
                (3, Side::Sent, Some(0), 1000.0, false),
                (3, Side::Sent, None, 1000.0, false),
                (4, Side::Received, None, 900.0, true)
            ]
        );
        assert!(run.warnings.is_empty(), "3.17 has a thread for each stream");
    }
}
