//! Measures instances block by block: each alone and several together, in an order drawn at random.

use super::super::level::Measured;
use super::super::pace::Pace;
use super::super::sweep::{FIRST_RUN, Setup, Sweep, Swept};
use super::super::warnings::warnings;
use super::crew;
use super::kept::Kept;
use super::part::Part;
use super::place::{Place, places};
use crate::blocks::shuffle;
use crate::error::LabError;
use crate::ports::free_ports;
use crate::progress::{Event, Progress};
use crate::records;
use crate::request::{LoadRequest, Request};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tare_machine::{Root, placement, topology};
use tare_model::topology::Topology;
use tare_model::warning::Warning;
use tare_stats::SplitMix64;

/// What is measured at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stint {
    /// An instance alone, from 0.
    Alone(usize),
    /// So many together.
    Together(u32),
}

/// Measures instances. What was measured before a failure or an interruption is kept.
pub(in super::super) fn run(sweep: &Sweep, setup: &Setup, progress: &mut dyn Progress) -> Swept {
    let topology = topology::read(&Root::live(), None);
    let mut running = Running {
        sweep,
        setup,
        pace: Pace { budget: sweep.budget, blocks: sweep.blocks, trial: sweep.trial },
        topology,
        places: Vec::new(),
        seed: sweep.seed.unwrap_or_else(tare_sys::time::monotonic_ns),
        begun: Instant::now(),
        trial: Duration::ZERO,
        first_run_s: None,
        kept: Kept::default(),
        blocks: 0,
        notes: Vec::new(),
    };
    let end = running.prepare().and_then(|()| running.all(progress));
    running.swept(end)
}

struct Running<'a> {
    sweep: &'a Sweep,
    setup: &'a Setup,
    pace: Pace,
    topology: Topology,
    /// Of every instance.
    places: Vec<Place>,
    seed: u64,
    begun: Instant,
    trial: Duration,
    /// How long the first run of a program took.
    first_run_s: Option<f64>,
    kept: Kept,
    blocks: u32,
    notes: Vec<Warning>,
}

