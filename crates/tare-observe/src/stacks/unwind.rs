//! Callers of code that keeps no frame pointers: copies of user stacks, unwound by `framehop` after the window from the
//! tables that every program has for its exceptions (`.eh_frame`).

use super::counts::Counts;
use crate::maps::{self, Map};
use crate::watch::Unwind;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Object as _, ObjectSection as _};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tare_machine::Root;
use tare_model::Missing;
use tare_sys::perf::{Frame, Sample};

/// What is copied of each stack: as `perf record --call-graph dwarf` does.
pub(super) const STACK_BYTES: u32 = 8192;
/// All copies of a window, at most.
const BYTES_MAX: usize = 256 << 20;
/// Frames of a stack, at most.
const FRAMES_MAX: usize = 256;
/// A file beyond this is not read for its tables.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Numbers of registers in `asm/perf_regs.h` of x86.
const BP: u32 = 6;
const SP: u32 = 7;
const IP: u32 = 8;

/// Copies of stacks.
#[derive(Debug, Default)]
pub(super) struct Copies {
    bytes: usize,
    all: Vec<Copy>,
}

#[derive(Debug)]
struct Copy {
    pid: u32,
    tid: u32,
    kernel: Vec<Frame>,
    /// The program's side as the kernel walked it, by frame pointers.
    walked: Vec<Frame>,
    /// Instruction, stack and base pointer.
    registers: Option<[u64; 3]>,
    stack: Box<[u8]>,
}

/// Unwinding of one process.
struct Unwinder {
    unwinder: UnwinderX86_64<Section>,
    cache: CacheX86_64,
}

/// A process whose stacks are unwound, and its code, ascending.
struct Process {
    unwinder: Unwinder,
    code: Vec<Map>,
}

/// A chain as the tables have it.
#[derive(Debug, Default)]
struct Unwound {
    /// Instruction pointer, then return addresses.
    frames: Vec<u64>,
    /// Its last is a function that nobody called: what starts a thread.
    is_whole: bool,
}

type Section = Arc<[u8]>;

/// What unwinding needs of a file.
#[derive(Clone)]
struct Tables {
    /// Where its segments with code lie in the file and in memory: offset, bytes, address.
    segments: Vec<(u64, u64, u64)>,
    sections: HashMap<&'static str, (std::ops::Range<u64>, Section)>,
}

/// Whether this machine can unwind so.
pub(super) fn can(_: Unwind) -> Result<(), Missing> {
    Ok(())
}

impl Copies {
    pub(super) fn clear(&mut self) {
        *self = Copies::default();
    }

    /// Keeps what a sample holds; false when there is no room for it.
    pub(super) fn keep(&mut self, sample: &Sample) -> bool {
        if self.bytes + sample.stack.len() > BYTES_MAX {
            return false;
        }
        self.bytes += sample.stack.len();
        let registers = sample.registers.and_then(|all| Some([all.get(IP)?, all.get(SP)?, all.get(BP)?]));
        let (kernel, others): (Vec<Frame>, Vec<Frame>) =
            sample.chain.frames().partition(|frame| matches!(frame, Frame::Kernel(_)));
        let walked = others.into_iter().filter(|frame| matches!(frame, Frame::User(_)));
        self.all.push(Copy {
            pid: sample.pid,
            tid: sample.tid,
            kernel,
            walked: walked.collect(),
            registers,
            stack: sample.stack.into(),
        });
        true
    }

    /// Unwinds all of them, while their processes live, and counts the chains. Those whose turn has not come by then are lost.
    pub(super) fn unwind(&mut self, counts: &mut Counts, root: &Root, until: Instant) {
        let mut tables: HashMap<String, Option<Tables>> = HashMap::new();
        let mut processes: HashMap<u32, Process> = HashMap::new();
        for copy in std::mem::take(self).all {
            if Instant::now() >= until {
                counts.lost = counts.lost.saturating_add(1);
                continue;
            }
            let process = processes.entry(copy.pid).or_insert_with(|| {
                let code = maps::executable(root, copy.pid);
                let unwinder = Unwinder::new(&code, |path| {
                    let known = tables.entry(path.to_owned());
                    let read = || (Instant::now() < until).then(|| Tables::read(root, copy.pid, path));
                    known.or_insert_with(|| read().flatten()).clone()
                });
                Process { unwinder, code }
            });
            let frames = |registers| process.unwinder.frames(registers, &copy.stack);
            let unwound = copy.registers.map(frames).unwrap_or_default();
            let user = callers(unwound, copy.walked, &process.code);
            counts.add(copy.pid, copy.tid, false, copy.kernel.into_iter().chain(user), 1);
        }
    }
}

