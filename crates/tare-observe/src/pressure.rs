//! Pressure stall information: time in which somebody waited for CPU, memory or disk; of the system and of the SUT's
//! group.

use crate::numbers::{Found, Number, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_machine::cgroup;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::pressure;

const SAMPLE_HZ: f64 = 10.0;
const FILE_BYTES_MAX: usize = 512;
/// What a file's totals are in.
const UNIT_NS: f64 = 1000.0;

/// Metric, resource, and how its line begins.
static TOTALS: &[(&Descriptor, &str, &str)] = &[
    (&pressure::CPU_SOME_NS, "cpu", "some"),
    (&pressure::MEMORY_SOME_NS, "memory", "some"),
    (&pressure::MEMORY_FULL_NS, "memory", "full"),
    (&pressure::IO_SOME_NS, "io", "some"),
    (&pressure::IO_FULL_NS, "io", "full"),
];

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    if !scene.root.exists("/proc/pressure") {
        let reason = Missing::with_remedy("this kernel does not tell pressure", "boot with psi=1");
        TOTALS.iter().for_each(|(metric, ..)| found.absent(metric, None, reason.clone()));
        return found;
    }
    add(&mut found, scene, "/proc/pressure/", "", &Subject::Machine);
    if let Some(&pid) = scene.watch.sut_pids.first() {
        match group(scene, pid) {
            Ok((path, dir)) => add(&mut found, scene, &format!("{dir}/"), ".pressure", &Subject::Group(path)),
            Err(reason) => {
                let subject = || Some(Subject::Group(String::new()));
                TOTALS.iter().for_each(|(metric, ..)| found.absent(metric, subject(), reason.clone()));
            }
        }
    }
    found
}

fn add(found: &mut Found, scene: &Scene, before: &str, after: &str, subject: &Subject) {
    for resource in ["cpu", "memory", "io"] {
        let of_resource = TOTALS.iter().filter(|(_, of, _)| *of == resource);
        let number = |&(metric, _, line): &(&'static Descriptor, &str, &'static str)| Number {
            metric,
            whose: Whose::Subject(subject.clone()),
            parse: Box::new(move |text| total_ns(text, line)),
            rare: false,
        };
        let path = format!("{before}{resource}{after}");
        found.file(scene, &path, FILE_BYTES_MAX, of_resource.map(number).collect());
    }
}

/// The SUT's group in the tree in which pressure is counted, by path and folder. The root's own is the system's.
fn group(scene: &Scene, pid: u32) -> Result<(String, String), Missing> {
    let branch = cgroup::unified(&scene.root, pid)?;
    let (path, dir) = branch.levels.into_iter().next().filter(|(path, _)| path != "/").ok_or_else(|| {
        Missing::with_remedy(
            "the SUT is in the root group of cgroup v2, whose pressure is that of the whole machine",
            "give the server a group of its own (systemd-run --scope)",
        )
    })?;
    Ok((path, dir.to_string_lossy().into_owned()))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, microseconds.
fn total_ns(text: &str, line: &str) -> Option<f64> {
    let line = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '))?;
    let total = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse::<u64>().ok().map(|total| total as f64 * UNIT_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "some avg10=0.01 avg60=0.50 avg300=1.77 total=12301330753\nfull avg10=0.00 total=5\n";

    #[test]
    fn totals_are_read_by_line() {
        assert_eq!(total_ns(TEXT, "some"), Some(12_301_330_753_000.0));
        assert_eq!(total_ns(TEXT, "full"), Some(5000.0));
        assert_eq!(total_ns(TEXT, "ful"), None);
    }

    proptest! {
        #[test]
        fn garbage_is_no_total(text in "\\PC{0,80}", cut in 0..TEXT.len()) {
            prop_assert_eq!(total_ns(&text, "some"), None);
            total_ns(&TEXT[..cut], "full");
        }
    }
}
