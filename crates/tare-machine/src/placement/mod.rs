//! Which CPUs the SUT, the load generator, the observers and interrupts get.

mod alike;
mod choose;
mod cores;
mod error;
mod growing;
mod plan;

pub use error::PlacementError;
pub use growing::growing;
pub use plan::{Ask, plan};

use cores::Cores;
use plan::{Load, around, plan_on};
use tare_model::CpuSet;
use tare_model::placement::{CpuPlan, Policy};
use tare_model::topology::Topology;

/// Who runs where. All lists ascend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The SUT's CPUs: those given, or all that it may use, or those chosen for it.
    pub sut_cpus: Vec<u32>,
    /// The load generator's CPUs.
    pub load_cpus: Vec<u32>,
    /// The observers' CPUs; never one of the SUT's where there is another.
    pub observer_cpus: Vec<u32>,
    /// What is not as it should be, in words for the user.
    pub notes: Vec<String>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// CPUs that the SUT may use now; empty when tare is to choose them (it starts the SUT).
    pub sut_allowed: &'a [u32],
    /// Threads of the SUT that serve.
    pub sut_threads: u32,
    /// Threads of the generator.
    pub load_threads: u32,
    /// `--sut-cpus`, or empty.
    pub given_sut: &'a [u32],
    /// `--load-cpus`, or empty.
    pub given_load: &'a [u32],
    /// How to choose the SUT's CPUs when tare does.
    pub policy: Policy,
    /// CPU seconds per second that the SUT may use, where a quota is known.
    pub quota_cpus: Option<f64>,
}

/// Chooses CPUs for a run: what is given is taken; the SUT's are those that it may use, or, when tare starts it,
/// those that [`plan`] finds; generator and observers get others where there are any.
///
/// # Errors
/// [`PlacementError`] when a given CPU does not exist.
pub fn choose(topology: &Topology, wanted: &Wanted) -> Result<Placement, PlacementError> {
    let online = topology.online.value().cloned().unwrap_or_default();
    check("--sut-cpus", wanted.given_sut, &online)?;
    check("--load-cpus", wanted.given_load, &online)?;
    let cores = Cores::of(topology);
    if cores.all.is_empty() {
        return Err(PlacementError::NoCpus);
    }
    let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
    let given_load = Some(set(wanted.given_load)).filter(|given| !given.is_empty());
    let fixed = match wanted.given_sut {
        [] => set(wanted.sut_allowed).and(&online),
        given => set(given),
    };
    if fixed.is_empty() {
        let ask = Ask {
            policy: wanted.policy,
            cpus_each: Some(wanted.sut_threads),
            quota_cpus: wanted.quota_cpus,
            generator: wanted.load_threads.max(1),
            ..Ask::default()
        };
        return plan_on(&cores, &ask, given_load.as_ref()).map(Placement::from);
    }
    let load = given_load.as_ref().map_or(Load::Wanted(wanted.load_threads.max(1)), Load::Given);
    // A SUT that may run everywhere will mostly be where it has threads to run: keep clear of the first.
    let order = cores.in_order();
    let clear = match order.iter().any(|&cpu| !fixed.contains(cpu)) {
        true => fixed.clone(),
        false => order.into_iter().take(wanted.sut_threads.max(1) as usize).collect(),
    };
    Ok(around(&cores, &fixed, &clear, load).into())
}

impl From<CpuPlan> for Placement {
    fn from(plan: CpuPlan) -> Placement {
        Placement {
            sut_cpus: plan.sut.to_vec(),
            load_cpus: plan.generator.to_vec(),
            observer_cpus: plan.observers.to_vec(),
            notes: plan.notes,
        }
    }
}

