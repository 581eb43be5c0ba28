//! Which file an address of a process lies in.

use std::path::PathBuf;
use tare_machine::Root;

/// A stretch of a process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// Path, or a word like `[vdso]`; empty for memory without a file.
    pub(crate) path: String,
    /// Whether it can be executed.
    pub(crate) is_code: bool,
}

/// The executable memory of a process, ascending; nothing where it is gone.
pub(crate) fn executable(root: &Root, pid: u32) -> Vec<Map> {
    read(root, pid).into_iter().filter(|map| map.is_code).collect()
}

/// The memory of a process, ascending; nothing where it is gone.
pub(crate) fn read(root: &Root, pid: u32) -> Vec<Map> {
    let text = std::fs::read_to_string(root.path(format!("/proc/{pid}/maps"))).unwrap_or_default();
    parse(&text)
}

pub(crate) fn parse(text: &str) -> Vec<Map> {
    let line = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let mut words = rest.splitn(5, ' ');
        let permissions = words.next()?;
        let offset = words.next()?;
        let path = words.nth(2).unwrap_or_default().trim();
        let number = |text| u64::from_str_radix(text, 16).ok();
        let is_code = permissions.contains('x');
        Some(Map {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            path: path.into(),
            is_code,
        })
    };
    text.lines().filter_map(line).collect()
}

/// The memory that an address lies in.
pub(crate) fn at(maps: &[Map], address: u64) -> Option<&Map> {
    place(maps, address).and_then(|place| maps.get(place))
}

/// The place of the memory that an address lies in.
pub(crate) fn place(maps: &[Map], address: u64) -> Option<usize> {
    let after = maps.partition_point(|map| map.start <= address);
    let place = after.checked_sub(1)?;
    maps.get(place).filter(|map| address < map.end).map(|_| place)
}

/// Where the file can be opened from here: as its process sees it.
pub(crate) fn file(root: &Root, pid: u32, path: &str) -> PathBuf {
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
    fn memory_is_found_by_address() {
        let maps = parse(MAPS);
        assert_eq!((maps.len(), maps[1].offset), (4, 0x21000));
        assert_eq!(maps.iter().filter(|map| map.is_code).count(), 3);
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
