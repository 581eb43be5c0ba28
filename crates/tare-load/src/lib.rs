//! The load generator: pacing, protocol and counting as separate parts, one loop around them.
//!
//! [`Generator`] drives threads, each an epoll loop (`worker`) around a `session` without I/O, in which
//! `pacing` says when to send, `tare_http::response` what was answered, and `tally` counts. [`preflight`] asks
//! once before any load. [`foreign`] reads the summaries that other generators print.

mod error;
pub mod foreign;
mod generator;
mod pacing;
mod preflight;
mod request;
mod session;
mod shared;
mod spec;
mod tally;
mod target;
mod worker;

pub use error::LoadError;
pub use generator::{Generator, Live};
pub use preflight::{Preflight, preflight};
pub use spec::{CONNECTIONS_MAX, Gaps, LoadSpec, PIPELINE_MAX, Pacing, RATE_HZ_MAX, SpecError, THREADS_MAX};
pub use target::{Target, TargetError};
