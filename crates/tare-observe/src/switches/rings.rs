//! Two rings on each CPU of the SUT: one of switches and wake-ups, one of what needs the kernel's call chain, which
//! costs more: a thread of the SUT that goes to sleep, or contends for a lock of the kernel.

use super::follow::{Event, Waker, What};
use super::reason::{Hint, Kernel};
use crate::observed::refused;
use crate::rights;
use crate::sleep::{FutexWait, Why, poll, select};
use crate::tracepoints::{FILTER_BYTES_MAX, IN_INTERRUPT, one_of};
use std::collections::{BTreeSet, HashMap};
use std::io;
use tare_model::Missing;
use tare_model::schedule::Sleep;
use tare_sys::perf::{ARGUMENTS, Detail, Field, Format, Frame, Record, Ring, Sample, Tracepoint, Trigger};

/// All rings together are no larger, and each is no larger than a share of this for 16 CPUs.
const RINGS_BYTES_MAX: usize = 128 << 20;
const RING_BYTES_MAX: usize = 4 << 20;
const RING_BYTES_MIN: usize = 64 << 10;
/// CPUs that are watched, at most.
const CPUS_MAX: usize = 512;
/// Frames of the kernel: a sleep's reason stands within the innermost two dozen.
const CHAIN_MAX: u16 = 24;
/// States in which a thread that leaves its CPU sleeps (`TASK_REPORT`); without these it was pushed off.
const ASLEEP: u64 = 0xff;
/// `LCB_F_SPIN` of a contention's flags.
const SPINS: u64 = 1;

/// The tracepoints and where their fields stand.
pub(super) struct Layout {
    switch: Tracepoint,
    waking: Tracepoint,
    wakeup: Tracepoint,
    /// Begin and end; kernels before 5.19 have none.
    contention: Option<(Tracepoint, Tracepoint)>,
    fields: Fields,
}

/// The events of each kind of ring.
struct Triggers<'a> {
    /// On a CPU of the SUT.
    plain: Vec<Trigger<'a>>,
    deep: Vec<Trigger<'a>>,
    /// On any other: a thread is called, and put into a run queue, from wherever its waker runs.
    wakes: Vec<Trigger<'a>>,
}

