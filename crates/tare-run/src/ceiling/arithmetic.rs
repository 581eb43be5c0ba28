//! What one core computes.

use super::kind::Kind;
use tare_machine::probes::compute::{self, Work};

const WORKS: [(Work, &str, &str, &str); 4] = [
    (Work::Integer, "integer", "op/s", "integer operations of one core, eight chains at once"),
    (Work::Sha256, "sha256", "B/s", "SHA-256 of one core, 16 KiB at a time"),
    (Work::Aes256Gcm, "aes-256-gcm", "B/s", "AES-256-GCM of one core, 16 KiB at a time"),
    (Work::Memcpy, "memcpy", "B/s", "memcpy of one core within its caches, 1 MiB at a time"),
];

pub(super) fn kinds(_: usize) -> Vec<Kind> {
    let kind = |(work, name, unit, about): (Work, &'static str, &'static str, &'static str)| {
        Kind::new(name, unit, about, move |ground, ns| compute::run(work, ground.cpu(), ns))
    };
    WORKS.into_iter().map(kind).collect()
}
