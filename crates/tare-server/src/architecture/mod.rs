//! How connections are spread over threads. Each architecture is a file and a line in [`ARCHITECTURES`].

pub(crate) mod dispatch;
mod layout;
mod queue;
mod reactor;
mod shared_nothing;
mod table;

pub use layout::{Architecture, Layout};
pub(crate) use layout::{Intake, Role};
pub use table::{ARCHITECTURES, DEFAULT, find};
