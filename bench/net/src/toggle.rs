//! What a request costs with something done to the server and without, interleaved within one launch: no other launch and no fit can be
//! what differs. One server alone, whose generator sleeps when it has nothing to do; or nginx and the reference interleaved, by a
//! generator that never sleeps, as `tare run` has it for net.

use crate::Args;
use crate::disturb::{Busy, Quota};
use crate::rows::Row;
use crate::servers::{Kind, Server};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::time::Duration;
use tare_load::{CONNECTIONS_DEFAULT, Generator, Interleaving, LoadSpec, Pacing, Target, Workers};
use tare_stats::{mean, trimmed_mean_interval};
use tare_sys::time::{monotonic_ns, process_cpu_ns};

/// Until servers have opened their connections and come to their rates.
const WARMUP: Duration = Duration::from_secs(1);
/// A turn, as `tare run` has it.
const TURN_NS: u64 = 5_000_000;

/// How long a window is, and how long nobody looks before it.
#[derive(Debug, Clone, Copy)]
struct Pace {
    settle: Duration,
    window: Duration,
}

const LOOP_ALONE: Pace = Pace { settle: Duration::from_millis(10), window: Duration::from_millis(40) };
/// Some twenty turns of each server.
const LOOP_INTERLEAVED: Pace = Pace { settle: Duration::from_millis(20), window: Duration::from_millis(200) };
/// Whole periods of the quota.
const QUOTA: Pace = Pace { settle: Duration::from_millis(100), window: Duration::from_millis(500) };

/// With it over without, of neighbouring windows, with its 95 % interval.
#[derive(Debug, Serialize)]
struct Ratio {
    ratio: f64,
    ci95: [f64; 2],
}

/// What came of a launch of one server beside a busy loop.
#[derive(Debug, Serialize)]
pub struct Toggled {
    server: Kind,
    pairs: usize,
    /// CPU time of a request, nanoseconds: geometric means.
    alone_ns: f64,
    beside_ns: f64,
    #[serde(flatten)]
    change: Ratio,
}

/// What came of a launch of nginx and the reference.
#[derive(Debug, Serialize)]
pub struct Interleaved {
    row: Row,
    pairs: usize,
    /// CPU time of a request with nothing done, nanoseconds: geometric means.
    reference_ns: f64,
    nginx_ns: f64,
    reference: Ratio,
    nginx: Ratio,
    net: Ratio,
}

/// A launch of a server beside a busy loop and without, so many pairs of windows.
pub fn alone(args: &Args, kind: Kind, pairs: u32) -> Result<Toggled> {
    let server = Server::start(kind, &args.tare)?;
    let busy = Busy::on(0)?;
    let generator = Generator::start(&load(&server)?)?;
    let costs = costs_ln(&[(&server, &generator)], pairs, LOOP_ALONE, |with| busy.pause(!with))?;
    generator.stop()?;
    let [costs] = costs.as_slice() else { bail!("one server has one series") };
    Ok(Toggled {
        server: kind,
        pairs: costs.with.len(),
        alone_ns: typical_ns(&costs.without),
        beside_ns: typical_ns(&costs.with),
        change: ratio(&costs.changes())?,
    })
}

