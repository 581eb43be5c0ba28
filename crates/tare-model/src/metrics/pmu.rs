//! Hardware events of the SUT's and the generator's threads.
//!
//! Counts are as the PMU has them: what was counted while the event was on it. Each group of events has the time for
//! which it should have been (the time in which its thread ran) and the time for which it was.

super::declare::descriptors! {
    CYCLES = "pmu.cycles", Count, Counter,
        "Cycles of the clock that the CPU really ran at.", "perf_event PERF_COUNT_HW_CPU_CYCLES, of one thread";
    INSTRUCTIONS = "pmu.instructions", Count, Counter,
        "Instructions completed, the kernel's included.", "perf_event PERF_COUNT_HW_INSTRUCTIONS, of one thread";
    CORE_ENABLED_NS = "pmu.core_enabled_ns", Nanosecond, Counter,
        "Time in which cycles and instructions should have been counted.", "perf_event time_enabled";
    CORE_RUNNING_NS = "pmu.core_running_ns", Nanosecond, Counter,
        "Time in which cycles and instructions were on the PMU.", "perf_event time_running";
    STALLED_FRONTEND = "pmu.stalled_frontend", Count, Counter,
        "Cycles in which nothing was fetched.", "perf_event PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, of one thread";
    STALLED_BACKEND = "pmu.stalled_backend", Count, Counter,
        "Cycles in which nothing could be completed.", "perf_event PERF_COUNT_HW_STALLED_CYCLES_BACKEND, of one thread";
    STALLS_ENABLED_NS = "pmu.stalls_enabled_ns", Nanosecond, Counter,
        "Time in which stalled frontend and stalled backend should have been counted.", "perf_event time_enabled";
    STALLS_RUNNING_NS = "pmu.stalls_running_ns", Nanosecond, Counter,
        "Time in which stalled frontend and stalled backend were on the PMU.", "perf_event time_running";
    BRANCHES = "pmu.branches", Count, Counter,
        "Branches completed.", "perf_event PERF_COUNT_HW_BRANCH_INSTRUCTIONS, of one thread";
    BRANCH_MISSES = "pmu.branch_misses", Count, Counter,
        "Branches guessed wrongly.", "perf_event PERF_COUNT_HW_BRANCH_MISSES, of one thread";
    BRANCHING_ENABLED_NS = "pmu.branching_enabled_ns", Nanosecond, Counter,
        "Time in which branches and branch misses should have been counted.", "perf_event time_enabled";
    BRANCHING_RUNNING_NS = "pmu.branching_running_ns", Nanosecond, Counter,
        "Time in which branches and branch misses were on the PMU.", "perf_event time_running";
    L1D_LOADS = "pmu.l1d_loads", Count, Counter,
        "Loads through the first-level data cache.", "perf_event PERF_COUNT_HW_CACHE_L1D read access, of one thread";
    L1D_MISSES = "pmu.l1d_misses", Count, Counter,
        "Loads that the first-level data cache did not hold.", "perf_event PERF_COUNT_HW_CACHE_L1D read miss, of one thread";
    L1D_ENABLED_NS = "pmu.l1d_enabled_ns", Nanosecond, Counter,
        "Time in which l1d loads and l1d misses should have been counted.", "perf_event time_enabled";
    L1D_RUNNING_NS = "pmu.l1d_running_ns", Nanosecond, Counter,
        "Time in which l1d loads and l1d misses were on the PMU.", "perf_event time_running";
    L1I_LOADS = "pmu.l1i_loads", Count, Counter,
        "Loads through the first-level instruction cache.", "perf_event PERF_COUNT_HW_CACHE_L1I read access, of one thread";
    L1I_MISSES = "pmu.l1i_misses", Count, Counter,
        "Loads that the first-level instruction cache did not hold.", "perf_event PERF_COUNT_HW_CACHE_L1I read miss, of one thread";
    L1I_ENABLED_NS = "pmu.l1i_enabled_ns", Nanosecond, Counter,
        "Time in which l1i loads and l1i misses should have been counted.", "perf_event time_enabled";
    L1I_RUNNING_NS = "pmu.l1i_running_ns", Nanosecond, Counter,
        "Time in which l1i loads and l1i misses were on the PMU.", "perf_event time_running";
    LLC_LOADS = "pmu.llc_loads", Count, Counter,
        "Loads through the last-level cache.", "perf_event PERF_COUNT_HW_CACHE_LL read access, of one thread";
    LLC_MISSES = "pmu.llc_misses", Count, Counter,
        "Loads that the last-level cache did not hold.", "perf_event PERF_COUNT_HW_CACHE_LL read miss, of one thread";
    LLC_ENABLED_NS = "pmu.llc_enabled_ns", Nanosecond, Counter,
        "Time in which llc loads and llc misses should have been counted.", "perf_event time_enabled";
    LLC_RUNNING_NS = "pmu.llc_running_ns", Nanosecond, Counter,
        "Time in which llc loads and llc misses were on the PMU.", "perf_event time_running";
    DTLB_LOADS = "pmu.dtlb_loads", Count, Counter,
        "Loads through the data TLB.", "perf_event PERF_COUNT_HW_CACHE_DTLB read access, of one thread";
    DTLB_MISSES = "pmu.dtlb_misses", Count, Counter,
        "Loads that the data TLB did not hold.", "perf_event PERF_COUNT_HW_CACHE_DTLB read miss, of one thread";
    DTLB_ENABLED_NS = "pmu.dtlb_enabled_ns", Nanosecond, Counter,
        "Time in which dtlb loads and dtlb misses should have been counted.", "perf_event time_enabled";
    DTLB_RUNNING_NS = "pmu.dtlb_running_ns", Nanosecond, Counter,
        "Time in which dtlb loads and dtlb misses were on the PMU.", "perf_event time_running";
    ITLB_LOADS = "pmu.itlb_loads", Count, Counter,
        "Loads through the instruction TLB.", "perf_event PERF_COUNT_HW_CACHE_ITLB read access, of one thread";
    ITLB_MISSES = "pmu.itlb_misses", Count, Counter,
        "Loads that the instruction TLB did not hold.", "perf_event PERF_COUNT_HW_CACHE_ITLB read miss, of one thread";
    ITLB_ENABLED_NS = "pmu.itlb_enabled_ns", Nanosecond, Counter,
        "Time in which itlb loads and itlb misses should have been counted.", "perf_event time_enabled";
    ITLB_RUNNING_NS = "pmu.itlb_running_ns", Nanosecond, Counter,
        "Time in which itlb loads and itlb misses were on the PMU.", "perf_event time_running";
}

