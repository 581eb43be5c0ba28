//! Which layout leaves the generator most headroom: numbers of threads and CPUs are tried in short trials before the session's own, one
//! after the other and in a random order each time, and the session goes on with the best.
//!
//! A layout's capacity is the rate that it got over the share of its CPU time that it took for that: what the generator could send
//! if the server were never the bottleneck. It is taken among those layouts that got the highest rate, so that none is taken that
//! is cheap because it is in the server's way.

use super::drive::start;
use crate::blocks::shuffle;
use crate::error::LabError;
use crate::generate::load_failed;
use crate::progress::Event;
use crate::request::ServerRequest;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::Duration;
use tare_machine::placement::Placement;
use tare_machine::{Root, procs};
use tare_model::plan::TriedLayout;
use tare_model::topology::Topology;
use tare_stats::{SplitMix64, median};

/// Most layouts that are tried.
const LAYOUTS_MAX: usize = 8;
/// Each has so many trials.
const ROUNDS: usize = 4;
const TRIAL: Duration = Duration::from_millis(200);
/// Load on new connections before each.
const SETTLE: Duration = Duration::from_millis(80);
/// Rates within this share of the highest are as high: short trials differ by as much.
const AS_HIGH: f64 = 0.05;

/// A number of threads, and the CPUs that they share.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layout {
    threads: u32,
    cpus: Vec<u32>,
}

