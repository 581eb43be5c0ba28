//! Sets of CPUs (or of NUMA nodes), written as the kernel writes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// CPU numbers from here on are refused: more than any kernel is built for.
pub const CPU_NUMBERS_MAX: u32 = 8192;
const BITS: u32 = u64::BITS;

/// A set of numbers below [`CPU_NUMBERS_MAX`]. Serialises in the kernel's list format (`0-3,32-35`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct CpuSet {
    /// Without zero words at the end, so that equal sets are equal values.
    words: Vec<u64>,
}

/// What is not a set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a list of CPUs; hint: such as 0-3,8")]
pub struct NotCpus(pub String);

impl CpuSet {
    /// No CPU.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// The CPUs from 0 to `count - 1`.
    pub fn first(count: u32) -> CpuSet {
        (0..count).collect()
    }

    /// Adds a number; what is not below [`CPU_NUMBERS_MAX`] is not added, and `false` returned.
    pub fn insert(&mut self, cpu: u32) -> bool {
        if cpu >= CPU_NUMBERS_MAX {
            return false;
        }
        let word = (cpu / BITS) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu % BITS);
        true
    }

    /// Whether the number is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / BITS) as usize).is_some_and(|word| word >> (cpu % BITS) & 1 == 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = |word: u64| (0..BITS).filter(move |bit| word >> bit & 1 == 1);
        (0u32..).zip(&self.words).flat_map(move |(nth, &word)| bits(word).map(move |bit| nth * BITS + bit))
    }

    /// The lowest number.
    pub fn lowest(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The numbers, ascending.
    pub fn to_vec(&self) -> Vec<u32> {
        self.iter().collect()
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        CpuSet::trimmed(self.words.iter().zip(&other.words).map(|(one, two)| one & two).collect())
    }

    /// What is in either.
    #[must_use]
    pub fn or(&self, other: &CpuSet) -> CpuSet {
        let (long, short) = if self.words.len() < other.words.len() { (other, self) } else { (self, other) };
        let short = short.words.iter().copied().chain(std::iter::repeat(0));
        CpuSet::trimmed(long.words.iter().zip(short).map(|(one, two)| one | two).collect())
    }

    /// What is in this one and not in the other.
    #[must_use]
    pub fn minus(&self, other: &CpuSet) -> CpuSet {
        let other = other.words.iter().copied().chain(std::iter::repeat(0));
        CpuSet::trimmed(self.words.iter().zip(other).map(|(one, two)| one & !two).collect())
    }

    /// Whether they have a number in common.
    pub fn meets(&self, other: &CpuSet) -> bool {
        self.words.iter().zip(&other.words).any(|(one, two)| one & two != 0)
    }

    /// Whether all of this one is in the other.
    pub fn within(&self, other: &CpuSet) -> bool {
        self.minus(other).is_empty()
    }

    /// Reads the kernel's list format (`0-3,8`). An empty text is an empty set, as the kernel writes it.
    pub fn from_list(text: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        let text = trimmed(text);
        if text.is_empty() {
            return Some(set);
        }
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last || last >= CPU_NUMBERS_MAX {
                return None;
            }
            set.extend(first..=last);
        }
        Some(set)
    }

    /// Reads the kernel's mask format: 32-bit words in hexadecimal, the highest first (`ff,00000000`), with or
    /// without `0x`. `None` for anything else, and where a bit stands for a number that is refused.
    pub fn from_mask(text: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        for (nth, word) in (0u32..).zip(trimmed(text).rsplit(',')) {
            let word = word.trim();
            let word = word.strip_prefix("0x").unwrap_or(word);
            let hex =
                !word.is_empty() && word.len() <= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            let word = u32::from_str_radix(word, 16).ok().filter(|_| hex)?;
            for bit in (0..u32::BITS).filter(|bit| word >> bit & 1 == 1) {
                // Kernels built for many CPUs write many zero words; only a bit that is set can be too high.
                if !set.insert(nth.checked_mul(u32::BITS)?.checked_add(bit)?) {
                    return None;
                }
            }
        }
        Some(set)
    }

    fn trimmed(mut words: Vec<u64>) -> CpuSet {
        while words.last() == Some(&0) {
            words.pop();
        }
        CpuSet { words }
    }
}

