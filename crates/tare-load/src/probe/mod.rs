//! Probes: a request at a time at a small fixed rate, by HTTP, TCP, Redis, MySQL, PostgreSQL or a command.
//!
//! Each protocol is one file that blocks until a deadline; its line is in `open` below, its scheme in `target`. Nothing here is fast: a probe
//! asks some twenty times a second.

mod client;
mod command;
mod fault;
mod http;
mod login;
mod md5;
mod mysql;
mod open;
mod postgres;
mod redis;
mod schedule;
mod scram;
mod target;
mod tcp;
#[cfg(test)]
mod tests;
mod window;
mod wire;

pub use fault::ProbeFault;
pub use open::{OpenError, Opener};
pub use target::{ProbeTarget, ProbeTargetError};
pub use window::{Asked, Observed, Prober, WORKERS};
