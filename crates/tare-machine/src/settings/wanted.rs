//! What is wanted of the settings.

/// Which group a quota is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// The one that this process is in.
    Of(u32),
    /// By its path below the mount of the `cpu` controller, or by its folder.
    At(String),
}

/// A quota that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaWanted {
    /// The group.
    pub group: Group,
    /// CPUs' worth of time, 2.0 for 200 %; `None`: no limit.
    pub cpus: Option<f64>,
}

/// What is wanted of the clock of the CPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockWanted {
    /// The frequency governor of all CPUs.
    pub governor: Option<String>,
    /// Lowest clock, hertz.
    pub min_frequency_hz: Option<u64>,
    /// Highest clock, hertz.
    pub max_frequency_hz: Option<u64>,
    /// Clocks above the nominal one.
    pub boost: Option<bool>,
}

/// What is wanted of memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryWanted {
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Automatic moving of memory between NUMA nodes.
    pub numa_balancing: Option<bool>,
    /// Forget what the page cache holds, once.
    pub drop_caches: bool,
    /// Size of the pool of huge pages, bytes.
    pub huge_pages_bytes: Option<u64>,
}

/// What is wanted of the network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkWanted {
    /// Longest queue of connections that wait to be accepted.
    pub somaxconn: Option<u32>,
    /// First and last port that connections are made from.
    pub port_range: Option<(u16, u16)>,
    /// How long a reader asks the device before it sleeps, nanoseconds; 0: not at all.
    pub busy_poll_ns: Option<u64>,
    /// CPUs that received packets are handed to; none: the one that got them.
    pub rps: Option<Vec<u32>>,
    /// Flows whose packets are handed to the CPU of their reader; 0: none.
    pub rps_flows: Option<u32>,
    /// CPUs that send by queues of their own; none: by any.
    pub xps: Option<Vec<u32>>,
}

/// What is wanted of each setting; of most, nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The clock of the CPUs.
    pub clock: ClockWanted,
    /// Memory.
    pub memory: MemoryWanted,
    /// Shortest time on a CPU before another may run, nanoseconds.
    pub base_slice_ns: Option<u64>,
    /// Whether CPU time is shared between sessions.
    pub autogroup: Option<bool>,
    /// CPUs that no interrupt shall be served on; empty: as it is.
    pub irqs_off: Vec<u32>,
    /// The network.
    pub network: NetworkWanted,
    /// A quota of CPU time.
    pub quota: Option<QuotaWanted>,
}

impl ClockWanted {
    fn or(self, other: ClockWanted) -> ClockWanted {
        ClockWanted {
            governor: self.governor.or(other.governor),
            min_frequency_hz: self.min_frequency_hz.or(other.min_frequency_hz),
            max_frequency_hz: self.max_frequency_hz.or(other.max_frequency_hz),
            boost: self.boost.or(other.boost),
        }
    }
}

impl MemoryWanted {
    fn or(self, other: MemoryWanted) -> MemoryWanted {
        MemoryWanted {
            thp: self.thp.or(other.thp),
            numa_balancing: self.numa_balancing.or(other.numa_balancing),
            drop_caches: self.drop_caches || other.drop_caches,
            huge_pages_bytes: self.huge_pages_bytes.or(other.huge_pages_bytes),
        }
    }
}

impl NetworkWanted {
    fn or(self, other: NetworkWanted) -> NetworkWanted {
        NetworkWanted {
            somaxconn: self.somaxconn.or(other.somaxconn),
            port_range: self.port_range.or(other.port_range),
            busy_poll_ns: self.busy_poll_ns.or(other.busy_poll_ns),
            rps: self.rps.or(other.rps),
            rps_flows: self.rps_flows.or(other.rps_flows),
            xps: self.xps.or(other.xps),
        }
    }
}

impl Wanted {
    /// What keeps a measurement the same and takes nothing from the program but chance: the clock does not follow the
    /// load (`governor`) nor the temperature and the number of busy cores (`boost`), and memory is not unmapped
    /// and moved meanwhile (`numa-balancing`). What changes the program's own cost (huge pages, the slice,
    /// queues) is not among them.
    pub fn still() -> Wanted {
        Wanted {
            clock: ClockWanted {
                governor: Some("performance".to_string()),
                boost: Some(false),
                ..ClockWanted::default()
            },
            memory: MemoryWanted { numa_balancing: Some(false), ..MemoryWanted::default() },
            ..Wanted::default()
        }
    }

    /// This, and what `other` wants where this wants nothing.
    #[must_use]
    pub fn or(self, other: Wanted) -> Wanted {
        Wanted {
            clock: self.clock.or(other.clock),
            memory: self.memory.or(other.memory),
            base_slice_ns: self.base_slice_ns.or(other.base_slice_ns),
            autogroup: self.autogroup.or(other.autogroup),
            irqs_off: if self.irqs_off.is_empty() { other.irqs_off } else { self.irqs_off },
            network: self.network.or(other.network),
            quota: self.quota.or(other.quota),
        }
    }
}