/// Without space and zero bytes around it: some kernels end these files with a zero byte.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|char: char| char.is_whitespace() || char == '\0')
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for cpu in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == cpu => *last = cpu,
                _ => ranges.push((cpu, cpu)),
            }
        }
        let text = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
        f.pad(&ranges.into_iter().map(text).collect::<Vec<_>>().join(","))
    }
}

impl Extend<u32> for CpuSet {
    /// Adds numbers; those that [`CpuSet::insert`] refuses are left out.
    fn extend<I: IntoIterator<Item = u32>>(&mut self, numbers: I) {
        for cpu in numbers {
            self.insert(cpu);
        }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> CpuSet {
        let mut set = CpuSet::new();
        set.extend(numbers);
        set
    }
}

impl From<&[u32]> for CpuSet {
    fn from(numbers: &[u32]) -> CpuSet {
        numbers.iter().copied().collect()
    }
}

impl FromStr for CpuSet {
    type Err = NotCpus;

    fn from_str(text: &str) -> Result<CpuSet, NotCpus> {
        CpuSet::from_list(text).ok_or_else(|| NotCpus(text.to_string()))
    }
}

impl TryFrom<String> for CpuSet {
    type Error = NotCpus;

    fn try_from(text: String) -> Result<CpuSet, NotCpus> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn both_spellings_of_the_kernel() {
        let set = CpuSet::from_list("0-3,32-35\n").unwrap();
        assert_eq!(set.to_vec(), [0, 1, 2, 3, 32, 33, 34, 35]);
        assert_eq!(CpuSet::from_mask("0000000f,0000000f\n"), Some(set.clone()));
        assert_eq!(CpuSet::from_mask("0xf,0x0000000f"), Some(set.clone()));
        assert_eq!(serde_json::to_string(&set).unwrap(), r#""0-3,32-35""#);
        assert_eq!(CpuSet::from_list("0-3\n\0"), Some(CpuSet::first(4)));
        assert_eq!(CpuSet::from_list("\n"), Some(CpuSet::new()));
        let wide = format!("{}1", "00000000,".repeat(999));
        assert_eq!(CpuSet::from_mask(&wide), Some(CpuSet::first(1)));
        for text in [",", "0,,1", "0,", "3-1", "a", "1;2", "8192", "-1", "1-", "99999999999"] {
            assert_eq!(CpuSet::from_list(text), None, "{text:?}");
        }
        for text in ["", "g", "+1", "000000001", "1,", "0x"] {
            assert_eq!(CpuSet::from_mask(text), None, "{text:?}");
        }
        assert_eq!(CpuSet::from_mask(&format!("1{}", ",00000000".repeat(256))), None);
    }

    proptest! {
        #[test]
        fn sets_are_sets(
            one in proptest::collection::btree_set(0u32..300, 0..40),
            two in proptest::collection::btree_set(0u32..300, 0..40),
        ) {
            let set = |numbers: &BTreeSet<u32>| numbers.iter().copied().collect::<CpuSet>();
            let (a, b) = (set(&one), set(&two));
            prop_assert_eq!(a.or(&b), set(&(&one | &two)));
            prop_assert_eq!(a.and(&b), set(&(&one & &two)));
            prop_assert_eq!(a.minus(&b), set(&(&one - &two)));
            prop_assert_eq!(a.meets(&b), !one.is_disjoint(&two));
            prop_assert_eq!(a.within(&b), one.is_subset(&two));
            prop_assert_eq!((a.len(), a.is_empty()), (one.len(), one.is_empty()));
            prop_assert_eq!(a.lowest(), one.first().copied());
            prop_assert_eq!(a.to_string().parse::<CpuSet>(), Ok(a));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,40}", bytes in "[0-9a-fx,-]{0,40}") {
            for text in [text, bytes] {
                CpuSet::from_list(&text);
                CpuSet::from_mask(&text);
            }
        }
    }
}
