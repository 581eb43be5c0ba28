//! Where injections are put up, and what they may use.

use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use crate::subjects::embedded::embedded;
use crate::subjects::program::find_program;
use crate::subjects::sut::Sut;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tare_machine::journal::{GroupError, Journal, MadeGroup, place_for_groups};
use tare_machine::placement::{self, Wanted};
use tare_machine::{Root, facts, topology};

/// A CPU that is never idle.
const BUSY_LOOP: &str = "while :; do :; done";

/// How often a wait looks.
const POLL: Duration = Duration::from_millis(5);

/// What an injection cannot be made without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// So many online CPUs.
    Cpus(usize),
    /// A sibling of the server's CPU on the same core.
    Sibling,
    /// Control groups with this controller.
    Controller(&'static str),
    /// Hardware counters: without them its rule cannot judge.
    Pmu,
    /// Network namespaces that may be made, and what links them.
    Hosts,
    /// A program.
    Program(&'static str),
}

impl Need {
    /// Why it is not there; `None` where it is.
    pub fn missing(self, place: &Place) -> Option<String> {
        match self {
            Need::Cpus(wanted) if place.cpus.len() < wanted => {
                Some(format!("it needs {wanted} CPUs, and there are {}", place.cpus.len()))
            }
            Need::Cpus(_) => None,
            Need::Sibling if place.sibling.is_none() => Some("no CPU shares its core with another".into()),
            Need::Sibling => None,
            Need::Pmu => (!place.pmu).then(|| "it needs hardware counters (a PMU) to be seen".into()),
            Need::Hosts if !tare_sys::process::is_root() => {
                Some("only root may make network namespaces".into())
            }
            Need::Hosts => {
                ["unshare", "nsenter", "ip"].iter().find_map(|name| Need::Program(name).missing(place))
            }
            Need::Program(name) => find_program(name).err().map(|_| format!("{name} is not installed")),
            Need::Controller(name) => place_for_groups(&Root::live(), name).err().map(|missing| {
                let hint = Some(missing.remedy).filter(|remedy| !remedy.is_empty());
                missing.why + &hint.map_or(String::new(), |hint| format!(" (hint: {hint})"))
            }),
        }
    }
}

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Online CPUs.
    pub cpus: Vec<u32>,
    /// The server's CPU.
    pub sut_cpu: u32,
    /// The generator's.
    pub load_cpu: u32,
    /// Another CPU on the server's core.
    pub sibling: Option<u32>,
    /// Whether there are hardware counters.
    pub pmu: bool,
}

/// What an injection may use.
pub(crate) struct Ground<'a> {
    pub place: &'a Place,
    pub journal: &'a Rc<Journal>,
    /// The program that is the built-in server.
    pub program: &'a Path,
    pub interrupt: &'a std::sync::atomic::AtomicBool,
}

impl Ground<'_> {
    /// Somebody who uses a CPU for all he can get.
    pub fn neighbour(&self, cpu: u32) -> Result<Started, LabError> {
        let words = ["sh", "-c", BUSY_LOOP].map(String::from).to_vec();
        self.start("a neighbour", words, vec![cpu])
    }

    /// Any process.
    pub fn start(&self, what: &str, words: Vec<String>, cpus: Vec<u32>) -> Result<Started, LabError> {
        let launch = Launch {
            what,
            words,
            cpus,
            groups: Vec::new(),
            environment: Vec::new(),
            output: Output::KeepErrors,
        };
        Started::launch(&launch, self.journal)
    }

    /// Another server, with the test bodies.
    pub fn server(&self, cpu: u32) -> Result<Sut, LabError> {
        embedded(self.program, &[cpu], &[], self.journal, self.interrupt)
    }

    /// A control group with a controller.
    pub fn group(&self, controller: &str) -> Result<MadeGroup, LabError> {
        MadeGroup::make(self.journal, &Root::live(), controller).map_err(refused)
    }
}

/// A CPU for the server and another one for the generator, on another core where there is one.
pub(super) fn place() -> Result<Place, LabError> {
    let topology = topology::read(&Root::live(), None);
    let wanted = Wanted {
        sut_allowed: &[],
        sut_threads: 1,
        load_threads: 1,
        given_sut: &[],
        given_load: &[],
        policy: Default::default(),
        quota_cpus: None,
    };
    let placement =
        placement::choose(&topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))?;
    let (Some(sut_cpu), Some(load_cpu)) = (placement.sut_cpus.first(), placement.load_cpus.first()) else {
        return Err(LabError::usage("there is no CPU to measure on", "see 'tare doctor --topology'"));
    };
    let own = topology.cpus.iter().find(|place| place.cpu == *sut_cpu);
    let sibling = own.and_then(|own| own.siblings.iter().find(|cpu| cpu != sut_cpu));
    let cpus = topology.cpus.iter().map(|place| place.cpu).collect();
    let pmu = facts::read(&Root::live()).pmu.value() == Some(&true);
    Ok(Place { cpus, sut_cpu: *sut_cpu, load_cpu: *load_cpu, sibling, pmu })
}

/// A group that cannot be made, or does not take a value.
pub(super) fn refused(error: GroupError) -> LabError {
    LabError::State(error.to_string())
}

/// Waits until something is so, for so long at most.
pub(crate) fn until(
    what: &str,
    within: Duration,
    ground: &Ground<'_>,
    is_so: impl Fn() -> bool,
) -> Result<(), LabError> {
    let deadline = Instant::now() + within;
    while !is_so() {
        if ground.interrupt.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if Instant::now() > deadline {
            return Err(LabError::State(format!("{what}: not done within {} s", within.as_secs())));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
