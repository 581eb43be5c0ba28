//! Facts of the machine, read under an injectable root, and the few things that tare turns: where threads run,
//! and what it started. Every knob is journalled before it is turned.

pub mod capture;
pub mod cgroup;
pub mod cpu_times;
pub mod doctor;
pub mod facts;
pub mod fit;
pub mod identity;
pub mod journal;
pub mod knobs;
mod mounts;
pub mod peers;
pub mod placement;
pub mod probes;
pub mod procs;
pub mod root;
pub mod sockets;
pub mod topology;
mod value;

pub use root::Root;
