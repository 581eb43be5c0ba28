//! The only crate with `unsafe`: thin, typed wrappers over the system calls that the other crates need.
//!
//! Every `unsafe` block carries a SAFETY comment. Nothing here decides anything: a wrapper makes one call,
//! turns the error into [`std::io::Error`], and owns what it opened.

pub mod affinity;
pub mod bpf;
pub mod chase;
pub mod clock;
pub mod cpuid;
pub mod descriptors;
pub mod epoll;
pub mod file;
pub mod filesystem;
pub mod heap;
pub mod links;
pub mod net;
mod netlink;
pub mod nftables;
pub mod offloads;
pub mod perf;
#[cfg(test)]
mod permitted;
pub mod process;
pub mod sched;
pub mod slack;
pub mod sockdiag;
pub mod start;
pub mod steer;
pub mod taskstats;
pub mod terminal;
pub mod time;
pub mod unix;
pub mod uring;