/// A launch of both, with a busy loop or a quota that comes and goes.
pub fn interleaved(args: &Args, row: Row, pairs: u32) -> Result<Interleaved> {
    let servers = [Server::start(Kind::Embedded, &args.tare)?, Server::start(Kind::Nginx, &args.tare)?];
    let begin_ns = monotonic_ns();
    let start = |(place, server): (u32, &Server)| -> Result<Generator> {
        let turns = Interleaving {
            begin_ns,
            turn_ns: TURN_NS,
            rest_ns: 0,
            arms: 2,
            place,
            seed: begin_ns,
            slices: None,
        };
        let pacing = Pacing::Interleaved(turns);
        let mut spec = LoadSpec { pacing, ..load(server)? };
        spec.workers.busy_poll = true;
        Ok(Generator::start(&spec)?)
    };
    let generators: Vec<Generator> = (0..).zip(&servers).map(start).collect::<Result<_>>()?;
    let loaded: Vec<(&Server, &Generator)> = servers.iter().zip(&generators).collect();
    let costs = match row {
        Row::Busy => {
            let busy = Busy::on(0)?;
            costs_ln(&loaded, pairs, LOOP_INTERLEAVED, |with| busy.pause(!with))?
        }
        Row::Quota => {
            let pids: Vec<u32> = servers.iter().flat_map(Server::pids).collect();
            let quota = Quota::on(&pids, 30)?;
            costs_ln(&loaded, pairs, QUOTA, |with| quota.lift(!with))?
        }
        _ => bail!("{} is nothing that comes and goes within a launch", row.words()),
    };
    generators.into_iter().try_for_each(|generator| generator.stop().map(drop))?;
    let [reference, nginx] = costs.as_slice() else { bail!("two servers have two series") };
    let net: Vec<f64> = reference.changes().iter().zip(nginx.changes()).map(|(own, its)| own - its).collect();
    Ok(Interleaved {
        row,
        pairs: net.len(),
        reference_ns: typical_ns(&reference.without),
        nginx_ns: typical_ns(&nginx.without),
        reference: ratio(&reference.changes())?,
        nginx: ratio(&nginx.changes())?,
        net: ratio(&net)?,
    })
}

fn load(server: &Server) -> Result<LoadSpec> {
    let target = Target::parse(&server.url)?;
    Ok(LoadSpec {
        connections: CONNECTIONS_DEFAULT,
        workers: Workers { cpus: vec![1], ..Workers::default() },
        ..LoadSpec::new(target)
    })
}

/// ln of the CPU nanoseconds of a request, window by window.
#[derive(Debug, Default)]
struct Costs {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Costs {
    fn changes(&self) -> Vec<f64> {
        self.with.iter().zip(&self.without).map(|(with, without)| with - without).collect()
    }
}

/// Each server's costs; of a pair of windows now the one comes first, then the other.
fn costs_ln(
    loaded: &[(&Server, &Generator)],
    pairs: u32,
    pace: Pace,
    disturb: impl Fn(bool) -> Result<()>,
) -> Result<Vec<Costs>> {
    std::thread::sleep(WARMUP);
    let mut costs: Vec<Costs> = loaded.iter().map(|_| Costs::default()).collect();
    for pair in 0..pairs {
        let first = pair % 2 == 1;
        for with in [first, !first] {
            disturb(with)?;
            std::thread::sleep(pace.settle);
            let before = so_far(loaded)?;
            std::thread::sleep(pace.window);
            for ((costs, before), after) in costs.iter_mut().zip(before).zip(so_far(loaded)?) {
                let (cpu_ns, answers) = (after.0 - before.0, after.1 - before.1);
                if cpu_ns == 0 || answers == 0 {
                    bail!("a server stood still for {:?}", pace.window);
                }
                let side = if with { &mut costs.with } else { &mut costs.without };
                side.push((cpu_ns as f64 / answers as f64).ln());
            }
        }
    }
    Ok(costs)
}

/// CPU time of each server's processes, nanoseconds, and answers.
fn so_far(loaded: &[(&Server, &Generator)]) -> Result<Vec<(u64, u64)>> {
    let of = |(server, generator): &(&Server, &Generator)| {
        let cpu_ns = server.pids().into_iter().map(process_cpu_ns).sum::<Result<u64, _>>();
        Ok((cpu_ns.context("the server has gone")?, generator.live().answers))
    };
    loaded.iter().map(of).collect()
}

fn typical_ns(costs_ln: &[f64]) -> f64 {
    mean(costs_ln).map_or(f64::NAN, f64::exp)
}

fn ratio(changes_ln: &[f64]) -> Result<Ratio> {
    let change = trimmed_mean_interval(changes_ln).context("too few pairs")?;
    let ci95 = change.ci95.context("too few pairs")?;
    Ok(Ratio { ratio: change.value.exp(), ci95: [ci95.lo.exp(), ci95.hi.exp()] })
}
