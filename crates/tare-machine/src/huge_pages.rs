//! The pool of huge pages: what it holds, how many a program would need, and how that program must be started so that it takes them.

use crate::root::Root;
use crate::smaps::{Anonymous, Memory};
use crate::value;
use tare_model::Missing;

/// What must stay for everybody else once huge pages are taken: a tenth of the memory, and this at least.
const LEFT_BYTES_MIN: u64 = 256 << 20;
/// Pages beside those that the mappings need: for what an allocator keeps about its blocks, and what differs from run to run.
const SPARE_PAGES: u64 = 2;
/// Of so many pages one more is spare.
const SPARE_OF: u64 = 64;

/// A line of `/proc/meminfo`; sizes come as bytes.
pub(crate) fn meminfo(text: &str, name: &str) -> Result<u64, Missing> {
    let number = || {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim();
        match line.strip_suffix(" kB") {
            Some(kib) => kib.trim().parse::<u64>().ok()?.checked_mul(1024),
            None => line.parse().ok(),
        }
    };
    number().ok_or_else(|| Missing::new(format!("/proc/meminfo has no {name}")))
}

/// The pool of huge pages of the default size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Pages in it.
    pub total: u64,
    /// Pages that somebody has.
    pub used: u64,
    /// Size of one, bytes.
    pub page_bytes: u64,
    memory_bytes: u64,
    available_bytes: u64,
}

impl Pool {
    /// What `/proc/meminfo` says of it.
    ///
    /// # Errors
    /// This kernel has no huge pages, or the file makes no sense.
    pub fn read(root: &Root) -> Result<Pool, Missing> {
        let text = root.text("/proc/meminfo")?;
        let field = |name: &str| meminfo(&text, name);
        let page_bytes = field("Hugepagesize").map_err(|_| {
            Missing::with_remedy("this kernel has no huge pages", "transparent ones may do: --thp always")
        })?;
        let (total, free) = (field("HugePages_Total")?, field("HugePages_Free")?);
        if page_bytes == 0 || free > total {
            return Err(Missing::new("what /proc/meminfo says of huge pages makes no sense"));
        }
        let used = total - free;
        let (memory_bytes, available_bytes) = (field("MemTotal")?, field("MemAvailable")?);
        Ok(Pool { total, used, page_bytes, memory_bytes, available_bytes })
    }

    /// Bytes that `pages` take.
    pub fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.page_bytes)
    }

    /// How many pages hold `wanted_bytes`, unless too little would be left for the rest.
    pub(crate) fn pages_for(&self, wanted_bytes: u64) -> Result<u64, Missing> {
        let count = wanted_bytes.div_ceil(self.page_bytes);
        let page = value::bytes(self.page_bytes);
        if count < self.used {
            return Err(Missing::with_remedy(
                format!("{} huge pages of {page} are in use: the pool cannot shrink to {count}", self.used),
                "end the programs that use them first",
            ));
        }
        let more_bytes = self.bytes(count.saturating_sub(self.total));
        let left_bytes_min = (self.memory_bytes / 10).max(LEFT_BYTES_MIN);
        let free_bytes = self.available_bytes.saturating_sub(left_bytes_min);
        if more_bytes > free_bytes {
            let most = self.total + free_bytes / self.page_bytes;
            return Err(Missing::with_remedy(
                format!(
                    "{} are {count} huge pages of {page}, {} more than now: {} are available, of which {} must stay for \
                     everything else (a heap that no longer fits does not start)",
                    value::bytes(wanted_bytes),
                    value::bytes(more_bytes),
                    value::bytes(self.available_bytes),
                    value::bytes(left_bytes_min)
                ),
                format!("at most --huge-pages {}MiB ({most} pages)", self.bytes(most) >> 20),
            ));
        }
        Ok(count)
    }
}

/// How many pages of so many bytes hold the anonymous memory of a program, with some spare: of each mapping that fills a page at least all
/// of its length, since that is what the kernel reserves when it is mapped.
///
/// # Errors
/// No mapping fills a page: huge pages would hold nothing of it.
pub fn pages_of(memory: &Memory, page_bytes: u64) -> Result<u64, Missing> {
    let page_bytes = page_bytes.max(1);
    let large = memory.anonymous.iter().filter(|mapping| mapping.resident_bytes >= page_bytes);
    // One more each: an allocator's header in front of a block may begin another page.
    let pages = large.fold(0_u64, |pages, Anonymous { bytes, .. }| {
        pages.saturating_add(bytes.div_ceil(page_bytes)).saturating_add(1)
    });
    if pages == 0 {
        let largest = memory.anonymous.iter().map(|mapping| mapping.resident_bytes).max().unwrap_or(0);
        return Err(Missing::with_remedy(
            format!(
                "the program maps no memory that huge pages could hold: a page is {}, and its largest piece of memory is {}",
                value::bytes(page_bytes),
                value::bytes(largest)
            ),
            "huge pages help programs that use much memory; give a number of pages where it maps more later",
        ));
    }
    Ok(pages.saturating_add(SPARE_PAGES).saturating_add(pages / SPARE_OF))
}

