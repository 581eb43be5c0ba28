//! MD5 (RFC 1321): PostgreSQL's older way to log in. It protects nothing here; the library that hashes elsewhere leaves it out.

/// The digest.
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((8 * bytes.len() as u64).to_le_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        state = mixed(state, block);
    }
    let mut digest = [0; 16];
    for (out, word) in digest.chunks_exact_mut(4).zip(state) {
        out.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// The digest in hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    md5(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One block (section 3.4).
fn mixed(before: [u32; 4], block: &[u8]) -> [u32; 4] {
    const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let word = |at: usize| {
        block[4 * at..4 * at + 4].iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte))
    };
    let [mut a, mut b, mut c, mut d] = before;
    for step in 0..64 {
        let (f, at) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        // The table T of the RFC: 2^32 times |sin(step + 1)|.
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(f).wrapping_add(sine).wrapping_add(word(at % 16));
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(ROTATIONS[step / 16][step % 4]));
    }
    [a, b, c, d]
        .iter()
        .zip(before)
        .map(|(new, old)| new.wrapping_add(old))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_the_rfc() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hexadecimal(text.as_bytes()), digest);
        }
    }
}
