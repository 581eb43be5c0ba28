//! What fio prints for people (`--output-format=normal`): figures with three or four digits.

use super::common::{HIGHER, LOWER, kind, percentile};
use crate::metrics::{Metrics, Sample};
use crate::numbers::positive;
use crate::reader::Input;
use crate::units::{in_base, prefix};
use std::collections::HashMap;
use tare_model::outcome::Better;

/// Begins the figures of a job: `name: (groupid=0, jobs=1): err= 0: pid=123: Sat Nov …`.
pub(super) fn is_line(line: &str) -> bool {
    head(line).is_some()
}

/// A job as it was printed last.
struct Job<'a> {
    line: u64,
    launch: u32,
    name: &'a str,
    error: &'a str,
    figures: Vec<Figure>,
}

struct Figure {
    line: u64,
    name: String,
    unit: &'static str,
    better: Option<Better>,
    value: f64,
}

pub(super) fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let (mut jobs, mut places) = (Vec::<Job<'_>>::new(), HashMap::new());
    let (mut launch, mut current, mut reader) = (0, 0, Lines::default());
    for (line, number) in input.text.lines().zip(1..) {
        if let Some(version) = version(line) {
            launch = jobs.last().map_or(0, |job| job.launch + 1);
            reader = Lines { is_over: true, ..Lines::default() };
            metrics.set("fio version", version);
        } else if let Some((name, pid, error)) = head(line) {
            reader = Lines::default();
            let job = Job { line: number, launch, name, error, figures: Vec::new() };
            current = *places.entry((name, pid, launch)).or_insert(jobs.len());
            match jobs.get_mut(current) {
                // With --status-interval a job is printed again and again.
                Some(earlier) => {
                    let why = "a report of --status-interval: the figures of the one behind it are of the whole time until then";
                    metrics.skip(std::mem::replace(earlier, job).line, name, why);
                }
                None => jobs.push(job),
            }
        } else if line.starts_with("Run status group") {
            reader = Lines { is_over: true, ..Lines::default() };
        } else if let Some(job) = jobs.get_mut(current) {
            reader.read(number, line, job, metrics);
        }
    }
    let mut workers = HashMap::<(&str, u32), (u32, u32)>::new();
    for job in &jobs {
        workers.entry((job.name, job.launch)).or_default().0 += 1;
    }
    for job in &jobs {
        let (count, next) = workers.entry((job.name, job.launch)).or_default();
        job.keep((*count > 1).then_some(*next), metrics);
        *next += 1;
    }
}

impl Figure {
    fn of(line: u64, name: &str, unit: &'static str, better: Option<Better>) -> Figure {
        Figure { line, name: name.to_owned(), unit, better, value: f64::NAN }
    }
}

impl Job<'_> {
    fn note(&mut self, figure: Figure, value: Option<f64>, metrics: &mut Metrics) {
        match value {
            Some(value) => self.figures.push(Figure { value, ..figure }),
            None => metrics.skip(
                figure.line,
                &format!("{} {}", self.name, figure.name),
                "it is no number with a unit",
            ),
        }
    }

    fn keep(&self, worker: Option<u32>, metrics: &mut Metrics) {
        if self.error != "0" {
            let why =
                format!("the job ended with error {}: its figures are of a part of the work", self.error);
            return metrics.skip(self.line, self.name, &why);
        }
        for of in &self.figures {
            let sample = Sample { value: of.value, launch: self.launch, worker, at_s: None };
            metrics.sample(of.line, kind(self.name, &of.name, of.unit, of.better), sample);
        }
    }
}

/// The name, the process and the error of a job.
fn head(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(": (groupid=")?;
    let (_, rest) = rest.split_once("): err=")?;
    let (error, rest) = rest.trim_start().split_once(':')?;
    let error = error.split([' ', '(']).next().unwrap_or(error);
    let (_, pid) = rest.split_once("pid=")?;
    Some((name.trim(), pid.split(':').next().unwrap_or(pid), error))
}

/// `fio-3.33`, which a run begins with.
fn version(line: &str) -> Option<&str> {
    let is_version = line.strip_prefix("fio-")?.starts_with(|c: char| c.is_ascii_digit());
    (is_version && !line.contains([' ', ':'])).then_some(line)
}

