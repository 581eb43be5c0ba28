//! What a knob is, and its way to where it is wanted.

use super::wanted::Wanted;
use crate::root::Root;
use crate::value::Step;
use std::fmt;
use tare_model::Missing;

/// Something that can be turned. Its name is the name of its option too, where it has only one.
pub trait Knob: fmt::Debug + Sync {
    /// `governor`, `huge-pages` …: a name that other rooms may quote.
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
    /// As [`Knob::now`]; also when this machine cannot do what is wanted.
    fn course(&self, root: &Root, wanted: &Wanted) -> Option<Result<Course, Missing>>;
}

/// The way of one knob to where it is wanted. No steps: it is there already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Settings to change, in this order; they are put back in the reverse one.
    pub steps: Vec<Step>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

impl Course {
    pub(super) fn of(steps: impl IntoIterator<Item = Option<Step>>) -> Course {
        Course { steps: steps.into_iter().flatten().collect(), notes: Vec::new() }
    }
}

/// What is to be done with one knob.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The knob.
    pub knob: &'static dyn Knob,
    /// Its steps, or why it cannot be turned here.
    pub course: Result<Course, Missing>,
}
