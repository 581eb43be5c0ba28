//! What lies at an address of a process: a variable of a file, or a kind of memory.

use crate::maps::{self, Map};
use blazesym::SymType;
use blazesym::inspect::source::{Elf, Source};
use blazesym::inspect::{Inspector, SymInfo};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tare_machine::Root;

/// Files whose variables are looked up, at most: each is read whole.
const FILES_MAX: usize = 4;

/// Names for addresses of one process, in the same order; `all` is its memory as it was when they were seen.
pub(super) fn names(root: &Root, pid: u32, all: &[Map], addresses: &[u64]) -> Vec<String> {
    let mut in_files: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for &address in addresses {
        if let Some(path) = file_of(all, address) {
            in_files.entry(path).or_default().push(address);
        }
    }
    let mut named: BTreeMap<u64, String> = BTreeMap::new();
    for (path, wanted) in in_files.into_iter().take(FILES_MAX) {
        // As the process sees it; one that has ended saw it as we do, most likely.
        let seen = maps::file(root, pid, path);
        let file = if seen.exists() { seen } else { root.path(path) };
        let Some(base) = base_of(all, path, &file) else { continue };
        let wanted: Vec<u64> = wanted.iter().filter_map(|address| address.checked_sub(base)).collect();
        let found = variables(file, &wanted).into_iter();
        named.extend(found.map(|(at, name)| (at + base, format!("{name} in {path}"))));
    }
    let name = |address: &u64| named.remove(address).unwrap_or_else(|| unnamed(all, *address));
    addresses.iter().map(name).collect()
}

/// The file whose variables lie there. Those that begin as zeroes lie in memory without a file, right behind the file's.
fn file_of(all: &[Map], address: u64) -> Option<&str> {
    let place = maps::place(all, address)?;
    let here = all.get(place)?;
    let before = || {
        let before = all.get(place.checked_sub(1)?)?;
        (here.path.is_empty() && before.end == here.start).then_some(before)
    };
    let of = if here.path.is_empty() { before()? } else { here };
    of.path.starts_with('/').then_some(of.path.as_str())
}

/// How far a file's addresses are moved: 0 for a program at fixed addresses.
fn base_of(all: &[Map], path: &str, file: &Path) -> Option<u64> {
    let mut head = [0; 18];
    File::open(file).ok()?.read_exact(&mut head).ok()?;
    // `e_ident` and `e_type` of the ELF header, which is 3 (`ET_DYN`) for what can be moved.
    let is_elf = head.starts_with(b"\x7fELF");
    let moves = u16::from_ne_bytes([head[16], head[17]]) == 3;
    let first = all.iter().find(|map| map.path == path && map.offset == 0)?;
    is_elf.then_some(if moves { first.start } else { 0 })
}

/// The variables that lie at these addresses of a file.
fn variables(file: PathBuf, wanted: &[u64]) -> BTreeMap<u64, String> {
    let mut found: BTreeMap<u64, String> = BTreeMap::new();
    let mut look = |symbol: &SymInfo<'_>| {
        let size = symbol.size.unwrap_or(0).max(1) as u64;
        let holds = |at: &&u64| (symbol.addr..symbol.addr.saturating_add(size)).contains(*at);
        if symbol.sym_type == SymType::Variable {
            for &at in wanted.iter().filter(holds) {
                let behind = at - symbol.addr;
                let behind = if behind > 0 { format!("+{behind}") } else { String::new() };
                found.insert(at, format!("{}{behind}", symbol.name));
            }
        }
        ControlFlow::Continue(())
    };
    let source = Source::Elf(Elf { debug_syms: false, ..Elf::new(file) });
    // A file that cannot be read names nothing.
    let _ = Inspector::new().for_each(&source, &mut look);
    found
}

fn unnamed(all: &[Map], address: u64) -> String {
    let kind = maps::at(all, address).map(|of| of.path.as_str());
    match kind {
        Some("[heap]") => format!("heap at {address:#x}"),
        Some(path) if path.starts_with("[stack") => format!("stack at {address:#x}"),
        Some(path) if path.starts_with('/') => format!("{path} at {address:#x}"),
        Some(_) => format!("memory at {address:#x}"),
        None => format!("{address:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "55d0a0000000-55d0a0021000 r--p 00000000 fe:00 1234    /usr/sbin/app\n\
        55d0a0021000-55d0a0022000 rw-p 00020000 fe:00 1234                       /usr/sbin/app\n\
        55d0a0022000-55d0a0030000 rw-p 00000000 00:00 0 \n\
        55d0b0000000-55d0b0021000 rw-p 00000000 00:00 0                          [heap]\n\
        7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n";

    static LOCKED: [u64; 64] = [7; 64];

    #[test]
    fn an_address_lies_in_a_file_or_in_a_kind_of_memory() {
        let all = maps::parse(MAPS);
        let file = |address| file_of(&all, address);
        assert_eq!(file(0x55d0_a002_1010), Some("/usr/sbin/app"));
        assert_eq!(file(0x55d0_a002_2010), Some("/usr/sbin/app"));
        assert_eq!((file(0x55d0_b000_0010), file(0x7f00_0000_0010), file(0)), (None, None, None));
        assert_eq!(unnamed(&all, 0x55d0_b000_0010), "heap at 0x55d0b0000010");
        assert_eq!(unnamed(&all, 0x7f00_0000_0010), "memory at 0x7f0000000010");
        assert_eq!(unnamed(&all, 0x10), "0x10");
    }

    #[test]
    fn a_variable_of_ours_is_named() {
        let address = &raw const LOCKED as u64 + 16;
        let (root, own) = (Root::live(), std::process::id());
        let names = names(&root, own, &maps::read(&root, own), &[address, 1]);
        assert!(names[0].contains("LOCKED") && names[0].contains("+16 in /"), "{names:?}");
        assert_eq!(names[1], "0x1");
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_far_as_it_goes(text in "[0-9a-f\\- rw/\\n]{0,200}", address in any::<u64>()) {
            let all = maps::parse(&text);
            file_of(&all, address);
            unnamed(&all, address);
        }
    }
}
