//! Blocks to text, one file per medium. Nothing here computes a figure.

pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod terminal;
