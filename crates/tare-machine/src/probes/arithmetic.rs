//! Arithmetic for probes of what a core's units do.

/// So many steps of chains that do not wait for each other, while each step of a chain waits for the one before: eight chains
/// are more than the units of a core take at once, one leaves most of them free.
pub(super) fn compute<const CHAINS: usize>(steps: u32) {
    let mut chains: [u64; CHAINS] = std::array::from_fn(|at| at as u64 + 1);
    for _ in 0..steps {
        for chain in &mut chains {
            *chain = (*chain ^ (*chain >> 29)).wrapping_add(0x9e37_79b9_7f4a_7c15).rotate_left(7);
        }
    }
    std::hint::black_box(&mut chains);
}
