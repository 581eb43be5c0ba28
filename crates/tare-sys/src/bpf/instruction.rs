//! The instructions of which a program is put together (`Documentation/bpf/standardization/instruction-set.rst`).

/// One of the machine's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register(u8);

/// What a call returned, and what the program ends with.
pub const R0: Register = Register(0);
/// The first argument.
pub const R1: Register = Register(1);
/// The second argument.
pub const R2: Register = Register(2);
/// The third argument.
pub const R3: Register = Register(3);
/// Outlasts calls.
pub const R6: Register = Register(6);
/// Outlasts calls.
pub const R7: Register = Register(7);
/// Outlasts calls.
pub const R8: Register = Register(8);
/// Outlasts calls.
pub const R9: Register = Register(9);
/// The end of the stack.
pub const R10: Register = Register(10);

const LDX_W: u8 = 0x61;
const LDX_DW: u8 = 0x79;
const ST_W: u8 = 0x62;
const ST_DW: u8 = 0x7a;
const STX_DW: u8 = 0x7b;
const LD_IMM_DW: u8 = 0x18;
const ADD_IMM: u8 = 0x07;
const ADD: u8 = 0x0f;
const SUB: u8 = 0x1f;
const MOV_IMM: u8 = 0xb7;
const MOV: u8 = 0xbf;
const JEQ_IMM: u8 = 0x15;
const JNE_IMM: u8 = 0x55;
const JA: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The number that an instruction loads is the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;

/// Functions of the kernel that a program may call, by the numbers of `include/uapi/linux/bpf.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// `bpf_map_lookup_elem(map, key)`: where the value lies, or 0.
    MapLookup = 1,
    /// `bpf_ktime_get_ns()`: CLOCK_MONOTONIC.
    KtimeNs = 5,
}

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u8,
    registers: u8,
    pub(super) offset: i16,
    immediate: i32,
}

/// Somewhere in the program; where that is may be said later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program that is put together.
#[derive(Debug, Default)]
pub struct Assembler {
    pub(super) instructions: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn put(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) -> &mut Self {
        let registers = from.0 << 4 | to.0;
        self.instructions.push(Instruction { code, registers, offset, immediate });
        self
    }

    /// `to = *(u32 *)(from + offset)`.
    pub fn load_u32(&mut self, to: Register, from: Register, offset: i16) -> &mut Self {
        self.put(LDX_W, to, from, offset, 0)
    }

    /// `to = *(u64 *)(from + offset)`.
    pub fn load_u64(&mut self, to: Register, from: Register, offset: i16) -> &mut Self {
        self.put(LDX_DW, to, from, offset, 0)
    }

    /// `*(u64 *)(at + offset) = from`.
    pub fn store_u64(&mut self, at: Register, offset: i16, from: Register) -> &mut Self {
        self.put(STX_DW, at, from, offset, 0)
    }

    /// `*(u32 *)(at + offset) = value`.
    pub fn set_u32(&mut self, at: Register, offset: i16, value: i32) -> &mut Self {
        self.put(ST_W, at, R0, offset, value)
    }

    /// `*(u64 *)(at + offset) = value`.
    pub fn set_u64(&mut self, at: Register, offset: i16, value: i32) -> &mut Self {
        self.put(ST_DW, at, R0, offset, value)
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Register, from: Register) -> &mut Self {
        self.put(MOV, to, from, 0, 0)
    }

    /// `to = value`.
    pub fn set(&mut self, to: Register, value: i32) -> &mut Self {
        self.put(MOV_IMM, to, R0, 0, value)
    }

    /// `to += value`.
    pub fn add_value(&mut self, to: Register, value: i32) -> &mut Self {
        self.put(ADD_IMM, to, R0, 0, value)
    }

    /// `to += from`.
    pub fn add(&mut self, to: Register, from: Register) -> &mut Self {
        self.put(ADD, to, from, 0, 0)
    }

    /// `to -= from`.
    pub fn subtract(&mut self, to: Register, from: Register) -> &mut Self {
        self.put(SUB, to, from, 0, 0)
    }

    /// `to =` the map with this descriptor.
    pub(super) fn load_map(&mut self, to: Register, descriptor: i32) -> &mut Self {
        self.put(LD_IMM_DW, to, Register(PSEUDO_MAP_FD), 0, descriptor).put(0, R0, R0, 0, 0)
    }

    /// `r0 = helper(r1, r2, …)`; r1 to r5 are lost.
    pub fn call(&mut self, helper: Helper) -> &mut Self {
        self.put(CALL, R0, R0, 0, helper as i32)
    }

    /// Ends the program with what r0 has.
    pub fn exit(&mut self) -> &mut Self {
        self.put(EXIT, R0, R0, 0, 0)
    }

    /// A place that is to be jumped to.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The place is here.
    pub fn place(&mut self, label: Label) -> &mut Self {
        self.labels[label.0] = Some(self.instructions.len());
        self
    }

    /// Goes on at `label`.
    pub fn jump(&mut self, label: Label) -> &mut Self {
        self.jump_by(JA, R0, 0, label)
    }

    /// Goes on at `label` if the register has this value.
    pub fn jump_if(&mut self, register: Register, value: i32, label: Label) -> &mut Self {
        self.jump_by(JEQ_IMM, register, value, label)
    }

    /// Goes on at `label` unless the register has this value.
    pub fn jump_unless(&mut self, register: Register, value: i32, label: Label) -> &mut Self {
        self.jump_by(JNE_IMM, register, value, label)
    }

    fn jump_by(&mut self, code: u8, register: Register, value: i32, label: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), label));
        self.put(code, register, R0, 0, value)
    }

    /// The instructions with their jumps; `None` where a label is nowhere or too far away.
    pub(super) fn finish(mut self) -> Option<Vec<Instruction>> {
        for (at, label) in self.jumps {
            let to = i64::try_from(self.labels[label.0]?).ok()?;
            let next = i64::try_from(at).ok()? + 1;
            self.instructions[at].offset = i16::try_from(to - next).ok()?;
        }
        Some(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_their_labels() {
        let mut program = Assembler::default();
        let end = program.label();
        program.set(R0, 0).jump_if(R0, 0, end).add_value(R0, 1).place(end).exit();
        let instructions = program.finish().unwrap();
        assert_eq!(instructions.iter().map(|one| one.offset).collect::<Vec<_>>(), [0, 1, 0, 0]);
        assert_eq!(instructions.iter().map(|one| one.code).collect::<Vec<_>>(), [0xb7, 0x15, 0x07, 0x95]);
    }

    #[test]
    fn a_label_that_is_nowhere_makes_no_program() {
        let mut program = Assembler::default();
        let nowhere = program.label();
        program.jump(nowhere).exit();
        assert_eq!(program.finish(), None);
    }

    #[test]
    fn registers_share_a_byte() {
        let mut program = Assembler::default();
        program.load_u64(R1, R6, -8).load_map(R2, 5);
        let [load, map, rest] = program.instructions[..] else { panic!("three") };
        assert_eq!((load.code, load.registers, load.offset), (0x79, 0x61, -8));
        assert_eq!((map.code, map.registers, map.immediate), (0x18, 0x12, 5));
        assert_eq!((rest.code, rest.registers, rest.immediate), (0, 0, 0));
    }
}
