//! Call stacks, folded: how often each was seen on a CPU, or for how long a thread that stood there was off it.
//!
//! Frames are interned: a stack is a list of indices, the outermost caller first. Everything is bounded; what is
//! beyond a bound is still counted, under the frame [`TRUNCATED`].

use crate::role::Role;
use crate::{Missing, Reading};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Distinct frames of one trial, at most.
pub const FRAMES_MAX: usize = 1 << 15;
/// Distinct stacks of one profile, at most.
pub const STACKS_MAX: usize = 1 << 16;
/// Frames of all stacks of one profile together, at most.
pub const REFERENCES_MAX: usize = 1 << 21;
/// Characters of a symbol or a path, at most.
pub const NAME_CHARS_MAX: usize = 500;
/// The symbol of what is beyond a bound.
pub const TRUNCATED: &str = "[truncated]";
/// The symbol of an address that nothing is known about.
pub const UNKNOWN: &str = "[unknown]";

/// What kind of code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameKind {
    /// A program or a library.
    User,
    /// The kernel or one of its modules.
    Kernel,
    /// Made at run time, named by a perf map.
    Jit,
    /// The page of code that the kernel lends to every process.
    Vdso,
    /// No code: a thread's name, or a word in brackets about what was not seen.
    Mark,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Its name, demangled; the module's name in brackets where it is not known.
    pub symbol: String,
    /// Index of its module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<u32>,
    /// What kind of code it is.
    pub kind: FrameKind,
}

impl Frame {
    /// A frame that is no code.
    pub fn mark(symbol: impl Into<String>) -> Frame {
        Frame { symbol: symbol.into(), module: None, kind: FrameKind::Mark }
    }
}

/// A file that code came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Module {
    /// Its path as the process saw it.
    pub path: String,
    /// Its build id in hexadecimal digits, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

impl Module {
    /// The last part of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A stack and its weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Whose thread.
    pub role: Role,
    /// Index of the frame that holds the thread's name.
    pub thread: u32,
    /// Indices of its frames, the outermost caller first.
    pub frames: Vec<u32>,
    /// Samples (on a CPU) or nanoseconds (off it).
    pub value: u64,
}

/// What takes a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampledBy {
    /// A timer of the kernel (`cpu-clock`): code that has interrupts off is seen where it lets them on again.
    CpuClock,
    /// The processor's own counter of cycles.
    Cycles,
    /// Each switch of a thread.
    Switches,
}

/// How callers are found in the program's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallersBy {
    /// By the kernel, from frame pointers: code without them hides its callers.
    FramePointers,
    /// From copies of the stacks, by the tables for exceptions.
    Copies,
}

/// Where names of functions were looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBy {
    /// In symbol tables alone.
    Tables,
    /// In symbol tables, and in debug files.
    DebugFiles,
    /// As one of these, and the time for it was over before all had names.
    OutOfTime,
}

/// How samples were taken. Two profiles can be held against each other where this is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Method {
    /// What takes a sample.
    pub sampled_by: SampledBy,
    /// How callers are found.
    pub callers_by: CallersBy,
    /// Where names were looked for.
    pub named_by: NamedBy,
    /// Whether samples within the kernel are among them.
    pub with_kernel: bool,
    /// Whether the functions of the kernel have names.
    pub kernel_named: bool,
}

impl Method {
    /// In words: `by a timer, callers from copies of the stacks, names from symbol tables, with the kernel`.
    pub fn words(&self) -> String {
        let by = match self.sampled_by {
            SampledBy::CpuClock => "by a timer",
            SampledBy::Cycles => "by the counter of cycles",
            SampledBy::Switches => "at each switch",
        };
        let callers = match self.callers_by {
            CallersBy::FramePointers => "callers from frame pointers",
            CallersBy::Copies => "callers from copies of the stacks",
        };
        let names = match self.named_by {
            NamedBy::Tables => "names from symbol tables",
            NamedBy::DebugFiles => "names from symbol tables and debug files",
            NamedBy::OutOfTime => "names as far as there was time",
        };
        let kernel = match (self.with_kernel, self.kernel_named) {
            (true, true) => "with the kernel",
            (true, false) => "with the kernel, whose functions have no names",
            (false, _) => "without the kernel",
        };
        format!("{by}, {callers}, {names}, {kernel}")
    }
}

