//! What an injection is, and the scene that it changes.

use super::ground::{Ground, Need, Place};
use super::hosts::Hosts;
use crate::error::LabError;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_explain::bottlenecks;
use tare_load::{CONNECTIONS_DEFAULT, LoadSpec, Target};
use tare_model::outcome::Cause;

/// Stands for the server until it is up and its port known.
const ANYWHERE: &str = "http://127.0.0.1/";

/// How a cause is put up for real. Which one it is, says the bottleneck that names it.
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
