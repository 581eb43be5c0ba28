//! What ceilings are measured on: CPUs, a folder, and what several of them share.

use super::served::Reference;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tare_machine::journal::Journal;
use tare_machine::placement::Placement;
use tare_machine::probes::bandwidth::Bandwidth;
use tare_machine::probes::choose;
use tare_model::Missing;
use tare_model::machine::CpuFacts;
use tare_model::survey::{MemoryGroup, Survey};

/// Bytes of an array of each thread: as large as the last cache, 64 MiB at least, and less where memory is short; below the least nothing is
/// measured.
const ARRAY_BYTES_MIN: u64 = 4 << 20;
const ARRAY_BYTES_USUAL: u64 = 64 << 20;
/// Arrays that a copy uses: the fewest of all kinds of work.
const ARRAYS_USED: u64 = 2;
/// All arrays together take at most this (64 threads have 85 MiB each), and at most this part of what memory there is; where that is not
/// known, the smaller figure.
const ARRAYS_BYTES_MAX: u64 = 16 << 30;
const ARRAYS_BYTES_UNKNOWN: u64 = 2 << 30;
const ARRAYS_PART: u64 = 4;
const ARRAYS_EACH: u64 = 3;

/// The machine, and what was made for the samples.
pub(super) struct Ground {
    /// CPUs that this process may use, ascending.
    pub cpus: Vec<u32>,
    /// Where a server and its generator run.
    pub placement: Placement,
    /// Whether a generator may look for answers without sleeping.
    pub may_poll: bool,
    /// The folder in use.
    pub dir: PathBuf,
    /// This program, which is the reference server too.
    pub program: PathBuf,
    /// What was started.
    pub journal: Rc<Journal>,
    /// Set when the user has had enough.
    pub interrupt: Arc<AtomicBool>,
    /// Facts of the CPUs.
    pub facts: Vec<CpuFacts>,
    /// Bytes that the arrays may take together, and those of the last cache; 0: not known.
    pub arrays_bytes: u64,
    pub last_cache_bytes: u64,
    /// Threads with arrays, made when they are first needed.
    pub bandwidth: OnceCell<Result<Rc<Bandwidth>, Missing>>,
    /// The reference server, started when it is first needed.
    pub reference: OnceCell<Result<Rc<Reference>, Missing>>,
}

impl Ground {
    /// Where a probe runs that needs one CPU: the last, as the first serves most interrupts.
    pub fn cpu(&self) -> u32 {
        self.cpus.last().copied().unwrap_or(0)
    }

    /// Two CPUs of two cores.
    pub fn apart(&self) -> Result<[u32; 2], Missing> {
        choose::apart(&self.facts, &self.cpus)
    }

    /// A server's and a client's CPU, as many pairs as both have CPUs.
    pub fn pairs(&self) -> Vec<[u32; 2]> {
        let Placement { sut_cpus, load_cpus, .. } = &self.placement;
        sut_cpus.iter().zip(load_cpus).map(|(server, client)| [*server, *client]).collect()
    }

    /// Bytes of one array.
    fn array_bytes(&self) -> u64 {
        let each = self.arrays_bytes / ARRAYS_EACH / self.cpus.len().max(1) as u64;
        each.min(self.last_cache_bytes.max(ARRAY_BYTES_USUAL))
    }

    /// What there is to say of the arrays of so many threads against the last cache: that they may be in it; empty: nothing.
    ///
    /// # Errors
    /// They fit: what would be measured is the cache.
    pub fn beyond_caches(&self, threads: usize) -> Result<String, Missing> {
        beyond_caches(self.array_bytes() * ARRAYS_USED * threads as u64, self.last_cache_bytes)
    }