/// Tries them; what was tried, the best first, of which there is one at least.
pub(crate) fn find(
    request: &ServerRequest,
    placement: &Placement,
    topology: &Topology,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<TriedLayout>, LabError> {
    if request.traffic.pacing.stages_ns().is_some() {
        let hint = "find it at one rate (--rate) or without one, then give --threads and --load-cpus";
        return Err(LabError::usage("--find-layout needs a load that does not change by itself", hint));
    }
    let layouts = layouts(placement, topology, request.traffic.connections);
    running.progress.show(Event::Step(format!("trying {} layouts of the generator", layouts.len())));
    let mut seen: Vec<Vec<(f64, f64)>> = vec![Vec::new(); layouts.len()];
    let mut order: Vec<usize> = (0..layouts.len()).collect();
    let mut random = SplitMix64::new(tare_sys::time::monotonic_ns());
    for round in 1..=ROUNDS {
        shuffle(&mut order, &mut random);
        for &at in &order {
            let phase = format!("layouts, round {round}/{ROUNDS}");
            seen[at].push(trial(&layouts[at], request, sut, &phase, running)?);
        }
    }
    let tried = layouts.into_iter().zip(seen).filter_map(|(layout, seen)| tried(layout, &seen)).collect();
    let tried = best_first(tried);
    if tried.is_empty() {
        let what = "answered nothing with any layout".to_owned();
        return Err(LabError::Load { what, last_output: String::new() });
    }
    Ok(tried)
}

/// The CPUs that tare would choose, one of them, all but the server's and all that there are, each with one thread and with one for
/// each.
fn layouts(placement: &Placement, topology: &Topology, connections: u32) -> Vec<Layout> {
    let all: Vec<u32> = topology.cpus.iter().map(|place| place.cpu).collect();
    let of_server = |cpu: &&u32| placement.sut_cpus.contains(cpu);
    let apart: Vec<u32> = all.iter().filter(|cpu| !of_server(cpu)).copied().collect();
    let chosen = placement.load_cpus.clone();
    let one = chosen.iter().take(1).copied().collect();
    let half = chosen.iter().take(chosen.len().div_ceil(2)).copied().collect();
    let mut layouts: Vec<Layout> = Vec::new();
    for cpus in [chosen, one, half, apart, all] {
        for threads in [cpus.len() as u32, 1] {
            let layout = Layout { threads: threads.min(connections), cpus: cpus.clone() };
            if layout.threads > 0 && !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
    }
    layouts.truncate(LAYOUTS_MAX);
    layouts
}

/// Answers per second, and CPUs that the generator's threads were busy for it.
fn trial(
    layout: &Layout,
    request: &ServerRequest,
    sut: &mut Sut,
    phase: &str,
    running: &mut Running<'_>,
) -> Result<(f64, f64), LabError> {
    let mut spec = sut.aim(&request.traffic);
    (spec.workers.threads, spec.workers.cpus) = (layout.threads, layout.cpus.clone());
    let mut generator = start(&spec, sut, running.interrupt)?;
    running.wait(SETTLE, phase, |_| None)?;
    let tids = generator.thread_ids();
    generator.cut();
    let before_s = run_s(&tids);
    running.wait(TRIAL, phase, |_| None)?;
    let sample = generator.cut();
    let ran_s = before_s.zip(run_s(&tids)).map(|(before_s, after_s)| after_s - before_s);
    generator.stop().map_err(load_failed)?;
    sut.check_alive()?;
    let unseen = || LabError::Observe("how long the generator's threads ran is not known".into());
    let ran_s = ran_s.ok_or_else(unseen)?;
    let elapsed_s = sample.elapsed_ns.max(1) as f64 / 1e9;
    let answers = sample.requests.value().copied().unwrap_or(0);
    Ok((answers as f64 / elapsed_s, ran_s / elapsed_s))
}

/// Seconds that threads of ours have run; `None` where one of them does not tell.
fn run_s(tids: &[u32]) -> Option<f64> {
    let (root, own) = (Root::live(), std::process::id());
    let run_ns = |tid: &u32| procs::schedstat(&root, own, *tid).map(|[run_ns, _]| run_ns);
    tids.iter().map(run_ns).sum::<Option<u64>>().map(|run_ns| run_ns as f64 / 1e9)
}

/// The medians of its trials; `None` where it got no answers or its threads are not seen to run.
fn tried(layout: Layout, seen: &[(f64, f64)]) -> Option<TriedLayout> {
    let of = |which: fn(&(f64, f64)) -> f64| median(&seen.iter().map(which).collect::<Vec<_>>());
    let (rate_hz, busy_cpus) = of(|seen| seen.0).zip(of(|seen| seen.1))?;
    let room_cpus = f64::from(layout.threads).min(layout.cpus.len() as f64);
    (rate_hz > 0.0 && busy_cpus > 0.0).then(|| TriedLayout {
        threads: layout.threads,
        cpus: layout.cpus,
        rate_hz,
        busy_cpus,
        capacity_hz: rate_hz * room_cpus / busy_cpus,
    })
}

/// Those that got the highest rate by their capacity, then the others by their rate.
fn best_first(mut tried: Vec<TriedLayout>) -> Vec<TriedLayout> {
    let highest_hz = tried.iter().map(|layout| layout.rate_hz).fold(0.0, f64::max);
    let is_as_high = |layout: &TriedLayout| layout.rate_hz >= (1.0 - AS_HIGH) * highest_hz;
    tried.sort_by(|a, b| {
        let by_rate = is_as_high(b).cmp(&is_as_high(a));
        let rest = if is_as_high(a) {
            b.capacity_hz.total_cmp(&a.capacity_hz)
        } else {
            b.rate_hz.total_cmp(&a.rate_hz)
        };
        by_rate.then(rest)
    });
    tried
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_machine::{Root, topology};

    fn layout(threads: u32, rate_hz: f64, busy_cpus: f64) -> TriedLayout {
        let layout = Layout { threads, cpus: (0..threads).collect() };
        tried(layout, &[(rate_hz, busy_cpus)]).expect("it ran")
    }

    #[test]
    fn the_most_headroom_among_the_highest_rates_is_taken() {
        // Twice the threads have more room, one that is in the server's way is cheap and slow.
        let all = vec![layout(1, 99_000.0, 0.9), layout(2, 100_000.0, 1.0), layout(4, 60_000.0, 0.3)];
        let order: Vec<u32> = best_first(all).iter().map(|layout| layout.threads).collect();
        assert_eq!(order, [2, 1, 4]);
    }

    #[test]
    fn medians_are_taken_and_silence_is_no_layout() {
        let silent = |seen: &[(f64, f64)]| tried(Layout { threads: 1, cpus: vec![1] }, seen);
        assert_eq!(silent(&[]), None);
        assert_eq!(silent(&[(0.0, 0.1); 3]), None);
        assert_eq!(silent(&[(1000.0, 0.0); 3]), None);
        let seen = silent(&[(1000.0, 0.5), (10.0, 0.9), (1100.0, 0.4)]).expect("it ran");
        assert_eq!((seen.rate_hz, seen.busy_cpus, seen.capacity_hz), (1000.0, 0.5, 2000.0));
    }

    #[test]
    fn layouts_are_few_and_differ() {
        let topology = topology::read(&Root::live(), None);
        let all: Vec<u32> = topology.cpus.iter().map(|place| place.cpu).collect();
        let placement = Placement {
            sut_cpus: all[..1].to_vec(),
            load_cpus: all[all.len() - 1..].to_vec(),
            observer_cpus: Vec::new(),
            notes: Vec::new(),
        };
        let found = layouts(&placement, &topology, 64);
        assert!((1..=LAYOUTS_MAX).contains(&found.len()), "{found:?}");
        assert!(found.iter().all(|one| found.iter().filter(|other| *other == one).count() == 1));
        assert!(layouts(&placement, &topology, 1).iter().all(|layout| layout.threads == 1));
    }
}
