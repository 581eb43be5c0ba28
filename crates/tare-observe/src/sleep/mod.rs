//! Why a thread sleeps: by the system call that it sleeps in, and by what the descriptor leads to that it waits for.

mod descriptors;
mod doing;
mod futex;
mod peers;
mod why;

pub(crate) use descriptors::{Descriptors, why_asleep};
pub(crate) use doing::{Doing, parse_syscall, poll, select};
pub(crate) use futex::{FutexWait, SOON_NS};
pub(crate) use peers::Peers;
pub(crate) use why::Why;
