//! What makes the subject work.

pub(crate) mod drive;
pub(crate) mod layout;
pub(crate) mod turns;
pub(crate) mod warmup;
