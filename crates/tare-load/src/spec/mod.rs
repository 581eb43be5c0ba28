//! What load to make.

mod error;
mod load;
mod pacing;

pub use error::SpecError;
pub(crate) use load::IN_FLIGHT_MAX;
pub use load::{
    CONNECTIONS_DEFAULT, CONNECTIONS_MAX, EngineChoice, LoadSpec, PIPELINE_MAX, Protocol, THREADS_MAX,
};
pub use pacing::{Gaps, Pacing, RATE_HZ_MAX, STAGE_NS_MAX, STAGES_MAX, Stage, THINK_NS_MAX};
