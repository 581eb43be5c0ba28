use crate::{CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network of this namespace.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Network {
    /// First and last port that connections going out may take.
    pub port_range: Reading<[u32; 2]>,
    /// Connections that wait for `accept`, at most.
    pub somaxconn: Reading<u64>,
    /// Half-open connections of a listener, at most.
    pub syn_backlog: Reading<u64>,
    /// Whether a port that waits for late packets may be taken again: 0 no, 1 yes, 2 on loopback.
    pub tw_reuse: Reading<u32>,
    /// Whether a full backlog is answered with cookies: 0 no, 1 when full, 2 always.
    pub syn_cookies: Reading<u32>,
    /// Packets from the wire that wait for a CPU, at most.
    pub backlog: Reading<u64>,
    /// Connections that the firewall keeps track of; missing where it does not.
    pub conntrack_count: Reading<u64>,
    /// How many it can.
    pub conntrack_max: Reading<u64>,
    /// TCP sockets that wait for late packets.
    pub time_wait: Reading<u64>,
    /// Interfaces, loopback included.
    pub interfaces: Reading<Vec<Interface>>,
    /// Interrupts of devices, and where they are served.
    pub interrupts: Reading<Vec<Interrupt>>,
    /// Interrupts that CPUs have without a device: timers, and those that CPUs send each other.
    #[serde(default)]
    pub local_interrupts: Reading<Vec<LocalInterrupt>>,
    /// Whether `irqbalance` moves interrupts about; only of a running system.
    pub irqbalance: Reading<bool>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Interface {
    /// `lo`, `eth0` …
    pub name: String,
    /// `up`, `down`, `unknown` …
    pub state: Reading<String>,
    /// Bits per second.
    pub speed_bits_per_s: Reading<u64>,
    /// Largest packet, bytes.
    pub mtu_bytes: Reading<u32>,
    /// The kernel's driver.
    pub driver: Reading<String>,
    /// NUMA node of the device.
    pub node: Reading<u32>,
    /// Queues for receiving and the CPUs that packets are steered to (RPS; an empty list: the interrupted one).
    pub receive: Reading<Vec<Queue>>,
    /// Queues for sending and the CPUs that use them (XPS; an empty list: any).
    pub send: Reading<Vec<Queue>>,
    /// Offloads that are on: `tso`, `gso`, `gro`, `lro`, `rx-checksum`, `tx-checksum`.
    pub offloads: Reading<Vec<String>>,
    /// Packets dropped since boot, both ways.
    pub dropped: Reading<u64>,
}

/// One queue of an interface.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Queue {
    /// The kernel's number.
    pub id: u32,
    /// CPUs.
    pub cpus: Reading<CpuSet>,
}

/// A device's interrupt.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Interrupt {
    /// The kernel's number.
    pub id: u32,
    /// What it belongs to.
    pub name: String,
    /// CPUs that may serve it.
    pub cpus: Reading<CpuSet>,
    /// Times served since boot, over all CPUs.
    pub count: u64,
}

/// What an interrupt without a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalKind {
    /// The tick, and sleeps that end.
    Timer,
    /// From another CPU: wake-ups, calls of functions, flushes of address tables.
    Ipi,
    /// Counters that overflow, faults of the hardware, a hypervisor's calls.
    Other,
}

/// An interrupt that a CPU has without a device.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LocalInterrupt {
    /// The kernel's name (`LOC`, `RES`, `IPI0`) or number.
    pub id: String,
    /// What it is for, in the kernel's words.
    pub name: String,
    /// What it is for.
    pub kind: LocalKind,
    /// Times served since boot, over all CPUs.
    pub count: u64,
}
