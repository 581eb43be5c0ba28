//! Stacks for the Firefox Profiler, in its processed profile format.

use super::choice::{Choice, FlameError, chosen, whose};
use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame as Shown, FrameFlags, FrameInfo, ProcessHandle, Profile, SamplingInterval,
    ThreadHandle, Timestamp, WeightType,
};
use std::collections::HashMap;
use std::time::SystemTime;
use tare_model::stacks::{FrameKind, Stacks};

/// Nanoseconds in the unit that waiting is measured in.
const MILLISECOND_NS: u64 = 1_000_000;

/// The chosen stacks as JSON for <https://profiler.firefox.com>: a thread for each name, each distinct stack one sample
/// with its weight (samples; off the CPU whole milliseconds, so that shorter waits round to 0 or 1).
///
/// # Errors
/// There are none.
pub fn firefox(stacks: &Stacks, choice: &Choice) -> Result<String, FlameError> {
    let (profile, of) = chosen(stacks, choice)?;
    let interval_ns = profile.rate_hz.map_or(MILLISECOND_NS, |hz| (1e9 / hz) as u64);
    let start = SystemTime::UNIX_EPOCH;
    let mut all = Profile::new("tare", start.into(), SamplingInterval::from_nanos(interval_ns));
    let kernel = all.add_category("Kernel", CategoryColor::Orange);
    let user = all.add_category("User", CategoryColor::Yellow);
    let jit = all.add_category("JIT", CategoryColor::Green);
    let begin = Timestamp::from_nanos_since_reference(0);
    let process = all.add_process(whose(choice.role), 1, begin);
    let mut threads: HashMap<u32, (ThreadHandle, u64)> = HashMap::new();
    for stack in of {
        let next = threads.len() as u32 + 1;
        let (thread, at_ns) = threads.entry(stack.thread).or_insert_with(|| {
            let name = stacks.frame(stack.thread).map_or("", |frame| frame.symbol.as_str());
            (add_thread(&mut all, process, next, name, choice.off_cpu), 0)
        });
        let mut infos = Vec::with_capacity(stack.frames.len());
        for frame in stack.frames.iter().filter_map(|index| stacks.frame(*index)) {
            let category = match frame.kind {
                FrameKind::Kernel => kernel,
                FrameKind::Jit => jit,
                FrameKind::User | FrameKind::Vdso | FrameKind::Mark => user,
            };
            let label = Shown::Label(all.intern_string(&frame.symbol));
            infos.push(FrameInfo {
                frame: label,
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            });
        }
        let weight = match choice.off_cpu {
            true => (stack.value + MILLISECOND_NS / 2) / MILLISECOND_NS,
            false => stack.value,
        };
        let handle = all.intern_stack_frames(*thread, infos.into_iter());
        let when = Timestamp::from_nanos_since_reference(*at_ns);
        let weight_shown = i32::try_from(weight).unwrap_or(i32::MAX);
        all.add_sample(*thread, when, handle, CpuDelta::ZERO, weight_shown);
        *at_ns = at_ns.saturating_add(weight.max(1).saturating_mul(interval_ns));
    }
    all.set_symbolicated(true);
    serde_json::to_string(&all).map_err(|error| FlameError::Drawing(error.to_string()))
}

fn add_thread(
    all: &mut Profile,
    process: ProcessHandle,
    tid: u32,
    name: &str,
    off_cpu: bool,
) -> ThreadHandle {
    let begin = Timestamp::from_nanos_since_reference(0);
    let thread = all.add_thread(process, tid, begin, false);
    all.set_thread_name(thread, name);
    let kind = if off_cpu { WeightType::TracingMs } else { WeightType::Samples };
    all.set_thread_samples_weight_type(thread, kind);
    thread
}
