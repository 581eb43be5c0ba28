//! Records of a sampling ring, from bytes to values. Nothing here trusts a length that a record claims.

use super::detail::Detail;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// A number in a call chain from here on up is no address: it says whose addresses follow (`PERF_CONTEXT_MAX`).
const CONTEXT_FIRST: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CONTEXT_USER: u64 = -512i64 as u64;

/// One record, borrowed from the ring for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// An event that was sampled.
    Sample(Sample<'a>),
    /// So many records did not fit into the ring.
    Lost(u64),
    /// A kind that is not read, or a record that contradicts itself.
    Other,
}

/// A sampled event: always who, when and where; the rest as asked for in [`Detail`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Instruction pointer.
    pub ip: u64,
    /// Process that ran.
    pub pid: u32,
    /// Thread that ran, as our PID namespace numbers it; 0 is the idle task, `u32::MAX` one in its last switch.
    pub tid: u32,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// Return addresses, innermost first.
    pub chain: Chain<'a>,
    /// A tracepoint's own bytes; [`super::Field`] reads them. Empty unless asked for.
    pub raw: &'a [u8],
    /// Registers in user space; `None` where not asked for, or for a kernel thread.
    pub registers: Option<Registers<'a>>,
    /// The user stack from the stack pointer upwards, as far as it was copied.
    pub stack: &'a [u8],
}

/// A call chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chain<'a> {
    words: &'a [u8],
}

/// One entry of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// An address in the kernel.
    Kernel(u64),
    /// An address in the program.
    User(u64),
}

impl<'a> Chain<'a> {
    /// Addresses, innermost first: those of the kernel, then those of the program.
    pub fn frames(self) -> impl Iterator<Item = Frame> + 'a {
        let mut in_kernel = false;
        words(self.words).filter_map(move |word| {
            if word >= CONTEXT_FIRST {
                in_kernel = match word {
                    CONTEXT_KERNEL => true,
                    CONTEXT_USER => false,
                    _ => in_kernel,
                };
                return None;
            }
            Some(if in_kernel { Frame::Kernel(word) } else { Frame::User(word) })
        })
    }
}

/// User registers that were sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers<'a> {
    mask: u64,
    words: &'a [u8],
}

impl Registers<'_> {
    /// The register with this number in `asm/perf_regs.h`; `None` where it was not sampled.
    pub fn get(self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number)?;
        let before = (self.mask & (bit - 1)).count_ones() as usize;
        if self.mask & bit == 0 { None } else { words(self.words).nth(before) }
    }
}

/// Reads the body of a record (what stands behind its header of 8 bytes).
pub(super) fn parse<'a>(kind: u32, body: &'a [u8], detail: &Detail) -> Record<'a> {
    let parsed = match kind {
        SAMPLE => parse_sample(Bytes(body), detail).map(Record::Sample),
        LOST => parse_lost(Bytes(body)),
        _ => None,
    };
    parsed.unwrap_or(Record::Other)
}

/// The order of the parts is that of `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`.
fn parse_sample<'a>(mut bytes: Bytes<'a>, detail: &Detail) -> Option<Sample<'a>> {
    let mut sample = Sample {
        ip: bytes.word()?,
        pid: bytes.half()?,
        tid: bytes.half()?,
        time_ns: bytes.word()?,
        ..Sample::default()
    };
    if detail.chain_max > 0 {
        let count = usize::try_from(bytes.word()?).ok()?;
        sample.chain = Chain { words: bytes.take(count.checked_mul(8)?)? };
    }
    if detail.raw {
        let count = bytes.half()?;
        sample.raw = bytes.take(count as usize)?;
    }
    let mask = detail.registers();
    if mask != 0 && bytes.word()? != 0 {
        sample.registers = Some(Registers { mask, words: bytes.take(mask.count_ones() as usize * 8)? });
    }
    if detail.stack_bytes > 0 {
        let copied = usize::try_from(bytes.word()?).ok()?;
        if copied > 0 {
            let stack = bytes.take(copied)?;
            let filled = usize::try_from(bytes.word()?).ok()?;
            sample.stack = stack.get(..filled.min(copied))?;
        }
    }
    Some(sample)
}

fn parse_lost<'a>(mut bytes: Bytes) -> Option<Record<'a>> {
    bytes.word()?;
    bytes.word().map(Record::Lost)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
}

/// What is left to read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(body: &mut Vec<u8>, words: &[u64]) {
        words.iter().for_each(|word| body.extend(word.to_ne_bytes()));
    }

    /// pid 7, tid 8 at time 99.
    const WHO: u64 = 7 | 8 << 32;

    #[test]
    fn a_sample_holds_what_was_asked_for() {
        let detail = Detail { chain_max: 8, raw: true, stack_bytes: 16, ..Detail::default() };
        let mut body = Vec::new();
        put(&mut body, &[0xabc, WHO, 99, 4, CONTEXT_KERNEL, 0xffff_8000_0000_0001, CONTEXT_USER, 0x4000]);
        body.extend(4u32.to_ne_bytes());
        body.extend([1, 2, 3, 4]);
        put(&mut body, &[2]);
        put(
            &mut body,
            &(100..100 + u64::from(super::super::USER_REGISTERS.count_ones())).collect::<Vec<_>>(),
        );
        put(&mut body, &[16, 0x11, 0x22, 8]);
        let Record::Sample(sample) = parse(SAMPLE, &body, &detail) else { panic!("no sample") };
        assert_eq!((sample.ip, sample.pid, sample.tid, sample.time_ns), (0xabc, 7, 8, 99));
        let frames: Vec<Frame> = sample.chain.frames().collect();
        assert_eq!(frames, [Frame::Kernel(0xffff_8000_0000_0001), Frame::User(0x4000)]);
        assert_eq!(sample.raw, [1, 2, 3, 4]);
        assert_eq!(sample.stack, 0x11u64.to_ne_bytes());
        let registers = sample.registers.unwrap();
        assert_eq!(registers.get(0), Some(100));
        assert_eq!((registers.get(63), registers.get(64)), (None, None));
    }

    #[test]
    fn what_was_lost_is_reported_and_other_kinds_are_not_read() {
        let mut body = Vec::new();
        put(&mut body, &[1, 23, WHO, 99]);
        assert_eq!(parse(LOST, &body, &Detail::default()), Record::Lost(23));
        assert_eq!(parse(77, &body, &Detail::default()), Record::Other);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            kind in 0u32..16,
            body in prop::collection::vec(any::<u8>(), 0..400),
            (chain_max, raw, stack_bytes, registers) in (0u16..4, any::<bool>(), 0u32..64, any::<u64>()),
            number in any::<u32>(),
        ) {
            let detail = Detail { chain_max, raw, stack_bytes, registers, ..Detail::default() };
            if let Record::Sample(sample) = parse(kind, &body, &detail) {
                sample.chain.frames().count();
                sample.registers.map(|registers| registers.get(number));
            }
        }

        #[test]
        fn small_claims_are_read_too(words in prop::collection::vec(0u64..6, 0..40), kind in 0u32..16) {
            let mut body = Vec::new();
            put(&mut body, &words);
            let detail = Detail { chain_max: 8, raw: true, stack_bytes: 16, ..Detail::default() };
            parse(kind, &body, &detail);
        }
    }
}
