//! What counts the result.

pub(crate) mod tool;
