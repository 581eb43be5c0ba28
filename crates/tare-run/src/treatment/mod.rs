//! Settings as treatments: what an arm of a comparison is run with that the others are not.
//!
//! A [`Treatment`] is what was asked for. [`switch`] judges it before anything starts, applies the machine-wide part of it through the
//! journal before each start of its arm and puts it back after its end; [`verify`] looks whether the program has it in use.

mod counts;
mod evidence;
mod place;
mod placing;
mod switch;
mod verify;
mod wanted;

pub(crate) use evidence::{begun, fill, see};
pub(crate) use placing::Around;
pub(crate) use switch::Switch;
pub(crate) use verify::{Sampler, Seen};
pub use wanted::{Given, HugePages, Treatment};
