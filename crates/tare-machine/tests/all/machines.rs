//! Machines to test on: hwloc's gathered trees, unpacked, and the fixtures of this room.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine's tree of `/proc` and `/sys` files.
pub struct Tree {
    pub name: String,
    pub dir: PathBuf,
    _unpacked: Option<tempfile::TempDir>,
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// What neither hwloc nor we need in order to count: most of the files.
const LEFT_PACKED: &[&str] = &[
    "*/sys/devices/pci*",
    "*/sys/devices/LNX*",
    "*/sys/bus",
    "*/sys/class",
    "*/sys/block",
    "*/sys/kernel",
    "*/proc/device-tree",
    "*/node/node*/memory[0-9]*",
    "*/node/node*/hugepages",
    "*/cpu/cpu*/cpuidle",
    "*/cpu/cpu*/thermal_throttle",
    "*/cache/index*/[acipuw]*",
    "*/cache/index*/number_of_sets",
    "*/dev/cpuset/torque/*/[0-9]*",
];

/// hwloc's trees, unpacked one at a time.
pub fn hwloc_trees() -> impl Iterator<Item = Tree> {
    let mut archives: Vec<PathBuf> = std::fs::read_dir(tests().join("machines/hwloc"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".tar.bz2"))
        .collect();
    archives.sort();
    archives.into_iter().map(|archive| {
        let unpacked = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xjf").arg(&archive).arg("-C").arg(unpacked.path());
        tar.args(LEFT_PACKED.iter().map(|path| format!("--exclude={path}")));
        assert!(tar.status().unwrap().success(), "tar and bzip2 are needed to unpack {}", archive.display());
        let dir = std::fs::read_dir(unpacked.path()).unwrap().next().unwrap().unwrap().path();
        let name = archive.file_name().unwrap().to_string_lossy().trim_end_matches(".tar.bz2").to_string();
        Tree { name, dir, _unpacked: Some(unpacked) }
    })
}

/// The machines of the field reports.
pub fn fixtures() -> impl Iterator<Item = Tree> {
    ["hygon-64", "kunpeng-920", "laptop-11800h-wsl2"].into_iter().map(|name| Tree {
        name: name.to_string(),
        dir: tests().join("fixtures").join(name),
        _unpacked: None,
    })
}
