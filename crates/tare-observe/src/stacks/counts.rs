//! Chains of addresses as they come from the kernel, counted.

use std::collections::HashMap;
use tare_sys::perf::Frame;

/// Addresses of all distinct chains together, at most: 64 MiB.
const WORDS_MAX: usize = 8 << 20;
/// The waiting thread could have run.
const RUNNABLE: u64 = 1;
/// There was no room for the chain.
const CUT: u64 = 2;
/// Addresses from here on are the kernel's, on every machine with 64 bits that Linux runs on.
const KERNEL_FIRST: u64 = 1 << 63;

/// How often each distinct chain was seen, or for how long.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) lost: u64,
    words: usize,
    values: HashMap<Box<[u64]>, u64>,
    /// Where a chain is put together before it is looked up.
    scratch: Vec<u64>,
}

/// One distinct chain: thread, flags, then the addresses, innermost first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain<'a>(&'a [u64]);

impl<'a> Chain<'a> {
    pub(super) fn pid(self) -> u32 {
        (self.word(0) >> 32) as u32
    }

    pub(super) fn tid(self) -> u32 {
        self.word(0) as u32
    }

    pub(super) fn is_runnable(self) -> bool {
        self.word(1) & RUNNABLE != 0
    }

    pub(super) fn is_cut(self) -> bool {
        self.word(1) & CUT != 0
    }

    /// Where each frame was: a return address stands behind the call, which may be the last of its function.
    pub(super) fn addresses(self) -> impl Iterator<Item = u64> + 'a {
        let addresses = self.0.get(2..).unwrap_or_default();
        addresses.iter().enumerate().map(|(at, &address)| {
            let innermost = at == 0 || is_kernel(addresses[at - 1]) != is_kernel(address);
            if innermost { address } else { address.saturating_sub(1) }
        })
    }

    fn word(self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }
}

/// Whether it is an address in the kernel.
pub(super) fn is_kernel(address: u64) -> bool {
    address >= KERNEL_FIRST
}

impl Counts {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        (self.lost, self.words) = (0, 0);
    }

    /// Adds to a chain.
    pub(super) fn add(
        &mut self,
        pid: u32,
        tid: u32,
        runnable: bool,
        frames: impl Iterator<Item = Frame>,
        value: u64,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        write(&mut scratch, pid, tid, runnable, frames);
        self.add_chain(&scratch, value);
        self.scratch = scratch;
    }

    /// Adds to a chain that [`write`] wrote.
    pub(super) fn add_chain(&mut self, chain: &[u64], value: u64) {
        if let Some(known) = self.values.get_mut(chain) {
            *known = known.saturating_add(value);
        } else if self.words + chain.len() <= WORDS_MAX {
            self.words += chain.len();
            self.values.insert(chain.into(), value);
        } else {
            let cut = [chain.first().copied().unwrap_or(0), CUT];
            let beyond = self.values.entry(Box::new(cut)).or_default();
            *beyond = beyond.saturating_add(value);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Chain<'_>, u64)> {
        self.values.iter().map(|(chain, value)| (Chain(chain), *value))
    }

    pub(super) fn chains(&self) -> impl Iterator<Item = Chain<'_>> {
        self.values.keys().map(|chain| Chain(chain))
    }
}

/// Writes a chain as it is counted.
pub(super) fn write(
    chain: &mut Vec<u64>,
    pid: u32,
    tid: u32,
    runnable: bool,
    frames: impl Iterator<Item = Frame>,
) {
    chain.clear();
    chain.push(u64::from(pid) << 32 | u64::from(tid));
    chain.push(if runnable { RUNNABLE } else { 0 });
    chain.extend(frames.map(|frame| match frame {
        Frame::Kernel(address) | Frame::User(address) => address,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_counted_and_callers_stand_in_their_call() {
        let mut counts = Counts::default();
        let kernel = KERNEL_FIRST + 0x100;
        let frames = [Frame::Kernel(kernel + 8), Frame::Kernel(kernel), Frame::User(0x40), Frame::User(0x20)];
        for _ in 0..3 {
            counts.add(7, 8, false, frames.into_iter(), 2);
        }
        counts.add(7, 8, true, frames.into_iter(), 1);
        let mut all: Vec<_> = counts.iter().collect();
        all.sort_by_key(|(_, value)| *value);
        assert_eq!(all.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 6]);
        let chain = all[1].0;
        assert_eq!(
            (chain.pid(), chain.tid(), chain.is_runnable(), all[0].0.is_runnable()),
            (7, 8, false, true)
        );
        let addresses: Vec<u64> = chain.addresses().collect();
        assert_eq!(addresses, [kernel + 8, kernel - 1, 0x40, 0x1f]);
    }

    #[test]
    fn what_has_no_room_is_counted_for_its_thread() {
        let mut counts = Counts { words: WORDS_MAX, ..Counts::default() };
        for address in 0..9 {
            counts.add(7, 8, false, [Frame::User(address)].into_iter(), 1);
        }
        let all: Vec<_> = counts.iter().collect();
        assert!(all.len() == 1 && all[0].0.is_cut() && all[0].0.tid() == 8 && all[0].1 == 9);
        counts.clear();
        assert_eq!(counts.chains().count(), 0);
    }
}