impl Running<'_> {
    /// Judges what was asked for, and says which CPUs are whose.
    fn prepare(&mut self) -> Result<(), LabError> {
        let mut order = placement::growing(&self.topology);
        if let Request::Server(server) = &self.sweep.request {
            let given = server.place.load_cpus.as_deref().unwrap_or_default();
            order.retain(|one| !given.contains(&one.cpu));
        }
        let first = self.sweep.levels.first(true);
        let most = first.last().copied().unwrap_or(1.0);
        self.sweep.factor.check(&first, &self.sweep.request, &order)?;
        self.sweep.prepared(&order)?;
        if most < 2.0 {
            return Err(LabError::usage(
                "--instances 1: one instance has no other beside it",
                "give the number that runs at once, as --instances 4, or several, as --instances 1..4",
            ));
        }
        let each = self.sweep.instances.cpus_each.max(1);
        if each > order.len() {
            return Err(LabError::usage(
                format!("--cpus-each: {each} is more than the {} CPUs that there are", order.len()),
                "'tare doctor --topology' draws them",
            ));
        }
        let count = most as usize;
        self.places = places(&order, count, each);
        self.kept = Kept::of(count);
        self.note(each, order.len());
        self.setup.make_folder()
    }

    /// Says where instances or their generators have no CPUs of their own.
    fn note(&mut self, each: usize, there: usize) {
        let count = self.places.len();
        if count * each > there {
            self.notes.push(Warning {
                id: "instances-share-cpus".to_owned(),
                text: format!(
                    "{count} instances with {each} CPUs each need {}, and there are {there}: some share them",
                    count * each
                ),
                hint: "fewer instances, or fewer --cpus-each, show what they lose beside that".to_owned(),
            });
        }
        let makes_load = match &self.sweep.request {
            Request::Server(server) => {
                !matches!(server.load, LoadRequest::Pid(_)) && server.place.load_cpus.is_none()
            }
            Request::Program(_) => false,
        };
        if makes_load && self.places.iter().any(|place| place.load_cpus.is_empty()) {
            self.notes.push(Warning {
                id: "generators-share-cpus".to_owned(),
                text:
                    "no CPU is left that no instance has, so the load generators run on CPUs of the instances"
                        .to_owned(),
                hint: "fewer instances or fewer --cpus-each leave CPUs for the generators".to_owned(),
            });
        }
    }

    fn all(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        progress.show(Event::Expected { total_s: self.sweep.budget.as_secs_f64() });
        let mut random = SplitMix64::new(self.seed);
        let mut levels: Vec<u32> = self.sweep.levels.first(true).into_iter().map(|n| n as u32).collect();
        levels.retain(|n| *n > 1);
        let mut all: Vec<Stint> = (0..self.places.len()).map(Stint::Alone).collect();
        all.extend(levels.iter().copied().map(Stint::Together));
        self.trial = self.pace.trial(all.len());
        if let Request::Program(_) = self.sweep.request {
            self.first_run(all.len(), progress)?;
        }
        let begun = Instant::now();
        let mut next = all.clone();
        while !next.is_empty() {
            shuffle(&mut next, &mut random);
            for stint in &next {
                self.launch(*stint, all.len(), progress)?;
            }
            next = self.refine(&mut all);
        }
        self.blocks = 1;
        let mut block = begun.elapsed();
        self.foretell(all.len(), block, progress);
        while self.pace.goes_on(self.blocks, self.begun.elapsed(), block) {
            let begun = Instant::now();
            shuffle(&mut all, &mut random);
            for stint in &all {
                self.launch(*stint, all.len(), progress)?;
            }
            block = begun.elapsed();
            self.blocks += 1;
        }
        Ok(())
    }

    /// Adds levels where the curve bends, and says which those are.
    fn refine(&self, all: &mut Vec<Stint>) -> Vec<Stint> {
        let next = self.sweep.levels.next(&self.kept.seen(), true);
        let next: Vec<Stint> = next
            .into_iter()
            .map(|n| Stint::Together(n as u32))
            .filter(|stint| *stint != Stint::Together(1) && !all.contains(stint))
            .collect();
        all.extend(&next);
        next
    }

    /// Says how long all takes, now that a block is known.
    fn foretell(&self, stints: usize, block: Duration, progress: &mut dyn Progress) {
        let expected = self.pace.expected(self.begun.elapsed(), block);
        progress.show(Event::Expected { total_s: expected.as_secs_f64() });
        if self.sweep.blocks.is_none() && expected > self.sweep.budget {
            progress.show(Event::Notice(format!(
                "3 blocks of {stints} launches (each instance alone, and together) take about {:.0} s, more than the budget of {:.0} s",
                expected.as_secs_f64(),
                self.sweep.budget.as_secs_f64()
            )));
        }
    }

    /// A run of a program, which shows how long one takes; it is in no figure.
    fn first_run(&mut self, stints: usize, progress: &mut dyn Progress) -> Result<(), LabError> {
        let measured = self.measure(Stint::Alone(0), FIRST_RUN, stints, progress)?;
        self.first_run_s = measured.first().and_then(|launch| launch.run_s);
        Ok(())
    }

    fn launch(&mut self, stint: Stint, stints: usize, progress: &mut dyn Progress) -> Result<(), LabError> {
        let name = match stint {
            Stint::Alone(i) => format!("block-{:04}-alone-i{}.tare", self.kept.alone[i].len() + 1, i + 1),
            Stint::Together(n) => {
                let block = self.kept.together.get(&n).map_or(0, Vec::len) + 1;
                format!("block-{block:04}-instances-{n}.tare")
            }
        };
        let mut measured = self.measure(stint, &name, stints, progress)?;
        match stint {
            Stint::Alone(i) => self.kept.alone[i].append(&mut measured),
            Stint::Together(n) => self.kept.together.entry(n).or_default().push(measured),
        }
        self.kept.settle();
        Ok(())
    }

    /// Measures the instances of a launch, and reads their records.
    fn measure(
        &self,
        stint: Stint,
        name: &str,
        stints: usize,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Measured>, LabError> {
        let (who, words): (Vec<usize>, String) = match stint {
            Stint::Alone(i) => (vec![i], format!("instance {} alone", i + 1)),
            Stint::Together(n) => ((0..n as usize).collect(), format!("{n} instances together")),
        };
        progress.show(Event::Step(format!("block {}: {words}", self.blocks + 1)));
        let parts = self.parts(&who, name, stint, stints)?;
        let interrupt = &self.setup.session.interrupt;
        let begun = self.begun;
        let mut live = || {
            let elapsed_s = begun.elapsed().as_secs_f64();
            progress.show(Event::Live { elapsed_s, rate_hz: None, phase: words.clone() });
        };
        crew::measure(&parts, &self.sweep.instances, interrupt, &mut live)?;
        parts.iter().map(|part| self.read(part)).collect()
    }

    fn parts(&self, who: &[usize], name: &str, stint: Stint, stints: usize) -> Result<Vec<Part>, LabError> {
        let n = who.len() as u32;
        let run_s = match stint {
            Stint::Alone(_) => self.kept.run_s(1),
            Stint::Together(n) => self.kept.run_s(n),
        };
        let runs = run_s.or(self.first_run_s).map_or(1, |run_s| self.pace.runs(stints, run_s));
        let ports = free_ports(who.len())?;
        let part = |(i, port): (&usize, u16)| {
            let place = self.places.get(*i).cloned().unwrap_or_default();
            Ok(Part {
                i: *i as u32 + 1,
                n,
                cpus: place.cpus,
                load_cpus: place.load_cpus,
                port,
                runs,
                trial_ms: self.trial.as_millis() as u64,
                record: self.record(name, stint, *i)?,
            })
        };
        who.iter().zip(ports).map(part).collect()
    }

    /// Where a record goes: into the folder that was named, else among those that no file was named for.
    fn record(&self, name: &str, stint: Stint, i: usize) -> Result<PathBuf, LabError> {
        let name = match stint {
            Stint::Together(_) => name.replace(".tare", &format!("-i{}.tare", i + 1)),
            Stint::Alone(_) => name.to_owned(),
        };
        if let Some(folder) = &self.setup.records {
            return Ok(folder.join(name));
        }
        let now_s = tare_sys::time::wall_s();
        let fresh = records::fresh_path(&self.setup.session.records_dir, now_s)?;
        Ok(fresh.with_file_name(format!("{now_s:012}-{}-i{}.tare", std::process::id(), i + 1)))
    }

    fn read(&self, part: &Part) -> Result<Measured, LabError> {
        let record = tare_store::read(&part.record)?;
        let outcome = tare_explain::explain(&record);
        let figure = self.sweep.metering.figure(&outcome, 1.0)?;
        let run_s = outcome.answers.commands.first().map(|command| command.gross.value);
        Ok(Measured { cpus_there: part.cpus.len(), outcome, figure, run_s, other_unit: None })
    }

    fn swept(self, end: Result<(), LabError>) -> Swept {
        let levels = self.kept.levels(&self.places);
        let instances = self.kept.instances(&self.places, &self.topology);
        let fairness = self.kept.fairness();
        let all = self.kept.into_launches();
        let mut warnings = warnings(&all, &levels, self.blocks);
        warnings.extend(self.notes);
        Swept {
            levels,
            cpu_order: Vec::new(),
            instances,
            fairness,
            blocks: self.blocks,
            seed: self.seed,
            warnings,
            end,
        }
    }
}