/// The program's side of a stack: as it was unwound by tables; or, where that did not come to the first caller, as the kernel walked it by
/// frame pointers, if that is longer and leads nowhere but to code. (Go has no tables and reads the clock on another stack, which frame
/// pointers lead back from. Where code keeps no frame pointers, what is walked is any words of the stack.)
fn callers(unwound: Unwound, walked: Vec<Frame>, code: &[Map]) -> Vec<Frame> {
    let is_code = |frame: &Frame| match frame {
        // A return address stands behind its call, which may be the last of the mapping.
        Frame::User(address) => {
            maps::at(code, *address).is_some() || maps::at(code, address.saturating_sub(1)).is_some()
        }
        Frame::Kernel(_) => false,
    };
    let is_longer = !unwound.is_whole && walked.len() > unwound.frames.len();
    match is_longer && walked.iter().all(is_code) {
        true => walked,
        false => unwound.frames.into_iter().map(Frame::User).collect(),
    }
}

impl Unwinder {
    fn new(maps: &[Map], mut tables: impl FnMut(&str) -> Option<Tables>) -> Unwinder {
        let mut unwinder = UnwinderX86_64::new();
        for map in maps.iter().filter(|map| map.path.starts_with('/')) {
            let Some(tables) = tables(&map.path) else { continue };
            let Some(base) = tables.base(map) else { continue };
            let section = |name: &str| tables.sections.get(name).cloned();
            let range = |name: &str| section(name).map(|(range, _)| range);
            let data = |name: &str| section(name).map(|(_, data)| data);
            let info = ExplicitModuleSectionInfo {
                text_svma: range(".text"),
                got_svma: range(".got"),
                eh_frame_svma: range(".eh_frame"),
                eh_frame: data(".eh_frame"),
                eh_frame_hdr_svma: range(".eh_frame_hdr"),
                eh_frame_hdr: data(".eh_frame_hdr"),
                ..ExplicitModuleSectionInfo::default()
            };
            unwinder.add_module(Module::new(map.path.clone(), map.start..map.end, base, info));
        }
        Unwinder { unwinder, cache: CacheX86_64::new() }
    }

    /// Instruction pointer, then return addresses, as far as the copy of the stack reaches.
    fn frames(&mut self, [ip, sp, bp]: [u64; 3], stack: &[u8]) -> Unwound {
        let mut word = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(drop)?;
            let bytes = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            bytes.try_into().map(u64::from_ne_bytes).map_err(drop)
        };
        let registers = UnwindRegsX86_64::new(ip, sp, bp);
        let mut iter = self.unwinder.iter_frames(ip, registers, &mut self.cache, &mut word);
        let mut unwound = Unwound::default();
        while unwound.frames.len() < FRAMES_MAX {
            match iter.next() {
                Ok(Some(frame)) => unwound.frames.push(frame.address()),
                Ok(None) => {
                    unwound.is_whole = true;
                    break;
                }
                Err(_) => break,
            }
        }
        unwound
    }
}

