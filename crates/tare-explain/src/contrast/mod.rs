//! One difference between two results.

pub(crate) mod apart;
pub mod frames;
pub mod gate;
pub mod tools;
pub mod why;
