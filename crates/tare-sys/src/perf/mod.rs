//! Kernel counters and sampling rings of a CPU through `perf_event_open`: no tool, no change to the system.
//! A [`Counter`] only counts; a [`Ring`] (`ring`) is filled with records (`record`), whose fields of a tracepoint
//! a [`Format`] (`format`) names.
//!
//! Software events and tracepoints are there in virtual machines that expose no PMU; [`Group`] counts what only a
//! PMU can. Watching every task of a CPU needs root, `CAP_PERFMON` or `perf_event_paranoid` ≤ 0 (tracepoints: -1).

mod counter;
mod detail;
mod event;
mod format;
mod group;
mod record;
mod ring;
mod tracepoint;

pub use counter::Counter;
pub use detail::{ARGUMENTS, Detail, USER_REGISTERS};
pub use format::{Field, Format};
pub use group::{Cache, Event, Group, GroupCount, Whom};
pub use record::{Chain, Frame, Record, Registers, Sample};
pub use ring::{Ring, Trigger};
pub use tracepoint::Tracepoint;
