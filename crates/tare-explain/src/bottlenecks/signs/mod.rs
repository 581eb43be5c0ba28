//! What several bottlenecks are judged by.

pub(crate) mod bounds;
pub(crate) mod concurrency;
pub(crate) mod free;
pub(crate) mod garbage;
pub(crate) mod lock_callers;
pub(crate) mod locks;
pub(crate) mod packets;
pub(crate) mod parallel;
pub(crate) mod quota;
pub(crate) mod requests;
pub(crate) mod sides;
pub(crate) mod together;
pub(crate) mod way;
pub(crate) mod workers;