/// Of which direction, and of which times, the lines are that come.
#[derive(Default)]
struct Lines {
    direction: &'static str,
    /// What the percentiles below are of, and their unit.
    percentiles: Option<(&'static str, String)>,
    /// What follows is of groups of jobs, and of devices, or of a version that is not read.
    is_over: bool,
}

/// The directions, and what fio calls them; the JSON calls the last one `sync`.
const DIRECTIONS: [(&str, &str); 5] =
    [("read", "read"), ("write", "write"), ("trim", "trim"), ("mixed", "mixed"), ("fsync/", "sync")];
/// The times: to submit, to complete, both, and of a sync.
const TIMES: [(&str, &str); 4] = [("slat", "slat"), ("clat", "clat"), ("lat", "lat"), ("sync", "lat")];
/// A job has no more figures than these.
const FIGURES_MAX: usize = 1000;

impl Lines {
    fn read(&mut self, number: u64, line: &str, job: &mut Job<'_>, metrics: &mut Metrics) {
        if self.is_over || job.figures.len() >= FIGURES_MAX {
            return;
        }
        let Some((name, rest)) = line.split_once(':') else {
            return self.percentiles(number, line, job, metrics);
        };
        self.percentiles = None;
        let (name, rest) = (name.trim(), rest.trim());
        let (what, unit) = name.rsplit_once('(').unwrap_or((name, ""));
        let (what, unit) = (what.trim(), unit.trim_end_matches(')').trim());
        let direction = DIRECTIONS.iter().find(|(begins, _)| match begins.ends_with('/') {
            true => name.starts_with(begins),
            false => name == *begins,
        });
        if let Some((_, direction)) = direction {
            self.direction = *direction;
            return self.rates(number, rest, job, metrics);
        }
        let times = |what: &str| TIMES.iter().find(|(printed, _)| *printed == what).map(|(_, kept)| *kept);
        if let Some(of) = times(what).filter(|_| rest.contains("avg=")) {
            self.times(number, (of, unit), rest, job, metrics);
        } else if let Some(of) = what.strip_suffix(" percentiles").and_then(times) {
            self.percentiles = Some((of, unit.to_owned()));
        } else if name == "cpu" {
            for (of, key) in [("usr_cpu", "usr="), ("sys_cpu", "sys=")] {
                let share = field(rest, key).and_then(|text| positive(text.trim_end_matches('%')));
                job.note(Figure::of(number, of, "%", None), share, metrics);
            }
        }
    }

    /// `IOPS=30.4k, BW=119MiB/s (125MB/s)(1187MiB/10001msec)`.
    fn rates(&mut self, number: u64, rest: &str, job: &mut Job<'_>, metrics: &mut Metrics) {
        let direction = self.direction;
        if rest.is_empty() {
            return;
        }
        if !rest.starts_with("IOPS=") {
            self.is_over = true;
            let why = "the text of fio before version 3 is not read: --output-format=json is";
            return metrics.skip(number, &format!("{} {direction}", job.name), why);
        }
        let bytes_hz = bytes_hz(rest);
        job.note(Figure::of(number, &format!("{direction} bw"), "B/s", HIGHER), bytes_hz, metrics);
        match field(rest, "IOPS=").and_then(scaled) {
            Some(iops) if iops == 0.0 && bytes_hz.is_some_and(|hz| hz > 0.0) => {
                let why = "fewer than one a second is printed as 0: --output-format=json has it";
                metrics.skip(number, &format!("{} {direction} iops", job.name), why);
            }
            iops => job.note(Figure::of(number, &format!("{direction} iops"), "op/s", HIGHER), iops, metrics),
        }
    }

    /// `min=1090, max=137k, avg=2500.50, stdev=900.00`.
    fn times(
        &self,
        number: u64,
        (of, unit): (&str, &str),
        rest: &str,
        job: &mut Job<'_>,
        metrics: &mut Metrics,
    ) {
        // A kind that was not measured has zeros.
        if field(rest, "max=").and_then(scaled) == Some(0.0) {
            return;
        }
        for (name, key) in [("mean", "avg="), ("stddev", "stdev="), ("min", "min="), ("max", "max=")] {
            let figure = Figure::of(number, &format!("{} {of} {name}", self.direction), "s", LOWER);
            job.note(
                figure,
                field(rest, key).and_then(scaled).and_then(|value| in_seconds(value, unit)),
                metrics,
            );
        }
    }

    /// `|  1.00th=[    3],  5.00th=[    4],`.
    fn percentiles(&self, number: u64, line: &str, job: &mut Job<'_>, metrics: &mut Metrics) {
        let Some(((of, unit), row)) = self.percentiles.as_ref().zip(line.trim_start().strip_prefix('|'))
        else {
            return;
        };
        for part in row.split(']').take(PERCENTILES_MAX) {
            let part = part.trim_start_matches([',', ' ']);
            let Some((percent, value)) =
                part.split_once("th=[").filter(|(percent, _)| positive(percent).is_some())
            else {
                continue;
            };
            let seconds = scaled(value.trim()).and_then(|value| in_seconds(value, unit));
            let name = format!("{} {of} {}", self.direction, percentile(percent));
            job.note(Figure::of(number, &name, "s", LOWER), seconds, metrics);
        }
    }
}

/// A row has four.
const PERCENTILES_MAX: usize = 20;

fn in_seconds(value: f64, unit: &str) -> Option<f64> {
    match in_base(value, unit) {
        (seconds, "s") => Some(seconds),
        _ => None,
    }
}

/// What stands behind the key, up to a comma or a blank; numbers are padded on the left.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = text.split_once(key)?;
    value.trim_start().split([',', ' ', ';']).next()
}