/// Events that are on the PMU together, with their times.
#[derive(Debug)]
pub struct Group {
    /// Time in which they should have been counted.
    pub enabled_ns: &'static crate::metric::Descriptor,
    /// Time in which they were.
    pub running_ns: &'static crate::metric::Descriptor,
    /// What is counted.
    pub events: [&'static crate::metric::Descriptor; 2],
}

/// Every group.
pub static GROUPS: &[Group] = &[
    Group { enabled_ns: &CORE_ENABLED_NS, running_ns: &CORE_RUNNING_NS, events: [&CYCLES, &INSTRUCTIONS] },
    Group {
        enabled_ns: &STALLS_ENABLED_NS,
        running_ns: &STALLS_RUNNING_NS,
        events: [&STALLED_FRONTEND, &STALLED_BACKEND],
    },
    Group {
        enabled_ns: &BRANCHING_ENABLED_NS,
        running_ns: &BRANCHING_RUNNING_NS,
        events: [&BRANCHES, &BRANCH_MISSES],
    },
    Group { enabled_ns: &L1D_ENABLED_NS, running_ns: &L1D_RUNNING_NS, events: [&L1D_LOADS, &L1D_MISSES] },
    Group { enabled_ns: &L1I_ENABLED_NS, running_ns: &L1I_RUNNING_NS, events: [&L1I_LOADS, &L1I_MISSES] },
    Group { enabled_ns: &LLC_ENABLED_NS, running_ns: &LLC_RUNNING_NS, events: [&LLC_LOADS, &LLC_MISSES] },
    Group { enabled_ns: &DTLB_ENABLED_NS, running_ns: &DTLB_RUNNING_NS, events: [&DTLB_LOADS, &DTLB_MISSES] },
    Group { enabled_ns: &ITLB_ENABLED_NS, running_ns: &ITLB_RUNNING_NS, events: [&ITLB_LOADS, &ITLB_MISSES] },
];
