//! Flame graphs: folded stacks to drawings, and to and from what other tools read.
//!
//! A drawing is `inferno`'s. Each function here takes the stacks of one session ([`of_record`]) or what another tool
//! recorded ([`import()`]), and a [`Choice`] of what of them is shown.

mod choice;
mod firefox;
mod folded;
mod import;
mod pprof;
mod svg;

pub use choice::{Choice, FlameError, of_record};
pub use firefox::firefox;
pub use folded::{BLIND_SPOT, facts, folded};
pub use import::import;
pub use pprof::pprof;
pub(crate) use svg::inline;
pub use svg::{difference, folded_difference, svg};

#[cfg(test)]
mod tests;
