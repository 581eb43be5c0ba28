//! What the program costs and could do: the iron law, CPU time per request, serial stages, the reference server, net.

pub(crate) mod books;
pub(crate) mod command;
pub(crate) mod cost;
pub(crate) mod distance;
pub(crate) mod fit;
pub(crate) mod generator;
pub(crate) mod iron;
pub(crate) mod reference;
pub(crate) mod serial;
pub(crate) mod summary;
pub(crate) mod weigh;
