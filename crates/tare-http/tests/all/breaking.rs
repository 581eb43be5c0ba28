//! What the fuzzers of requests and of answers share: a source of chance, and messages that are broken by it.

/// Numbers without a pattern (xorshift); the seed is not zero.
pub struct Random(pub u64);

impl Random {
    /// One of the numbers below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// One to five of the seeds, with up to four faults: other bytes, other bits, something cut out, put in, or doubled.
pub fn broken(random: &mut Random, seeds: &[&str], pieces: &[&str]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..=random.below(4)).flat_map(|_| seeds[random.below(seeds.len())].bytes()).collect();
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(at..(at + random.below(8)).min(bytes.len()))),
            3 => drop(bytes.splice(at..at, pieces[random.below(pieces.len())].bytes())),
            _ => {
                let copy: Vec<u8> = bytes[at..(at + random.below(40)).min(bytes.len())].to_vec();
                bytes.splice(at..at, copy);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'?');
        }
    }
    bytes
}
