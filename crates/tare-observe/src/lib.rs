//! Observers: what the threads of the SUT and of the generator, the CPUs, the control groups and the network
//! did in a window of time, as raw counters with monotonic stamps.
//!
//! On the sampling path nothing is parsed: open files are read into a [`tape`] with a stamp, and the text is
//! made into numbers when the window has closed. Two things cannot wait so long: what a descriptor leads to while a
//! thread sleeps on it, and the rings of [`switches`], which would run over. An observer is one file here, one file of descriptors in
//! `tare-model`, and one line in [`registry::REGISTRY`].

mod aperf;
mod census;
mod client;
mod clock;
mod connections;
mod core_latency;
mod cpus;
mod downstream;
mod energy;
mod engine;
mod exits;
mod groups;
mod idle;
mod jvm;
mod link;
mod load_connections;
mod maps;
mod memory;
mod network;
mod numbers;
mod observed;
mod observer;
mod open_files;
mod pmu;
mod pressure;
mod reclaim;
mod registry;
mod rights;
mod roles;
mod scene;
mod sleep;
mod softirqs;
mod stacks;
mod switches;
mod tape;
mod tasks;
mod thermal;
mod tracepoints;
mod wakeups;
mod watch;

pub use engine::{ObserveError, Observers};
pub use stacks::can_sample;
pub use watch::{LoadWatch, Names, StackWatch, Unwind, Watch};
