//! Where the arms of a comparison run, by the policy of each.

use super::switch::{Arm, Placed, Switch};
use crate::error::LabError;
use std::collections::BTreeSet;
use tare_machine::cgroup;
use tare_machine::placement::{self, Placement};
use tare_machine::probes::transfer;
use tare_model::CpuSet;
use tare_model::topology::{CpuPlace, Topology};

/// What there is around a program that is to get a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    /// `--sut-cpus`: how many CPUs each program is to have.
    pub sut: Option<&'a [u32]>,
    /// `--load-cpus`: they are the generator's.
    pub load: Option<&'a [u32]>,
    /// Threads of the generator; 0: there is none.
    pub load_threads: u32,
}

impl Switch {
    /// Where each program's policy puts it; `None`: nobody has asked for a place. Where one program has a policy the others have `auto`, with
    /// as many CPUs.
    ///
    /// # Errors
    /// The policies choose the same CPUs, and nothing else differs.
    pub fn places(
        &self,
        programs: usize,
        around: Around<'_>,
        topology: &Topology,
    ) -> Result<Option<Vec<Placement>>, LabError> {
        if !self.has_place() {
            return Ok(None);
        }
        let all: Vec<Placement> =
            (0..programs).map(|program| self.place(program, around, topology)).collect::<Result<_, _>>()?;
        if let ([one, other, ..], [first, second, ..]) = (self.arms.as_slice(), all.as_slice())
            && self.by_place_alone
            && first.sut_cpus == second.sut_cpus
        {
            let policy = |arm: &Arm| arm.placement.unwrap_or_default();
            let cpus = CpuSet::from(first.sut_cpus.as_slice());
            return Err(LabError::usage(
                format!(
                    "placement={} and placement={} both choose CPUs {cpus} here: A and B would be the same",
                    policy(one),
                    policy(other)
                ),
                "'tare doctor --topology' shows the cores; --sut-cpus says by its length how many CPUs each gets; random:SEED with another seed",
            ));
        }
        Ok(Some(all))
    }

    fn place(&self, program: usize, around: Around<'_>, topology: &Topology) -> Result<Placement, LabError> {
        let cores = topology.cores.value().or(topology.threads.value()).copied().unwrap_or(1);
        let policy = self.arms.get(program).and_then(|arm| arm.placement).unwrap_or_default();
        let cpus = around.sut.map_or((cores / 2).max(1), |given| given.len() as u32);
        let quota_cpus = cgroup::quota_cpus(&self.root, std::process::id());
        let placed = match around.load_threads {
            // Nobody makes a load: no core is kept back for that.
            0 => {
                let ask = placement::Ask {
                    policy,
                    cpus_each: Some(cpus),
                    quota_cpus,
                    generator: 0,
                    ..placement::Ask::default()
                };
                placement::plan(topology, &ask).map(Placement::from)
            }
            load_threads => placement::choose(
                topology,
                &placement::Wanted {
                    sut_allowed: &[],
                    sut_threads: cpus,
                    load_threads,
                    given_sut: &[],
                    given_load: around.load.unwrap_or_default(),
                    policy,
                    quota_cpus,
                },
            ),
        };
        let placed = placed.map_err(|error| LabError::usage(error.to_string(), ""))?;
        if let Some(arm) = self.arms.get(program) {
            let of = |cpu: &&CpuPlace| placed.sut_cpus.contains(&cpu.cpu);
            let nodes = topology.cpus.iter().filter(of).filter_map(|cpu| cpu.node.value().copied());
            let nodes: BTreeSet<u32> = nodes.collect();
            *arm.placed.borrow_mut() =
                Placed { cpus: placed.sut_cpus.clone(), nodes: nodes.into_iter().collect() };
        }
        Ok(placed)
    }

    /// NUMA nodes of the CPUs that a program's policy chose.
    pub fn nodes(&self, program: usize) -> Vec<u32> {
        self.arms.get(program).map(|arm| arm.placed.borrow().nodes.clone()).unwrap_or_default()
    }

    /// What there is to be known of a program's place: which CPUs it has, and how far the first and the last of them are apart.
    pub fn place_notes(&self, program: usize) -> Vec<String> {
        let placed = self.arms.get(program).map(|arm| arm.placed.borrow().cpus.clone()).unwrap_or_default();
        let [first, .., last] = placed[..] else {
            return vec!["one CPU: there is no core-to-core latency".to_owned()];
        };
        vec![match transfer::look([first, last]) {
            Ok(found) => format!(
                "a cache line takes {:.0} ns from CPU {first} to CPU {last} (core-to-core latency)",
                found.transfer_ns.median
            ),
            Err(missing) => format!("core-to-core latency is missing: {}", missing.why),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::super::wanted::Treatment;
    use super::*;
    use std::rc::Rc;
    use tare_machine::journal::Journal;
    use tare_machine::{Root, topology};
    use tare_model::placement::Policy;

    type CpusAndNodes = (Vec<u32>, Vec<u32>);

    /// 64 CPUs: four nodes of eight cores with two threads each; CPU 32 is the second thread of CPU 0's core.
    fn host() -> Topology {
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../tare-machine/tests/fixtures/hygon-64");
        topology::read(&Root::at(fixture), None)
    }

    fn places(
        [a, b]: [Option<Policy>; 2],
        differs: bool,
        load: Option<&[u32]>,
        load_threads: u32,
    ) -> Result<Vec<CpusAndNodes>, String> {
        let [state, nothing] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let journal = Rc::new(Journal::create(state.path(), &Root::live()).unwrap());
        let arms = [a, b].map(|placement| Treatment { placement, ..Treatment::default() });
        let mut switch = Switch::of(&arms, journal, state.path()).unwrap();
        // No quota of whoever runs the test.
        switch.root = Root::at(nothing.path());
        switch.by_place_alone = !differs;
        let around = Around { sut: Some(&[0, 1, 2, 3]), load, load_threads };
        let placed = switch.places(2, around, &host()).map_err(|error| error.to_string())?;
        let placed = placed.expect("a policy");
        Ok(placed
            .into_iter()
            .zip(0..)
            .map(|(placed, program)| (placed.sut_cpus, switch.nodes(program)))
            .collect())
    }

    #[test]
    fn each_program_is_where_its_policy_puts_it() {
        let found = places([None, Some(Policy::SmtPairs)], false, None, 0).unwrap();
        assert_eq!(found, [(vec![0, 1, 2, 3], vec![0]), (vec![0, 1, 32, 33], vec![0])]);
        let found = places([Some(Policy::SameNode), Some(Policy::Spread)], false, None, 4).unwrap();
        assert_eq!((found[0].1.len(), found[1].1.len(), found[1].0.len()), (1, 4, 4));
    }

    #[test]
    fn the_cpus_of_the_generator_are_no_servers() {
        let load: Vec<u32> = (0..4).chain(32..36).collect();
        for (cpus, _) in places([None, Some(Policy::SmtPairs)], false, Some(&load), 8).unwrap() {
            assert!(cpus.len() == 4 && cpus.iter().all(|cpu| !load.contains(cpu)), "{cpus:?}");
        }
    }

    #[test]
    fn the_same_place_is_nothing_to_compare_unless_something_else_differs() {
        let same = [None, Some(Policy::SameNode)];
        let said = places(same, false, None, 0).unwrap_err();
        assert!(said.contains("placement=auto and placement=same-node both choose CPUs 0-3 here"), "{said}");
        assert!(said.contains("hint: 'tare doctor --topology'"), "{said}");
        assert!(places(same, true, None, 0).is_ok());
    }
}
