//! `openssl speed`: the lines `Doing … in 2.99s` of stderr, the tables of stdout, and both as `-mr` has them.

use super::common::{Counts, HIGHER, kind};
use super::openssl_key::Key;
use super::openssl_table::{Row, Tables};
use crate::metrics::{Metrics, Sample};
use crate::reader::{Input, Reader};
use std::collections::HashMap;

pub(crate) const READER: Reader = Reader {
    name: "openssl-speed",
    gets_wrong: &[
        "without -elapsed it divides by its own CPU time: on a machine that others use, rates are those of a CPU alone, and waits and throttled time are left out",
        "one measurement for each size, with no spread: nothing says how sure a rate is",
        "each size is measured after the other: a CPU that slows down is read as an effect of the size",
    ],
    detect: |input| input.head().any(is_line),
    read,
};

/// What it says where it divides by the time on the clock; with `-mr` it does not say so.
const ELAPSED: &str = "You have chosen to measure elapsed time instead of user CPU time.";

/// No line of it is longer, but for those that say how it was built.
const LINE_BYTES: usize = 1000;

fn is_line(line: &str) -> bool {
    if line.len() > LINE_BYTES {
        return false;
    }
    let line = line.trim_start();
    Raw::of_text(line, 0).is_some()
        || line.starts_with("The 'numbers' are in 1000s of bytes per second processed")
        || line.starts_with("+DT:")
        || line.starts_with("+DTP:")
        || ["+F:", "+F2:", "+F3:", "+F4:", "+F5:", "+F6:", "+R:"].iter().any(|start| {
            line.strip_prefix(start)
                .is_some_and(|rest| rest.split(':').filter(|f| !f.is_empty()).count() >= 3)
        })
        || line.split_whitespace().collect::<Vec<_>>().ends_with(&["sign/s", "verify/s"])
        || line.split_whitespace().eq(["op", "op/s"])
}

/// One measurement: so many operations in so much time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raw {
    /// By which a row of a table is known to be the same measurement.
    pub key: Key,
    /// Bytes for one operation, where they matter.
    size: Option<f64>,
    count: f64,
    time_s: f64,
    /// For how long it was to run.
    asked_s: f64,
    line: u64,
}

impl Raw {
    /// `Doing sha256 for 3s on 16 size blocks: 123 sha256's in 2.99s`, `Doing 2048 bits private rsa's for 10s: 12 2048 bits private RSA's in 9.99s`.
    fn of_text(line: &str, number: u64) -> Option<Raw> {
        let (asked, got) = line.trim().strip_prefix("Doing ")?.split_once(": ")?;
        let (what, duration) = asked.rsplit_once(" for ")?;
        let (duration, blocks) =
            duration.split_once("s on ").map_or((duration, None), |(s, on)| (s, Some(on)));
        let size = match blocks {
            Some(blocks) => Some(blocks.strip_suffix(" size blocks")?.parse::<f64>().ok()?),
            None => None,
        };
        let (count, label) = got.split_once(' ')?;
        let (label, time) = label.rsplit_once(" in ")?;
        let key = match size {
            Some(size) => Key::of_blocks(what.trim_end_matches(" ops"), &size.to_string()),
            None => Key::of_words(what, label),
        };
        Some(Raw {
            key,
            size,
            count: count.parse().ok()?,
            time_s: time.strip_suffix('s')?.parse().ok()?,
            asked_s: duration.trim_end_matches('s').trim().parse().ok()?,
            line: number,
        })
    }

