//! Which function of the program takes the lock that its threads wait for, by sampled call stacks.
//!
//! A lock that is free is taken in a few instructions, and nobody calls anything for it. One that is taken leads into a slow path, which spins,
//! asks the kernel, or hands the thread to something else: samples there are of contended locks alone, and who called is the place to look at.

use crate::accounting::{LimitedBy, ratio};
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::locks::{kept_share, may_be_a_lock};
use crate::bottlenecks::signs::parallel::below_cpus;
use crate::capacity::levels::Accounting;
use std::collections::BTreeMap;
use tare_model::observation::Role;
use tare_model::stacks::{Frame, FrameKind, Stacks};

/// Slow paths of locks: Go's, Rust's and glibc's. Groups that are waited for (Go's `WaitGroup`) are none.
static SLOW: &[&str] = &[
    "sync.(*Mutex).lockSlow",
    "sync.(*Mutex).unlockSlow",
    "internal/sync.(*Mutex).lockSlow",
    "internal/sync.(*Mutex).unlockSlow",
    "sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireRWMutex",
    "internal/sync.runtime_SemacquireMutex",
    "std::sys::sync::mutex::futex::Mutex::lock_contended",
    "std::sys::sync::rwlock::futex::RwLock::read_contended",
    "std::sys::sync::rwlock::futex::RwLock::write_contended",
    "parking_lot::raw_mutex::RawMutex::lock_slow",
    "parking_lot::raw_rwlock::RawRwLock::lock_shared_slow",
    "parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow",
    "__lll_lock_wait",
    "__GI___lll_lock_wait",
];
/// How functions begin that only pass on a call to such a path.
static OF_LOCKS: &[&str] = &[
    "sync.(*Mutex)",
    "sync.(*RWMutex)",
    "sync.runtime_",
    "internal/sync.",
    "std::sys::",
    "std::sync::",
    "parking_lot::",
    "lock_api::",
    "__lll_lock",
    "__GI___lll_lock",
    "pthread_mutex_lock",
    "__pthread_mutex_lock",
    "___pthread_mutex_lock",
    "__GI___pthread_mutex_lock",
];
/// Of fewer samples nobody is named.
const SAMPLES_MIN: u64 = 20;
/// Nor where slow paths have less than this part of the program's samples: a lock that many wait for costs more.
const OF_ALL_MIN: f64 = 0.02;
/// A lock that is held for long is seldom handed over. So these are enough where what runs, runs below the function that takes it: as many
/// samples in slow paths, and this part of all below that function.
const SAMPLES_OF_HELD_MIN: u64 = 5;
const HELD_MIN: f64 = 0.5;
/// Who takes less than this part of the contended locks is not named alone.
const MOST: f64 = 0.5;

/// A function, and which part of the samples in slow paths of locks it called.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LockCaller {
    pub function: String,
    /// Its share of those samples, 0..1.
    pub share: f64,
    /// All of those samples.
    pub samples: u64,
}

impl LockCaller {
    /// A sentence after another.
    pub fn sentence(&self) -> String {
        format!(
            " The lock is taken in {}: it called {:.0} % of the {} samples in which the program's threads waited for a lock or handed \
             one over.",
            self.function,
            100.0 * self.share,
            self.samples
        )
    }
}

/// The lock that threads wait for under the asked load, where it may be what holds the program: in futexes, or by what lets so few of its
/// threads run that nothing else explains it.
pub(crate) fn named_lock(accounting: &Accounting) -> Option<LockCaller> {
    let seen = below_cpus(accounting).is_some_and(|limit| limit.by == LimitedBy::Seen);
    (seen || kept_share(accounting) >= LOSS_SHARE_MIN && may_be_a_lock(accounting))
        .then(|| lock_caller(accounting))
        .flatten()
}

/// Who takes most of the contended locks; `None` where no stacks were sampled, in too few of them, or where nobody takes most.
fn lock_caller(accounting: &Accounting) -> Option<LockCaller> {
    most(&accounting.sampled())
}

fn most(trials: &[&Stacks]) -> Option<LockCaller> {
    let mut by_caller: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut samples, mut all) = (0u64, 0u64);
    for &stacks in trials {
        let Some(profile) = stacks.on_cpu.value() else { continue };
        for stack in profile.stacks.iter().filter(|stack| stack.role == Role::Sut) {
            all = all.saturating_add(stack.value);
            let Some(caller) = caller(stacks, &stack.frames) else { continue };
            samples = samples.saturating_add(stack.value);
            if let Some(function) = caller {
                let of_caller = by_caller.entry(function).or_default();
                *of_caller = of_caller.saturating_add(stack.value);
            }
        }
    }
    let (function, count) = by_caller.into_iter().max_by_key(|(_, count)| *count)?;
    let share = ratio(count as f64, samples as f64);
    let is_much = samples >= SAMPLES_MIN && samples as f64 >= OF_ALL_MIN * all as f64;
    let is_held = || below(trials, function) as f64 >= HELD_MIN * all as f64;
    let is_known = is_much || count >= SAMPLES_OF_HELD_MIN && is_held();
    (is_known && share >= MOST).then(|| LockCaller { function: function.to_owned(), share, samples })
}

/// Samples of the program in a function or below it.
fn below(trials: &[&Stacks], function: &str) -> u64 {
    let of = |stacks: &Stacks| -> u64 {
        let is_it = |index: &u32| stacks.frame(*index).is_some_and(|frame| frame.symbol == function);
        let stack = stacks.on_cpu.value().into_iter().flat_map(|profile| &profile.stacks);
        let below = stack.filter(|stack| stack.role == Role::Sut && stack.frames.iter().any(is_it));
        below.fold(0, |sum, stack| sum.saturating_add(stack.value))
    };
    trials.iter().fold(0, |sum, stacks| sum.saturating_add(of(stacks)))
}

