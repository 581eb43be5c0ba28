//! Loads whose address is the result of the load before: the time of one is the latency of where its data are.
//!
//! The buffer is gone through window by window, each small enough for the translation buffer of every core of
//! the last ten years, in an order within it that no prefetcher guesses: what is measured is the cache or the
//! memory, not the page tables. Of every [`BLOCK_BYTES`] one line is used, a different one each time, so that the
//! prefetcher of neighbouring lines brings nothing useful and the lines spread over all sets of a cache.

/// Bytes of which one cache line is used.
pub const BLOCK_BYTES: usize = LINES * LINE_BYTES;
/// Loads in a window.
pub const WINDOW_LOADS: usize = WINDOW_BYTES / BLOCK_BYTES;
/// 64 pages of 4 KiB.
const WINDOW_BYTES: usize = 256 << 10;
const PAGE_BYTES: usize = 4 << 10;
const LINE_BYTES: usize = 64;
const LINES: usize = 4;
const WORDS: usize = LINE_BYTES / size_of::<usize>();

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    next: *const Line,
    _rest: [usize; WORDS - 1],
}

/// A buffer with a way through it.
pub struct Chase {
    /// Never touched but through the pointers in it, once they are there.
    memory: Vec<[Line; LINES]>,
    /// The first line of each window, in the order of the way.
    starts: Vec<*const Line>,
}

// SAFETY: the pointers lead into the buffer that this owns, whose heap memory stays where it is when the owner
// moves; nothing else has them, and nothing writes through them.
unsafe impl Send for Chase {}

impl Chase {
    /// A way through `bytes` (rounded up to a whole block, at most 1 GiB) of fresh memory.
    pub fn new(bytes: usize) -> Chase {
        let blocks = bytes.clamp(1, 1 << 30).div_ceil(BLOCK_BYTES);
        let empty = [Line { next: std::ptr::null(), _rest: [0; WORDS - 1] }; LINES];
        let mut memory = vec![empty; blocks];
        let base = memory.as_mut_ptr();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut starts = Vec::new();
        let mut order: Vec<*mut Line> = Vec::with_capacity(WINDOW_LOADS);
        for first in (0..blocks).step_by(WINDOW_LOADS) {
            order.clear();
            for block in first..blocks.min(first + WINDOW_LOADS) {
                // SAFETY: `block` < `blocks`, the length of the allocation that `base` begins, and the line is one of
                // the `LINES` in it.
                order.push(unsafe { base.add(block).cast::<Line>().add(used_line(block)) });
            }
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            for (at, &line) in order.iter().enumerate() {
                // A window is a ring: it can be gone through again.
                let next = order[(at + 1) % order.len()];
                // SAFETY: `line` was made above from the allocation, to which nobody else refers.
                unsafe { (*line).next = next };
            }
            starts.push(order[0].cast_const());
        }
        Chase { memory, starts }
    }

    /// How many windows there are.
    pub fn windows(&self) -> usize {
        self.starts.len()
    }

    /// How many loads go once round a window.
    pub fn window_loads(&self) -> usize {
        self.memory.len().min(WINDOW_LOADS)
    }

    /// `loads` dependent loads in window `window` (taken modulo their number), rounded up to a multiple of 16.
    #[inline(never)]
    pub fn run(&self, window: usize, loads: usize) {
        let mut at = self.starts[window % self.starts.len()];
        for _ in 0..loads.div_ceil(16) {
            // Unrolled, so that the counting of the loop hides behind the loads even where they take 4 cycles.
            for _ in 0..16 {
                // SAFETY: every line that the way leads to is in `memory`, which lives as long as `self`, and holds a
                // pointer to another such line; volatile, so that each load happens, in this order.
                at = unsafe { std::ptr::read_volatile(&raw const (*at).next) };
            }
        }
        std::hint::black_box(at);
    }

    /// Brings the pages of a window (taken modulo their number) into the translation buffer, but none of the lines
    /// that are used.
    pub fn touch_pages(&self, window: usize) {
        for (block, lines) in self.blocks(window).step_by(PAGE_BYTES / BLOCK_BYTES) {
            // In the other half of the block: processors fetch lines in pairs.
            std::hint::black_box(lines[used_line(block) ^ 2]._rest[0]);
        }
    }

    /// Drives the lines of a window (taken modulo their number) out of every cache; `false` where a program may not.
    pub fn flush(&self, window: usize) -> bool {
        self.blocks(window).all(|(block, lines)| flush_line(&lines[used_line(block)])) && fence()
    }

    fn blocks(&self, window: usize) -> impl Iterator<Item = (usize, &[Line; LINES])> {
        let first = window % self.starts.len() * WINDOW_LOADS;
        (first..self.memory.len().min(first + WINDOW_LOADS)).map(|block| (block, &self.memory[block]))
    }
}

/// Which line of a block is used: not by a regular stride (Fibonacci hashing).
fn used_line(block: usize) -> usize {
    ((block as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as usize
}

#[cfg(target_arch = "x86_64")]
fn flush_line(line: &Line) -> bool {
    // SAFETY: CLFLUSH of an address of a live object changes no data; every x86-64 processor has it.
    unsafe { std::arch::x86_64::_mm_clflush(std::ptr::from_ref(line).cast()) };
    true
}

#[cfg(target_arch = "x86_64")]
fn fence() -> bool {
    // SAFETY: only waits for what was flushed.
    unsafe { std::arch::x86_64::_mm_mfence() };
    true
}

#[cfg(target_arch = "aarch64")]
fn flush_line(line: &Line) -> bool {
    // SAFETY: cleaning and invalidating the line of a live object changes no data; Linux lets user space do it.
    unsafe { std::arch::asm!("dc civac, {}", in(reg) std::ptr::from_ref(line), options(nostack)) };
    true
}

#[cfg(target_arch = "aarch64")]
fn fence() -> bool {
    // SAFETY: only waits for what was flushed.
    unsafe { std::arch::asm!("dsb ish", options(nostack)) };
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn flush_line(_line: &Line) -> bool {
    false
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn fence() -> bool {
    false
}

/// xorshift64*: a fixed order, without a library.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_window_is_one_ring_through_all_its_blocks() {
        for bytes in [1, 16 << 10, 300 << 10, 1 << 20] {
            let chase = Chase::new(bytes);
            let blocks = bytes.div_ceil(BLOCK_BYTES);
            let mut seen = HashSet::new();
            for &start in &chase.starts {
                let mut at = start;
                loop {
                    assert!(seen.insert(at), "a line twice");
                    // SAFETY: as in `run`.
                    at = unsafe { (*at).next };
                    if at == start {
                        break;
                    }
                }
            }
            assert_eq!(seen.len(), blocks);
            assert_eq!(chase.windows(), blocks.div_ceil(WINDOW_LOADS));
            chase.run(chase.windows(), 100);
        }
    }

    #[test]
    fn what_was_flushed_is_still_there() {
        let chase = Chase::new(1 << 20);
        chase.touch_pages(3);
        chase.run(1, chase.window_loads());
        if chase.flush(1) {
            chase.run(1, chase.window_loads());
        }
    }
}