    /// `+DT:sha256:3:16` or `+DTP:2048:private:rsa:10` before, then `+R:123:sha256:2.99` or `+R1:12:2048:9.99`.
    fn of_machine(begun: &str, result: &str, number: u64) -> Option<Raw> {
        let (which, fields) = result.strip_prefix("+R")?.split_once(':')?;
        let fields: Vec<&str> = fields.split(':').collect();
        let (count, time) = fields.first().zip(fields.last())?;
        let begun: Vec<&str> = begun.split(':').collect();
        let (key, size, asked) = match *begun.as_slice() {
            ["+DT", name, asked, size] => (Key::of_blocks(name, size), Some(size.parse().ok()?), asked),
            ["+DTP", bits, operation, name, asked] => {
                (Key::of_words(&format!("{bits} bits {operation} {name}"), ""), None, asked)
            }
            ["+DTP", name, operation, asked] => {
                let is_kem = which.parse::<u32>().is_ok_and(|which| which < 18);
                let label = if is_kem { "KEM" } else { "signature" };
                (Key::of_words(&format!("{name} {operation}"), label), None, asked)
            }
            _ => return None,
        };
        Some(Raw {
            key,
            size,
            count: count.parse().ok()?,
            time_s: time.parse().ok()?,
            asked_s: asked.parse().ok()?,
            line: number,
        })
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let is_mixed = is_mixed(input.text);
    let (mut raws, mut tables, mut begun) = (Vec::new(), Tables::default(), "");
    let (mut is_elapsed, mut mixed_at) = (false, None);
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        if line.starts_with("+DT") {
            begun = line;
        } else if line.starts_with("+R") && is_mixed {
            mixed_at.get_or_insert(number);
        } else if line.starts_with("+R") {
            match Raw::of_machine(begun, line, number) {
                Some(raw) => raws.push(raw),
                None => metrics.skip(
                    number,
                    line,
                    "the line before does not say what was measured, or it is cut off",
                ),
            }
        } else if let Some(raw) = Raw::of_text(line, number) {
            raws.push(raw);
        } else if line.starts_with("Doing ") && line.contains(" for ") {
            metrics.skip(number, line, "it was not ended: cut off, or the operation failed");
        } else if line.starts_with("Error ") || line.contains(" failure") {
            metrics.skip(number, line, "openssl says that this failed");
        } else if line == ELAPSED {
            is_elapsed = true;
        } else {
            tables.line(line, number, metrics);
        }
    }
    if let Some(number) = mixed_at {
        let why = "lines of several processes (-multi) are mixed: they do not say which size they are of";
        metrics.skip(number, "+R", why);
    }
    if !is_elapsed {
        warn(&raws, input.text, metrics);
    }
    samples(&raws, &tables.rows, metrics);
}

/// Whether several processes wrote: one began before another's result was there.
fn is_mixed(text: &str) -> bool {
    let mut is_open = false;
    for line in text.lines() {
        if line.starts_with("+DT") {
            if is_open {
                return true;
            }
            is_open = true;
        } else if line.starts_with("+R") {
            is_open = false;
        }
    }
    false
}

/// All measurements, then the rows of tables that no measurement is there for.
fn samples(raws: &[Raw], rows: &[Row], metrics: &mut Metrics) {
    let mut by_key: HashMap<&Key, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.worker.is_none()) {
        by_key.entry(&row.key).or_default().push(at);
    }
    let (mut seen, mut used, mut launches) = (HashMap::<&Key, usize>::new(), Vec::new(), Counts::default());
    used.resize(rows.len(), false);
    for raw in raws {
        let nth = seen.entry(&raw.key).or_default();
        let said = raw.key.said();
        let row = by_key.get(&raw.key).and_then(|all| all.get(*nth));
        *nth += 1;
        let benchmark = match row.and_then(|at| rows.get(*at).zip(used.get_mut(*at))) {
            Some((row, used)) => {
                *used = true;
                row.benchmark.as_str()
            }
            None => said.as_str(),
        };
        let name = raw.key.name.as_str();
        let launch = launches.next(&format!("{benchmark}\n{name}"));
        let mut note = |name: &str, unit: &str, better, value: f64| {
            let sample = Sample { value, launch, ..Sample::default() };
            metrics.sample(raw.line, kind(benchmark, name, unit, better), sample);
        };
        match raw.size {
            Some(size) => note(name, "B/s", HIGHER, raw.count * size / raw.time_s),
            None => note(name, "op/s", HIGHER, raw.count / raw.time_s),
        }
        note(&format!("{name}: operations"), "op", None, raw.count);
        note(&format!("{name}: time"), "s", None, raw.time_s);
    }
    for (row, _) in rows.iter().zip(used).filter(|(_, used)| !used) {
        let (name, unit) = (row.key.name.as_str(), row.unit);
        let worker = row.worker;
        let name = if worker.is_some() { format!("{name}, each process") } else { name.to_owned() };
        let launch = match worker {
            Some(worker) => launches.next(&format!("{}\n{name}\n{worker}", row.benchmark)),
            None => launches.next(&format!("{}\n{name}", row.benchmark)),
        };
        let sample = Sample { value: row.value, launch, worker, at_s: None };
        metrics.sample(row.line, kind(&row.benchmark, &name, unit, HIGHER), sample);
    }
}

