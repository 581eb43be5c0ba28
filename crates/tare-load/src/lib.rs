//! The load generator: pacing, protocol and counting as separate parts, one loop around them.
//!
//! [`Generator`] drives threads, each an `engine` that moves the bytes of a `worker` (the life of connections) and
//! its `client` (requests and answers), both without I/O: `pacing` says when to send, `tare_http::response` what
//! was answered, and `tally` counts. [`preflight`] asks once before any load.

mod body_file;
mod capacity;
mod check;
mod client;
mod connections;
mod endpoint;
mod engine;
mod error;
mod fault;
mod files;
mod generator;
mod host_port;
#[cfg(feature = "http2")]
mod http2;
mod inspect;
mod interleaving;
mod lines;
mod live;
mod location;
mod merge;
mod message;
mod pacing;
mod preflight;
pub mod probe;
mod quota;
mod ramp;
mod random;
mod regular;
mod request;
mod shared;
mod slices;
mod spec;
mod table;
mod tally;
mod target;
mod template;
mod tls;
mod tls_files;
mod trust;
mod way;
mod worker;

pub use body_file::short_body;
pub use capacity::{CapacitySearch, Missed, Objective};
pub use error::LoadError;
pub use generator::{Cut, Generator};
pub use host_port::{HostPort, TargetError};
pub use interleaving::{ARMS_MAX, Interleaving, Slices, TURN_NS_MAX, TURN_NS_MIN};
pub use live::Live;
pub use message::{
    BODY_KEPT_BYTES_MAX, CAPTURES_MAX, Capture, CaptureFrom, Expect, MessageError, URLS_MAX, WEIGHT_MAX,
    WeightedUrl,
};
pub use preflight::{Preflight, preflight};
pub use spec::{
    CONNECTIONS_DEFAULT, CONNECTIONS_MAX, ClientCertificate, Content, EngineChoice, Gaps, LoadSpec,
    PIPELINE_MAX, Pacing, Protocol, RATE_HZ_MAX, Route, STAGE_NS_MAX, STAGES_MAX, SpecError, Stage,
    THINK_NS_MAX, THREADS_MAX, Tls, Trust, Workers,
};
pub use target::Target;
pub use tls_files::TlsFileError;
