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

/// A measurement is ended by the clock: with -elapsed its time is never shorter than what was asked for. One that is by more than this was divided by
/// CPU time, and had the CPU for no longer; steps of its own clock (10 ms) and the start of the alarm are less.
const SHARE_MIN: f64 = 0.98;
/// Three steps of that clock, which a measurement of a second may lose undisturbed.
const TICKS_S: f64 = 0.035;

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

    /// Whether its operations were divided by clearly less time than it ran for.
    fn is_divided_by_less(&self) -> bool {
        self.time_s > 0.0
            && self.asked_s > 0.0
            && self.share() < SHARE_MIN
            && self.asked_s - self.time_s > TICKS_S
    }

    fn share(&self) -> f64 {
        self.time_s / self.asked_s
    }

    /// Over so many seconds, in the tables' units.
    fn rate(&self, time_s: f64) -> String {
        match self.size {
            Some(size) => format!("{:.2} kB/s", self.count * size / time_s / 1e3),
            None => format!("{:.1} op/s", self.count / time_s),
        }
    }
}

/// Of each row of a table, whether its run says of which time it is: by a line, or by the times of its measurements.
#[derive(Default)]
struct Runs {
    is_known: bool,
    has_version: bool,
    /// Whether a table has begun: what is measured is then of the next run.
    has_rows: bool,
    known: Vec<bool>,
}

impl Runs {
    fn line(&mut self, line: &str) {
        let is_version = line.starts_with("version: ") || line.starts_with("OpenSSL ");
        let is_measured = line.starts_with("Doing ") || line.starts_with("+DT") || line == ELAPSED;
        if is_version && self.has_version || is_measured && (self.has_version || self.has_rows) {
            (self.is_known, self.has_version, self.has_rows) = (false, false, false);
        }
        self.has_version |= is_version;
        self.is_known |= is_measured && !line.starts_with("+DT") || line.starts_with("+R");
    }

