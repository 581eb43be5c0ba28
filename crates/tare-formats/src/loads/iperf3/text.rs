//! What iperf3 prints for people, of its client and of its server.

use super::run::{Row, Run, Side};
use crate::reader::DETECT_LINES;
use crate::result::RESULTS_MAX;

pub(super) fn detect(printed: &str) -> bool {
    let mut is_of_3 = false;
    for line in printed.lines().take(DETECT_LINES) {
        is_of_3 |= line.starts_with("Connecting to host ") || line.starts_with("Accepted connection from ");
        let is_head = line.starts_with("[ ID]") && line.contains(" Interval ");
        // Bandwidth is the word of iperf2 too.
        if is_head && (line.contains(" Bitrate") || is_of_3 && line.contains(" Bandwidth")) {
            return true;
        }
        if line.starts_with("iperf3: ") {
            return true;
        }
    }
    false
}

/// Whether a line is the head of a table of iperf 2, where the text is not of iperf3.
pub(super) fn is_head_of_2(line: &str) -> bool {
    line.starts_with("[ ID] Interval ") && line.contains(" Transfer ") && line.contains(" Bandwidth")
}

pub(super) fn runs(printed: &str) -> Vec<Run> {
    let mut text = Text::default();
    for (line, number) in printed.lines().map(str::trim_end).zip(1..) {
        text.read(number, line);
    }
    if text.runs.is_empty() { vec![Run { protocol: "TCP", ..Run::default() }] } else { text.runs }
}

#[derive(Default)]
struct Text {
    runs: Vec<Run>,
    /// Names of streams, in their order.
    streams: Vec<String>,
    /// Who receives in this test: the process that printed, unless it says otherwise.
    receives: bool,
    /// Behind the line of dashes and another head are totals; they say whose they are.
    has_figures: bool,
}

impl Text {
    fn run(&mut self) -> Option<&mut Run> {
        if self.runs.is_empty() {
            self.runs.push(Run { protocol: "TCP", ..Run::default() });
        }
        self.runs.last_mut()
    }

    fn read(&mut self, number: u64, line: &str) {
        if let Some(host) = line.strip_prefix("Connecting to host ") {
            self.begin(false);
            self.set("host", host);
        } else if line.starts_with("Accepted connection from ") {
            self.begin(true);
        } else if line.starts_with("Reverse mode, ") {
            self.receives = !self.receives;
        } else if let Some(error) = line.strip_prefix("iperf3: ") {
            // What stands on standard error may come before the rest.
            if let Some(run) = self.run() {
                run.error = Some((number, error.to_owned()));
            }
        } else if line.starts_with("[ ID]") {
            let is_udp = line.contains("Datagrams") || line.contains("Jitter");
            if let Some(run) = self.run().filter(|_| is_udp) {
                run.protocol = "UDP";
            }
        } else if line.starts_with('[') {
            self.figures(number, line);
        }
    }

    fn begin(&mut self, receives: bool) {
        if (self.has_figures || self.runs.is_empty()) && self.runs.len() < RESULTS_MAX {
            self.runs.push(Run { protocol: "TCP", ..Run::default() });
        }
        (self.streams, self.receives, self.has_figures) = (Vec::new(), receives, false);
    }

    fn set(&mut self, setting: &str, value: &str) {
        if let Some(run) = self.run() {
            run.settings.push((setting.to_owned(), value.to_owned()));
        }
    }

    fn figures(&mut self, number: u64, line: &str) {
        let Some((id, rest)) = line.get(1..).and_then(|rest| rest.split_once(']')) else { return };
        let role = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (role, rest) = role.map_or(("", rest), |(role, rest)| (role, rest));
        let words: Vec<&str> = rest.split_whitespace().take(24).collect();
        let stream = (id.trim() != "SUM").then(|| self.stream(id.trim()));
        if words.first() == Some(&"local") {
            let count = self.streams.len() as u32;
            return self.runs.last_mut().into_iter().for_each(|run| run.streams = Some(count));
        }
        if words.get(1) != Some(&"sec") {
            return;
        }
        let [range, "sec", amount, amount_unit, rate, rate_unit, more @ ..] = words.as_slice() else {
            return self.skip(number, line, "the line is cut off");
        };
        let range =
            range.split_once('-').and_then(|(start, end)| Some((start.parse().ok()?, end.parse().ok()?)));
        let bytes = amount.parse::<f64>().ok().zip(bytes_in(amount_unit)).map(|(value, scale)| value * scale);
        let bytes_hz = rate
            .parse::<f64>()
            .ok()
            .zip(bytes_hz_in(rate_unit))
            .map(|(value, (times, over))| value * times / over);
        let (Some((start_s, end_s)), Some(bytes), Some(bytes_hz)) = (range, bytes, bytes_hz) else {
            return self.skip(number, line, "its figures are no numbers with units that are known");
        };
        let ends = more.last().copied().unwrap_or_default();
        let is_total = matches!(ends, "sender" | "receiver");
        let receives = if role.is_empty() { self.receives } else { role.starts_with("RX") };
        let side = match ends {
            "sender" => Side::Sent,
            "receiver" => Side::Received,
            _ if receives => Side::Received,
            _ => Side::Sent,
        };
        let reverse = role == "RX-C" || role == "TX-S";
        let omitted = ends == "(omitted)";
        let is_udp = self.runs.last().is_some_and(|run| run.protocol == "UDP");
        let more = others(more, is_udp);
        let row = Row {
            line: number,
            side,
            reverse,
            stream,
            is_total,
            omitted,
            start_s,
            end_s,
            bytes,
            bytes_hz,
            more,
        };
        self.has_figures = true;
        self.runs.last_mut().into_iter().for_each(|run| run.add(row.clone()));
    }

