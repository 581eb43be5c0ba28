//! What is wanted of an arm.

use tare_machine::settings::Wanted;
use tare_model::placement::Policy;
use tare_model::treatment::TreatmentScope;

/// What a program is run with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Treatment {
    /// As it was given, for the result.
    pub given: Vec<Given>,
    /// Settings of the whole machine.
    pub machine: Wanted,
    /// A pool of huge pages, by number or as the program's memory needs it.
    pub huge_pages: Option<HugePages>,
    /// Variables of the program's environment.
    pub environment: Vec<(String, String)>,
    /// The program gets no transparent huge pages, whatever the machine's setting is.
    pub no_thp: bool,
    /// How the program's CPUs are chosen.
    pub placement: Option<Policy>,
}

/// A setting, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whom it is for.
    pub scope: TreatmentScope,
}

/// How large the pool of huge pages is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePages {
    /// As the memory of the program needs it, found out by a run of A.
    Auto,
    /// So many pages.
    Pages(u64),
}

impl Treatment {
    /// Whether there is nothing of it.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Whether the same would be done for both, but for where they run.
    pub(crate) fn same_but_for_place(&self, other: &Treatment) -> bool {
        let all = |of: &Treatment| (of.machine.clone(), of.huge_pages, of.environment.clone(), of.no_thp);
        all(self) == all(other)
    }

    /// Whether something of it is for the whole machine: arms cannot run beside each other then.
    pub(crate) fn is_machine_wide(&self) -> bool {
        self.huge_pages.is_some() || self.machine != Wanted::default()
    }
}