/// Of a stack in the slow path of a lock, who called it, as far as is known; frames from the outermost on. `None` for any other stack.
fn caller<'a>(stacks: &'a Stacks, frames: &[u32]) -> Option<Option<&'a str>> {
    let begins = |symbol: &str, all: &[&str]| all.iter().any(|begin| symbol.starts_with(begin));
    let named: Vec<&Frame> = frames.iter().filter_map(|index| stacks.frame(*index)).collect();
    let slow = named.iter().position(|frame| begins(&frame.symbol, SLOW))?;
    let outside = named[..slow].iter().rev().find(|frame| !begins(&frame.symbol, OF_LOCKS));
    // The kernel calls nobody's lock, and a thread's name is no function.
    Some(outside.filter(|frame| frame.kind == FrameKind::User).map(|frame| frame.symbol.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Reading;
    use tare_model::stacks::{Folded, Folder};

    fn trial(all: &[(&[&str], u64)]) -> Stacks {
        let mut folder = Folder::default();
        let mut folded = Folded::new(Some(99.0));
        let thread = folder.frame(Frame::mark("server"));
        for (symbols, count) in all {
            let frame =
                |symbol: &&str| Frame { symbol: (*symbol).into(), module: None, kind: FrameKind::User };
            let frames = symbols.iter().map(|symbol| folder.frame(frame(symbol))).collect();
            folded.add(Role::Sut, thread, frames, *count);
        }
        folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new())
    }

    #[test]
    fn who_takes_the_contended_lock_is_named() {
        let stacks = trial(&[
            (
                &[
                    "net/http.(*conn).serve",
                    "main.work",
                    "sync.(*Mutex).Lock",
                    "internal/sync.(*Mutex).lockSlow",
                ],
                30,
            ),
            (&["net/http.(*conn).serve", "main.work", "sync.(*Mutex).lockSlow", "runtime.procyield"], 10),
            (&["net/http.(*conn).serve", "main.other", "sync.(*Mutex).lockSlow"], 4),
            (&["net/http.(*conn).serve", "main.work", "main.spin"], 400),
        ]);
        let found = most(&[&stacks]).unwrap();
        assert_eq!((found.function.as_str(), found.samples), ("main.work", 44));
        assert!((found.share - 40.0 / 44.0).abs() < 1e-12);
    }

    #[test]
    fn nobody_is_named_of_few_samples_or_of_many_places() {
        let few = trial(&[(&["main.work", "sync.(*Mutex).lockSlow"], 19), (&["main.other"], 100)]);
        assert_eq!(most(&[&few]), None);
        let places: Vec<String> = (0..5).map(|at| format!("main.f{at}")).collect();
        let all: Vec<[&str; 2]> =
            places.iter().map(|place| [place.as_str(), "sync.(*Mutex).lockSlow"]).collect();
        let many: Vec<(&[&str], u64)> = all.iter().map(|frames| (&frames[..], 20)).collect();
        assert_eq!(most(&[&trial(&many)]), None);
    }

    #[test]
    fn a_path_without_a_caller_counts_and_names_nobody() {
        // A library without frame pointers hides who called it.
        let known: (&[&str], u64) = (&["main", "handle", "pthread_mutex_lock", "__lll_lock_wait"], 30);
        assert_eq!(most(&[&trial(&[(&["__lll_lock_wait"], 500), known])]), None);
        let found = most(&[&trial(&[(&["__lll_lock_wait"], 10), known])]).unwrap();
        assert_eq!((found.function.as_str(), found.samples, found.share), ("handle", 40, 0.75));
    }

    #[test]
    fn who_waits_for_a_group_takes_no_lock() {
        let all: &[(&[&str], u64)] = &[
            (
                &[
                    "main.fan",
                    "sync.(*WaitGroup).Wait",
                    "sync.runtime_SemacquireWaitGroup",
                    "runtime.semacquire1",
                ],
                300,
            ),
            (&["main.old", "sync.(*WaitGroup).Wait", "sync.runtime_Semacquire", "runtime.semacquire1"], 300),
        ];
        assert_eq!(most(&[&trial(all)]), None);
    }

    #[test]
    fn a_lock_that_is_held_for_long_is_named_by_few_samples() {
        let slow: (&[&str], u64) = (&["main.serve", "main.work", "sync.(*Mutex).lockSlow"], 8);
        let held: (&[&str], u64) = (&["main.serve", "main.work", "main.spin"], 900);
        let other: (&[&str], u64) = (&["main.serve", "main.other"], 700);
        let found = most(&[&trial(&[slow, held, other])]).unwrap();
        assert_eq!((found.function.as_str(), found.samples), ("main.work", 8));
        // Four are chance; and where most runs elsewhere, nobody waits for so short a lock.
        assert_eq!(most(&[&trial(&[(slow.0, 4), held, other])]), None);
        assert_eq!(most(&[&trial(&[slow, (held.0, 600), other])]), None);
    }

    #[test]
    fn a_lock_that_is_seldom_waited_for_is_not_named() {
        let all: &[(&[&str], u64)] =
            &[(&["main.work", "sync.(*Mutex).lockSlow"], 30), (&["main.other"], 9000)];
        assert_eq!(most(&[&trial(all)]), None);
    }
}
