//! What a sample holds.

/// User registers that are sampled with the stack, by their numbers in `asm/perf_regs.h`: all general ones, flags and
/// instruction pointer. On x86-64 without the segments of data, which it has no more.
#[cfg(target_arch = "x86_64")]
pub const USER_REGISTERS: u64 = 0xff_0fff;
/// As above: x0 to x30, stack pointer, program counter.
#[cfg(not(target_arch = "x86_64"))]
pub const USER_REGISTERS: u64 = (1 << 33) - 1;

/// The numbers, among the registers, of those that hold a system call's first four arguments: `rdi`, `rsi`, `rdx`, `r10`.
#[cfg(target_arch = "x86_64")]
pub const ARGUMENTS: [u32; 4] = [5, 4, 3, 18];
/// As above: `x0` to `x3`.
#[cfg(not(target_arch = "x86_64"))]
pub const ARGUMENTS: [u32; 4] = [0, 1, 2, 3];

/// What each sample holds beside thread, time and instruction pointer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// Frames of the call chain, at most (`kernel.perf_event_max_stack`, 127, is the kernel's own bound); 0: none.
    pub chain_max: u16,
    /// A tracepoint's own bytes.
    pub raw: bool,
    /// Bytes of the user stack that are copied, with the user registers: a multiple of 8 below 64 KiB; 0: none.
    pub stack_bytes: u32,
    /// User registers that are wanted without the stack: a set of bits as in [`USER_REGISTERS`].
    pub registers: u64,
    /// Only the program's side: no samples while in the kernel, none of its addresses in chains.
    pub user_only: bool,
    /// Only the kernel's addresses in chains.
    pub kernel_chain: bool,
}

impl Detail {
    /// The user registers that a sample holds.
    pub(super) fn registers(&self) -> u64 {
        if self.stack_bytes > 0 { USER_REGISTERS } else { self.registers & USER_REGISTERS }
    }
}