/// What makes a program take its memory from the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asks {
    /// A variable of its environment that does it, where there is one, and what of its value it has to hold.
    pub variable: Option<(&'static str, &'static str)>,
    /// In words, for the user.
    pub words: &'static str,
}

/// How a program must be started, by the code that it executes.
pub fn asks(memory: &Memory) -> Asks {
    let runs = |part: &str| memory.code.iter().any(|file| file.starts_with(part));
    if runs("libjvm.so") {
        return Asks {
            variable: Some(("JAVA_TOOL_OPTIONS", "-XX:+UseLargePages")),
            words: "a JVM takes its heap from the pool with -XX:+UseLargePages: JAVA_TOOL_OPTIONS says so to it",
        };
    }
    if runs("postgres") {
        return Asks {
            variable: None,
            words: "PostgreSQL takes its buffers from the pool with huge_pages = on in postgresql.conf (try, the default, does so \
                    where the pool is large enough)",
        };
    }
    if runs("mysqld") || runs("mariadbd") {
        return Asks {
            variable: None,
            words: "MySQL and MariaDB take their buffers from the pool with large-pages in their configuration",
        };
    }
    if runs("libjemalloc") || runs("libtcmalloc") {
        return Asks {
            variable: None,
            words: "jemalloc and tcmalloc do not use the pool by themselves: thp=always gives them huge pages",
        };
    }
    if runs("libc.so.6") || runs("libc-2.") {
        return Asks {
            variable: Some(("GLIBC_TUNABLES", "glibc.malloc.hugetlb=2")),
            words: "malloc of glibc (2.35 and later) takes memory from the pool with glibc.malloc.hugetlb=2: GLIBC_TUNABLES says so \
                    to it",
        };
    }
    Asks {
        variable: None,
        words: "a program takes memory from the pool where it maps it with MAP_HUGETLB: nothing is known here that would make this one \
                do so",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn memory(mappings: &[(u64, u64)], code: &[&str]) -> Memory {
        let anonymous = |&(bytes, resident_bytes): &(u64, u64)| Anonymous { bytes, resident_bytes };
        Memory {
            anonymous: mappings.iter().map(anonymous).collect(),
            code: code.iter().map(|name| (*name).to_owned()).collect(),
            ..Memory::default()
        }
    }

    #[test]
    fn pages_are_for_what_fills_one() {
        // A gigabyte and a header; the small heap, and a stack of a thread of which little is used, stay where they are.
        let program =
            memory(&[(1024 * MIB + 4096, 1024 * MIB), (132 << 10, 100 << 10), (8 * MIB, 64 << 10)], &[]);
        assert_eq!(pages_of(&program, 2 * MIB), Ok(513 + 1 + 2 + 514 / 64));
        let small = memory(&[(132 << 10, 100 << 10), (8 * MIB, 64 << 10)], &[]);
        let missing = pages_of(&small, 2 * MIB).unwrap_err();
        assert!(missing.why.contains("a page is 2 MiB") && missing.why.contains("100 KiB"), "{missing:?}");
        assert!(pages_of(&memory(&[], &[]), 0).is_err());
        assert!(pages_of(&memory(&[(u64::MAX, u64::MAX); 3], &[]), 1).is_ok());
    }

    #[test]
    fn what_a_program_needs_follows_from_its_code() {
        let variable = |code: &[&str]| asks(&memory(&[], code)).variable.map(|(name, _)| name);
        assert_eq!(variable(&["java", "libc.so.6", "libjvm.so"]), Some("JAVA_TOOL_OPTIONS"));
        assert_eq!(variable(&["chase", "libc.so.6"]), Some("GLIBC_TUNABLES"));
        assert_eq!(variable(&["redis-server", "libc.so.6", "libjemalloc.so.2"]), None);
        assert_eq!(variable(&["postgres", "libc.so.6"]), None);
        assert_eq!(variable(&["static"]), None);
    }
}
