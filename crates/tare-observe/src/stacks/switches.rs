//! Where threads waited, and for how long: from the switch that took a thread off its CPU to the one that brought it
//! back.

use super::counts::{Counts, write};
use super::rings::{bytes_of_each, enable};
use crate::rights;
use crate::tracepoints::{FILTER_BYTES_MAX, SETTLED_NS, in_first_pid_namespace, one_of};
use std::collections::{BTreeSet, HashMap};
use std::io;
use tare_machine::Root;
use tare_model::Missing;
use tare_sys::perf::{Detail, Field, Format, Record, Ring, Sample, Trigger};
use tare_sys::time::monotonic_ns;

/// A server that waits for each request switches a hundred thousand times a second.
const RING_BYTES: usize = 8 << 20;
/// All rings together, at most: on more than 32 CPUs each is smaller.
const RINGS_BYTES_MAX: usize = 256 << 20;
/// Events that wait for those of other CPUs, at most.
const PENDING_MAX: usize = 1 << 18;
const CHAIN_MAX: u16 = 64;
/// What the state of a thread that could have run has in none of its bits; higher bits only say how it was preempted.
const WAITING_STATES: u64 = 0xff;

/// Pairs of switches of the threads that are watched.
pub(super) struct Switches {
    format: Format,
    fields: Fields,
    filter: String,
    cpus: Vec<u32>,
    rings: Vec<Ring>,
    pending: Vec<Event>,
    /// Since when a thread has been off, and the chain that it left from.
    off: HashMap<u32, (u64, Vec<u64>)>,
    /// Threads that a switch of this window names.
    seen: BTreeSet<u32>,
    /// Threads and their processes.
    threads: HashMap<u32, u32>,
    begin_ns: u64,
    counts: Counts,
}

/// Where a record of a switch has the thread that leaves, its state, and the thread that comes.
#[derive(Clone, Copy)]
struct Fields {
    previous: Field,
    state: Field,
    next: Field,
}

struct Event {
    time_ns: u64,
    tid: u32,
    /// The chain of a thread that leaves; none of one that comes.
    left: Option<Vec<u64>>,
}

impl Switches {
    pub(super) fn find(root: &Root) -> Result<Switches, Missing> {
        in_first_pid_namespace(root)?;
        let format = Format::find("sched", "sched_switch").map_err(|error| rights::tracefs(&error))?;
        let field = |name: &str| {
            let why = || Missing::new(format!("this kernel's sched_switch has no {name}"));
            format.field(name).ok_or_else(why)
        };
        let fields =
            Fields { previous: field("prev_pid")?, state: field("prev_state")?, next: field("next_pid")? };
        Ok(Switches {
            format,
            fields,
            filter: String::new(),
            cpus: Vec::new(),
            rings: Vec::new(),
            pending: Vec::new(),
            off: HashMap::new(),
            seen: BTreeSet::new(),
            threads: HashMap::new(),
            begin_ns: 0,
            counts: Counts::default(),
        })
    }

    /// Takes the switches of these threads on these CPUs from now on.
    pub(super) fn open(&mut self, threads: &[(u32, u32)], cpus: &[u32]) -> Result<(), Missing> {
        self.threads = threads.iter().map(|(pid, tid)| (*tid, *pid)).collect();
        let tids: BTreeSet<u32> = self.threads.keys().copied().collect();
        if tids.is_empty() {
            return Err(Missing::new("no thread of the SUT or of the generator is seen from here"));
        }
        let (leaves, comes) = (one_of("prev_pid", &tids), one_of("next_pid", &tids));
        let filter = format!("({leaves})||({comes})");
        if filter == self.filter && cpus == self.cpus {
            return Ok(());
        }
        if filter.len() > FILTER_BYTES_MAX {
            let why = format!(
                "there are more threads than a filter of the kernel can name, to watch them: {}",
                tids.len()
            );
            return Err(Missing::with_remedy(why, "give server and generator fewer threads"));
        }
        let tracepoint = self.format.tracepoint();
        let trigger = Trigger::Tracepoint(&tracepoint, &filter);
        let detail = Detail { chain_max: CHAIN_MAX, raw: true, ..Detail::default() };
        let bytes = bytes_of_each(RING_BYTES, cpus.len(), RINGS_BYTES_MAX);
        let rings = cpus.iter().map(|cpu| Ring::open(*cpu, &trigger, detail, bytes));
        self.rings =
            rings.collect::<io::Result<_>>().map_err(|error| rights::perf("sampling switches", &error))?;
        (self.filter, self.cpus) = (filter, cpus.to_vec());
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.off.clear();
        self.seen.clear();
        self.counts.clear();
    }