    /// The threads with arrays.
    pub fn bandwidth(&self) -> Result<Rc<Bandwidth>, Missing> {
        let made = self.bandwidth.get_or_init(|| {
            let bytes = self.array_bytes();
            if bytes < ARRAY_BYTES_MIN {
                return Err(Missing::with_remedy(
                    format!(
                        "{} MiB of memory are too few for arrays that no cache holds",
                        self.arrays_bytes >> 20
                    ),
                    "free some memory, or raise the limit of the control group",
                ));
            }
            Bandwidth::new(&self.cpus, bytes as usize).map(Rc::new)
        });
        made.clone()
    }

    /// The reference server.
    pub fn reference(&self) -> Result<Rc<Reference>, Missing> {
        let start = || {
            let cpus = &self.placement.sut_cpus;
            Reference::start(&self.program, cpus, &self.journal, &self.interrupt).map(Rc::new)
        };
        self.reference.get_or_init(start).clone()
    }
}

fn beyond_caches(used_bytes: u64, cache_bytes: u64) -> Result<String, Missing> {
    let text = format!("arrays of {} MiB, and a last cache of {} MiB", used_bytes >> 20, cache_bytes >> 20);
    if used_bytes < cache_bytes {
        return Err(Missing::with_remedy(
            format!("{text}: the cache would be measured"),
            "free some memory, or raise the limit of the control group",
        ));
    }
    let is_twice = used_bytes >= cache_bytes.saturating_mul(2);
    Ok(if is_twice { String::new() } else { format!("{text}: part of it may come from the cache") })
}

/// Bytes that arrays may take: a part of what is free here and in every group up to the root.
pub(super) fn arrays_bytes(survey: &Survey) -> u64 {
    let free = survey.memory.available_bytes.value().copied().unwrap_or(ARRAYS_BYTES_UNKNOWN * ARRAYS_PART);
    let groups = survey.groups.memory.value().map(Vec::as_slice).unwrap_or_default();
    let rooms = groups.iter().filter_map(room_bytes);
    rooms.chain([free]).map(|bytes| bytes / ARRAYS_PART).fold(ARRAYS_BYTES_MAX, u64::min)
}

/// What a group may still take: up to the lower of its limits, where its page cache gives way.
fn room_bytes(group: &MemoryGroup) -> Option<u64> {
    let limits = [&group.limit_bytes, &group.high_bytes].into_iter().filter_map(|limit| limit.value());
    let limit_bytes = *limits.min()?;
    let used_bytes = group.used_bytes.value().copied().unwrap_or(0);
    let held_bytes = used_bytes.saturating_sub(group.page_cache_bytes.value().copied().unwrap_or(0));
    Some(limit_bytes.saturating_sub(held_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_room_for_what_its_limit_leaves_without_the_page_cache() {
        let measured = tare_model::Reading::Measured;
        let group = |limit, high, used, cache| MemoryGroup {
            path: "/a".to_owned(),
            limit_bytes: limit,
            high_bytes: high,
            used_bytes: measured(used),
            page_cache_bytes: cache,
        };
        let none = || tare_model::Reading::NotApplicable { not_applicable: "no limit".to_owned() };
        assert_eq!(room_bytes(&group(none(), none(), 5, measured(0))), None);
        assert_eq!(room_bytes(&group(measured(100), none(), 90, measured(60))), Some(70));
        assert_eq!(room_bytes(&group(measured(100), measured(80), 90, measured(60))), Some(50));
        // What is page cache is not known: all that is used counts.
        assert_eq!(room_bytes(&group(measured(100), none(), 90, none())), Some(10));
        assert_eq!(room_bytes(&group(measured(100), none(), 190, measured(0))), Some(0));
    }

    #[test]
    fn arrays_that_a_cache_holds_are_not_measured_as_memory() {
        let mib = 1u64 << 20;
        assert_eq!(beyond_caches(128 * mib, 0), Ok(String::new()));
        assert_eq!(beyond_caches(128 * mib, 64 * mib), Ok(String::new()));
        assert!(beyond_caches(128 * mib, 100 * mib).is_ok_and(|note| note.contains("100 MiB")));
        assert!(beyond_caches(128 * mib, 384 * mib).is_err_and(|missing| missing.why.contains("the cache")));
    }
}
