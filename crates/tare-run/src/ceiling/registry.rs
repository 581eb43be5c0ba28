//! Every kind of ceiling. To add one: its file, and its line here.

use super::kind::Kind;
use super::{arithmetic, disk, kernel, loopback, memory, packets, reference};

/// In the order in which they are shown; each gives its ceilings on a machine with so many CPUs.
const KINDS: &[fn(usize) -> Vec<Kind>] = &[
    kernel::kinds,
    loopback::kinds,
    packets::kinds,
    memory::kinds,
    arithmetic::kinds,
    disk::kinds,
    reference::kinds,
];

/// All ceilings of a machine with so many CPUs.
pub(super) fn all(cpus: usize) -> Vec<Kind> {
    KINDS.iter().flat_map(|kinds| kinds(cpus)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_say_what_they_are() {
        for cpus in [1, 2, 3, 64] {
            let all = all(cpus);
            let mut names: Vec<&str> = all.iter().map(|kind| kind.name.as_str()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
            assert!(all.iter().all(|kind| kind.about.len() > 20 && !kind.unit.is_empty()));
        }
    }
}
