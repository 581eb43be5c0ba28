//! What a setting is, and how it is changed.

use super::wanted::Wanted;
use crate::root::Root;
use crate::value::Step;
use std::fmt;
use tare_model::Missing;

/// Something of the machine that can be changed. Its name is the name of its option too, where it has only one.
pub trait Setting: fmt::Debug + Sync {
    /// `governor`, `huge-pages` …: a name that other crates may quote.
    fn name(&self) -> &'static str;

    /// What it holds still, in a few words.
    fn about(&self) -> &'static str;

    /// How it stands, in words.
    ///
    /// # Errors
    /// This machine does not have it, or its files make no sense: why, and what to do instead.
    fn now(&self, root: &Root) -> Result<String, Missing>;

    /// The steps to what is wanted of it; `None` when nothing is.
    ///
    /// # Errors
    /// As [`Setting::now`]; also when this machine cannot do what is wanted.
    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>>;
}

/// What changes one setting to what is wanted. No steps: it has that value already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Settings to change, in this order; they are put back in the reverse one.
    pub steps: Vec<Step>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

impl Change {
    pub(super) fn of(steps: impl IntoIterator<Item = Option<Step>>) -> Change {
        Change { steps: steps.into_iter().flatten().collect(), notes: Vec::new() }
    }
}

/// What is to be done with one setting.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The setting.
    pub setting: &'static dyn Setting,
    /// Its steps, or why it cannot be changed here.
    pub change: Result<Change, Missing>,
}