impl Tables {
    fn read(root: &Root, pid: u32, path: &str) -> Option<Tables> {
        let file = maps::file(root, pid, path);
        if !std::fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX) {
            return None;
        }
        Tables::parse(&std::fs::read(file).ok()?)
    }

    fn parse(bytes: &[u8]) -> Option<Tables> {
        let elf: ElfFile64 = ElfFile64::parse(bytes).ok()?;
        let endian = elf.endian();
        let segments = elf.elf_program_headers().iter();
        let segments = segments
            .filter(|segment| {
                segment.p_type(endian) == object::elf::PT_LOAD
                    && (segment.p_flags(endian) & object::elf::PF_X).0 != 0
            })
            .map(|segment| (segment.p_offset(endian), segment.p_filesz(endian), segment.p_vaddr(endian)))
            .collect();
        let section = |name: &'static str| {
            let section = elf.section_by_name(name)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            // Of the code only the place is asked for.
            let data = if name == ".text" { &[] } else { section.data().ok()? };
            Some((name, (range, Section::from(data))))
        };
        let sections = [".text", ".got", ".eh_frame", ".eh_frame_hdr"].into_iter().filter_map(section);
        Some(Tables { segments, sections: sections.collect() })
    }

    /// What is added to the file's own addresses in this mapping of it.
    fn base(&self, map: &Map) -> Option<u64> {
        let inside = |(offset, bytes, _): &&(u64, u64, u64)| {
            // A segment is mapped from the page that it begins in.
            map.offset >= offset & !0xfff && map.offset < offset.saturating_add(*bytes)
        };
        let (offset, _, address) = self.segments.iter().find(inside)?;
        Some(map.start.wrapping_sub(address.wrapping_add(map.offset).wrapping_sub(*offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ourselves: a copy of the stack of this thread is where we know the callers of.
    #[test]
    fn a_file_has_tables_and_a_base() {
        let maps = maps::executable(&Root::live(), std::process::id());
        let own = std::env::current_exe().unwrap();
        let map = maps.iter().find(|map| map.path == own.to_string_lossy()).unwrap();
        let tables = Tables::read(&Root::live(), std::process::id(), &map.path).unwrap();
        assert!(tables.sections.contains_key(".eh_frame") && tables.sections.contains_key(".eh_frame_hdr"));
        let base = tables.base(map).unwrap();
        assert_eq!(base % 4096, 0);
        let (text, _) = &tables.sections[".text"];
        assert!(map.start <= base + text.start && base + text.end <= map.end, "{base:x} {text:x?} {map:x?}");
    }

    #[test]
    fn frame_pointers_are_followed_only_where_tables_end_and_code_is_what_they_lead_to() {
        let map =
            |start: u64| Map { start, end: start + 0x1000, offset: 0, path: String::new(), is_code: true };
        let code = [map(0x1000), map(0x8000)];
        let user = |all: &[u64]| all.iter().map(|address| Frame::User(*address)).collect::<Vec<Frame>>();
        let chain = |is_whole, unwound: &[u64], walked: &[u64]| {
            callers(Unwound { frames: unwound.to_vec(), is_whole }, user(walked), &code)
        };
        let (short, long) = ([0x1010, 0x1020], [0x1010, 0x8020, 0x8030, 0x9000]);
        // The tables came to where the thread starts: words that were taken for frame pointers say nothing.
        assert_eq!(chain(true, &short, &long), user(&short));
        // They did not, and the other way leads through code alone: the last one's call is the last of its mapping.
        assert_eq!(chain(false, &short, &long), user(&long));
        // It leads through the heap.
        assert_eq!(chain(false, &short, &[0x1010, 0x8020, 0x7000_0000]), user(&short));
        assert_eq!(chain(false, &long, &short), user(&long));
    }

    #[test]
    fn what_there_is_no_time_for_is_lost_and_counted() {
        let copy = || Copy {
            pid: std::process::id(),
            tid: 1,
            kernel: Vec::new(),
            walked: Vec::new(),
            registers: None,
            stack: Box::default(),
        };
        let mut copies = Copies { bytes: 0, all: vec![copy(), copy()] };
        let mut counts = Counts::default();
        copies.unwind(&mut counts, &Root::live(), Instant::now());
        assert_eq!((counts.lost, counts.iter().count()), (2, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn no_file_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..4000) {
            Tables::parse(&bytes);
            let own = std::fs::read("/proc/self/exe").unwrap();
            if let Some(tables) = Tables::parse(&own[..cut.min(own.len())]) {
                tables.base(&Map { start: 0, end: u64::MAX, offset: u64::MAX, path: String::new(), is_code: true });
            }
        }

        #[test]
        fn no_stack_makes_it_panic(
            registers in any::<[u64; 3]>(),
            stack in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let tables = Tables::read(&Root::live(), std::process::id(), "/proc/self/exe");
            let maps = maps::executable(&Root::live(), std::process::id());
            let mut unwinder = Unwinder::new(&maps, |_| tables.clone());
            prop_assert!(unwinder.frames(registers, &stack).frames.len() <= FRAMES_MAX);
        }
    }
}
