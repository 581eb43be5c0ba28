//! What the program costs and could do: the iron law, CPU time per request, serial stages, the reference server, net.

pub(crate) mod command;
pub(crate) mod core_latency;
pub(crate) mod downstream;
pub mod efficiency;
pub(crate) mod estimate;
pub(crate) mod fit;
pub(crate) mod generator;
pub mod instances;
pub(crate) mod iron;
pub(crate) mod level;
pub(crate) mod levels;
pub(crate) mod net;
pub(crate) mod reference;
pub mod reference_level;
mod results;
pub(crate) mod runs;
pub mod scaling;
pub(crate) mod schedule;
pub(crate) mod serial;
pub(crate) mod service_demand;
pub mod smt_worth;
pub mod stopping;
pub(crate) mod summary;