/// Nothing says that it was the clock by which it divided.
fn warn(raws: &[Raw], text: &str, metrics: &mut Metrics) {
    let share = |raw: &Raw| raw.time_s / raw.asked_s;
    let least = raws.iter().filter(|raw| raw.asked_s > 0.0).min_by(|a, b| share(a).total_cmp(&share(b)));
    let is_machine = text.lines().any(|line| line.starts_with("+DT") || line.starts_with("+F"));
    let said = match least {
        // The times of -elapsed are never shorter than what was asked for, and -mr does not say which times they are.
        Some(raw) if is_machine && share(raw) >= 0.995 => return,
        Some(raw) => format!(
            "{} {} ran for {} s and its operations were divided by {} s of CPU time",
            raw.key.said(),
            raw.key.name,
            raw.asked_s,
            raw.time_s
        ),
        None => "nothing in it says that -elapsed was given: operations were divided by CPU time".to_owned(),
    };
    metrics.warn(
        "tool-divides-by-cpu-time",
        &format!("{said}; what others took of the CPU is not in the rates"),
        "run openssl speed with -elapsed: it then divides by the time on the clock",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        assert!(READER.detects(&Input::of_text(text)));
        READER.read(&Input::of_text(text))
    }

    fn found(read: &tare_model::tool::ToolMetrics) -> Vec<(&str, &str, &[f64])> {
        let all = read.metrics.iter().filter(|m| !m.name.contains(':'));
        all.map(|m| (m.benchmark.as_str(), m.name.as_str(), m.samples.as_slice())).collect()
    }

    #[test]
    fn a_measurement_and_its_row_are_one_sample() {
        let text = "Doing md5 for 3s on 16 size blocks: 300 md5's in 3.00s\nOpenSSL 1.1.1n  15 Mar 2022\n\
            The 'numbers' are in 1000s of bytes per second processed.\ntype             16 bytes\nmd5               1600.00 \n";
        let read = of(&text.repeat(2));
        assert_eq!(found(&read), [("md5", "16 bytes", &[1600.0, 1600.0][..])]);
        assert_eq!(read.metrics[0].launches, [0, 1]);
        assert_eq!(read.configuration["version"], "1.1.1n");
        assert_eq!(of(&text[text.find("OpenSSL").unwrap()..]).metrics[0].samples, [1600.0]);
    }

    #[test]
    fn curves_with_as_many_bits_are_distinguished_by_the_table() {
        let read = of("Doing 256 bits sign ecdsa's for 10s: 20 256 bits ECDSA signs in 10.00s\n\
            Doing 256 bits sign ecdsa's for 10s: 30 256 bits ECDSA signs in 10.00s\n\
            \x20                             sign    verify    sign/s verify/s\n\
            \x20256 bits ecdsa (nistp256)   0.5000s   0.2500s      2.0      4.0\n\
            \x20256 bits ecdsa (brainpoolP256r1)   0.3333s   0.2500s      3.0      4.0\n");
        assert_eq!(
            found(&read),
            [
                ("256 bits ecdsa (nistp256)", "sign", &[2.0][..]),
                ("256 bits ecdsa (brainpoolP256r1)", "sign", &[3.0]),
                ("256 bits ecdsa (nistp256)", "verify", &[4.0]),
                ("256 bits ecdsa (brainpoolP256r1)", "verify", &[4.0]),
            ]
        );
    }

    #[test]
    fn cpu_time_is_warned_of_unless_the_clock_was_asked_for() {
        let line = "Doing md5 ops for 3s on 16 size blocks: 300 md5 ops in 1.50s\n";
        let read = of(line);
        assert!(
            read.warnings[0].text.contains("ran for 3 s") && read.warnings[0].text.contains("1.5 s of CPU")
        );
        assert_eq!(of(&format!("{ELAPSED}\n{line}")).warnings, []);
        assert_eq!(of("+DT:md5:1:16\n+R:100:md5:1.010000\n").warnings, []);
        assert_eq!(of("+DT:md5:1:16\n+R:100:md5:0.500000\n").warnings.len(), 1);
    }

    #[test]
    fn what_was_not_ended_is_said() {
        let read = of(
            "Doing md5 for 3s on 16 size blocks: 300 md5's in 3.00s\nDoing md5 for 3s on 64 size blocks: \n",
        );
        assert_eq!((read.skipped[0].line, read.metrics.len()), (2, 3));
        let read = of("Doing md5 for 3s on 16 size blocks: 300 md5's in 0.00s\n");
        assert_eq!((read.skipped.len(), read.skipped[0].line), (1, 1));
    }
}
