//! What load to make.

mod error;
mod load;
mod pacing;
mod tls;

pub use error::SpecError;
pub use load::{
    CONNECTIONS_DEFAULT, CONNECTIONS_MAX, Content, EngineChoice, LoadSpec, PIPELINE_MAX, Protocol, Route,
    THREADS_MAX, Workers,
};
pub(crate) use load::{IN_FLIGHT_MAX, UPLOADS_MAX};
pub use pacing::{Gaps, Pacing, RATE_HZ_MAX, STAGE_NS_MAX, STAGES_MAX, Stage, THINK_NS_MAX};
pub use tls::{ClientCertificate, Tls, Trust};
