//! What else was not the same in two runs: an entry for each thing, with what it can do to the figures.

mod list;
mod load;
mod machine;
mod programs;

use crate::capacity::levels::Accounting;
use list::List;
use tare_model::why::Difference;
use tare_model::{Missing, Reading, Record};

/// Everything that differs, what matters most first; and what could not be compared.
pub(super) fn between(a: &Accounting, b: &Accounting) -> (Vec<Difference>, Vec<Missing>) {
    let mut list = List::default();
    programs::compare(a.record, b.record, &mut list);
    load::compare(a, b, &mut list);
    machine::compare(a.record, b.record, &mut list);
    list.finished()
}

/// Whether the two were made on machines that are not the same one.
pub(super) fn other_machine(a: &Record, b: &Record) -> bool {
    let (one, other) = (&a.machine, &b.machine);
    differ(&one.cpu_model, &other.cpu_model)
        || one.cpus.len() != other.cpus.len()
        || differ(&one.memory_bytes, &other.memory_bytes)
}

/// Both are known and not the same.
fn differ<T: PartialEq>(a: &Reading<T>, b: &Reading<T>) -> bool {
    a.value().zip(b.value()).is_some_and(|(a, b)| a != b)
}
