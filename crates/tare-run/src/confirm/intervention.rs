//! What an intervention is, and what it works with.

use std::path::Path;
use std::rc::Rc;
use tare_load::LoadSpec;
use tare_machine::journal::Journal;
use tare_machine::placement::Placement;
use tare_model::Missing;
use tare_model::outcome::{Outcome, RoleAccounting};
use tare_model::topology::Topology;

/// A change of one resource that shows whether it is the bottleneck.
pub(crate) struct Intervention {
    /// By which a bottleneck names it.
    pub name: &'static str,
    /// The least elasticity that the cause implies. One that alone holds the rate is followed with an elasticity of 1; half of that
    /// allows for a change that goes beyond what was short, and for what else a request takes.
    pub floor: f64,
    /// Says what is to be changed here, and how.
    pub prepare: for<'a> fn(&Ground<'a>) -> Result<Change<'a>, Missing>,
}

/// What an intervention may look at and use.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// What was found.
    pub outcome: &'a Outcome,
    /// The server's processes.
    pub pids: &'a [u32],
    /// The load as it was asked for.
    pub spec: &'a LoadSpec,
    /// The generator's threads, at work.
    pub load_tids: &'a [u32],
    pub placement: &'a Placement,
    pub topology: &'a Topology,
    pub journal: &'a Rc<Journal>,
    /// Where the lock on settings is taken.
    pub state_dir: &'a Path,
}

/// What is changed.
pub(crate) struct Change<'a> {
    /// In words.
    pub what: String,
    /// Unit of the resource.
    pub unit: &'static str,
    /// How much there is of it.
    pub before: f64,
    /// How much there is when it is changed.
    pub changed: f64,
    pub by: Lever<'a>,
}

/// How it is changed.
pub(crate) enum Lever<'a> {
    /// While the same load goes on.
    Toggle(Box<dyn Toggle + 'a>),
    /// By another load.
    Load(Box<LoadSpec>),
}

/// Something that is changed and put back, again and again; dropping it puts it back for good.
pub(crate) trait Toggle {
    /// # Errors
    /// It cannot be changed here.
    fn set(&mut self, changed: bool) -> Result<(), Missing>;
}

impl<'a> Ground<'a> {
    /// The server's accounting.
    pub fn server(&self) -> Result<&'a RoleAccounting, Missing> {
        self.outcome
            .accounting
            .sut
            .as_ref()
            .ok_or_else(|| Missing::new("the server cannot be seen from here"))
    }
}
