//! The lines of fio's `--output-format=terse`, version 3, whose fields have no names.

use super::common::{HIGHER, LOWER, kind, percentile};
use crate::metrics::{Metrics, Sample};
use crate::reader::Input;
use crate::units::in_base;
use std::collections::HashMap;

/// Where the figures of reads begin, and how many there are; those of writes stand behind them.
const DIRECTIONS: [(&str, usize); 2] = [("read", 5), ("write", 46)];

/// `VERSION;fio-…;job;group;error;…`.
pub(super) fn is_line(line: &str) -> bool {
    let mut fields = line.split(';');
    let version = fields.next().is_some_and(|version| version.parse::<u32>().is_ok());
    version && fields.next().is_some_and(|tool| tool.starts_with("fio-")) && fields.count() > 10
}

/// Every such line; several of one job are its threads.
pub(super) fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut workers: HashMap<String, u32> = HashMap::new();
    for (line, number) in input.text.lines().zip(1..) {
        if !is_line(line) {
            continue;
        }
        let fields: Vec<&str> = line.split(';').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        let (name, error) = (field(2), field(4));
        if field(0) != "3" {
            metrics.skip(
                number,
                name,
                "of the versions of terse output only 3 is read: use --output-format=json",
            );
            continue;
        }
        metrics.set("fio version", field(1));
        if fields.len() < 87 {
            metrics.skip(number, name, "the line has too few fields: it is cut off");
            continue;
        }
        if error != "0" {
            let why = format!("the job ended with error {error}: its figures are of a part of the work");
            metrics.skip(number, name, &why);
            continue;
        }
        let worker = workers.entry(name.to_owned()).or_default();
        for (direction, from) in DIRECTIONS {
            let figures = fields.get(from..from + 41).unwrap_or_default();
            one(number, name, *worker, direction, figures, metrics);
        }
        *worker += 1;
    }
}

fn one(line: u64, job: &str, worker: u32, direction: &str, fields: &[&str], metrics: &mut Metrics) {
    let number = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    if number(0).is_none_or(|kib| kib == 0.0) {
        return;
    }
    let mut note = |name: &str, unit: &str, better, value: Option<f64>| {
        let sample = Sample { value: value.unwrap_or(f64::NAN), worker: Some(worker), ..Sample::default() };
        metrics.sample(line, kind(job, &format!("{direction} {name}"), unit, better), sample);
    };
    note("bw", "B/s", HIGHER, number(1).map(|kib| kib * 1024.0));
    note("iops", "op/s", HIGHER, number(2));
    for (what, from) in [("slat", 4), ("clat", 8), ("lat", 32)] {
        // All zeros: not measured.
        if number(from + 1).is_some_and(|max| max > 0.0) {
            for (name, at) in [("min", 0), ("max", 1), ("mean", 2), ("stddev", 3)] {
                let seconds = number(from + at).map(|us| in_base(us, "us").0);
                note(&format!("{what} {name}"), "s", LOWER, seconds);
            }
        }
    }
    for field in fields.get(12..32).unwrap_or_default() {
        let Some((percent, us)) = field.split_once("%=") else { continue };
        if percent != "0" {
            let seconds = us.parse::<f64>().ok().map(|us| in_base(us, "us").0);
            note(&format!("clat {}", percentile(percent)), "s", LOWER, seconds);
        }
    }
}
