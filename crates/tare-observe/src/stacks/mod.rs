//! Which code ran, and where threads waited: call stacks of the SUT and of the generator.
//!
//! On a CPU a timer (`cpu-clock`) takes a sample of whoever runs; off it each `sched_switch` does. The kernel walks
//! both its own frames and the program's by frame pointers. While a window is
//! open, chains are only counted as numbers; they get names when it has closed and the processes still live
//! ([`symbols`]).

mod counts;
mod rings;
mod switches;
mod symbols;
#[cfg(target_arch = "x86_64")]
mod unwind;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_unwind.rs"]
mod unwind;
mod who;

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::rights;
use crate::scene::Scene;
use crate::watch::{Names, StackWatch, Unwind};
use counts::Counts;
use rings::{bytes_of_each, enable};
use std::io;
use std::time::{Duration, Instant};
use switches::Switches;
use symbols::Symbols;
use tare_machine::Root;
use tare_model::stacks::{
    CallersBy, Folded, Folder, Frame, Method, NamedBy, SampledBy, Stacks, TRUNCATED, UNKNOWN,
};
use tare_model::{Missing, Reading};
use tare_sys::affinity;
use tare_sys::perf::{Detail, Record, Ring, Trigger};
use unwind::Copies;
use who::Who;

/// How often new processes are looked for.
const RESCAN_HZ: f64 = 2.0;
/// How often rings are emptied, at least: before they are half full, more often where there are more samples.
const DRAIN_HZ: f64 = 20.0;
const SAMPLES_A_DRAIN: f64 = 50.0;
/// CPUs that are sampled, at most.
const CPUS_MAX: usize = 512;
/// Samples between two drains are some dozens, of a thousand bytes at most.
const RING_BYTES: usize = 512 << 10;
/// The same with copies of stacks of eight kilobytes.
const RING_BYTES_COPIES: usize = 4 << 20;
/// All rings together, at most: on more than 16 CPUs each that holds copies is smaller, and where samples would not fit fewer are taken.
const RINGS_BYTES_MAX: usize = 64 << 20;
/// How long callers and names of a window may take, without debug files and with them. One file that is being read is read to its end.
const NAMED_WITHIN: Duration = Duration::from_secs(3);
const NAMED_WITHIN_DEBUG: Duration = Duration::from_secs(30);
/// What the kernel walks at most, unless set otherwise (`kernel.perf_event_max_stack`).
const CHAIN_MAX: u16 = 127;

struct Sampler {
    watch: StackWatch,
    who: Who,
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    /// Samples a second of each CPU.
    rate_hz: u32,
    on_cpu: Result<Counts, Missing>,
    copies: Copies,
    off_cpu: Result<Switches, Missing>,
    active: bool,
    sampling: bool,
}

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    let Some(watch) = scene.watch.stacks else { return Box::new(Nothing) };
    let off_cpu = match watch.off_cpu {
        true => Switches::find(&scene.root),
        false => Err(Missing::with_remedy("waiting was not asked for", "measure with --stacks-off-cpu")),
    };
    Box::new(Sampler {
        watch,
        who: Who::default(),
        cpus: Vec::new(),
        rings: Vec::new(),
        rate_hz: watch.hz,
        on_cpu: unwind::can(watch.unwind).map(|()| Counts::default()),
        copies: Copies::default(),
        off_cpu,
        active: true,
        sampling: false,
    })
}

/// Whether stacks can be sampled here, asked of one CPU. All rings together may still be more than this user may lock.
///
/// # Errors
/// Why not, and what would help.
pub fn can_sample(how: Unwind) -> Result<(), Missing> {
    unwind::can(how)?;
    let cpus = affinity::get(0).map_err(|error| refused("the affinity of tare", &error))?;
    let cpu = cpus.first().ok_or_else(|| Missing::new("this process may use no CPU"))?;
    let detail = detail(how, chain_max(&Root::live()));
    let ring = Ring::open(*cpu, &Trigger::CpuClock { hz: 1 }, detail, ring_bytes(how, cpus.len()));
    ring.map(drop).map_err(|error| rights::perf("sampling stacks", &error))
}

fn detail(how: Unwind, chain_max: u16) -> Detail {
    let stack_bytes = match how {
        Unwind::FramePointers => 0,
        Unwind::Dwarf => unwind::STACK_BYTES,
    };
    Detail { chain_max, stack_bytes, ..Detail::default() }
}