fn check(option: &'static str, cpus: &[u32], online: &CpuSet) -> Result<(), PlacementError> {
    match cpus.iter().find(|&&cpu| !online.contains(cpu)) {
        Some(&cpu) => Err(PlacementError::NoSuchCpu { option, cpu, online: online.to_string() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::Reading;
    use tare_model::topology::CpuPlace;

    /// `cores` physical cores of `threads` each; siblings are `cores` apart, as on most x86 machines.
    fn machine(cores: u32, threads: u32) -> Topology {
        let all = CpuSet::first(cores * threads);
        let place = |cpu: u32| CpuPlace {
            cpu,
            package: Reading::Measured(0),
            die: Reading::Measured(0),
            cluster: Reading::Measured(0),
            core: Reading::Measured(cpu % cores),
            node: Reading::Measured(0),
            siblings: (0..threads).map(|nth| cpu % cores + nth * cores).collect(),
        };
        Topology {
            packages: Reading::Measured(1),
            numa_nodes: Reading::Measured(1),
            cores: Reading::Measured(cores),
            threads: Reading::Measured(cores * threads),
            online: Reading::Measured(all.clone()),
            caches: Reading::missing("none"),
            numa: Reading::missing("none"),
            offline: Reading::Measured(CpuSet::new()),
            isolated: Reading::Measured(CpuSet::new()),
            nohz_full: Reading::Measured(CpuSet::new()),
            kinds: Reading::missing("none"),
            cpus: all.iter().map(place).collect(),
            allowed: Reading::Measured(all),
        }
    }

    const FREE: Wanted = Wanted {
        sut_allowed: &[],
        sut_threads: 1,
        load_threads: 1,
        given_sut: &[],
        given_load: &[],
        policy: Policy::Auto,
        quota_cpus: None,
    };

    #[test]
    fn two_cpus_are_shared_out() {
        let placement = choose(&machine(2, 1), &FREE).unwrap();
        assert_eq!(placement.sut_cpus, [0]);
        assert_eq!((placement.load_cpus, placement.observer_cpus), (vec![1], vec![1]));
        assert!(placement.notes.is_empty());
    }

    #[test]
    fn a_server_that_may_run_everywhere_is_kept_clear_of_where_it_mostly_is() {
        let placement = choose(&machine(2, 1), &Wanted { sut_allowed: &[0, 1], ..FREE }).unwrap();
        assert_eq!((placement.sut_cpus, placement.load_cpus), (vec![0, 1], vec![1]));
        assert_eq!(placement.notes.len(), 2, "{:?}", placement.notes);
    }

    #[test]
    fn siblings_of_the_sut_are_not_the_generators() {
        let wanted = Wanted { sut_allowed: &[0], load_threads: 16, ..FREE };
        let placement = choose(&machine(4, 2), &wanted).unwrap();
        assert_eq!(placement.load_cpus, [1, 2, 3, 5, 6, 7]);
        // One core with two threads: the sibling is all there is, and that is said.
        let placement = choose(&machine(1, 2), &FREE).unwrap();
        assert_eq!((placement.sut_cpus, placement.load_cpus), (vec![0], vec![1]));
        assert!(placement.notes[0].contains("SMT siblings"));
    }

    #[test]
    fn given_cpus_are_taken_and_must_exist() {
        let wanted = Wanted { given_sut: &[1, 1], given_load: &[0], ..FREE };
        let placement = choose(&machine(2, 1), &wanted).unwrap();
        assert_eq!((placement.sut_cpus, placement.load_cpus), (vec![1], vec![0]));
        let error = choose(&machine(2, 1), &Wanted { given_load: &[7], ..FREE }).unwrap_err();
        assert_eq!(error.to_string(), "--load-cpus: there is no CPU 7; hint: this machine has CPUs 0-1");
        let mut none = machine(1, 1);
        none.cpus.clear();
        assert_eq!(choose(&none, &FREE), Err(PlacementError::NoCpus));
    }

    proptest! {
        #[test]
        fn everybody_gets_cpus_that_exist(
            cores in 1u32..9,
            threads in 1u32..3,
            allowed in proptest::collection::vec(0u32..20, 0..5),
            sut_threads in 0u32..20,
            load_threads in 0u32..20,
        ) {
            let facts = machine(cores, threads);
            let wanted = Wanted { sut_allowed: &allowed, sut_threads, load_threads, ..FREE };
            let placement = choose(&facts, &wanted).unwrap();
            prop_assert_eq!(&placement, &choose(&facts, &wanted).unwrap());
            for cpus in [&placement.sut_cpus, &placement.load_cpus, &placement.observer_cpus] {
                prop_assert!(!cpus.is_empty() && cpus.iter().all(|&cpu| cpu < cores * threads));
                prop_assert!(cpus.windows(2).all(|pair| pair[0] < pair[1]));
            }
            prop_assert!(placement.load_cpus.len() <= load_threads.max(1) as usize);
            // Apart wherever there is a CPU that is not the SUT's.
            if placement.sut_cpus.len() < (cores * threads) as usize {
                prop_assert!(placement.load_cpus.iter().all(|cpu| !placement.sut_cpus.contains(cpu)));
                prop_assert!(placement.observer_cpus.iter().all(|cpu| !placement.sut_cpus.contains(cpu)));
            }
        }
    }
}