impl<'a> Triggers<'a> {
    fn of(&self, kind: Kind) -> &[Trigger<'a>] {
        match kind {
            Kind::Plain => &self.plain,
            Kind::Deep => &self.deep,
            Kind::Wakes => &self.wakes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Deep,
    Wakes,
}

impl Kind {
    fn detail(self) -> Detail {
        match self {
            Kind::Plain | Kind::Wakes => PLAIN,
            Kind::Deep => DEEP,
        }
    }
}

struct Fields {
    kind: Field,
    flags: Field,
    common_pid: Field,
    prev: Field,
    prev_state: Field,
    prev_name: Field,
    next: Field,
    next_name: Field,
    woken: Field,
    to_cpu: Field,
    lock: Option<(Field, Field)>,
}

impl Layout {
    pub(super) fn find() -> Result<Layout, Missing> {
        let find = |category: &str, name: &str| {
            Format::find(category, name).map_err(|error| rights::tracefs(&error))
        };
        let (switch, waking) = (find("sched", "sched_switch")?, find("sched", "sched_waking")?);
        let wakeup = find("sched", "sched_wakeup")?.tracepoint();
        let begin = find("lock", "contention_begin").ok();
        let fields = Fields::of(&switch, &waking, begin.as_ref());
        let fields =
            fields.ok_or_else(|| Missing::new("this kernel's scheduler events have other fields"))?;
        let end = find("lock", "contention_end").ok();
        let contention = begin.zip(end).map(|(begin, end)| (begin.tracepoint(), end.tracepoint()));
        Ok(Layout { switch: switch.tracepoint(), waking: waking.tracepoint(), wakeup, contention, fields })
    }

    fn triggers<'a>(&'a self, filters: &'a Filters) -> Triggers<'a> {
        let of = |tracepoint: &'a Tracepoint, filter: &'a str| Trigger::Tracepoint(tracepoint, filter);
        let plain = vec![
            of(&self.switch, &filters.switch),
            of(&self.waking, &filters.woken),
            of(&self.wakeup, &filters.queued),
        ];
        let wakes = vec![of(&self.waking, &filters.woken), of(&self.wakeup, &filters.queued)];
        let mut deep = vec![of(&self.switch, &filters.asleep)];
        if let Some((begin, end)) = &self.contention {
            deep.extend([of(begin, &filters.current), of(end, &filters.current)]);
        }
        Triggers { plain, deep, wakes }
    }

    /// Makes an event of a record.
    fn read(
        &self,
        cpu: u32,
        sample: &Sample,
        kernel: &Kernel,
        read: &mut Read,
        why: &mut WhySocket,
    ) -> Option<()> {
        let (fields, raw, at_ns) = (&self.fields, sample.raw, sample.time_ns);
        let number = |field: Field| field.unsigned(raw).and_then(|value| u32::try_from(value).ok());
        let kind = fields.kind.unsigned(raw)?;
        let in_interrupt = number(fields.flags)? & IN_INTERRUPT != 0;
        let tid = number(fields.common_pid)?;
        let event = |what| Event { at_ns, cpu, what };
        if kind == self.switch.id() {
            let (prev, next) = (number(fields.prev)?, number(fields.next)?);
            read.name(prev, fields.prev_name.bytes(raw));
            read.name(next, fields.next_name.bytes(raw));
            let is_asleep = fields.prev_state.unsigned(raw)? & ASLEEP != 0;
            let asleep = is_asleep.then(|| reason(prev, sample, kernel, why));
            if let Some((_, Some(futex))) = asleep {
                read.events.push(event(What::Futex { tid: prev, futex }));
            }
            let asleep = asleep.map(|(asleep, _)| asleep);
            read.events.push(event(What::Switch { prev, asleep, next }));
        } else if kind == self.waking.id() {
            let by = if in_interrupt { Waker::Interrupt } else { Waker::Thread(tid) };
            let (woken, to_cpu) = (number(fields.woken)?, number(fields.to_cpu)?);
            read.events.push(event(What::Waking { tid: woken, by, to_cpu }));
        } else if kind == self.wakeup.id() {
            let (tid, to_cpu) = (number(fields.woken)?, number(fields.to_cpu)?);
            read.events.push(event(What::Woken { tid, to_cpu }));
        } else if let (Some((first, _)), Some((lock, flags))) = (&self.contention, fields.lock) {
            let frames = || sample.chain.frames().map(address);
            let is_own = |at: &u64| kernel.hint(*at) != Some(Hint::LockCode);
            let asked_at = frames().find(is_own).or_else(|| frames().next()).unwrap_or(sample.ip);
            let begin = || {
                let spins = flags.unsigned(raw)? & SPINS != 0;
                Some(Contention { asked_at, lock: lock.unsigned(raw)?, spins })
            };
            let begin = if kind == first.id() { Some(begin()?) } else { None };
            read.contended.push(Contended { at_ns, tid, in_interrupt, begin });
        }
        Some(())
    }
}

/// Why a thread sleeps that waits for the socket with this descriptor.
pub(super) type WhySocket<'a> = dyn FnMut(u32, u64) -> Why + 'a;

fn reason(tid: u32, sample: &Sample, kernel: &Kernel, why: &mut WhySocket) -> (Why, Option<FutexWait>) {
    let argument = |register| sample.registers.and_then(|registers| registers.get(register));
    match kernel.sleep(sample.chain.frames().map(address)) {
        Some(Hint::Sleep(sleep)) => (sleep.into(), None),
        Some(Hint::Socket) => (argument(ARGUMENTS[0]).map_or(Sleep::Event.into(), |fd| why(tid, fd)), None),
        Some(Hint::Futex) => {
            let futex = FutexWait::of(ARGUMENTS.map(argument));
            (futex.map_or(Sleep::Parked, |futex| futex.sleep).into(), futex)
        }
        Some(Hint::Select) => (select(ARGUMENTS.map(argument), None).into(), None),
        Some(Hint::Poll) => {
            let [_, count, limit, _] = ARGUMENTS.map(argument);
            (poll(count, limit).into(), None)
        }
        Some(Hint::LockCode) | None => (Sleep::Other.into(), None),
    }
}

fn address(frame: Frame) -> u64 {
    match frame {
        Frame::Kernel(address) | Frame::User(address) => address,
    }
}

/// The kernel's words for which events are wanted.
struct Filters {
    /// Switches that matter to the SUT, but for its own sleeps.
    switch: String,
    /// A thread of the SUT goes to sleep.
    asleep: String,
    /// A thread of the SUT is woken.
    woken: String,
    /// A thread of the SUT enters a run queue, or anybody enters one of the SUT's CPUs: whom that pushes off has run
    /// until then.
    queued: String,
    /// A thread of the SUT runs.
    current: String,
}

impl Filters {
    fn new(threads: &BTreeSet<u32>, cpus: &BTreeSet<u32>) -> Result<Filters, Missing> {
        let (prev, next) = (one_of("prev_pid", threads), one_of("next_pid", threads));
        let asleep = format!("(prev_state&{ASLEEP})&&({prev})");
        let filters = Filters {
            // Switches from and to idle without the SUT are what a busy neighbour makes most of, and say nothing:
            // whoever then leaves the CPU to the SUT is named.
            switch: format!("!({asleep})&&(({prev})||({next})||(prev_pid!=0&&next_pid!=0))"),
            asleep,
            queued: format!("({})||({})", one_of("pid", threads), one_of("target_cpu", cpus)),
            woken: one_of("pid", threads),
            current: one_of("common_pid", threads),
        };
        if filters.switch.len() > FILTER_BYTES_MAX {
            let why = format!(
                "the SUT has more threads than a filter of the kernel can name, to watch them: {}",
                threads.len()
            );
            return Err(Missing::with_remedy(why, "give the SUT fewer threads"));
        }
        Ok(filters)
    }
}

impl Fields {
    fn of(switch: &Format, waking: &Format, contention: Option<&Format>) -> Option<Fields> {
        Some(Fields {
            kind: switch.field("common_type")?,
            flags: switch.field("common_flags")?,
            common_pid: switch.field("common_pid")?,
            prev: switch.field("prev_pid")?,
            prev_state: switch.field("prev_state")?,
            prev_name: switch.field("prev_comm")?,
            next: switch.field("next_pid")?,
            next_name: switch.field("next_comm")?,
            woken: waking.field("pid")?,
            to_cpu: waking.field("target_cpu")?,
            lock: contention.and_then(|begin| begin.field("lock_addr").zip(begin.field("flags"))),
        })
    }
}

/// What a ring had, beside the events of the follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contended {
    pub(super) at_ns: u64,
    pub(super) tid: u32,
    pub(super) in_interrupt: bool,
    /// `None`: it is over.
    pub(super) begin: Option<Contention>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contention {
    /// An address in the function that asked for the lock.
    pub(super) asked_at: u64,
    pub(super) lock: u64,
    pub(super) spins: bool,
}

/// What was read of all rings and waits to be sorted.
#[derive(Default)]
pub(super) struct Read {
    pub(super) events: Vec<Event>,
    pub(super) contended: Vec<Contended>,
    pub(super) lost: u64,
    /// Names of whoever ran.
    pub(super) names: HashMap<u32, [u8; 16]>,
}

/// Names that are kept, at most.
const NAMES_MAX: usize = 4096;

impl Read {
    fn name(&mut self, tid: u32, name: Option<&[u8]>) {
        if let Some(name) = name.and_then(|name| name.try_into().ok())
            && (self.names.len() < NAMES_MAX || self.names.contains_key(&tid))
        {
            self.names.insert(tid, name);
        }
    }
}

/// The rings of every CPU that the SUT may use.
pub(super) struct Rings {
    layout: Layout,
    rings: Vec<(Kind, Ring)>,
    /// Stamp of the latest event that was read.
    known_ns: u64,
    /// CPUs of the SUT.
    cpus: BTreeSet<u32>,
}

impl Rings {
    /// Opens rings on `cpus` for `threads`; they are silent until enabled.
    pub(super) fn new(layout: Layout) -> Rings {
        Rings { layout, rings: Vec::new(), known_ns: 0, cpus: BTreeSet::new() }
    }

    /// Watches these threads, on these CPUs as well as those before, and who wakes them, on all of `online`; silent until
    /// enabled.
    pub(super) fn watch(
        &mut self,
        cpus: &BTreeSet<u32>,
        online: &[u32],
        threads: &BTreeSet<u32>,
    ) -> Result<(), Missing> {
        if cpus.len().max(online.len()) > CPUS_MAX {
            return Err(Missing::new(format!("there are more than {CPUS_MAX} CPUs")));
        }
        self.cpus.extend(cpus);
        let filters = Filters::new(threads, &self.cpus)?;
        let failed = |error: io::Error| refused("rings of scheduler events", &error);
        let triggers = self.layout.triggers(&filters);
        // A CPU that has become one of the SUT's tells of wake-ups in its ring of switches.
        self.rings.retain(|(kind, ring)| *kind != Kind::Wakes || !self.cpus.contains(&ring.cpu()));
        for (kind, ring) in &mut self.rings {
            ring.replace(triggers.of(*kind)).map_err(failed)?;
        }
        let there: BTreeSet<u32> = self.rings.iter().map(|(_, ring)| ring.cpu()).collect();
        let bytes = (RINGS_BYTES_MAX / (2 * online.len().max(1))).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
        for &cpu in self.cpus.iter().chain(online.iter().filter(|cpu| !self.cpus.contains(cpu))) {
            let kinds: &[Kind] = match (there.contains(&cpu), self.cpus.contains(&cpu)) {
                (true, _) => &[],
                (false, true) => &[Kind::Plain, Kind::Deep],
                (false, false) => &[Kind::Wakes],
            };
            for kind in kinds {
                let ring = open_one(cpu, triggers.of(*kind), kind.detail(), bytes).map_err(failed)?;
                self.rings.push((*kind, ring));
            }
        }
        Ok(())
    }

    /// Why contended locks are not seen, where they are not.
    pub(super) fn locks_not_traced(&self) -> Option<Missing> {
        let why = || Missing::new("this kernel has no tracepoints of contended locks (Linux 5.19 has)");
        self.layout.contention.is_none().then(why)
    }

    pub(super) fn enable(&self, on: bool) {
        for (_, ring) in &self.rings {
            // The kernel knows no failure; one that went on would only be read for nothing.
            let _ = ring.enable(on);
        }
    }

    /// Empties the rings. `why` is asked about the first argument of the system call that a thread sleeps in, if that is
    /// for a socket.
    pub(super) fn drain(&mut self, kernel: &Kernel, read: &mut Read, why: &mut WhySocket) {
        let layout = &self.layout;
        let known_ns = self.known_ns;
        for (_, ring) in &mut self.rings {
            let cpu = ring.cpu();
            // What was lost comes first of what came since: it was lost after all that is known.
            let mut last_ns = known_ns;
            ring.drain(|record| match record {
                Record::Sample(sample) => {
                    last_ns = sample.time_ns;
                    layout.read(cpu, &sample, kernel, read, why);
                }
                Record::Lost(count) => {
                    read.lost += count;
                    read.events.push(Event { at_ns: last_ns, cpu, what: What::Lost });
                }
                _ => {}
            });
            self.known_ns = self.known_ns.max(last_ns);
        }
    }
}

/// Without call chains, and with.
const PLAIN: Detail =
    Detail { chain_max: 0, raw: true, stack_bytes: 0, registers: 0, user_only: false, kernel_chain: false };
const DEEP: Detail = Detail {
    chain_max: CHAIN_MAX,
    registers: 1 << ARGUMENTS[0] | 1 << ARGUMENTS[1] | 1 << ARGUMENTS[2] | 1 << ARGUMENTS[3],
    kernel_chain: true,
    ..PLAIN
};

fn open_one(cpu: u32, triggers: &[Trigger], detail: Detail, bytes: usize) -> io::Result<Ring> {
    let (first, others) = triggers.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut ring = Ring::open(cpu, first, detail, bytes)?;
    others.iter().try_for_each(|trigger| ring.add(trigger))?;
    Ok(ring)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_the_filters() {
        let Ok(layout) = Layout::find() else { return };
        let cpu = BTreeSet::from([tare_sys::affinity::get(0).unwrap()[0]]);
        let mut rings = Rings::new(layout);
        for threads in [BTreeSet::from([5]), BTreeSet::from([5, 7, 8, 9]), (1..900).step_by(30).collect()] {
            if let Err(missing) = rings.watch(&cpu, &[], &threads) {
                assert!(missing.why.contains("not permitted"), "{missing}");
            }
        }
        assert!(Filters::new(&(1..40_000).step_by(3).collect(), &cpu).is_err());
    }
}
