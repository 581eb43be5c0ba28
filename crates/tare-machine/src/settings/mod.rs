//! Settings: what tare can apply to a machine so that it stays the same while something is measured, and always puts back.
//!
//! A [`Setting`] reads files and says which settings would have to change ([`Setting::change`]); it writes nothing.
//! [`apply`] writes, after the journal has what was there before. One file per family below; [`SETTINGS`] lists all.

mod apply;
mod clock;
mod interrupts;
mod memory;
mod network;
mod queues;
mod quota;
mod scheduler;
mod setting;
mod wanted;

pub use crate::journal::{Lock, LockError};
pub use crate::value::Step;
pub use apply::{Applied, TuneError, apply};
pub use setting::{Change, Planned, Setting};
pub use wanted::{ClockWanted, Group, MemoryWanted, NetworkWanted, QuotaWanted, Wanted};

use crate::root::Root;

/// All settings, in the order in which they are applied: what frees memory before what takes it, what sets the range
/// of the clock before what sets a place in it.
pub static SETTINGS: &[&dyn Setting] = &[
    &memory::DropCaches,
    &memory::HugePages,
    &memory::Thp,
    &memory::NumaBalancing,
    &clock::Boost,
    &clock::Governor,
    &clock::Frequency,
    &scheduler::BaseSlice,
    &scheduler::Autogroup,
    &interrupts::IrqsOff,
    &network::Somaxconn,
    &network::PortRange,
    &network::BusyPoll,
    &queues::Rps,
    &queues::RpsFlows,
    &queues::Xps,
    &quota::CpuQuota,
];

/// Judges what is wanted against this machine, and changes nothing. In the order of applying.
pub fn plan(root: &Root, wanted: &Wanted) -> Vec<Planned> {
    let planned = |setting: &&'static dyn Setting| {
        setting.change(root, wanted).map(|change| Planned { setting: *setting, change })
    };
    SETTINGS.iter().filter_map(planned).collect()
}

#[cfg(test)]
mod tests;
