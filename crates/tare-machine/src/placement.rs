//! Which CPUs the SUT, the load generator and the observers get.

use tare_record::machine::{CpuFacts, MachineFacts};
use tare_sys::affinity;

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
}

/// A CPU that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The machine has no such CPU, or it is offline.
    #[error("{option}: there is no CPU {cpu}; hint: this machine has CPUs {online}")]
    NoSuchCpu {
        /// The option that named it.
        option: &'static str,
        /// The CPU.
        cpu: u32,
        /// The CPUs that there are, as a list.
        online: String,
    },
    /// The list of online CPUs is empty: nothing can be placed.
    #[error("this machine's CPUs could not be listed; hint: is /sys mounted?")]
    NoCpus,
}

/// Chooses CPUs: the generator on other physical cores than the SUT where there are any, the SUT on the first
/// CPUs and the generator on the last, the observers with the generator. The same facts give the same answer.
///
/// # Errors
/// [`PlacementError`] when a given CPU does not exist.
pub fn choose(facts: &MachineFacts, wanted: &Wanted) -> Result<Placement, PlacementError> {
    let online: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.cpu).collect();
    if online.is_empty() {
        return Err(PlacementError::NoCpus);
    }
    check("--sut-cpus", wanted.given_sut, &online)?;
    check("--load-cpus", wanted.given_load, &online)?;
    let sut_cpus = sut_cpus(facts, wanted);
    let load_cpus = match wanted.given_load {
        [] => load_cpus(facts, &sut_cpus, wanted),
        given => sorted(given),
    };
    let outside_sut = |cpu: &u32| !sut_cpus.contains(cpu);
    let mut observer_cpus: Vec<u32> = load_cpus.iter().copied().filter(outside_sut).collect();
    if observer_cpus.is_empty() {
        observer_cpus = online.iter().copied().filter(outside_sut).collect();
    }
    if observer_cpus.is_empty() {
        observer_cpus = load_cpus.clone();
    }
    let notes = notes(facts, &sut_cpus, &load_cpus, &observer_cpus);
    Ok(Placement { sut_cpus, load_cpus, observer_cpus, notes })
}

fn check(option: &'static str, cpus: &[u32], online: &[u32]) -> Result<(), PlacementError> {
    match cpus.iter().find(|cpu| !online.contains(cpu)) {
        Some(&cpu) => Err(PlacementError::NoSuchCpu { option, cpu, online: affinity::format_list(online) }),
        None => Ok(()),
    }
}

/// Given, or where it is allowed now, or as many of the first cores as it has threads, leaving one for the
/// generator.
fn sut_cpus(facts: &MachineFacts, wanted: &Wanted) -> Vec<u32> {
    if !wanted.given_sut.is_empty() {
        return sorted(wanted.given_sut);
    }
    let allowed = |cpu: &&CpuFacts| wanted.sut_allowed.contains(&cpu.cpu);
    let allowed: Vec<u32> = facts.cpus.iter().filter(allowed).map(|cpu| cpu.cpu).collect();
    if !allowed.is_empty() {
        return allowed;
    }
    let free: Vec<u32> = by_core(facts).into_iter().filter(|cpu| !wanted.given_load.contains(cpu)).collect();
    let free = if free.is_empty() { by_core(facts) } else { free };
    let spare = usize::from(wanted.given_load.is_empty() && free.len() > 1);
    let count = (wanted.sut_threads.max(1) as usize).min(free.len() - spare);
    sorted(&free[..count])
}

/// As many CPUs as it has threads: first whole cores apart from the SUT's, then any other CPU, last the SUT's.
fn load_cpus(facts: &MachineFacts, sut: &[u32], wanted: &Wanted) -> Vec<u32> {
    let mut candidates = by_core(facts);
    candidates.reverse();
    // A SUT that may run everywhere will mostly be where it has threads to run: keep clear of the first.
    let kept_clear: Vec<u32> = match candidates.iter().any(|cpu| !sut.contains(cpu)) {
        true => sut.to_vec(),
        false => by_core(facts).into_iter().take(wanted.sut_threads.max(1) as usize).collect(),
    };
    let rank = |cpu: &u32| {
        let shares_core = kept_clear.iter().any(|&other| same_core(facts, other, *cpu));
        (kept_clear.contains(cpu), shares_core)
    };
    candidates.sort_by_key(rank);
    let best = candidates.first().map(rank);
    let mut chosen: Vec<u32> = candidates.iter().copied().filter(|cpu| Some(rank(cpu)) == best).collect();
    chosen.truncate(wanted.load_threads.max(1) as usize);
    sorted(&chosen)
}

/// CPUs with one of each physical core first, then the second of each, and so on.
fn by_core(facts: &MachineFacts) -> Vec<u32> {
    let nth_of_core = |cpu: &CpuFacts| {
        cpu.siblings.value().map_or(0, |all| all.iter().filter(|&&other| other < cpu.cpu).count())
    };
    let mut ranked: Vec<(usize, u32)> = facts.cpus.iter().map(|cpu| (nth_of_core(cpu), cpu.cpu)).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, cpu)| cpu).collect()
}

/// Whether two CPUs are the same or SMT siblings.
pub fn same_core(facts: &MachineFacts, one: u32, other: u32) -> bool {
    let siblings =
        |cpu: u32| facts.cpus.iter().find(|known| known.cpu == cpu).and_then(|known| known.siblings.value());
    one == other || siblings(one).is_some_and(|all| all.contains(&other))
}

fn notes(facts: &MachineFacts, sut: &[u32], load: &[u32], observers: &[u32]) -> Vec<String> {
    let mut notes = Vec::new();
    let list = affinity::format_list;
    let shared: Vec<u32> = load.iter().copied().filter(|cpu| sut.contains(cpu)).collect();
    if !shared.is_empty() {
        notes.push(format!("the SUT may run on the generator's CPUs {}", list(&shared)));
    }
    let sibling =
        |cpu: &&u32| !shared.contains(cpu) && sut.iter().any(|&other| same_core(facts, other, **cpu));
    let siblings: Vec<u32> = load.iter().filter(sibling).copied().collect();
    if !siblings.is_empty() {
        notes.push(format!("the generator's CPUs {} are SMT siblings of the SUT's", list(&siblings)));
    }
    if observers.iter().any(|cpu| sut.contains(cpu)) {
        notes.push("no CPU is left for the observers outside the SUT's".to_string());
    }
    notes
}

fn sorted(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Root, facts};
    use proptest::prelude::*;
    use tare_record::Reading;

    /// `cores` physical cores of `threads` each; siblings are `cores` apart, as on most x86 machines.
    fn machine(cores: u32, threads: u32) -> MachineFacts {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/firecracker");
        let mut facts = facts::read(&Root::at(dir));
        let cpu = |cpu: u32| CpuFacts {
            cpu,
            package: Reading::Measured(0),
            core: Reading::Measured(cpu % cores),
            node: Reading::Measured(0),
            siblings: Reading::Measured((0..threads).map(|nth| cpu % cores + nth * cores).collect()),
        };
        facts.cpus = (0..cores * threads).map(cpu).collect();
        facts
    }

    const FREE: Wanted =
        Wanted { sut_allowed: &[], sut_threads: 1, load_threads: 1, given_sut: &[], given_load: &[] };

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