    /// So many rows were read.
    fn rows(&mut self, count: usize) {
        self.has_rows |= count > self.known.len();
        self.known.resize(count, self.is_known);
    }
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let is_mixed = is_mixed(input.text);
    let (mut raws, mut tables, mut begun) = (Vec::new(), Tables::default(), "");
    let (mut mixed, mut mixed_at) = (Vec::new(), None);
    let mut runs = Runs::default();
    for (line, number) in input.text.lines().map(str::trim_end).zip(1..) {
        runs.line(line);
        if line.starts_with("+DT") {
            begun = line;
        } else if line.starts_with("+R") && is_mixed {
            mixed_at.get_or_insert(number);
            mixed.extend(Raw::of_machine(begun, line, number));
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
        } else if line != ELAPSED {
            tables.line(line, number, metrics);
        }
        runs.rows(tables.rows.len());
    }
    if let Some(number) = mixed_at {
        let why = "lines of several processes (-multi) are mixed: they do not say which size they are of";
        metrics.skip(number, "+R", why);
    }
    let used = samples(&raws, &tables.rows, metrics);
    warn(&raws, &mixed, metrics);
    if used.iter().zip(&runs.known).any(|(is_used, is_known)| !is_used && !is_known) {
        metrics.warn(
            "tool-may-divide-by-cpu-time",
            "tables stand alone, which do not say whether -elapsed was given: without it their rates are per second of its own CPU time",
            "keep what it prints to standard error too: it says so, and how much CPU time each measurement had",
        );
    }
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

/// All measurements, then the rows of tables that no measurement is there for. Of each row, whether there is one.
fn samples(raws: &[Raw], rows: &[Row], metrics: &mut Metrics) -> Vec<bool> {
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
    for (row, _) in rows.iter().zip(&used).filter(|(_, used)| !**used) {
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
    used
}

/// Warns of measurements that had the CPU for less time than they ran for, with the rates that this makes of the worst.
fn warn(raws: &[Raw], mixed: &[Raw], metrics: &mut Metrics) {
    let by_share = |a: &&Raw, b: &&Raw| a.share().total_cmp(&b.share());
    let divided = raws.iter().filter(|raw| raw.is_divided_by_less());
    let count = divided.clone().count();
    let said = if let Some(raw) = divided.min_by(by_share) {
        format!(
            "{} {} ran for {} s and its operations were divided by {} s of CPU time: {} as printed, {} by the clock; {count} of {} measurements \
             are so",
            raw.key.said(),
            raw.key.name,
            raw.asked_s,
            raw.time_s,
            raw.rate(raw.time_s),
            raw.rate(raw.asked_s),
            raws.len()
        )
    } else if let Some(raw) = of_least_time(mixed) {
        format!(
            "processes of -multi ran for {} s and one divided its operations by {} s of CPU time: its rate by the clock is {:.0} % of the one \
             printed",
            raw.asked_s,
            raw.time_s,
            raw.share() * 100.0
        )
    } else {
        return;
    };
    metrics.warn(
        "tool-divides-by-cpu-time",
        &format!("{said}; what others or a quota took of the CPU is not in the rates"),
        "run openssl speed with -elapsed: it then divides by the time on the clock",
    );
}

/// The measurement with the least time, if that is clearly less than any of them was to run for. Which of them a line is of is not known.
fn of_least_time(mixed: &[Raw]) -> Option<Raw> {
    let asked_s = mixed.iter().map(|raw| raw.asked_s).min_by(f64::total_cmp)?;
    let least = mixed.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s))?;
    Some(Raw { asked_s, ..least.clone() }).filter(Raw::is_divided_by_less)
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
    fn measurements_that_had_the_cpu_for_less_time_are_flagged_with_both_rates() {
        let line =
            |time: &str| format!("Doing md5 ops for 3s on 16 size blocks: 300000 md5 ops in {time}s\n");
        let read = of(&[line("2.97"), line("1.50")].concat());
        let warning = &read.warnings[0];
        assert_eq!((read.warnings.len(), warning.id.as_str()), (1, "tool-divides-by-cpu-time"));
        for part in
            ["ran for 3 s", "1.5 s of CPU", "3200.00 kB/s as printed", "1600.00 kB/s by the clock", "1 of 2"]
        {
            assert!(warning.text.contains(part), "{part}: {}", warning.text);
        }
        // Undisturbed both times are the same, whichever it is.
        for undisturbed in [line("2.97"), line("3.00"), format!("{ELAPSED}\n{}", line("3.01"))] {
            assert_eq!(of(&undisturbed).warnings, [], "{undisturbed}");
        }
        assert_eq!(of("+DT:md5:1:16\n+R:100:md5:1.010000\n").warnings, []);
        assert_eq!(of("+DT:md5:1:16\n+R:100:md5:0.500000\n").warnings.len(), 1);
        // One run with -elapsed says nothing of the others.
        let read = of(&format!("{ELAPSED}\n{}{}", line("3.00"), line("1.50")));
        assert!(read.warnings[0].text.contains("1 of 2"), "{:?}", read.warnings);
    }

    #[test]
    fn tables_alone_do_not_say_by_which_time_they_divide() {
        let table = |version: &str| {
            format!(
                "version: {version}\nThe 'numbers' are in 1000s of bytes per second processed.\ntype             16 bytes\nmd5               1.60k\n"
            )
        };
        let measured = "Doing md5 for 3s on 16 size blocks: 300 md5's in 3.00s\n";
        let ids = |text: &str| -> Vec<String> { of(text).warnings.into_iter().map(|one| one.id).collect() };
        assert_eq!(ids(&table("3.0")), ["tool-may-divide-by-cpu-time"]);
        let elapsed = [ELAPSED, "\n", measured, &table("3.0")].concat();
        for whole in
            [elapsed.clone(), [measured, &table("3.0")].concat(), [table("3.0").as_str(), measured].concat()]
        {
            assert_eq!(ids(&whole), [""; 0], "{whole}");
        }
        assert_eq!(ids(&[elapsed, table("3.5")].concat()), ["tool-may-divide-by-cpu-time"]);
    }

    #[test]
    fn processes_that_share_cpus_are_judged_by_their_times() {
        let of_time = |time: &str| {
            format!(
                "+DT:md5:1:16\n+DT:md5:1:16\n+R:9:md5:1.00\n+R:8:md5:{time}\nGot: +H:16 from 0\nGot: +F:6:md5:144.00 from 0\n\
                 version: 3.0\nmd5               0.27k\n"
            )
        };
        assert_eq!(of(&of_time("1.01")).warnings, []);
        let read = of(&of_time("0.50"));
        assert!(read.warnings[0].text.contains("50 %"), "{:?}", read.warnings);
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
