//! Runs a session: resolves what was asked, starts or finds the system under test, drives load on it trial by
//! trial while the observers watch, and leaves every finished trial on disk before the next starts.
//!
//! [`request`] is what the user asked for, unjudged; `plan` judges it without touching anything that runs;
//! [`session`] is the one way through: a subject is opened, a load driven, each trial read by a meter.
//! [`generate`] is load alone, [`probe`] asks several servers while others make load. Whatever is started is stopped and whatever is changed
//! is put back when a session ends, fails or is interrupted; what a killed one left behind is dealt with by the
//! next start ([`recover`]).

mod arrivals;
mod ask;
mod blocks;
mod bounds;
pub mod calibrate;
pub mod ceiling;
pub mod compare;
mod confirm;
mod driven;
mod duration;
mod enough;
pub mod error;
pub mod generate;
mod identity;
mod in_step;
mod left_behind;
mod levels;
mod loads;
mod meters;
pub mod own_program;
mod place;
mod plan;
mod ports;
pub mod probe;
mod process;
mod programs;
pub mod progress;
pub mod records;
mod recovery;
mod reference_level;
pub mod request;
mod running;
pub mod scale;
pub mod session;
mod start_up;
pub mod study;
mod subjects;
mod timed;
pub mod treatment;
mod written;

pub use duration::duration;
pub use error::LabError;
pub use in_step::InStep;
pub use recovery::{recover, recovered, reported, settings};
pub use running::{Held, Session};
