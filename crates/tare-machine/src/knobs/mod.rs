//! Knobs: what tare can turn on a machine so that it holds still, and always turns back.
//!
//! A [`Knob`] reads files and says which settings would have to change ([`Knob::course`]); it writes nothing.
//! [`turn`] writes, after the journal has what was there before. One file per family below; [`KNOBS`] lists all.

mod clock;
mod interrupts;
mod lock;
mod memory;
mod network;
mod quota;
mod scheduler;
mod setting;
mod turn;

pub use lock::{Holder, Lock, LockError};
pub use quota::{Group, QuotaWanted};
pub use setting::Step;
pub use turn::{TuneError, Turned, turn};

pub(crate) use setting::{read, same, write};

use crate::root::Root;
use std::fmt;
use tare_model::Missing;

/// Something that can be turned. Its name is the name of its option too, where it has only one.
pub trait Knob: fmt::Debug + Sync {
    /// `governor`, `huge-pages` …: a name that other rooms may quote.
    fn name(&self) -> &'static str;

    /// What it holds still, in a few words.
    fn about(&self) -> &'static str;

    /// How it stands, in words.
    ///
    /// # Errors
    /// This machine does not have it, or its files make no sense: why, and what to do instead.
    fn now(&self, root: &Root) -> Result<String, Missing>;

    /// The steps to what is wanted of it; `None` when nothing is.
    ///
    /// # Errors
    /// As [`Knob::now`]; also when this machine cannot do what is wanted.
    fn course(&self, root: &Root, wanted: &Wanted) -> Option<Result<Course, Missing>>;
}

/// All knobs, in the order in which they are turned: what frees memory before what takes it, what sets the range
/// of the clock before what sets a place in it.
pub static KNOBS: &[&dyn Knob] = &[
    &memory::DropCaches,
    &memory::HugePages,
    &memory::Thp,
    &memory::NumaBalancing,
    &clock::Boost,
    &clock::Governor,
    &clock::Frequency,
    &scheduler::BaseSlice,
    &interrupts::IrqsOff,
    &network::Somaxconn,
    &network::PortRange,
    &quota::CpuQuota,
];

/// What is wanted of each knob; of most, nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The frequency governor of all CPUs.
    pub governor: Option<String>,
    /// Lowest clock, hertz.
    pub min_frequency_hz: Option<u64>,
    /// Highest clock, hertz.
    pub max_frequency_hz: Option<u64>,
    /// Clocks above the nominal one.
    pub boost: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Automatic moving of memory between NUMA nodes.
    pub numa_balancing: Option<bool>,
    /// Forget what the page cache holds, once.
    pub drop_caches: bool,
    /// Size of the pool of huge pages, bytes.
    pub huge_pages_bytes: Option<u64>,
    /// Shortest time on a CPU before another has its turn, nanoseconds.
    pub base_slice_ns: Option<u64>,
    /// CPUs that no interrupt shall be served on; empty: as it is.
    pub irqs_off: Vec<u32>,
    /// Longest queue of connections that wait to be accepted.
    pub somaxconn: Option<u32>,
    /// First and last port that connections are made from.
    pub port_range: Option<(u16, u16)>,
    /// A quota of CPU time.
    pub quota: Option<QuotaWanted>,
}

impl Wanted {
    /// What holds a measurement still and takes nothing from the program but luck: the clock does not follow the
    /// load (`governor`) nor the temperature and the number of busy cores (`boost`), and memory is not unmapped
    /// and moved meanwhile (`numa-balancing`). What changes the program's own cost (huge pages, the slice,
    /// queues) is not among them.
    pub fn still() -> Wanted {
        Wanted {
            governor: Some("performance".to_string()),
            boost: Some(false),
            numa_balancing: Some(false),
            ..Wanted::default()
        }
    }

    /// This, and what `other` wants where this wants nothing.
    #[must_use]
    pub fn or(self, other: Wanted) -> Wanted {
        Wanted {
            governor: self.governor.or(other.governor),
            min_frequency_hz: self.min_frequency_hz.or(other.min_frequency_hz),
            max_frequency_hz: self.max_frequency_hz.or(other.max_frequency_hz),
            boost: self.boost.or(other.boost),
            thp: self.thp.or(other.thp),
            numa_balancing: self.numa_balancing.or(other.numa_balancing),
            drop_caches: self.drop_caches || other.drop_caches,
            huge_pages_bytes: self.huge_pages_bytes.or(other.huge_pages_bytes),
            base_slice_ns: self.base_slice_ns.or(other.base_slice_ns),
            irqs_off: if self.irqs_off.is_empty() { other.irqs_off } else { self.irqs_off },
            somaxconn: self.somaxconn.or(other.somaxconn),
            port_range: self.port_range.or(other.port_range),
            quota: self.quota.or(other.quota),
        }
    }
}

/// The way of one knob to where it is wanted. No steps: it is there already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Settings to change, in this order; they are put back in the reverse one.
    pub steps: Vec<Step>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

impl Course {
    fn of(steps: impl IntoIterator<Item = Option<Step>>) -> Course {
        Course { steps: steps.into_iter().flatten().collect(), notes: Vec::new() }
    }
}

/// What is to be done with one knob.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The knob.
    pub knob: &'static dyn Knob,
    /// Its steps, or why it cannot be turned here.
    pub course: Result<Course, Missing>,
}

/// Judges what is wanted against this machine, and changes nothing. In the order of turning.
pub fn plan(root: &Root, wanted: &Wanted) -> Vec<Planned> {
    let planned =
        |knob: &&'static dyn Knob| knob.course(root, wanted).map(|course| Planned { knob: *knob, course });
    KNOBS.iter().filter_map(planned).collect()
}

#[cfg(test)]
mod tests;
