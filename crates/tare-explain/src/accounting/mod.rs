//! Where every thread's and every CPU's time went, stage by stage: `Raw` → `Reconciled` → `Attributed` → [`Closed`].
//!
//! Each stage is a type that only the one before can become, so that no correction can be applied twice or too early. Others read
//! [`Closed`] alone, and what it is made of.

mod attribute;
mod close;
mod raw;
mod reconcile;

pub(crate) use attribute::cpus::Cpu;
pub(crate) use attribute::entitlement::{Entitlement, Loss, tare_name};
pub(crate) use attribute::thread::Thread;
pub(crate) use attribute::working::Limit;
pub(crate) use close::answered::Answered;
pub(crate) use close::closed::Closed;
pub(crate) use raw::around::{Connections, OpenFiles};
pub(crate) use raw::asleep::Asleep;
pub(crate) use raw::bounds::{CHECKED_S_MIN, NO_VERDICT, OPEN};
pub(crate) use raw::downstream::Program;
pub(crate) use raw::helpers;
pub(crate) use raw::ratio::ratio;
pub(crate) use raw::readings::{Readings, value_at};
pub(crate) use raw::runtimes::LimitedBy;
pub(crate) use raw::way::{LinkCount, Packets, RateLimit};
pub(crate) use reconcile::events::{COUNTED_SHARE_MIN, Core, Events};
