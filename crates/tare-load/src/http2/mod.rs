//! HTTP/2 as a client, by the `h2` crate and without a runtime: whoever owns the socket polls a [`Link`] when
//! something came or is to be sent, and the [`Exchange`]s that it woke.

mod authority;
mod exchange;
mod link;
mod message;
mod upload;
mod wire;
mod woken;

pub(crate) use authority::is_authority;
pub(crate) use exchange::{Exchange, Failure};
pub(crate) use link::{Link, Sent};
pub(crate) use message::Asks;
pub(crate) use wire::{Transport, Wire, is_broken};
pub(crate) use woken::Woken;
