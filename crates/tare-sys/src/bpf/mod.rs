//! Small programs that the kernel runs where a tracepoint is, and the numbers that they keep.
//!
//! A [`Program`] is put together with an [`Assembler`], keeps its numbers in a [`PerCpu`], and runs for as long as its
//! [`Attached`] lives: the kernel ends it with the process that holds it, however that ends.

mod instruction;

pub use instruction::{Assembler, Helper, Label, R0, R1, R2, R3, R6, R7, R8, R9, R10, Register};

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const MAP_TYPE_PERCPU_ARRAY: u32 = 6;
const PROG_TYPE_TRACING: u32 = 26;
const TRACE_RAW_TP: u32 = 23;
/// Most CPUs that a kernel has room for: the largest that `CONFIG_NR_CPUS` can be.
const CPUS_MAX: usize = 8192;
/// How often a program is offered to the kernel.
const LOAD_ATTEMPTS: u32 = 5;
/// What the kernel calls a map or a program, for whoever lists them (`bpftool prog`): 15 bytes at most.
const NAME: [u8; 16] = *b"tare\0\0\0\0\0\0\0\0\0\0\0\0";
/// Who reads the kernel's structs must be under a licence that goes with the kernel's: tare's instructions may be had under either.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";

/// `union bpf_attr` for `BPF_MAP_CREATE`, as far as it is used.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    name: [u8; 16],
}

/// For `BPF_MAP_LOOKUP_ELEM` and `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
#[derive(Default)]
struct MapElement {
    map_fd: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// For `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    program_type: u32,
    instructions_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    btf_fd: u32,
    function_info_bytes: u32,
    function_info: u64,
    function_info_count: u32,
    line_info_bytes: u32,
    line_info: u64,
    line_info_count: u32,
    attach_btf_id: u32,
}

/// For `BPF_RAW_TRACEPOINT_OPEN`.
#[repr(C)]
#[derive(Default)]
struct RawTracepointOpen {
    name: u64,
    program_fd: u32,
    unused: u32,
}

/// Makes one call; `attr` is one of the structs above, with addresses of what lives through it.
fn bpf<T>(command: libc::c_int, attr: &mut T) -> io::Result<libc::c_int> {
    let bytes = std::mem::size_of::<T>() as libc::c_uint;
    // SAFETY: `attr` is live and `bytes` long; every address in it is of a buffer that its maker keeps alive and whose length
    // it states, or that the map's own sizes state.
    let outcome = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), bytes) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome as libc::c_int) }
}

fn opened<T>(command: libc::c_int, attr: &mut T) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attr)?;
    // SAFETY: it was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// `WORDS` numbers of each CPU, which a program changes and this process reads.
#[derive(Debug)]
pub struct PerCpu<const WORDS: usize> {
    map: OwnedFd,
    /// Where the kernel puts the numbers of every CPU that there could be: room for more than there can be.
    values: Vec<[u64; WORDS]>,
}

impl<const WORDS: usize> PerCpu<WORDS> {
    /// Numbers that are 0.
    ///
    /// # Errors
    /// `EPERM` without the right (`CAP_BPF`), `ENOSYS` where the kernel has no `bpf`.
    pub fn new() -> io::Result<PerCpu<WORDS>> {
        let mut attr = MapCreate {
            map_type: MAP_TYPE_PERCPU_ARRAY,
            key_bytes: 4,
            value_bytes: (8 * WORDS) as u32,
            entries_max: 1,
            name: NAME,
            ..MapCreate::default()
        };
        Ok(PerCpu { map: opened(MAP_CREATE, &mut attr)?, values: vec![[0; WORDS]; CPUS_MAX] })
    }

