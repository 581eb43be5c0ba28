//! TLS (1.2 and 1.3, by rustls).

mod certificate;
mod layer;

pub use certificate::Tls;
pub(crate) use layer::{Heard, Layer};
