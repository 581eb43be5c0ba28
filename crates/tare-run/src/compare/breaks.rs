//! What is read of servers and generators where nobody sends: before, between and after the slices of a launch.

use super::cost::cpu_ns;
use super::length::Count;
use super::request::PORT;
use super::slices::slice_at;
use super::taken::Lost;
use crate::error::LabError;
use crate::levels::nanoseconds;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::collections::BTreeMap;
use std::time::Duration;
use tare_load::{Cut, Generator, Interleaving};
use tare_model::comparison::Arm;
use tare_model::figure::{Figure, Source};
use tare_model::trial::HttpSample;
use tare_sys::time::monotonic_ns;

/// Between slices nobody sends, so that counts are read with nothing in flight.
pub(super) const BREAK: Duration = Duration::from_millis(12);
/// After the last turn of a slice every thread is asleep by then.
const SETTLED: Duration = Duration::from_millis(3);
/// Breaks in which accounting may be cut too late before it is given up: eight seconds and more. Others may have the CPUs for two.
const CUTS_MAX: u32 = 40;

/// A server of a launch.
pub(super) struct Server {
    pub sut: Sut,
    /// What messages call it.
    pub name: String,
}

/// What an arm's counters showed in a break.
pub(super) struct Page {
    sample: HttpSample,
    cpu_ns: Option<u64>,
}

/// Names the program that an error is about, with a hint.
pub(super) fn of(name: &str) -> impl Fn(LabError) -> LabError {
    move |error| error.of(name, &format!("try the command by hand, with a number for {PORT}"))
}

/// Waits until the last turn before a break is over and all are asleep.
pub(super) fn wait_for(
    end_ns: u64,
    servers: &mut [Server],
    generators: &[Generator],
    phase: &str,
    running: &mut Running<'_>,
) -> Result<(), LabError> {
    let answers = || generators.iter().map(|generator| generator.live().answers).sum::<u64>();
    let mut before = answers();
    let settled_ns = end_ns.saturating_add(nanoseconds(SETTLED));
    let left = Duration::from_nanos(settled_ns.saturating_sub(monotonic_ns()));
    running.wait(left, phase, |seconds| {
        let now = answers();
        let passed = now.saturating_sub(std::mem::replace(&mut before, now));
        Some(passed as f64 / seconds)
    })?;
    servers.iter_mut().try_for_each(|Server { sut, name }| sut.check_alive().map_err(of(name)))
}

/// The counters after slice `last`, or a later one where that break was missed: when the next slice had begun before they were
/// cut, some of it is in them.
pub(super) fn cut(
    turns: &Interleaving,
    mut last: u64,
    servers: &mut [Server],
    generators: &mut [Generator],
    phase: &str,
    running: &mut Running<'_>,
) -> Result<(u64, Vec<Page>), LabError> {
    for _ in 0..CUTS_MAX {
        let collected = collect(servers, generators);
        let is_in_time = monotonic_ns() < turns.slice_ns(last + 1).0;
        let sum = |((cut, cpu_ns), generator): ((Cut, _), &mut Generator)| Page {
            sample: generator.sum(cut),
            cpu_ns,
        };
        let pages = collected.into_iter().zip(generators.iter_mut()).map(sum).collect();
        if is_in_time {
            return Ok((last, pages));
        }
        last = slice_at(turns, monotonic_ns());
        wait_for(turns.slice_ns(last).1, servers, generators, phase, running)?;
    }
    Err(LabError::Observe(format!(
        "accounting could not be cut in {CUTS_MAX} breaks of {} ms (hint: tare itself is kept off the CPUs; leave one to it with --sut-cpus and --load-cpus)",
        BREAK.as_millis()
    )))
}

/// What all have counted and used, nothing summed: there is little time in a break.
fn collect(servers: &[Server], generators: &mut [Generator]) -> Vec<(Cut, Option<u64>)> {
    let both =
        |(server, generator): (&Server, &mut Generator)| (generator.collect(), cpu_ns(&server.sut.pids));
    servers.iter().zip(generators).map(both).collect()
}

/// How far each server has come, by [`cpu_ns`] and answers. Cuts nothing.
pub(super) fn counts(servers: &[Server], generators: &[Generator]) -> Vec<Count> {
    let count = |(server, generator): (&Server, &Generator)| Count {
        cpu_ns: cpu_ns(&server.sut.pids),
        answers: generator.live().answers,
    };
    servers.iter().zip(generators).map(count).collect()
}

/// What a server did in `own_ns` of its own turns and the rests after them.
pub(super) fn arm(own_ns: u64, before: &Page, after: Page, lost: Lost) -> Arm {
    let sample = after.sample;
    let answers = sample.requests.value().copied().unwrap_or(0);
    let cpu_ns = before.cpu_ns.zip(after.cpu_ns).and_then(|(before, after)| after.checked_sub(before));
    let late = sample.detail.as_ref().and_then(|detail| detail.out_of_turn);
    let rate = late.map(|late| answers.saturating_sub(late) as f64 * 1e9 / own_ns.max(1) as f64);
    let latency = sample.latency.value();
    let cost = cpu_ns.filter(|_| answers > 0).map(|cpu_ns| cpu_ns as f64 / 1e9 / answers as f64);
    let value = |figure: Figure| match figure.describe().source {
        Source::Rate => rate,
        Source::Net => cost.map(f64::recip),
        Source::CpuPerRequest => cost,
        Source::Latency(quantile) => latency?.quantile_ns(quantile).map(|ns| ns as f64 / 1e9),
        Source::Time | Source::CpuTime => None,
    };
    let known = |figure: &Figure| answers >= figure.describe().answers_min;
    let above_zero = |figure: Figure| Some((figure, value(figure).filter(|value| *value > 0.0)?));
    let Lost { waited_ns, throttled_ns, quota_cpus, modes } = lost;
    Arm {
        own_ns,
        answers,
        errors: sample.errors.values().sum(),
        cpu_ns,
        waited_ns,
        throttled_ns,
        quota_cpus,
        modes,
        figures: Figure::of_servers().filter(known).filter_map(above_zero).collect::<BTreeMap<_, _>>(),
        windows_s: Vec::new(),
        alone_s: None,
        benchmarks: Vec::new(),
    }
}
