//! Everything about a machine that can move a measurement, as it was found: what `tare doctor` judges.
//!
//! One file per area; the reader of an area has the same name in `tare-machine/src/facts/`, its checks in
//! `tare-machine/src/doctor/`. Every field is a [`Reading`] or a list: what could not be read says why.

mod access;
mod company;
mod frequency;
mod groups;
mod host;
mod limits;
mod memory;
mod network;
mod power;
mod processor;
mod scheduler;

pub use access::Access;
pub use company::{Busy, Company};
pub use frequency::{
    EnergyBias, Frequency, IdleState, Policy, PowerDomain, Sensor, ThermalZone, ThrottleCount, Uncore,
};
pub use groups::{CpuGroup, CpusetGroup, Groups, MemoryGroup, Quota, Throttling};
pub use host::{Host, WindowsHost};
pub use limits::{Limit, Limits};
pub use memory::{HugePages, Memory, Pressure, PressureKind, Swap};
pub use network::{Interface, Interrupt, LocalInterrupt, LocalKind, Network, Queue};
pub use power::{Power, Supply};
pub use processor::{CachePart, Mitigation, Processor};
pub use scheduler::{Discipline, Scheduler};

use crate::Reading;
use crate::machine::MachineFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine, area by area.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Survey {
    /// What every record holds too.
    pub machine: MachineFacts,
    /// The processor and what was taken from it for safety.
    pub processor: Processor,
    /// How its clock is governed, and what heat and power do to it.
    pub frequency: Frequency,
    /// How threads take turns.
    pub scheduler: Scheduler,
    /// Control groups from the process that read them to the root.
    pub groups: Groups,
    /// Memory: how much, in what pages, under what pressure.
    pub memory: Memory,
    /// Clocksources that the kernel could use; the current one stands in `machine`.
    pub clocksources: Reading<Vec<String>>,
    /// Whose machine this is: virtual or not, and what its host tells.
    pub host: Host,
    /// Limits on a process that is started from here.
    pub limits: Limits,
    /// Ports, queues, interfaces and their interrupts.
    pub network: Network,
    /// What may be observed here.
    pub access: Access,
    /// Mains or battery.
    pub power: Power,
    /// Who else uses CPU now; only of a running system.
    pub company: Reading<Company>,
}
