//! What is measured: a server that is started or found, a program that ends.

pub(crate) mod fit;
pub mod program;
pub(crate) mod server;