fn ring_bytes(how: Unwind, cpus: usize) -> usize {
    let wanted = match how {
        Unwind::FramePointers => RING_BYTES,
        Unwind::Dwarf => RING_BYTES_COPIES,
    };
    bytes_of_each(wanted, cpus, RINGS_BYTES_MAX)
}

/// Nobody asked for stacks.
struct Nothing;

impl Observer for Nothing {
    fn prepare(&mut self, _scene: &Scene) {}
    fn edge(&mut self, _edge: &mut Edge) {}
    fn report(&mut self, _scene: &Scene, _observed: &mut Observed) {}
}

impl Observer for Sampler {
    fn prepare(&mut self, scene: &Scene) {
        // A window that was dropped while it was open leaves nothing on.
        self.sampling = false;
        enable(&self.rings, false).ok();
        self.who.forget();
        self.who.refresh(scene);
        if let Err(reason) = self.open_clocks(scene) {
            self.on_cpu = Err(reason);
            self.rings.clear();
        }
        if let Ok(switches) = &mut self.off_cpu
            && let Err(reason) = switches.open(&self.who.threads(scene), &self.cpus)
        {
            self.off_cpu = Err(reason);
        }
        // What was left over belongs to no window.
        self.drain();
        if let Ok(counts) = &mut self.on_cpu {
            counts.clear();
            self.copies.clear();
        }
        if let Ok(switches) = &mut self.off_cpu {
            switches.clear();
        }
    }

    fn edge(&mut self, edge: &mut Edge) {
        self.sampling = !self.sampling && self.active;
        let enabled = enable(&self.rings, self.sampling);
        let switched = match &mut self.off_cpu {
            Ok(switches) => switches.edge(edge.at_ns, self.sampling),
            Err(_) => Ok(()),
        };
        if let Err(error) = enabled {
            self.on_cpu = Err(refused("sampling stacks", &error));
        }
        if let Err(error) = switched {
            self.off_cpu = Err(refused("sampling switches", &error));
        }
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(self.drain_hz())) {
            self.drain();
        }
        if tick.is_multiple_of(scene.every(RESCAN_HZ)) {
            self.who.refresh(scene);
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        scene.next(self.drain_hz(), tick).min(scene.next(RESCAN_HZ, tick))
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        self.sampling = false;
        self.who.refresh(scene);
        self.drain();
        let off_cpu = match &mut self.off_cpu {
            Ok(switches) => Reading::Measured(switches.finish(observed.end_ns())),
            Err(reason) => Reading::Missing(reason.clone()),
        };
        let within = match self.watch.names {
            Names::Tables => NAMED_WITHIN,
            Names::DebugFiles => NAMED_WITHIN_DEBUG,
        };
        // Half of the time is left for the names, whatever the callers take.
        let begun = Instant::now();
        let (unwound, until) = (begun + within / 2, begun + within);
        let on_cpu = match &mut self.on_cpu {
            Ok(counts) => {
                self.copies.unwind(counts, &scene.root, unwound);
                Reading::Measured(std::mem::take(counts))
            }
            Err(reason) => Reading::Missing(reason.clone()),
        };
        let taken = [
            Taken { counts: on_cpu, rate_hz: Some(f64::from(self.rate_hz)), callers_by: self.watch.unwind },
            Taken { counts: off_cpu, rate_hz: None, callers_by: Unwind::FramePointers },
        ];
        observed.stacks(named(taken, (self.watch.names, until), &mut self.who, scene));
    }

    fn set_active(&mut self, active: bool) {
        self.active = active;
    }
}

impl Sampler {
    /// A ring on each CPU that somebody who is watched may use.
    fn open_clocks(&mut self, scene: &Scene) -> Result<(), Missing> {
        if let Err(reason) = &self.on_cpu {
            return Err(reason.clone());
        }
        let cpus = self.who.cpus(scene);
        if cpus == self.cpus && self.rings.len() == cpus.len() {
            return Ok(());
        }
        if cpus.len() > CPUS_MAX {
            return Err(Missing::new(format!("server and generator may use more than {CPUS_MAX} CPUs")));
        }
        let detail = detail(self.watch.unwind, chain_max(&scene.root));
        let ring_bytes = ring_bytes(self.watch.unwind, cpus.len());
        self.rate_hz = self.watch.hz.clamp(1, 10_000);
        if ring_bytes < self::ring_bytes(self.watch.unwind, 1) {
            let drain_hz = scene.sample_hz() / scene.every(self.drain_hz()) as f64;
            let Detail { chain_max, stack_bytes, .. } = detail;
            self.rate_hz = rings::rate_hz(self.rate_hz, ring_bytes, chain_max, stack_bytes, drain_hz);
        }
        let clock = Trigger::CpuClock { hz: self.rate_hz };
        let rings = cpus.iter().map(|cpu| Ring::open(*cpu, &clock, detail, ring_bytes));
        self.rings =
            rings.collect::<io::Result<_>>().map_err(|error| rights::perf("sampling stacks", &error))?;
        self.cpus = cpus;
        Ok(())
    }

