//! What the processor, or the hypervisor in its place, says of itself, and the time stamp counter.
//!
//! A hypervisor has to answer `CPUID`: executing it is the shortest way out of a virtual machine and back.

/// Executes `CPUID` once; `false` on processors without it.
#[inline]
pub fn execute() -> bool {
    leaf(0).is_some()
}

/// Whether a hypervisor reports itself; `None` where processors cannot report one.
pub fn hypervisor() -> Option<bool> {
    leaf(1).map(|[_, _, ecx, _]| ecx >> 31 & 1 == 1)
}

/// The twelve letters each by which a hypervisor says who it is, such as `KVMKVMKVM`; none without one. One that shows itself to guests of
/// another maker's has a second name, 0x100 leaves further on.
pub fn hypervisor_ids() -> Vec<[u8; 12]> {
    const FIRST: u32 = 0x4000_0000;
    if hypervisor() != Some(true) {
        return Vec::new();
    }
    let id = |number: u32| {
        let [highest, registers @ ..] = leaf(number)?;
        let mut id = [0; 12];
        for (part, register) in id.chunks_exact_mut(4).zip(registers) {
            part.copy_from_slice(&register.to_le_bytes());
        }
        // Leaves that are not there hold anything, such as those of another one.
        (highest >= number && highest < number + 0x100 || number == FIRST).then_some(id)
    };
    [FIRST, FIRST + 0x100].into_iter().filter_map(id).collect()
}

/// Whether the time stamp counter runs at one rate at all times ("invariant"); `None` where there is none.
pub fn invariant_tsc() -> Option<bool> {
    const ADVANCED_POWER: u32 = 0x8000_0007;
    (leaf(0x8000_0000)?[0] >= ADVANCED_POWER)
        .then(|| leaf(ADVANCED_POWER))?
        .map(|[_, _, _, edx]| edx >> 8 & 1 == 1)
}

/// The rate of the time stamp counter as processor (leaf 0x15) or hypervisor (leaf 0x4000_0010) state it, in
/// hertz; `None` where neither does.
pub fn tsc_stated_hz() -> Option<f64> {
    stated_by_processor().or_else(stated_by_hypervisor)
}

/// Crystal × ratio ("Time Stamp Counter and Nominal Core Crystal Clock Information").
fn stated_by_processor() -> Option<f64> {
    const LEAF: u32 = 0x15;
    let [highest, ..] = leaf(0)?;
    let [denominator, numerator, crystal_hz, _] = (highest >= LEAF).then(|| leaf(LEAF))??;
    (denominator > 0 && numerator > 0 && crystal_hz > 0)
        .then(|| f64::from(crystal_hz) * f64::from(numerator) / f64::from(denominator))
}

/// The timing leaf that VMware defined and KVM and others follow, kilohertz.
fn stated_by_hypervisor() -> Option<f64> {
    const LEAF: u32 = 0x4000_0010;
    hypervisor()?.then_some(())?;
    let [highest, ..] = leaf(0x4000_0000)?;
    let [khz, ..] = (highest >= LEAF).then(|| leaf(LEAF))??;
    (khz > 0).then(|| f64::from(khz) * 1e3)
}

/// The time stamp counter, read when all instructions before have finished; `None` where there is none.
#[inline]
pub fn tsc() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut aux = 0;
        // SAFETY: every x86-64 processor that this is built for has RDTSCP; where the kernel forbids user space
        // to read the counter (`PR_SET_TSC`), it was asked to by this very process. `aux` is a live local.
        Some(unsafe { std::arch::x86_64::__rdtscp(&mut aux) })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(target_arch = "x86_64")]
fn leaf(number: u32) -> Option<[u32; 4]> {
    #[allow(unused_unsafe)] // newer compilers know that it is safe
    // SAFETY: every x86-64 processor has CPUID; it touches no memory.
    let found = unsafe { std::arch::x86_64::__cpuid(number) };
    Some([found.eax, found.ebx, found.ecx, found.edx])
}

#[cfg(not(target_arch = "x86_64"))]
fn leaf(_number: u32) -> Option<[u32; 4]> {
    None
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_on_and_states_a_rate_that_it_can_have() {
        assert!(execute() && hypervisor().is_some());
        let first = tsc().unwrap();
        assert!(tsc().unwrap() >= first);
        assert_eq!(hypervisor_ids().is_empty(), hypervisor() != Some(true));
        assert!(tsc_stated_hz().is_none_or(|hz| (1e8..1e10).contains(&hz)));
    }
}