/// Stacks of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// How samples were taken; `None`: not recorded, or of several that differ in it.
    #[serde(default)]
    pub method: Option<Method>,
    /// Samples per second of CPU time that were asked for; `None` where every event was taken (off CPU).
    pub rate_hz: Option<f64>,
    /// Samples or switches that the kernel or we had no room for.
    pub lost: u64,
    /// Each distinct stack once.
    pub stacks: Vec<Stack>,
}

impl Profile {
    /// Sum of the values of a role.
    pub fn total(&self, role: Role) -> u64 {
        let of = self.stacks.iter().filter(|stack| stack.role == role);
        of.fold(0, |sum, stack| sum.saturating_add(stack.value))
    }
}

/// All stacks that were seen in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stacks {
    /// Functions, and the names of threads.
    pub frames: Vec<Frame>,
    /// Files that frames refer to.
    pub modules: Vec<Module>,
    /// What ran, in samples.
    pub on_cpu: Reading<Profile>,
    /// What waited and where, in nanoseconds.
    pub off_cpu: Reading<Profile>,
    /// What could not be seen of those that are there: why, and what would help.
    pub unseen: Vec<Missing>,
}

impl Stacks {
    /// Neither kind, for this reason.
    pub fn missing(reason: Missing) -> Stacks {
        Stacks {
            frames: Vec::new(),
            modules: Vec::new(),
            on_cpu: Reading::Missing(reason.clone()),
            off_cpu: Reading::Missing(reason),
            unseen: Vec::new(),
        }
    }

    /// A frame by its index.
    pub fn frame(&self, index: u32) -> Option<&Frame> {
        self.frames.get(index as usize)
    }

    /// The module of a frame.
    pub fn module(&self, frame: &Frame) -> Option<&Module> {
        self.modules.get(frame.module? as usize)
    }

    /// Whether every index leads somewhere.
    pub fn is_whole(&self) -> bool {
        let frame = |index: &u32| (*index as usize) < self.frames.len();
        let profiles = [&self.on_cpu, &self.off_cpu].into_iter().filter_map(Reading::value);
        self.frames.iter().filter_map(|frame| frame.module).all(|at| (at as usize) < self.modules.len())
            && profiles
                .flat_map(|profile| &profile.stacks)
                .all(|stack| frame(&stack.thread) && stack.frames.iter().all(frame))
    }

    /// All of them added up, as if they had been one window; `None` of none. What is missing in one is left out,
    /// unless it is missing in all.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Stacks>) -> Option<Stacks> {
        let mut folder = Folder::default();
        let mut unseen: Vec<Missing> = Vec::new();
        let mut profiles: [Option<Reading<Folded>>; 2] = [None, None];
        for stacks in all {
            for (sum, more) in profiles.iter_mut().zip([&stacks.on_cpu, &stacks.off_cpu]) {
                add_profile(sum, more, stacks, &mut folder);
            }
            for reason in &stacks.unseen {
                if !unseen.contains(reason) {
                    unseen.push(reason.clone());
                }
            }
        }
        let [on_cpu, off_cpu] = profiles;
        Some(folder.close(on_cpu?, off_cpu?, unseen))
    }
}

fn add_profile(sum: &mut Option<Reading<Folded>>, more: &Reading<Profile>, of: &Stacks, folder: &mut Folder) {
    let Some(profile) = more.value() else {
        sum.get_or_insert_with(|| more.clone().map(|_| Folded::default()));
        return;
    };
    if !matches!(sum, Some(Reading::Measured(_))) {
        *sum = Some(Reading::Measured(Folded::new(profile.rate_hz).by(profile.method)));
    }
    let Some(Reading::Measured(folded)) = sum else { return };
    folded.method = folded.method.filter(|method| Some(*method) == profile.method);
    folded.lost = folded.lost.saturating_add(profile.lost);
    let mut moved: HashMap<u32, u32> = HashMap::new();
    let mut place = |index: u32| {
        *moved.entry(index).or_insert_with(|| match of.frame(index) {
            Some(frame) => {
                let module = of.module(frame).map(|module| folder.module(module.clone()));
                folder.frame(Frame { module, ..frame.clone() })
            }
            None => folder.frame(Frame::mark(UNKNOWN)),
        })
    };
    for stack in &profile.stacks {
        let thread = place(stack.thread);
        let frames = stack.frames.iter().map(|index| place(*index)).collect();
        folded.add(stack.role, thread, frames, stack.value);
    }
}

