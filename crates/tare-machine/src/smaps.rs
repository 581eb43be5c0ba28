//! The memory of a process, mapping by mapping: what of it is in huge pages, and what could be (`/proc/PID/smaps`, proc(5)).
//!
//! To read it the kernel walks the page tables of the process, which waits meanwhile: some milliseconds for a gigabyte in small pages.

use crate::root::Root;
use tare_model::Missing;

/// What a process has mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in transparent huge pages of anonymous memory (`AnonHugePages`).
    pub transparent_bytes: u64,
    /// Bytes in pages of the pool (`Private_Hugetlb` and `Shared_Hugetlb`).
    pub pool_bytes: u64,
    /// The largest page that a mapping with memory in it is made of, bytes (`KernelPageSize`).
    pub page_bytes: u64,
    /// Anonymous memory that it may write, one entry a mapping, but for stacks.
    pub anonymous: Vec<Anonymous>,
    /// Names of the files that it executes from: `libc.so.6`, `libjvm.so`.
    pub code: Vec<String>,
}

/// A mapping without a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anonymous {
    /// Its length, bytes.
    pub bytes: u64,
    /// What of it is in memory, bytes, in pages of whatever size.
    pub resident_bytes: u64,
}

/// Reads what a process has mapped now.
///
/// # Errors
/// It is gone, or another user's.
pub fn read(root: &Root, pid: u32) -> Result<Memory, Missing> {
    let text = root.text(format!("/proc/{pid}/smaps"))?;
    match text.is_empty() {
        true => Err(Missing::new(format!("process {pid} has ended: it has no memory any more"))),
        false => Ok(parse(&text)),
    }
}

/// A mapping while its lines are read.
#[derive(Default)]
struct Mapping<'t> {
    permissions: &'t str,
    name: &'t str,
    bytes: u64,
    resident_bytes: u64,
    page_bytes: u64,
}

/// What the lines of `/proc/PID/smaps` say; lines that make no sense say nothing.
pub fn parse(text: &str) -> Memory {
    let mut memory = Memory::default();
    let mut mapping = Mapping::default();
    for line in text.lines() {
        if let Some(begun) = begins(line) {
            memory.add(&std::mem::replace(&mut mapping, begun));
            continue;
        }
        let Some((field, bytes)) = field(line) else { continue };
        match field {
            "Size" => mapping.bytes = bytes,
            "Rss" => mapping.resident_bytes = mapping.resident_bytes.saturating_add(bytes),
            "KernelPageSize" => mapping.page_bytes = bytes,
            "AnonHugePages" => memory.transparent_bytes = memory.transparent_bytes.saturating_add(bytes),
            "Private_Hugetlb" | "Shared_Hugetlb" => {
                memory.pool_bytes = memory.pool_bytes.saturating_add(bytes);
                // They are not in `Rss`.
                mapping.resident_bytes = mapping.resident_bytes.saturating_add(bytes);
            }
            _ => {}
        }
    }
    memory.add(&mapping);
    memory
}

/// `7f10c4e00000-7f1104e00000 rw-p 00000000 00:00 0   [heap]`.
fn begins(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    u64::from_str_radix(from, 16).ok()?;
    u64::from_str_radix(to, 16).ok()?;
    let permissions = fields.next()?;
    let name = fields.nth(3).unwrap_or_default().trim();
    Some(Mapping { permissions, name, ..Mapping::default() })
}

/// `Rss:   1048576 kB`.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((name, kib.checked_mul(1024)?))
}

impl Memory {
    fn add(&mut self, mapping: &Mapping<'_>) {
        if mapping.resident_bytes > 0 {
            self.page_bytes = self.page_bytes.max(mapping.page_bytes);
        }
        let has_no_file =
            mapping.name.is_empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon");
        if has_no_file && mapping.permissions.starts_with("rw") && mapping.permissions.ends_with('p') {
            self.anonymous.push(Anonymous { bytes: mapping.bytes, resident_bytes: mapping.resident_bytes });
        }
        if mapping.permissions.contains('x') && mapping.name.starts_with('/') {
            let file = mapping.name.trim_end_matches(" (deleted)").rsplit('/').next().unwrap_or_default();
            if !self.code.iter().any(|known| known == file) {
                self.code.push(file.to_owned());
            }
        }
    }

    /// This and what another process has.
    #[must_use]
    pub fn and(mut self, other: Memory) -> Memory {
        self.transparent_bytes = self.transparent_bytes.saturating_add(other.transparent_bytes);
        self.pool_bytes = self.pool_bytes.saturating_add(other.pool_bytes);
        self.page_bytes = self.page_bytes.max(other.page_bytes);
        self.anonymous.extend(other.anonymous);
        self.code.extend(other.code);
        self.code.sort();
        self.code.dedup();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
55d0e6a00000-55d0e6a01000 r-xp 00001000 fe:00 12  /usr/bin/my program (deleted)
Size:                  4 kB
KernelPageSize:        4 kB
Rss:                   4 kB
55d0e7c00000-55d0e7c21000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
KernelPageSize:        4 kB
Rss:                  12 kB
AnonHugePages:         0 kB
7f10c4e00000-7f1104e00000 rw-p 00000000 00:00 0 
Size:            1048576 kB
KernelPageSize:        4 kB
Rss:             1048576 kB
AnonHugePages:   1046528 kB
VmFlags: rd wr mr mw me ac hg
7f1110000000-7f1118000000 rw-p 00000000 00:10 7                          /anon_hugepage (deleted)
Size:             131072 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
Private_Hugetlb:   65536 kB
7f1120000000-7f1120200000 r-xp 00000000 fe:00 9                          /lib/x86_64-linux-gnu/libc.so.6
Size:               2048 kB
Rss:                 900 kB
7ffe84b8a000-7ffe84bab000 rw-p 00000000 00:00 0                          [stack]
Size:                132 kB
Rss:                  16 kB
";

    #[test]
    fn memory_in_huge_pages_is_known_from_other() {
        let memory = parse(TEXT);
        assert_eq!(memory.transparent_bytes, 1_046_528 << 10);
        assert_eq!((memory.pool_bytes, memory.page_bytes), (64 << 20, 2 << 20));
        let [heap, large] = memory.anonymous[..] else { panic!("{memory:?}") };
        assert_eq!(heap, Anonymous { bytes: 132 << 10, resident_bytes: 12 << 10 });
        assert_eq!(large, Anonymous { bytes: 1 << 30, resident_bytes: 1 << 30 });
        assert_eq!(memory.code, ["my program", "libc.so.6"]);
        let both = memory.clone().and(memory.clone());
        assert_eq!((both.pool_bytes, both.code.len()), (128 << 20, 2));
    }

    #[test]
    fn our_own_memory_is_read() {
        let memory = read(&Root::live(), std::process::id()).unwrap();
        assert!(memory.page_bytes >= 4096 && !memory.anonymous.is_empty(), "{memory:?}");
        assert!(read(&Root::live(), u32::MAX).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,300}", cut in 0..TEXT.len()) {
            parse(&text);
            if let Some(cut) = TEXT.get(..cut) {
                prop_assert!(parse(cut).transparent_bytes <= 1_046_528 << 10);
            }
        }
    }
}
