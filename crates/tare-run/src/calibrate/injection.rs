//! What an injection is, and what it works with.

use super::hosts::Hosts;
use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use crate::subjects::embedded::embedded;
use crate::subjects::program::find_program;
use crate::subjects::sut::Sut;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tare_explain::bottlenecks;
use tare_load::{CONNECTIONS_DEFAULT, LoadSpec, Target};
use tare_machine::Root;
use tare_machine::journal::{GroupError, Journal, MadeGroup, place_for_groups};
use tare_model::outcome::Cause;

/// Stands for the server until it is up and its port known.
const ANYWHERE: &str = "http://127.0.0.1/";
/// A CPU that is never idle.
const BUSY_LOOP: &str = "while :; do :; done";

/// A known weight: how a cause is put up for real. Which one it is, is said by the bottleneck that names it.
pub(crate) struct Injection {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is done, in a few words.
    pub about: &'static str,
    /// What it cannot be made without.
    pub needs: &'static [Need],
    /// Changes the scene, which is an undisturbed one.
    pub put_up: fn(&Ground<'_>, &mut Scene) -> Result<(), LabError>,
}

impl Injection {
    /// What it is right to find: any of the causes that name it.
    pub fn expected(&self) -> impl Iterator<Item = Cause> {
        let named = bottlenecks::all().iter().filter(|one| one.injections.contains(&self.name));
        named.map(|bottleneck| bottleneck.cause)
    }

    pub fn expects(&self, cause: Cause) -> bool {
        bottlenecks::of(cause).injections.contains(&self.name)
    }
}

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
            Need::Pmu => (!place.pmu).then(|| "it needs hardware counters (a PMU) to be told".into()),
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

/// A session as it will be held. Undisturbed, it is a server on one CPU and a generator on another.
pub(crate) struct Scene {
    /// The server that is measured, and its load.
    pub server: Server,
    /// A program with its arguments that is measured in its stead, on its CPU.
    pub command: Option<Vec<String>>,
    /// Counted trials.
    pub trials: u32,
    /// Length of each.
    pub trial: Duration,
    /// Load before the first.
    pub warmup: Duration,
    /// The hosts that server and generator are on, where they are not on this one, and the options of `tare run` there.
    pub apart: Option<(Hosts, Vec<String>)>,
    /// What is put up around it: taken down when all is over, the last first.
    pub held: Vec<Box<dyn Any>>,
}

/// The server, and its load.
pub(crate) struct Server {
    /// A program with its arguments that says `listening on ADDRESS` first; `None`: the built-in one.
    pub program: Option<Vec<String>>,
    /// Options of `tare serve`.
    pub options: Vec<String>,
    /// CPUs that it may use.
    pub cpus: Vec<u32>,
    /// `cgroup.procs` of its control groups.
    pub groups: Vec<PathBuf>,
    /// What it is asked for.
    pub path: String,
    /// The rest of the load.
    pub traffic: LoadSpec,
    /// Threads of the generator.
    pub load_threads: u32,
    /// Its CPUs.
    pub load_cpus: Vec<u32>,
    /// Whether the verdict needs a saturating level beside the asked one.
    pub levels: bool,
}

impl Scene {
    /// Nothing in the way.
    pub fn undisturbed(place: &Place) -> Result<Scene, LabError> {
        let target = Target::parse(ANYWHERE).map_err(|error| LabError::usage(error.to_string(), ""))?;
        let server = Server {
            program: None,
            options: vec!["--threads".into(), "1".into()],
            cpus: vec![place.sut_cpu],
            groups: Vec::new(),
            path: "/plaintext".into(),
            traffic: LoadSpec { connections: CONNECTIONS_DEFAULT, ..LoadSpec::new(target) },
            load_threads: 1,
            load_cpus: vec![place.load_cpu],
            levels: false,
        };
        Ok(Scene {
            server,
            command: None,
            trials: 3,
            trial: Duration::from_secs(1),
            warmup: Duration::from_millis(300),
            apart: None,
            held: Vec::new(),
        })
    }

    /// Puts server and generator on two hosts with a link between them, to be loaded so.
    pub fn two_hosts(&mut self, ground: &Ground<'_>, load: &[&str]) -> Result<&Hosts, LabError> {
        let load_cpus = ground.place.load_cpu.to_string();
        let usual =
            ["--load-cpus", &load_cpus, "--no-levels", "--trials", "2", "-d", "1500ms", "-w", "300ms"];
        let options = usual.iter().chain(load).map(|word| (*word).to_owned()).collect();
        Ok(&self.apart.insert((Hosts::new(ground)?, options)).0)
    }

    /// Keeps something up until all is over.
    pub fn hold(&mut self, what: impl Any) {
        self.held.push(Box::new(what));
    }

    /// Takes down what was put up, the last first.
    pub fn take_down(mut self) {
        while let Some(last) = self.held.pop() {
            drop(last);
        }
    }
}

impl Server {
    /// The words that start it on an address, with the built-in server's program.
    pub fn words(&self, program: &Path, address: &str) -> Vec<String> {
        let built_in =
            [program.display().to_string(), "serve".into(), "--listen".into(), format!("{address}:0")];
        self.program.clone().unwrap_or_else(|| built_in.iter().chain(&self.options).cloned().collect())
    }

    /// Has so many threads, on these CPUs, not each on one of them.
    pub fn threads(&mut self, count: u32, cpus: &[u32]) {
        self.options = vec!["--threads".into(), count.to_string()];
        self.cpus = cpus.to_vec();
    }

    /// Has further options.
    pub fn option(&mut self, name: &str, value: &str) {
        self.options.extend([name.to_owned(), value.to_owned()]);
    }
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

/// A group that cannot be made, or does not take a value.
pub(crate) fn refused(error: GroupError) -> LabError {
    LabError::State(error.to_string())
}