    fn drain_hz(&self) -> f64 {
        (f64::from(self.watch.hz) / SAMPLES_A_DRAIN).max(DRAIN_HZ)
    }

    fn drain(&mut self) {
        if let Ok(counts) = &mut self.on_cpu {
            for ring in &mut self.rings {
                ring.drain(|record| match record {
                    Record::Sample(sample) if self.who.role(sample.pid, sample.tid).is_none() => {}
                    Record::Sample(sample) if self.watch.unwind == Unwind::Dwarf => {
                        counts.lost += u64::from(!self.copies.keep(&sample));
                    }
                    Record::Sample(sample) => {
                        counts.add(sample.pid, sample.tid, false, sample.chain.frames(), 1);
                    }
                    Record::Lost(lost) => counts.lost = counts.lost.saturating_add(lost),
                    _ => {}
                });
            }
        }
        if let Ok(switches) = &mut self.off_cpu {
            switches.drain();
        }
    }
}

fn chain_max(root: &Root) -> u16 {
    let set = std::fs::read_to_string(root.path("/proc/sys/kernel/perf_event_max_stack"));
    let set = set.ok().and_then(|text| text.trim().parse::<u16>().ok());
    set.unwrap_or(CHAIN_MAX).clamp(1, CHAIN_MAX)
}

/// Stacks of one kind as they were taken.
struct Taken {
    counts: Reading<Counts>,
    rate_hz: Option<f64>,
    callers_by: Unwind,
}

/// Chains of addresses become stacks of names, as far as there is time.
fn named(taken: [Taken; 2], names: (Names, Instant), who: &mut Who, scene: &Scene) -> Stacks {
    let mut folder = Folder::default();
    let all = taken.iter().filter_map(|taken| taken.counts.value());
    let symbols = Symbols::resolve(all.flat_map(Counts::chains), names, &mut folder, scene);
    let [on_cpu, off_cpu] = taken.map(|Taken { counts, rate_hz, callers_by }| {
        counts.map(|counts| {
            let mut folded = Folded::new(rate_hz).by(Some(method(rate_hz, callers_by, names.0, &symbols)));
            folded.lost = counts.lost;
            for (chain, value) in counts.iter() {
                let Some(role) = who.role(chain.pid(), chain.tid()) else { continue };
                let thread = folder.frame(Frame::mark(who.name(chain.pid(), chain.tid(), scene)));
                let mut frames: Vec<u32> = symbols.frames(chain);
                frames.reverse();
                if chain.is_cut() {
                    frames = vec![folder.frame(Frame::mark(TRUNCATED))];
                } else if chain.is_runnable() {
                    frames.push(folder.frame(Frame::mark("[runnable]")));
                } else if frames.is_empty() {
                    let word = if rate_hz.is_none() { "[since before the window]" } else { UNKNOWN };
                    frames.push(folder.frame(Frame::mark(word)));
                }
                folded.add(role, thread, frames, value);
            }
            folded
        })
    });
    folder.close(on_cpu, off_cpu, symbols.unseen)
}

fn method(rate_hz: Option<f64>, callers_by: Unwind, names: Names, symbols: &Symbols) -> Method {
    Method {
        sampled_by: if rate_hz.is_some() { SampledBy::CpuClock } else { SampledBy::Switches },
        callers_by: match callers_by {
            Unwind::FramePointers => CallersBy::FramePointers,
            Unwind::Dwarf => CallersBy::Copies,
        },
        named_by: match names {
            _ if symbols.is_out_of_time => NamedBy::OutOfTime,
            Names::Tables => NamedBy::Tables,
            Names::DebugFiles => NamedBy::DebugFiles,
        },
        with_kernel: true,
        kernel_named: symbols.are_kernels_named,
    }
}
