//! Unwinding of copied stacks on machines whose registers are not known here.

use super::counts::Counts;
use crate::watch::Unwind;
use std::time::Instant;
use tare_machine::Root;
use tare_model::Missing;
use tare_sys::perf::Sample;

/// None are copied.
pub(super) const STACK_BYTES: u32 = 0;

/// Copies of stacks, of which there are none.
#[derive(Debug, Default)]
pub(super) struct Copies;

/// Whether this machine can unwind so.
pub(super) fn can(unwind: Unwind) -> Result<(), Missing> {
    match unwind {
        Unwind::FramePointers => Ok(()),
        Unwind::Dwarf => Err(Missing::with_remedy(
            "stacks are unwound from copies on x86-64 only",
            "leave out --stacks-unwind dwarf",
        )),
    }
}

impl Copies {
    pub(super) fn clear(&mut self) {}

    pub(super) fn keep(&mut self, _: &Sample) -> bool {
        false
    }

    pub(super) fn unwind(&mut self, _: &mut Counts, _: &Root, _: Instant) {}
}
