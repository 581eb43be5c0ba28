//! Every metric there is, one file per observer.
//!
//! The order of [`ALL`] is for reading only: ids, never positions, reach the disk.

pub mod client;
pub mod clock;
pub mod connections;
pub mod core_latency;
pub mod cpus;
mod declare;
pub mod energy;
pub mod groups;
pub mod jvm;
pub mod link;
pub mod load_connections;
pub mod memory;
pub mod network;
pub mod open_files;
pub mod pmu;
pub mod pressure;
pub mod softirqs;
pub mod tasks;
pub mod thermal;
pub mod wakeups;

use crate::metric::Descriptor;

/// All descriptors, observer by observer.
pub static ALL: &[&[&Descriptor]] = &[
    tasks::DESCRIPTORS,
    cpus::DESCRIPTORS,
    groups::DESCRIPTORS,
    network::DESCRIPTORS,
    client::DESCRIPTORS,
    connections::DESCRIPTORS,
    load_connections::DESCRIPTORS,
    link::DESCRIPTORS,
    open_files::DESCRIPTORS,
    jvm::DESCRIPTORS,
    clock::DESCRIPTORS,
    core_latency::DESCRIPTORS,
    wakeups::DESCRIPTORS,
    pmu::DESCRIPTORS,
    pressure::DESCRIPTORS,
    memory::DESCRIPTORS,
    softirqs::DESCRIPTORS,
    thermal::DESCRIPTORS,
    energy::DESCRIPTORS,
];

/// The descriptor with this id.
pub fn by_id(id: &str) -> Option<&'static Descriptor> {
    ALL.iter().flat_map(|group| group.iter()).copied().find(|descriptor| descriptor.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_texts_are_there() {
        let mut seen = HashSet::new();
        for descriptor in ALL.iter().flat_map(|group| group.iter()) {
            assert!(seen.insert(descriptor.id), "{} is declared twice", descriptor.id);
            assert!(!descriptor.help.is_empty() && !descriptor.source.is_empty(), "{}", descriptor.id);
            assert!(std::ptr::eq(by_id(descriptor.id).unwrap(), *descriptor));
        }
        assert!(by_id("tasks.no_such").is_none());
    }
}
