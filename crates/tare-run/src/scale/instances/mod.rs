//! Copies of a service that run at once, each on its own CPUs with its own load: each alone and several together, interleaved in blocks.
//!
//! Each instance is measured by a process of tare's own, as `tare run` would: whatever a session knows of a server or a program is known of each
//! of them, and none sees threads of another as its own. `place` says which CPUs are whose, `part` what such a process is asked to do and
//! does, `crew` starts those of a launch and has them measure at the same time, `kept` is what was measured and what it comes to,
//! `run` goes through the blocks.

mod crew;
mod kept;
mod part;
mod place;
mod run;

pub use part::{Part, measure};
pub(super) use run::run;
