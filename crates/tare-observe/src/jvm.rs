//! How often threads of a Java virtual machine found a monitor taken: from outside, their sleep is the same as that of a pool with
//! nothing to do. HotSpot counts it in a file that it maps (`-XX:+UsePerfData`, the default).

use crate::observed::Observed;
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::jvm;
use tare_model::observation::Sample;
use tare_sys::time::monotonic_ns;

/// Processes that are looked at. A server of many threads has fewer.
const PROCESSES_MAX: usize = 64;
/// Virtual machines of them.
const MACHINES_MAX: usize = 16;
/// HotSpot's file is 32 KiB; of a larger one the rest is not read.
const FILE_BYTES_MAX: u64 = 1 << 20;
const FOLDERS_MAX: usize = 256;
const NAME: &[u8] = b"sun.rt._sync_ContendedLockAttempts";

#[derive(Default)]
struct Jvm {
    files: Vec<PathBuf>,
    readings: Vec<Sample>,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(Jvm::default())
}

impl Observer for Jvm {
    fn prepare(&mut self, scene: &Scene) {
        self.readings.clear();
        self.files.clear();
        let family = scene.family(&scene.watch.sut_pids).into_iter().take(PROCESSES_MAX);
        let machines = family.filter(|pid| is_jvm(&scene.root.path(format!("/proc/{pid}/exe"))));
        self.files = machines.take(MACHINES_MAX).filter_map(|pid| file_of(scene, pid)).collect();
    }

    fn edge(&mut self, _edge: &mut Edge) {
        if self.files.is_empty() {
            return;
        }
        let at_ns = monotonic_ns();
        // One that cannot be read any more would make the sum fall.
        let counts: Option<Vec<u64>> = self.files.iter().map(|file| contended(&read(file)?)).collect();
        self.readings.extend(counts.map(|counts| Sample { at_ns, value: counts.iter().sum::<u64>() as f64 }));
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        if self.readings.is_empty() {
            let why = Missing::new(
                "the SUT has no Java virtual machine that counts it (HotSpot with -XX:+UsePerfData does)",
            );
            return observed.absent(&jvm::CONTENDED, None, why);
        }
        observed.column(&jvm::CONTENDED, Subject::Machine, std::mem::take(&mut self.readings));
    }
}

/// Whether the program of a process is one that is named like a launcher of Java.
fn is_jvm(exe: &Path) -> bool {
    let target = std::fs::read_link(exe).unwrap_or_default();
    target
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("java") || name == "jsvc")
}

/// The file of a virtual machine: `/tmp/hsperfdata_USER/PID`, as it sees its files and its number itself.
fn file_of(scene: &Scene, pid: u32) -> Option<PathBuf> {
    let status = std::fs::read_to_string(scene.root.path(format!("/proc/{pid}/status"))).ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().last()?;
    let folders = std::fs::read_dir(scene.root.path(format!("/proc/{pid}/root/tmp"))).ok()?;
    let mine = folders
        .take(FOLDERS_MAX)
        .flatten()
        .filter(|folder| folder.file_name().to_string_lossy().starts_with("hsperfdata_"));
    // One of another user is of another virtual machine, which had this number.
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(1)?;
    let is_its_own = |file: &PathBuf| {
        let found = file.symlink_metadata().ok();
        found.is_some_and(|found| found.is_file() && user.parse() == Ok(found.uid()))
    };
    mine.map(|folder| folder.path().join(own)).find(is_its_own)
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // Whatever has taken its place meanwhile: nobody waits for it.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(file);
    opened.ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The counter in a file of HotSpot's performance data (`jdk.internal.perf`, version 2.0): a header of 32 bytes, then entries that
/// each say how long they are, and where in them their name and value stand. `None` where it is not in it.
fn contended(bytes: &[u8]) -> Option<u64> {
    let is_little = match bytes.get(..5)? {
        [0xca, 0xfe, 0xc0, 0xc0, order] => *order == 1,
        _ => return None,
    };
    let word = |at: usize| -> Option<usize> {
        let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) } as usize)
    };
    let (mut entry, count) = (word(24)?, word(28)?);
    // An entry has 20 bytes at least.
    for _ in 0..count.min(bytes.len() / 20) {
        let (length, name_at, value_at) =
            (word(entry)?, entry.checked_add(word(entry.checked_add(4)?)?)?, word(entry.checked_add(16)?)?);
        let name = bytes.get(name_at..)?;
        if name.starts_with(NAME) && name.get(NAME.len()) == Some(&0) {
            let at = entry.checked_add(value_at)?;
            let eight: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
            return Some(if is_little { u64::from_le_bytes(eight) } else { u64::from_be_bytes(eight) });
        }
        if length == 0 {
            return None;
        }
        entry = entry.checked_add(length)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use proptest::prelude::*;
    use tare_machine::Root;

    /// A file with these longs.
    fn data(entries: &[(&[u8], u64)]) -> Vec<u8> {
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        for word in [0u32, 0, 0, 0, 32, entries.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        for (name, value) in entries {
            let named = (name.len() + 1).next_multiple_of(8);
            let length = (24 + named + 8) as u32;
            for word in [length, 24, 0] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend([b'J', 0, 1, 3]);
            bytes.extend(((24 + named) as u32).to_le_bytes());
            bytes.extend([0; 4]);
            bytes.extend(*name);
            bytes.extend(vec![0; named - name.len()]);
            bytes.extend(value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_counter_is_found_among_others() {
        let entries: [(&[u8], u64); 3] = [(b"sun.rt._sync_Parks", 7), (NAME, 4711), (b"sun.rt.x", 9)];
        assert_eq!(contended(&data(&entries)), Some(4711));
        let longer = [NAME, b"X"].concat();
        assert_eq!(contended(&data(&[(&longer, 1)])), None);
        assert_eq!(contended(&data(&[])), None);
    }

    #[test]
    fn what_is_cut_is_no_counter() {
        let whole = data(&[(b"sun.rt.x", 9), (NAME, 4711)]);
        for length in 0..whole.len() {
            assert_eq!(contended(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn without_a_virtual_machine_it_is_missing() {
        let watch = Watch { sut_pids: vec![std::process::id()], ..Watch::default() };
        let scene = Scene::new(watch, &Root::live());
        let mut observer = open(&scene);
        observer.prepare(&scene);
        observer.edge(&mut Edge { at_ns: 0 });
        let mut observed = Observed::new(0, 1);
        observer.report(&scene, &mut observed);
        let why = observed.close().why_absent(&jvm::CONTENDED, &Subject::Machine);
        assert!(why.why.contains("no Java virtual machine"));
    }

    proptest! {
        #[test]
        fn garbage_does_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            bytes.splice(0..0, [0xca, 0xfe, 0xc0, 0xc0, 1]);
            contended(&bytes);
        }
    }
}
