//! What of the stacks is shown, and what keeps them from being shown.

use tare_model::observation::Role;
use tare_model::plan::{Purpose, Workload};
use tare_model::stacks::{Profile, Stack, Stacks};
use tare_model::{Missing, Reading, Record};

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

pub(super) fn hint(missing: &Missing) -> String {
    if missing.remedy.is_empty() { String::new() } else { format!(" ({})", missing.remedy) }
}

/// The stacks of the load that was asked for, all trials together; where they were not sampled there, those of the profile after them.
///
/// # Errors
/// The record has none.
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
        .or_else(|| Stacks::merged(&record.profile))
        .ok_or_else(|| FlameError::None(none()))
}

/// The chosen profile and those of its stacks that are chosen.
pub(super) fn chosen<'a>(
    stacks: &'a Stacks,
    choice: &Choice,
) -> Result<(&'a Profile, Vec<&'a Stack>), FlameError> {
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
pub(super) fn whose(role: Role) -> &'static str {
    match role {
        Role::Sut => "the server",
        Role::Downstream => "the downstream",
        Role::Load => "the load generator",
        Role::Tare => "tare",
        Role::Other => "others",
    }
}
