//! Facts of the machine, read under an injectable root, and the few things that tare applies: where threads run,
//! and what it started. Every setting is journalled before it is applied.

pub mod called;
pub mod capture;
pub mod cgroup;
pub mod cpu_times;
mod cpufreq;
pub mod doctor;
pub mod facts;
pub mod fit;
pub mod group_members;
pub mod huge_pages;
pub mod identity;
pub mod journal;
mod mounts;
pub mod namespaces;
pub mod peers;
pub mod placement;
pub mod probes;
pub mod procs;
pub mod root;
pub mod route;
pub mod runtime;
pub mod settings;
pub mod smaps;
pub mod sockets;
pub mod topology;
mod value;

pub use root::Root;