/// Interns frames and modules while stacks are folded. The first frame stands for what is beyond a bound.
#[derive(Debug)]
pub struct Folder {
    frames: Interned<Frame>,
    modules: Interned<Module>,
}

impl Default for Folder {
    fn default() -> Self {
        let mut folder = Folder { frames: Interned::new(FRAMES_MAX), modules: Interned::new(FRAMES_MAX) };
        folder.frames.index(Frame::mark(TRUNCATED));
        folder
    }
}

impl Folder {
    /// The index of a frame.
    pub fn frame(&mut self, frame: Frame) -> u32 {
        self.frames.index(Frame { symbol: short(frame.symbol), ..frame })
    }

    /// The index of a module.
    pub fn module(&mut self, module: Module) -> u32 {
        self.modules.index(Module { path: short(module.path), ..module })
    }

    /// The frames with the stacks that were folded from them.
    pub fn close(self, on_cpu: Reading<Folded>, off_cpu: Reading<Folded>, unseen: Vec<Missing>) -> Stacks {
        let (on_cpu, off_cpu) = (on_cpu.map(Folded::close), off_cpu.map(Folded::close));
        Stacks { frames: self.frames.all, modules: self.modules.all, on_cpu, off_cpu, unseen }
    }
}

/// Stacks of one kind while they are counted.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    /// As [`Profile::method`].
    pub method: Option<Method>,
    /// As [`Profile::rate_hz`].
    pub rate_hz: Option<f64>,
    /// As [`Profile::lost`].
    pub lost: u64,
    references: usize,
    values: HashMap<(Role, u32, Vec<u32>), u64>,
}

impl Folded {
    /// None yet; at which rate samples are taken.
    pub fn new(rate_hz: Option<f64>) -> Folded {
        Folded { rate_hz, ..Folded::default() }
    }

    /// The same, taken in this way.
    #[must_use]
    pub fn by(self, method: Option<Method>) -> Folded {
        Folded { method, ..self }
    }

    /// Adds to a stack of a thread, outermost caller first.
    pub fn add(&mut self, role: Role, thread: u32, frames: Vec<u32>, value: u64) {
        let room = self.values.len() < STACKS_MAX && self.references + frames.len() <= REFERENCES_MAX;
        match self.values.entry((role, thread, frames)) {
            Entry::Occupied(mut known) => *known.get_mut() = known.get().saturating_add(value),
            Entry::Vacant(new) if room => {
                self.references += new.key().2.len();
                new.insert(value);
            }
            // The folder's first frame; threads are not distinguished, so these are few.
            Entry::Vacant(_) => {
                let beyond = self.values.entry((role, 0, vec![0])).or_default();
                *beyond = beyond.saturating_add(value);
            }
        }
    }

    /// The largest first, so that the order does not depend on chance.
    fn close(self) -> Profile {
        let stacks = self.values.into_iter();
        let mut stacks: Vec<Stack> =
            stacks.map(|((role, thread, frames), value)| Stack { role, thread, frames, value }).collect();
        stacks.sort_by(|one, other| {
            let key = |stack: &Stack| (std::cmp::Reverse(stack.value), stack.role as u8, stack.thread);
            key(one).cmp(&key(other)).then_with(|| one.frames.cmp(&other.frames))
        });
        Profile { method: self.method, rate_hz: self.rate_hz, lost: self.lost, stacks }
    }
}

#[derive(Debug)]
struct Interned<T> {
    all: Vec<T>,
    known: HashMap<T, u32>,
    max: usize,
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn new(max: usize) -> Self {
        Interned { all: Vec::new(), known: HashMap::new(), max }
    }

    /// Its index, the first one's when there is no room.
    fn index(&mut self, item: T) -> u32 {
        if let Some(&index) = self.known.get(&item) {
            return index;
        }
        if self.all.len() >= self.max {
            return 0;
        }
        let index = self.all.len() as u32;
        self.all.push(item.clone());
        self.known.insert(item, index);
        index
    }
}