    fn skip(&mut self, number: u64, line: &str, why: &str) {
        if let Some(run) = self.run() {
            run.skip(number, line, why);
        }
    }

    /// The place of a stream among those of this test.
    fn stream(&mut self, id: &str) -> u32 {
        self.run();
        let at = self.streams.iter().position(|known| known == id).unwrap_or_else(|| {
            // More than this are no streams of one test.
            if self.streams.len() < 1000 {
                self.streams.push(id.to_owned());
            }
            self.streams.len() - 1
        });
        at as u32
    }
}

/// What stands behind the rate: retransmits and window of TCP, or jitter and losses of UDP.
fn others(words: &[&str], is_udp: bool) -> Vec<(&'static str, &'static str, f64)> {
    let number = |word: &str| word.parse::<f64>().ok();
    let mut found = Vec::new();
    match words {
        [jitter, "ms", lost, ..] if lost.contains('/') => {
            found.extend(number(jitter).map(|ms| ("jitter", "s", ms / 1e3)));
            if let Some((lost, all)) = lost.split_once('/') {
                found.extend(number(lost).map(|lost| ("lost datagrams", "datagrams", lost)));
                found.extend(number(all).map(|all| ("datagrams", "datagrams", all)));
            }
        }
        [retransmits, window, unit, ..] if bytes_in(unit).is_some() => {
            found.extend(number(retransmits).map(|count| ("retransmits", "segments", count)));
            let bytes = number(window).zip(bytes_in(unit)).map(|(value, scale)| value * scale);
            found.extend(bytes.map(|bytes| ("congestion window", "B", bytes)));
        }
        [count, "sender"] => found.extend(number(count).map(|count| ("retransmits", "segments", count))),
        // A sum has no window.
        [count] | [count, "(omitted)"] => {
            let (name, unit) = if is_udp { ("datagrams", "datagrams") } else { ("retransmits", "segments") };
            found.extend(number(count).map(|count| (name, unit, count)));
        }
        _ => {}
    }
    found
}

/// Amounts are in powers of 1024.
fn bytes_in(unit: &str) -> Option<f64> {
    let scale = ["Bytes", "KBytes", "MBytes", "GBytes", "TBytes"].iter().position(|name| *name == unit)?;
    Some(1024_f64.powi(scale as i32))
}

/// Rates in bits are in powers of 1000, those in bytes in powers of 1024: the factor and the divisor.
fn bytes_hz_in(unit: &str) -> Option<(f64, f64)> {
    let unit = unit.strip_suffix("/sec")?;
    if let Some(scale) = bytes_in(unit) {
        return Some((scale, 1.0));
    }
    let scale = ["bits", "Kbits", "Mbits", "Gbits", "Tbits"].iter().position(|name| *name == unit)?;
    Some((1000_f64.powi(scale as i32), 8.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_rates_and_amounts_differ() {
        let line = "[  5]   0.00-1.00   sec  2.00 MBytes  16.0 Mbits/sec    3   1.00 KBytes       ";
        let [run] = &runs(line)[..] else { panic!() };
        let row = &run.rows[0];
        assert_eq!((row.bytes, row.bytes_hz, row.start_s, row.end_s), (2_097_152.0, 2e6, 0.0, 1.0));
        assert_eq!(row.more, [("retransmits", "segments", 3.0), ("congestion window", "B", 1024.0)]);
        let in_bytes = "[  5]   0.00-1.00   sec  2.00 MBytes  2.00 MBytes/sec                  receiver";
        let row = &runs(in_bytes)[0].rows[0];
        assert_eq!((row.bytes_hz, row.is_total, row.side), (2_097_152.0, true, Side::Received));
    }

    #[test]
    fn iperf2_is_another_tool() {
        let head = "[ ID] Interval       Transfer     Bandwidth";
        assert!(is_head_of_2(head) && !is_head_of_2("[ ID] Interval of something"));
        assert!(!detect(&format!(
            "Client connecting to 127.0.0.1, TCP port 5001\n{head}\n[  3]  0.0-10.0 sec  1.00 GBytes  900 Mbits/sec\n"
        )));
        assert!(detect(
            "Connecting to host h, port 5201\n[ ID] Interval           Transfer     Bandwidth       Retr  Cwnd\n"
        ));
    }

    #[test]
    fn a_line_that_is_cut_off_is_said() {
        let [run] = &runs("[  5]   0.00-1.00   sec  2.00 MBy")[..] else { panic!() };
        assert_eq!((run.rows.len(), run.skipped[0].0), (0, 1));
    }
}
