//! Flame graphs: folded stacks to drawings, and to and from what other tools read.
//!
//! A drawing is `inferno`'s. Each function here takes the stacks of one session ([`of_record`]) or what another tool
//! recorded ([`import`]), and a [`Choice`] of what of them is shown.

mod firefox;
mod import;
mod pprof;
mod svg;

pub use firefox::firefox;
pub use import::import;
pub use pprof::pprof;
pub(crate) use svg::inline;
pub use svg::{difference, folded_difference, svg};

use std::fmt::Write;
use tare_model::observation::Role;
use tare_model::plan::{Purpose, Workload};
use tare_model::stacks::{Frame, FrameKind, Profile, Stack, Stacks};
use tare_model::{Missing, Reading, Record};

/// What a timer cannot see, in one sentence.
pub const BLIND_SPOT: &str =
    "a timer cannot interrupt code that has interrupts off: its time shows where they are let on again";

/// What of the stacks is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Whose.
    pub role: Role,
    /// Where threads waited instead of what ran.
    pub off_cpu: bool,
    /// Threads apart, by name.
    pub by_thread: bool,
}

/// Why there is no flame graph.
#[derive(Debug, thiserror::Error)]
pub enum FlameError {
    /// There are no stacks to show.
    #[error("there are no stacks: {}{}", .0.why, hint(.0))]
    None(Missing),
    /// There are stacks, but none of this role.
    #[error("no stack of {0} was seen (was it running, and long enough?)")]
    Empty(&'static str),
    /// The text that was to be imported holds no stacks.
    #[error("this is neither the output of `perf script` nor folded stacks: {0}")]
    NotStacks(String),
    /// The drawing failed.
    #[error("the flame graph cannot be drawn: {0}")]
    Drawing(String),
}

fn hint(missing: &Missing) -> String {
    if missing.remedy.is_empty() { String::new() } else { format!(" ({})", missing.remedy) }
}

/// The stacks of the load that was asked for, all trials together.
///
/// # Errors
/// No trial has any.
pub fn of_record(record: &Record) -> Result<Stacks, FlameError> {
    let asked = |level: u32| match &record.plan.workload {
        Workload::Http(http) => {
            http.levels.get(level as usize).is_some_and(|level| level.purpose == Purpose::Asked)
        }
        Workload::Command(_) => true,
    };
    let trials = record.trials.iter().filter(|trial| asked(trial.level));
    let none = || Missing::with_remedy("the record has none", "measure with 'tare run --stacks'");
    Stacks::merged(trials.filter_map(|trial| trial.observation.stacks.as_deref()))
        .ok_or_else(|| FlameError::None(none()))
}

/// The chosen profile and those of its stacks that are chosen.
fn chosen<'a>(stacks: &'a Stacks, choice: &Choice) -> Result<(&'a Profile, Vec<&'a Stack>), FlameError> {
    let kind = if choice.off_cpu { &stacks.off_cpu } else { &stacks.on_cpu };
    let profile = match kind {
        Reading::Measured(profile) => profile,
        other => return Err(FlameError::None(other.clone().ok().err().unwrap_or_else(|| Missing::new("")))),
    };
    let of = profile.stacks.iter().filter(|stack| stack.role == choice.role && stack.value > 0);
    let of: Vec<&Stack> = of.collect();
    if of.is_empty() { Err(FlameError::Empty(whose(choice.role))) } else { Ok((profile, of)) }
}

/// A role in words.
fn whose(role: Role) -> &'static str {
    match role {
        Role::Sut => "the server",
        Role::Load => "the load generator",
        Role::Tare => "tare",
        Role::Other => "others",
    }
}

/// The frames that a stack shows, outermost first: with its thread's name where threads are told apart.
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

#[cfg(test)]
mod tests;
