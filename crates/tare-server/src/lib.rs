//! An HTTP/1.1 server: one connection state machine, several ways to spread it over threads.
//!
//! ```no_run
//! use tare_server::{Config, Server};
//!
//! # fn main() -> Result<(), tare_server::ServerError> {
//! let server = Server::builder()
//!     .builtin_routes()
//!     .route("/hello/*", |request, answer| {
//!         answer.ok().content_type("text/plain").body(request.rest().as_bytes())
//!     })
//!     .bind(Config::new("127.0.0.1:8080".parse().expect("an address")))?;
//! let stop = server.stop_handle(); // stop.stop() from another thread ends run() after a graceful drain
//! let report = server.run()?;
//! # drop((stop, report)); Ok(())
//! # }
//! ```
//!
//! The way of a request: [`architecture`] decides which thread gets the connection, [`event_loop`] decides what
//! is done with it next, [`backend`] moves its bytes, [`connection`] turns bytes into answers without I/O,
//! [`routes`] finds the handler. Nothing is allocated for a
//! request once a thread is warm.

mod access_log;
pub mod architecture;
pub mod backend;
mod body;
mod buffers;
mod builtin;
pub mod config;
pub mod connection;
mod connections;
pub mod counters;
mod downstream;
pub mod error;
mod event_loop;
mod files;
pub mod handler;
pub mod listening;
pub mod metrics;
mod patience;
mod peers;
mod report;
mod rest;
pub mod routes;
mod server;
mod stop;
pub mod tables;
mod tail;
#[cfg(feature = "tls")]
mod tls;

pub use access_log::AccessLog;
pub use backend::Chosen;
pub use config::{BackendChoice, Config, Timeouts};
pub use error::ServerError;
pub use handler::{Answer, HeadWriter, Request, Responder};
pub use listening::{Listening, Steering};
pub use report::{Report, ThreadReport};
pub use server::{Builder, Server};
pub use stop::StopHandle;
pub use tare_http::limits::{FIELDS_MAX, Limits};
pub use tare_http::request::Method;
pub use tare_http::status::Status;
#[cfg(feature = "tls")]
pub use tls::Tls;
