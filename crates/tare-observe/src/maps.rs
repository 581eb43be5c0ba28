//! Which file an address of a process lies in.

use std::path::PathBuf;
use tare_machine::Root;

/// Executable memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where in the file it begins.
    pub(super) offset: u64,
    /// Path, or a word like `[vdso]`; empty for memory without a file.
    pub(super) path: String,
}

/// The executable memory of a process, ascending; nothing where it is gone.
pub(super) fn read(root: &Root, pid: u32) -> Vec<Map> {
    let text = std::fs::read_to_string(root.path(format!("/proc/{pid}/maps"))).unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Vec<Map> {
    let line = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let mut words = rest.splitn(5, ' ');
        let permissions = words.next()?;
        let offset = words.next()?;
        let path = words.nth(2).unwrap_or_default().trim();
        let number = |text| u64::from_str_radix(text, 16).ok();
        let map =
            Map { start: number(start)?, end: number(end)?, offset: number(offset)?, path: path.into() };
        permissions.contains('x').then_some(map)
    };
    text.lines().filter_map(line).collect()
}

/// The memory that an address lies in.
pub(super) fn at(maps: &[Map], address: u64) -> Option<&Map> {
    let after = maps.partition_point(|map| map.start <= address);
    maps.get(after.checked_sub(1)?).filter(|map| address < map.end)
}

/// Where the file can be opened from here: as its process sees it.
pub(super) fn file(root: &Root, pid: u32, path: &str) -> PathBuf {
    root.path(format!("/proc/{pid}/root{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "55d0a0000000-55d0a0021000 r--p 00000000 fe:00 1234    /usr/sbin/a b\n\
        55d0a0021000-55d0a00f0000 r-xp 00021000 fe:00 1234                       /usr/sbin/a b (deleted)\n\
        7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n\
        7ffd5a9f0000-7ffd5a9f2000 r-xp 00000000 00:00 0                          [vdso]\n";

    #[test]
    fn executable_memory_is_found_by_address() {
        let maps = parse(MAPS);
        assert_eq!((maps.len(), maps[0].offset), (3, 0x21000));
        let path = |address| at(&maps, address).map(|map| map.path.as_str());
        assert_eq!(path(0x55d0_a002_1000), Some("/usr/sbin/a b (deleted)"));
        assert_eq!(path(0x55d0_a00e_ffff), Some("/usr/sbin/a b (deleted)"));
        assert_eq!(path(0x7f00_0000_0010), Some(""));
        assert_eq!(path(0x7ffd_5a9f_0000), Some("[vdso]"));
        assert_eq!((path(0), path(0x55d0_a00f_0000), path(u64::MAX)), (None, None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_far_as_it_goes(text in "[0-9a-f\\- rx/\\n]{0,200}", address in any::<u64>()) {
            at(&parse(&text), address);
        }
    }
}
