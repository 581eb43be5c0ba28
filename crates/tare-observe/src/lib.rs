//! Observers: raw counters of threads, CPUs, groups and network.
