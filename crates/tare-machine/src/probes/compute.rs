//! What one core computes: integers, a hash, a cipher, and copies within its caches.

use super::arithmetic::compute;
use super::place::on_cpu;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use tare_model::Missing;
use tare_stats::median;
use tare_sys::time::monotonic_ns;

/// Bytes that are hashed or enciphered at once: what `openssl speed` ends with.
const BLOCK_BYTES: usize = 16 << 10;
/// Bytes that are copied at once: what `perf bench mem memcpy` copies.
const COPY_BYTES: usize = 1 << 20;
/// Steps of a batch of integers, the chains that are stepped, and the operations of a step: shift, exclusive or, addition, rotation.
const STEPS: u32 = 1000;
const CHAINS: usize = 8;
const OPERATIONS: f64 = 4.0;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Eight chains of integer operations that do not wait for each other: operations.
    Integer,
    /// SHA-256 of 16 KiB at a time: bytes.
    Sha256,
    /// AES-256-GCM of 16 KiB at a time: bytes.
    Aes256Gcm,
    /// `memcpy` of 1 MiB from one buffer to another: bytes.
    Memcpy,
}

/// Operations or bytes per second on `cpu`: by the median time of a batch.
///
/// # Errors
/// Why the CPU could not be used.
pub fn run(work: Work, cpu: u32, duration_ns: u64) -> Result<f64, Missing> {
    on_cpu(cpu, duration_ns, move || match work {
        Work::Integer => {
            rate(f64::from(STEPS) * CHAINS as f64 * OPERATIONS, duration_ns, || compute::<CHAINS>(STEPS))
        }
        Work::Sha256 => {
            let block = vec![7u8; BLOCK_BYTES];
            rate(BLOCK_BYTES as f64, duration_ns, || _ = std::hint::black_box(digest(&SHA256, &block)))
        }
        Work::Aes256Gcm => enciphered(duration_ns),
        Work::Memcpy => {
            let (from, mut to) = (vec![7u8; COPY_BYTES], vec![0u8; COPY_BYTES]);
            rate(COPY_BYTES as f64, duration_ns, || {
                to.copy_from_slice(std::hint::black_box(&from));
                std::hint::black_box(&mut to);
            })
        }
    })
}

fn enciphered(duration_ns: u64) -> Result<f64, Missing> {
    let none = |_| Missing::new("the cipher cannot be used");
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(none)?);
    let mut block = vec![7u8; BLOCK_BYTES];
    let mut failed = false;
    let per_s = rate(BLOCK_BYTES as f64, duration_ns, || {
        // Nothing secret is in it: the nonce may be the same each time.
        let nonce = Nonce::assume_unique_for_key([7; 12]);
        failed |= key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut block).is_err();
    })?;
    if failed { Err(none(ring::error::Unspecified)) } else { Ok(per_s) }
}

/// How much is done in a second, if each batch does so much.
fn rate(done: f64, duration_ns: u64, mut batch: impl FnMut()) -> Result<f64, Missing> {
    batch();
    let end_ns = monotonic_ns().saturating_add(duration_ns);
    let mut batches_ns = Vec::new();
    let mut now_ns = monotonic_ns();
    while batches_ns.is_empty() || now_ns < end_ns {
        batch();
        let begun_ns = std::mem::replace(&mut now_ns, monotonic_ns());
        batches_ns.push((now_ns - begun_ns) as f64);
    }
    let batch_ns = median(&batches_ns).filter(|ns| *ns > 0.0);
    Ok(done * 1e9 / batch_ns.ok_or_else(|| Missing::new("the clock stood still"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_work_is_done_at_some_rate() {
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        for work in [Work::Integer, Work::Sha256, Work::Aes256Gcm, Work::Memcpy] {
            let per_s = run(work, cpu, 1_000_000).unwrap();
            assert!(per_s > 1e5 && per_s.is_finite(), "{work:?}: {per_s}");
        }
        assert!(run(Work::Integer, tare_sys::affinity::CPUS_MAX - 1, 1_000_000).is_err());
    }
}
