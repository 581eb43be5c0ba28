//! Every gathered machine is read as hwloc reads it: packages, NUMA nodes, cores, threads, caches of each level.
//! `--nocapture` prints a row for each tree.

use crate::machines::{Tree, hwloc_trees};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tare_machine::{Root, topology};
use tare_model::topology::{CacheKind, Topology};

const COUNTED: &[&str] = &[
    "package", "numanode", "core", "pu", "l1cache", "l1icache", "l2cache", "l2icache", "l3cache", "l4cache",
];

/// Where we differ: tree, what, ours, hwloc's. The firmware of this machine gives CPU 3 the package and the cache
/// of CPUs 0 to 3, which contradicts what they say of themselves. Both leave that set out; hwloc with it the package
/// and the cache that CPU 3 really is in, as it reads a set at its lowest CPU alone. We believe the nine others.
const DIFFERENT: &[(&str, &str, &str, &str)] = &[
    ("40intel64-4n10c+pci-conflicts", "package", "4", "3"),
    ("40intel64-4n10c+pci-conflicts", "l3cache", "4", "3"),
];

/// Our counts; `-` where there are none.
fn ours(tree: &Tree) -> BTreeMap<&'static str, String> {
    let topology = topology::read(&Root::at(&tree.dir), None);
    COUNTED.iter().map(|what| (*what, count(&topology, what))).collect()
}

fn count(topology: &Topology, what: &str) -> String {
    let reading = match what {
        "package" => topology.packages.value(),
        "numanode" => topology.numa_nodes.value(),
        "core" => topology.cores.value(),
        "pu" => topology.threads.value(),
        cache => return caches(topology, cache),
    };
    reading.map_or_else(|| "-".to_string(), u32::to_string)
}

/// `l2icache`: instructions alone; `l2cache`: data, or both.
fn caches(topology: &Topology, what: &str) -> String {
    let level: u32 = what[1..2].parse().unwrap();
    let instructions = what[2..].starts_with('i');
    let wanted = |cache: &&tare_model::topology::Cache| {
        cache.level == level && (cache.kind == CacheKind::Instruction) == instructions
    };
    match topology.caches.value().map_or(0, |caches| caches.iter().filter(wanted).count()) {
        0 => "-".to_string(),
        count => count.to_string(),
    }
}

fn expected() -> BTreeMap<String, BTreeMap<&'static str, String>> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines/hwloc/expected.tsv");
    let text = std::fs::read_to_string(table).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap().split('\t').skip(1).collect::<Vec<_>>(), COUNTED);
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_string);
        (fields.next().unwrap(), COUNTED.iter().copied().zip(fields).collect())
    };
    lines.map(row).collect()
}

/// What an installed hwloc answers now; `None` without one of the version that `expected.tsv` was made with.
fn asked(tree: &Tree) -> Option<BTreeMap<&'static str, String>> {
    let version = Command::new("hwloc-calc").arg("--version").output().ok()?;
    if !String::from_utf8_lossy(&version.stdout).contains(" 2.9") {
        return None;
    }
    let ask = |what: &&'static str| {
        let output = Command::new("hwloc-calc")
            .env("HWLOC_FSROOT", &tree.dir)
            .env("HWLOC_COMPONENTS", "linux,stop")
            .env("HWLOC_THISSYSTEM", "0")
            .args(["-N", what, "all"])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
        Some((*what, if output.status.success() && !text.is_empty() { text } else { "-".to_string() }))
    };
    COUNTED.iter().map(ask).collect()
}

#[test]
fn every_tree_as_hwloc_reads_it() {
    let mut expected = expected();
    let mut wrong = Vec::new();
    println!("{:<36}{}", "ours, hwloc's where different", COUNTED.map_columns(|what| what.to_string()));
    // A tree is read while the next is unpacked.
    let trees: Vec<_> = std::thread::scope(|scope| {
        let read = |tree: Tree| scope.spawn(move || (ours(&tree), asked(&tree), tree.name));
        let reading: Vec<_> = hwloc_trees().map(read).collect();
        reading.into_iter().map(|read| read.join().unwrap()).collect()
    });
    for (ours, asked, name) in trees {
        let theirs = expected.remove(&name).unwrap_or_else(|| panic!("{name} has no row"));
        if let Some(asked) = asked {
            assert_eq!(asked, theirs, "{name}: expected.tsv is not what this hwloc answers");
        }
        let cell = |what: &str| match ours[what] == theirs[what] {
            true => ours[what].clone(),
            false => format!("{}!{}", ours[what], theirs[what]),
        };
        println!("{name:<36}{}", COUNTED.map_columns(cell));
        for what in COUNTED {
            let allowed = DIFFERENT.iter().find(|known| (known.0, known.1) == (name.as_str(), *what));
            let (our, their) =
                allowed.map_or((theirs[what].as_str(), theirs[what].as_str()), |known| (known.2, known.3));
            if (ours[what].as_str(), theirs[what].as_str()) != (our, their) {
                wrong.push(format!("{name} {what}: {} instead of {}", ours[what], theirs[what]));
            }
        }
    }
    assert!(expected.is_empty(), "rows without a tree: {:?}", expected.keys());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

trait Columns {
    fn map_columns(&self, cell: impl Fn(&str) -> String) -> String;
}

impl Columns for [&str] {
    fn map_columns(&self, cell: impl Fn(&str) -> String) -> String {
        self.iter().map(|what| format!("{:>10}", cell(what))).collect()
    }
}
