//! Stacks as text, and how many there are.

use super::choice::{Choice, FlameError, chosen, hint};
use std::fmt::Write;
use tare_model::stacks::{Frame, FrameKind, Stack, Stacks};

/// What a timer cannot see, in one sentence.
pub const BLIND_SPOT: &str =
    "a timer cannot interrupt code that has interrupts off: its time shows where they are let on again";

/// The frames that a stack shows, outermost first: with its thread's name where threads are distinguished.
fn frames<'a>(stacks: &'a Stacks, stack: &'a Stack, choice: &Choice) -> impl Iterator<Item = &'a Frame> {
    let thread = choice.by_thread.then_some(stack.thread);
    thread.into_iter().chain(stack.frames.iter().copied()).filter_map(|index| stacks.frame(index))
}

/// The chosen stacks as text: frames joined by `;`, a space, and samples (nanoseconds off the CPU), a line each; kernel
/// frames end in `_[k]`, those of run-time compilers in `_[j]`.
///
/// # Errors
/// There are none.
pub fn folded(stacks: &Stacks, choice: &Choice) -> Result<String, FlameError> {
    let (_, of) = chosen(stacks, choice)?;
    let mut lines = std::collections::BTreeMap::<String, u64>::new();
    for stack in of {
        let mut line = String::new();
        for frame in frames(stacks, stack, choice) {
            if !line.is_empty() {
                line.push(';');
            }
            line.extend(frame.symbol.chars().map(|c| if c == ';' || c.is_control() { ':' } else { c }));
            line.push_str(suffix(frame.kind));
        }
        let value = lines.entry(line).or_default();
        *value = value.saturating_add(stack.value);
    }
    let mut text = String::new();
    for (line, value) in lines {
        // Writing into a string cannot fail.
        writeln!(text, "{line} {value}").ok();
    }
    Ok(text)
}

/// How `stackcollapse-perf` marks frames.
fn suffix(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Kernel => "_[k]",
        FrameKind::Jit => "_[j]",
        FrameKind::User | FrameKind::Vdso | FrameKind::Mark => "",
    }
}

/// How much there is, at which rate, and what is not in it.
pub fn facts(stacks: &Stacks, choice: &Choice) -> Result<String, FlameError> {
    let (profile, of) = chosen(stacks, choice)?;
    let total = of.iter().fold(0u64, |sum, stack| sum.saturating_add(stack.value));
    let mut words = match profile.rate_hz {
        _ if choice.off_cpu => format!("{:.3} s off the CPU", total as f64 / 1e9),
        Some(hz) => format!("{total} samples at {hz} Hz; {BLIND_SPOT}"),
        None => format!("{total} samples"),
    };
    if profile.lost > 0 {
        write!(words, "; {} were lost", profile.lost).ok();
    }
    for missing in &stacks.unseen {
        write!(words, "; {}{}", missing.why, hint(missing)).ok();
    }
    Ok(words)
}
