//! Knobs: what tare can turn on a machine so that it holds still, and always turns back.
//!
//! A [`Knob`] reads files and says which settings would have to change ([`Knob::course`]); it writes nothing.
//! [`turn`] writes, after the journal has what was there before. One file per family below; [`KNOBS`] lists all.

mod clock;
mod interrupts;
mod knob;
mod memory;
mod network;
mod quota;
mod scheduler;
mod turn;
mod wanted;

pub use crate::journal::{Holder, Lock, LockError};
pub use crate::value::Step;
pub use knob::{Course, Knob, Planned};
pub use turn::{TuneError, Turned, turn};
pub use wanted::{Group, QuotaWanted, Wanted};

use crate::root::Root;

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

/// Judges what is wanted against this machine, and changes nothing. In the order of turning.
pub fn plan(root: &Root, wanted: &Wanted) -> Vec<Planned> {
    let planned =
        |knob: &&'static dyn Knob| knob.course(root, wanted).map(|course| Planned { knob: *knob, course });
    KNOBS.iter().filter_map(planned).collect()
}

#[cfg(test)]
mod tests;