/// `30.4k`.
fn scaled(text: &str) -> Option<f64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some(positive(number)? * prefix(unit)?)
}

/// Of `IOPS=…, BW=119MiB/s (125MB/s)(1187MiB/10001msec)`: the bytes over the time, which have the most digits.
fn bytes_hz(text: &str) -> Option<f64> {
    let (bytes, time) = text.rsplit_once('(')?.1.split_once(')')?.0.split_once('/')?;
    let ms = positive(time.strip_suffix("msec")?)?;
    let bytes = scaled(bytes.strip_suffix('B')?)?;
    (ms > 0.0).then(|| bytes / ms * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "a: (groupid=0, jobs=1): err= 0: pid=7: Sat Nov 28 02:43:11 2026\n  \
        read: IOPS=30.4k, BW=119MiB/s (125MB/s)(1187MiB/10001msec)\n    \
        slat (nsec): min=1090, max=137k, avg=2500.50, stdev=900.00\n    \
        clat (usec): min=3, max=1500, avg=12.50, stdev= 4.00\n    \
        clat percentiles (usec):\n     |  1.00th=[    3], 99.95th=[ 1500]\n   \
        bw (  KiB/s): min= 1, max= 2, per=100.00%, avg=1.50, stdev=0.10, samples=19\n  \
        lat (usec)   : 4=0.01%, 10=99.99%\n  cpu          : usr=6.85%, sys=20.63%, ctx=3, majf=0, minf=1\n";

    fn of(text: &str) -> tare_model::tool::ToolMetrics {
        let mut metrics = Metrics::new("fio");
        read(&Input::of_text(text), &mut metrics);
        metrics.finish(&[])
    }

    fn value(read: &tare_model::tool::ToolMetrics, name: &str) -> Option<f64> {
        read.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0])
    }

    #[test]
    fn figures_of_a_job_have_the_names_of_the_json() {
        let read = of(&format!("fio-3.33\n{JOB}"));
        assert!(is_line(JOB.lines().next().unwrap()));
        assert_eq!(value(&read, "read bw").map(f64::round), Some(124_453_526.0));
        assert_eq!(value(&read, "read iops"), Some(30_400.0));
        assert_eq!(value(&read, "read slat max"), Some(1.37e-4));
        assert_eq!(value(&read, "read clat mean"), Some(1.25e-5));
        assert_eq!(value(&read, "read clat p99.95"), Some(1.5e-3));
        assert_eq!(value(&read, "usr_cpu"), Some(6.85));
        assert_eq!((read.metrics.len(), read.skipped_count), (14, 0));
    }

    #[test]
    fn a_job_is_printed_again_fails_or_is_one_of_two() {
        let later = JOB.replace("30.4k", "31.0k");
        let read = of(&format!("fio-3.33\n{JOB}{later}"));
        assert_eq!((value(&read, "read iops"), read.skipped_count), (Some(31_000.0), 1));
        let failed = JOB.replace("err= 0", "err=28 (file:a.c:1, func=write, error=No space)");
        assert_eq!(
            of(&failed).skipped[0].why,
            "the job ended with error 28: its figures are of a part of the work"
        );
        let two = of(&format!("fio-3.33\n{JOB}{}fio-3.33\n{JOB}", JOB.replace("pid=7", "pid=8")));
        let iops = two.metrics.iter().find(|metric| metric.name == "read iops").unwrap();
        assert_eq!(iops.launches, [0, 0, 1]);
        let before = of(&JOB.replace("IOPS=30.4k, BW=", "io=1.0MB, bw="));
        assert_eq!((before.metrics.len(), before.skipped_count), (0, 1));
    }

    #[test]
    fn what_is_another_kind_is_kept_apart() {
        let more = "    clat prio 0/0 (89.99% of IOs) percentiles (msec):\n     |  1.00th=[    9]\n  fsync/fdatasync/sync_file_range:\n    \
            sync (usec): min=2, max=8, avg=4.00, stdev= 1.00\n    sync percentiles (usec):\n     |  1.00th=[    2]\n";
        let job =
            JOB.replace("a: (", "fio-test: (").replace("IOPS=30.4k", "IOPS=0").replace("max=137k", "max=0");
        let read = of(&format!(
            "fio-3.33\nfio-test: Laying out IO file\n{}{more}",
            &job[..job.find("   bw (").unwrap()]
        ));
        assert_eq!(read.metrics[0].benchmark, "fio-test");
        assert_eq!((value(&read, "read clat p1"), value(&read, "sync lat p1")), (Some(3e-6), Some(2e-6)));
        assert_eq!((value(&read, "sync lat mean"), value(&read, "read slat max")), (Some(4e-6), None));
        // Less than one a second.
        assert_eq!((value(&read, "read iops"), read.skipped_count), (None, 1));
    }
}
