//! Machines to test on: hwloc's gathered trees, unpacked, the fixtures of this room, and machines made from a text.

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

/// Machines that were made by hand (`machines/made/README.md`).
pub fn made() -> impl Iterator<Item = Tree> {
    let mut texts: Vec<PathBuf> = std::fs::read_dir(tests().join("machines/made"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "tree"))
        .collect();
    texts.sort();
    texts.into_iter().map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        write_out(&name, &std::fs::read_to_string(&path).unwrap())
    })
}

/// The one of this name.
pub fn made_machine(name: &str) -> Tree {
    made().find(|tree| tree.name == name).unwrap_or_else(|| panic!("no machine {name}"))
}

/// A machine from its text, in the form of `machines/made`.
pub fn write_out(name: &str, text: &str) -> Tree {
    let unpacked = tempfile::tempdir().unwrap();
    let dir = unpacked.path().to_path_buf();
    std::fs::create_dir_all(dir.join("proc")).unwrap();
    for file in format!("\n{text}").split("\n@ ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap_or((file, ""));
        for (path, number) in each(path.trim()) {
            let content = content.replace("{n}", &number);
            let at = dir.join(path.trim_start_matches('/'));
            if path.ends_with('/') {
                std::fs::create_dir_all(at).unwrap();
            } else {
                std::fs::create_dir_all(at.parent().unwrap()).unwrap();
                std::fs::write(at, format!("{}\n", content.trim_end_matches('\n'))).unwrap();
            }
        }
    }
    Tree { name: name.to_string(), dir, _unpacked: Some(unpacked) }
}

/// `cpu{0-3}/x`: a path for each number, and the number.
fn each(path: &str) -> Vec<(String, String)> {
    let parts = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (range, after))) = parts else { return vec![(path.to_string(), String::new())] };
    let (first, last) = range.split_once('-').unwrap();
    let numbers = first.parse::<u32>().unwrap()..=last.parse().unwrap();
    numbers.map(|number| (format!("{before}{number}{after}"), number.to_string())).collect()
}
