//! [qperf](https://github.com/linux-rdma/qperf): tests one behind the other, with `-v`, `-u` and loops.

use super::shared::{LESS, MORE, kind};
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::in_base;

/// Its text.
pub(crate) const READER: Reader = Reader {
    name: "qperf",
    gets_wrong: &[
        "its latency is a mean of half round trips: it has no percentile and no spread",
        "it prints three digits unless -uu is given",
        "its bandwidth of TCP includes data that the receiver has not read yet",
    ],
    detect: |input| {
        let mut before = "";
        input.head().any(|line| {
            let is_figure = is_test(before) && figure(line).is_some();
            before = line;
            is_figure
        })
    },
    read,
};

/// All that it measures: any word may stand before a colon.
const TESTS: [&str; 34] = [
    "rc_bi_bw",
    "rc_bw",
    "rc_compare_swap_mr",
    "rc_fetch_add_mr",
    "rc_lat",
    "rc_rdma_read_bw",
    "rc_rdma_read_lat",
    "rc_rdma_write_bw",
    "rc_rdma_write_lat",
    "rc_rdma_write_poll_lat",
    "rds_bw",
    "rds_lat",
    "sctp_bw",
    "sctp_lat",
    "sdp_bw",
    "sdp_lat",
    "tcp_bw",
    "tcp_lat",
    "uc_bi_bw",
    "uc_bw",
    "uc_lat",
    "uc_rdma_write_bw",
    "uc_rdma_write_lat",
    "uc_rdma_write_poll_lat",
    "ud_bi_bw",
    "ud_bw",
    "ud_lat",
    "udp_bw",
    "udp_lat",
    "ver_rc_compare_swap",
    "ver_rc_fetch_add",
    "xrc_bi_bw",
    "xrc_bw",
    "xrc_lat",
];

/// `tcp_lat:` in its own line.
fn is_test(line: &str) -> bool {
    line.strip_suffix(':').is_some_and(|name| TESTS.contains(&name))
}

/// `    latency  =  24 us`: name, value, unit.
fn figure(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.strip_prefix("    ")?.split_once("  =  ")?;
    let rest = rest.trim();
    let (value, unit) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((name.trim(), value, unit.trim()))
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut test, mut launches) = (String::new(), std::collections::HashMap::<String, u32>::new());
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        if is_test(line) {
            line.trim_end_matches(':').clone_into(&mut test);
            // Each test is a run of its own; of a loop there is one for each value.
            *launches.entry(test.clone()).or_default() += 1;
        } else if !test.is_empty()
            && let Some((name, value, unit)) = figure(line)
        {
            let launch = launches.get(&test).map_or(0, |count| count - 1);
            one(number, &test, launch, (name, value, unit), metrics);
        } else if line.starts_with("failed ") || line.contains(": failed ") || line.starts_with("server: ") {
            metrics.skip(number, line, "the test failed");
        }
    }
}

fn one(line: u64, test: &str, launch: u32, (name, value, unit): (&str, &str, &str), metrics: &mut Metrics) {
    let Ok(number) = value.replace(',', "").parse::<f64>() else {
        // Settings stand among figures.
        return metrics.set_of(kind(test, "latency", "s", LESS), name, &format!("{value} {unit}"));
    };
    let (scaled, base) = scaled(number, unit);
    let better = match name {
        "latency" => LESS,
        name if name.ends_with("bw") || name.ends_with("rate") => MORE,
        name if name.ends_with("cost") => LESS,
        _ => None,
    };
    let kind = Kind { benchmark: test, name, unit: base, better };
    metrics.sample(line, kind, Sample { value: scaled, launch, ..Sample::default() });
}

/// Its units are in powers of 1000; bits are bytes here.
fn scaled(value: f64, unit: &str) -> (f64, &str) {
    let steps = [("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
    let (scale, rest) = steps
        .iter()
        .find_map(|(letter, scale)| Some((*scale, unit.strip_prefix(letter)?)))
        .unwrap_or((1.0, unit));
    match rest {
        "B/sec" | "bytes/sec" => (value * scale, "B/s"),
        "b/sec" | "bits/sec" => (value * scale / 8.0, "B/s"),
        "/sec" => (value * scale, "op/s"),
        "B" | "bytes" => (value * scale, "B"),
        // Seconds of CPU for a gigabyte.
        _ if unit == "sec/GB" => (value / 1e9, "s/B"),
        _ if unit == "ms/GB" => (value / 1e12, "s/B"),
        _ if unit == "ns/GB" => (value / 1e18, "s/B"),
        _ if unit == "% cpus" => (value, "%"),
        _ => in_base(value, unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_bytes_and_seconds() {
        assert_eq!(scaled(580.0, "MB/sec"), (580e6, "B/s"));
        assert_eq!(scaled(8.0, "Gb/sec"), (1e9, "B/s"));
        assert_eq!(scaled(39.5, "K/sec"), (39_500.0, "op/s"));
        assert_eq!(scaled(24.0, "us"), (24e-6, "s"));
        assert_eq!(scaled(3.46, "sec/GB"), (3.46e-9, "s/B"));
    }

    #[test]
    fn a_loop_is_a_run_for_each_value() {
        let read = READER
            .read(&Input::of_text("tcp_lat:\n    latency  =  24 us\ntcp_lat:\n    latency  =  25 us\n"));
        assert_eq!(
            (read.metrics[0].samples.as_slice(), read.metrics[0].launches.as_slice()),
            (&[24e-6, 25e-6][..], &[0, 1][..])
        );
        for other in
            ["notes:\n    latency  =  24 us\n", "a_b:\n    x  =  y\n", "my_lat:\n    latency  =  24 us\n"]
        {
            assert!(!READER.detects(&Input::of_text(other)), "{other}");
        }
    }
}
