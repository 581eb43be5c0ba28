//! Whether there is too little memory: the limits of the SUT's groups, how often they were met, and pages that had to be read
//! again, of the groups and of the machine. (Stalls for it are pressure, faults are counted with threads.)

use crate::numbers::{Found, Number, Parse, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_machine::cgroup::{self, Version};
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::memory;
use tare_sys::process::page_bytes;

/// Samples per second between the edges: the kernel adds up the counts of all CPUs for each.
const SAMPLE_HZ: f64 = 2.0;
const FILE_BYTES_MAX: usize = 16 << 10;
/// Groups from the SUT's own upwards that are looked at.
const LEVELS_MAX: usize = 8;
/// What "no limit" reads as in v1: the largest number of pages.
const UNLIMITED_BYTES: f64 = 9e18;

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    let add =
        |found: &mut Found, path: &str, subject: &Subject, metric: &'static Descriptor, parse: Parse| {
            let number = Number { metric, whose: Whose::Subject(subject.clone()), parse, rare: true };
            found.file(scene, path, FILE_BYTES_MAX, vec![number]);
        };
    add(
        &mut found,
        "/proc/vmstat",
        &Subject::Machine,
        &memory::REFAULTED_BYTES,
        Box::new(|text| refaulted(text, "")),
    );
    add(&mut found, "/proc/vmstat", &Subject::Machine, &memory::READ_BYTES, Box::new(read_from_disks));
    let Some(&pid) = scene.watch.sut_pids.first() else { return found };
    let branch = match cgroup::branch_of(&scene.root, pid, "memory") {
        Ok(branch) => branch,
        Err(reason) => {
            found.absent(&memory::LIMIT_HITS, None, reason);
            return found;
        }
    };
    let below_root = branch.levels.iter().filter(|(path, _)| path != "/");
    for (path, dir) in below_root.take(LEVELS_MAX) {
        let subject = Subject::Group(path.clone());
        let file = |name: &str| dir.join(name).to_string_lossy().into_owned();
        for (metric, name, parse) in files(branch.version) {
            add(&mut found, &file(name), &subject, metric, Box::new(parse));
        }
    }
    if branch.levels.iter().all(|(path, _)| path == "/") {
        let reason = Missing::new("the SUT is in the root group, which has no limit of memory");
        found.absent(&memory::LIMIT_HITS, None, reason);
    }
    found
}

/// Metric, file, and how its number is found.
type InFile = (&'static Descriptor, &'static str, fn(&str) -> Option<f64>);

fn files(version: Version) -> &'static [InFile] {
    static V1: [InFile; 4] = [
        (&memory::LIMIT_HITS, "memory.failcnt", alone),
        (&memory::REFAULTED_BYTES, "memory.stat", |text| refaulted(text, "total_")),
        (&memory::LIMIT_BYTES, "memory.limit_in_bytes", |text| {
            alone(text).filter(|limit| *limit < UNLIMITED_BYTES)
        }),
        (&memory::USED_BYTES, "memory.usage_in_bytes", alone),
    ];
    static V2: [InFile; 5] = [
        (&memory::LIMIT_HITS, "memory.events", |text| Some(behind(text, "high")? + behind(text, "max")?)),
        (&memory::REFAULTED_BYTES, "memory.stat", |text| refaulted(text, "")),
        (&memory::LIMIT_BYTES, "memory.max", alone),
        (&memory::HIGH_BYTES, "memory.high", alone),
        (&memory::USED_BYTES, "memory.current", alone),
    ];
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

/// A file of one number; `max` is none.
fn alone(text: &str) -> Option<f64> {
    text.trim().parse::<u64>().ok().map(|number| number as f64)
}

/// The number behind a name.
fn behind(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    alone(line)
}

/// In bytes.
fn refaulted(text: &str, prefix: &str) -> Option<f64> {
    refaults(text, prefix).map(|pages| pages * page_bytes() as f64)
}

/// `pgpgin` is in KiB.
fn read_from_disks(text: &str) -> Option<f64> {
    behind(text, "pgpgin").map(|kib| kib * 1024.0)
}

/// Pages. Before Linux 5.9 there is one count for both.
fn refaults(text: &str, prefix: &str) -> Option<f64> {
    let count = |name: &str| behind(text, &format!("{prefix}workingset_refault{name}"));
    match (count("_anon"), count("_file")) {
        (Some(anon), Some(file)) => Some(anon + file),
        _ => count(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_stand_behind_their_names() {
        let events = "low 0\nhigh 7\nmax 3\noom 1\n";
        let hits = files(Version::V2)[0].2;
        assert_eq!(hits(events), Some(10.0));
        assert_eq!(refaults("workingset_refault_anon 2\nworkingset_refault_file 3\n", ""), Some(5.0));
        assert_eq!(refaults("workingset_refault 4\n", ""), Some(4.0));
        let v1 =
            "workingset_refault_file 1\ntotal_workingset_refault_anon 20\ntotal_workingset_refault_file 30\n";
        assert_eq!(refaults(v1, "total_"), Some(50.0));
        let limit = files(Version::V1)[2].2;
        assert_eq!((limit("9223372036854771712\n"), limit("1048576\n")), (None, Some(1_048_576.0)));
        assert_eq!(alone("max\n"), None);
        assert_eq!(read_from_disks("pgpgin 3\npgpgout 9\n"), Some(3072.0));
    }

    proptest! {
        #[test]
        fn garbage_is_no_count(text in "\\PC{0,80}") {
            prop_assert_eq!(refaults(&text, ""), None);
            alone(&text);
        }
    }
}