/// Names are bounded; templates can have thousands of characters.
fn short(name: String) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(symbol: &str) -> Frame {
        Frame { symbol: symbol.into(), module: None, kind: FrameKind::User }
    }

    /// A profile of stacks of small numbers, each its own frame.
    fn stacks(all: &[(Vec<u8>, u64)]) -> Stacks {
        let mut folder = Folder::default();
        let mut folded = Folded::new(Some(999.0));
        let thread = folder.frame(Frame::mark("thread"));
        for (path, value) in all {
            let frames = path.iter().map(|number| folder.frame(frame(&number.to_string()))).collect();
            folded.add(Role::Sut, thread, frames, *value);
        }
        folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new())
    }

    #[test]
    fn what_is_beyond_a_bound_is_counted() {
        let mut folded = Folded::default();
        for number in 0..STACKS_MAX as u32 + 10 {
            folded.add(Role::Sut, 1, vec![number], 2);
        }
        let profile = folded.close();
        assert_eq!(profile.total(Role::Sut), 2 * (STACKS_MAX as u64 + 10));
        assert_eq!(profile.stacks[0], Stack { role: Role::Sut, thread: 0, frames: vec![0], value: 20 });
        let mut folder = Folder::default();
        for number in 0..FRAMES_MAX + 10 {
            folder.frame(frame(&number.to_string()));
        }
        assert_eq!(folder.frame(frame("one more")), 0);
        assert_eq!(folder.frames.all[0].symbol, TRUNCATED);
        assert_eq!(folder.frame(frame("7")), 8);
        assert_eq!(short("ü".repeat(2000)).chars().count(), NAME_CHARS_MAX + 1);
    }

    #[test]
    fn a_profile_that_is_missing_in_one_is_taken_from_the_others() {
        let there = stacks(&[(vec![1], 3)]);
        let gone = Stacks::missing(Missing::new("no right"));
        let merged = Stacks::merged([&gone, &there, &gone, &there]).unwrap();
        assert_eq!(merged.on_cpu.value().unwrap().total(Role::Sut), 6);
        assert_eq!(merged.off_cpu, Reading::missing("no right"));
        assert_eq!(Stacks::merged([]), None);
    }

    #[test]
    fn the_method_is_kept_where_all_have_the_same() {
        let method = Method {
            sampled_by: SampledBy::CpuClock,
            callers_by: CallersBy::Copies,
            named_by: NamedBy::Tables,
            with_kernel: true,
            kernel_named: true,
        };
        let of = |method: Option<Method>| {
            let mut one = stacks(&[(vec![1], 3)]);
            if let Reading::Measured(profile) = &mut one.on_cpu {
                profile.method = method;
            }
            one
        };
        let merged = |all: &[Stacks]| Stacks::merged(all).unwrap().on_cpu.value().unwrap().method;
        let walked = Method { callers_by: CallersBy::FramePointers, ..method };
        assert_eq!(merged(&[of(Some(method)), of(Some(method))]), Some(method));
        assert_eq!(merged(&[of(Some(method)), of(Some(walked))]), None);
        assert_eq!(merged(&[of(None), of(Some(method))]), None);
        assert_ne!(method.words(), walked.words());
        // What was written before it was recorded is still read.
        let old = r#"{"rate_hz":999.0,"lost":0,"stacks":[]}"#;
        assert_eq!(serde_json::from_str::<Profile>(old).unwrap().method, None);
    }

    proptest! {
        #[test]
        fn merging_adds_every_stack(
            one in prop::collection::vec((prop::collection::vec(0u8..6, 0..5), 1u64..9), 0..20),
            other in prop::collection::vec((prop::collection::vec(0u8..6, 0..5), 1u64..9), 0..20),
        ) {
            let (a, b) = (stacks(&one), stacks(&other));
            let both: Vec<_> = one.iter().chain(&other).cloned().collect();
            let merged = Stacks::merged([&a, &b]).unwrap();
            prop_assert!(merged.is_whole() && a.is_whole());
            let named = |stacks: &Stacks| {
                let profile = stacks.on_cpu.value().unwrap();
                let name = |index: &u32| stacks.frame(*index).unwrap().symbol.clone();
                let all = profile.stacks.iter();
                let mut all: Vec<(Vec<String>, u64)> =
                    all.map(|stack| (stack.frames.iter().map(name).collect(), stack.value)).collect();
                all.sort();
                all
            };
            prop_assert_eq!(named(&merged), named(&stacks(&both)));
        }
    }
}