    /// The numbers by CPU; 0 for those that there cannot be. A program may be in the middle of changing them.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn read(&mut self) -> io::Result<&[[u64; WORDS]]> {
        self.transfer(MAP_LOOKUP_ELEM)?;
        Ok(&self.values)
    }

    /// Makes all of them 0 again. No program may be changing them.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn clear(&mut self) -> io::Result<()> {
        self.values.fill([0; WORDS]);
        self.transfer(MAP_UPDATE_ELEM)
    }

    fn transfer(&mut self, command: libc::c_int) -> io::Result<()> {
        let key = 0u32;
        let mut attr = MapElement {
            map_fd: self.map.as_raw_fd() as u32,
            key: (&raw const key) as u64,
            value: self.values.as_mut_ptr() as u64,
            ..MapElement::default()
        };
        bpf(command, &mut attr).map(|_| ())
    }

    /// In a program: `r0 =` where this CPU's numbers lie, or on to `missing`. Uses the last 4 bytes of the stack.
    pub fn find(&self, program: &mut Assembler, missing: Label) {
        program.set_u32(R10, -4, 0).load_map(R1, self.map.as_raw_fd());
        program.copy(R2, R10).add_value(R2, -4).call(Helper::MapLookup).jump_if(R0, 0, missing);
    }
}

/// A program that the kernel has accepted.
#[derive(Debug)]
pub struct Program {
    file: OwnedFd,
}

/// A program that runs at its tracepoint until this is dropped.
#[derive(Debug)]
pub struct Attached {
    /// The link; the kernel runs the program for as long as it is open.
    _link: OwnedFd,
}

impl Program {
    /// One for a tracepoint: `tracepoint_type` is the type `btf_trace_NAME` of the kernel's own type information. The program finds the
    /// tracepoint's arguments at r1, 8 bytes each, and may read what they point to.
    ///
    /// # Errors
    /// `EPERM` without the rights (`CAP_BPF` and `CAP_PERFMON`), `EACCES` or `EINVAL` for a program that the kernel does not accept.
    pub fn load(program: Assembler, tracepoint_type: u32) -> io::Result<Program> {
        let instructions =
            program.finish().ok_or_else(|| io::Error::other("a program jumps to where nothing is"))?;
        let mut attr = ProgramLoad {
            program_type: PROG_TYPE_TRACING,
            instructions_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            name: NAME,
            expected_attach_type: TRACE_RAW_TP,
            attach_btf_id: tracepoint_type,
            ..ProgramLoad::default()
        };
        // A signal that comes meanwhile makes the kernel give up.
        for _ in 1..LOAD_ATTEMPTS {
            match opened(PROG_LOAD, &mut attr) {
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                outcome => return Ok(Program { file: outcome? }),
            }
        }
        Ok(Program { file: opened(PROG_LOAD, &mut attr)? })
    }

    /// Runs it wherever the kernel comes to its tracepoint.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn attach(&self) -> io::Result<Attached> {
        let mut attr =
            RawTracepointOpen { program_fd: self.file.as_raw_fd() as u32, ..RawTracepointOpen::default() };
        Ok(Attached { _link: opened(RAW_TRACEPOINT_OPEN, &mut attr)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permitted::permitted;

    #[test]
    fn numbers_are_zero_until_a_program_changes_them() {
        let Some(mut numbers) = permitted(PerCpu::<2>::new()) else { return };
        assert!(numbers.read().unwrap().iter().all(|of_cpu| *of_cpu == [0, 0]));
        numbers.clear().unwrap();
        assert!(numbers.read().unwrap().iter().all(|of_cpu| *of_cpu == [0, 0]));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        if permitted(PerCpu::<2>::new()).is_none() {
            return;
        }
        let mut reads_nothing = Assembler::default();
        reads_nothing.load_u64(R0, R9, 0).exit();
        assert!(Program::load(reads_nothing, 1).is_err());
        let mut jumps_nowhere = Assembler::default();
        let nowhere = jumps_nowhere.label();
        jumps_nowhere.jump(nowhere).exit();
        let error = Program::load(jumps_nowhere, 1).unwrap_err();
        assert!(error.to_string().contains("jumps to where nothing is"), "{error}");
    }
}