    pub(super) fn edge(&mut self, at_ns: u64, on: bool) -> io::Result<()> {
        if on {
            self.begin_ns = at_ns;
        }
        enable(&self.rings, on)
    }

    /// Takes what has come. A thread may leave one CPU and come back on another, so events of all are put in order
    /// first, as far as none can be missing.
    pub(super) fn drain(&mut self) {
        let whole_ns = monotonic_ns();
        let Switches { fields, rings, pending, counts, threads, .. } = self;
        for ring in rings {
            ring.drain(|record| match record {
                Record::Sample(_) if pending.len() + 1 >= PENDING_MAX => counts.lost += 1,
                Record::Sample(sample) => pending.extend(events(&sample, *fields, threads)),
                Record::Lost(lost) => counts.lost = counts.lost.saturating_add(lost),
                _ => {}
            });
        }
        self.settle(whole_ns.saturating_sub(SETTLED_NS));
    }

    /// Pairs the events up to a time.
    fn settle(&mut self, until_ns: u64) {
        self.pending.sort_by_key(|event| event.time_ns);
        let ready = self.pending.partition_point(|event| event.time_ns <= until_ns);
        for event in self.pending.drain(..ready) {
            let is_first = self.seen.insert(event.tid);
            match (event.left, self.off.remove(&event.tid)) {
                (Some(chain), _) => {
                    self.off.insert(event.tid, (event.time_ns, chain));
                }
                (None, Some((since_ns, chain))) => {
                    self.counts.add_chain(&chain, event.time_ns.saturating_sub(since_ns.max(self.begin_ns)));
                }
                // It was off before the window opened, from where nobody saw.
                (None, None) if is_first && self.counts.lost == 0 => {
                    let pid = self.threads.get(&event.tid).copied().unwrap_or(0);
                    let off_ns = event.time_ns.saturating_sub(self.begin_ns);
                    self.counts.add(pid, event.tid, false, std::iter::empty(), off_ns);
                }
                // Its leaving was lost, and with it since when it was off.
                (None, None) => {}
            }
        }
    }

    /// Closes the window: who is off now has been until its end.
    pub(super) fn finish(&mut self, end_ns: u64) -> Counts {
        self.drain();
        self.settle(u64::MAX);
        for (_, (since_ns, chain)) in self.off.drain() {
            self.counts.add_chain(&chain, end_ns.saturating_sub(since_ns.max(self.begin_ns)));
        }
        std::mem::take(&mut self.counts)
    }
}

/// What a switch says of the threads that are watched: one leaves, one comes, or both.
fn events(
    sample: &Sample,
    Fields { previous, state, next }: Fields,
    threads: &HashMap<u32, u32>,
) -> impl Iterator<Item = Event> + use<> {
    let number = |field: Field| field.unsigned(sample.raw).and_then(|tid| u32::try_from(tid).ok());
    let watched = |tid: Option<u32>| tid.and_then(|tid| Some((tid, *threads.get(&tid)?)));
    let left = watched(number(previous)).map(|(tid, pid)| {
        let runnable = state.unsigned(sample.raw).is_some_and(|state| state & WAITING_STATES == 0);
        let mut chain = Vec::new();
        write(&mut chain, pid, tid, runnable, sample.chain.frames());
        Event { time_ns: sample.time_ns, tid, left: Some(chain) }
    });
    let came = watched(number(next)).map(|(tid, _)| Event { time_ns: sample.time_ns, tid, left: None });
    left.into_iter().chain(came)
}
