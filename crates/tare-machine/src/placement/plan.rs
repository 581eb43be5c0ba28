//! The planner: a pure function of topology and what is asked.

use super::alike::{cpus, of_one_kind};
use super::choose::{Pick, pick};
use super::cores::{Core, Cores};
use super::error::PlacementError;
use std::cmp::Reverse;
use tare_model::CpuSet;
use tare_model::placement::{CpuPlan, Policy};
use tare_model::topology::Topology;

/// What is to be placed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask {
    /// How the SUT's CPUs are chosen.
    pub policy: Policy,
    /// Services that are placed apart from each other; 1 where there is no fleet.
    pub services: u32,
    /// CPUs of each service; `None`: half of the cores for all of them.
    pub cpus_each: Option<u32>,
    /// CPU seconds per second that a service's group may use; it is given no more CPUs than it can use at once.
    pub quota_cpus: Option<f64>,
    /// CPUs of the load generator; 0 where it runs on another host.
    pub generator: u32,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask { policy: Policy::Auto, services: 1, cpus_each: None, quota_cpus: None, generator: u32::MAX }
    }
}

/// Chooses CPUs for services, generator, observers and interrupts. The same topology and question give the same
/// answer. Roles get cores of their own while there are enough for all; then interrupts go with the observers,
/// those with the generator, and only then does the generator get SMT siblings, and last CPUs, of the SUT.
///
/// # Errors
/// No CPU may be used, or fewer than the services ask for.
pub fn plan(topology: &Topology, ask: &Ask) -> Result<CpuPlan, PlacementError> {
    plan_on(&Cores::of(topology), ask, None)
}

/// As [`plan`]; `generator`: CPUs that it has already.
pub(super) fn plan_on(
    cores: &Cores,
    ask: &Ask,
    generator: Option<&CpuSet>,
) -> Result<CpuPlan, PlacementError> {
    let left = generator.map_or_else(|| cores.clone(), |given| cores.without(given));
    let services = ask.services.max(1);
    let alike = candidates(&left.all, ask, services);
    // Somebody must make the load: a core is kept back for it where there are two.
    let needs_core = generator.is_none() && ask.generator > 0 && left.all.len() > 1;
    let kept_back = usize::from(needs_core && alike.len() == left.all.len());
    let pool = &alike[..alike.len() - kept_back];
    let have: u32 = pool.iter().map(|core| core.threads.len() as u32).sum();
    if have == 0 {
        return Err(PlacementError::NoCpus);
    }
    let each = each(ask, services, alike.len() as u32);
    let wanted = services.saturating_mul(each);
    if services > 1 && wanted > have {
        return Err(PlacementError::TooMany { wanted, have });
    }
    let chosen = pick(cores, pool, Pick { policy: ask.policy, services, each });
    let sut = chosen.iter().fold(CpuSet::new(), |all, set| all.or(set));
    let load = generator.map_or(Load::Wanted(ask.generator), Load::Given);
    let mut plan = around(cores, &sut, &sut, load);
    plan.policy = ask.policy;
    if sut.len() < wanted as usize {
        let others = match alike.len() < left.all.len() {
            true => ": no kind of core has more, and fast and slow ones are mixed only where they are named",
            false => "",
        };
        plan.notes
            .push(format!("{wanted} CPUs were asked for the SUT, {} could be given{others}", sut.len()));
    }
    plan.notes.extend(crossing(cores, &chosen, ask.policy));
    plan.services = chosen;
    Ok(plan)
}

/// The cores that services are placed on: of one kind. A fleet that no kind has room for asks for all of them.
fn candidates(cores: &[Core], ask: &Ask, services: u32) -> Vec<Core> {
    let Some(each) = ask.cpus_each.map(|_| each(ask, services, 0)) else {
        // Half of it will be the SUT's.
        return of_one_kind(cores, |kind| kind.len() > 1);
    };
    let wanted = services.saturating_mul(each) as usize;
    let alike = of_one_kind(cores, |kind| cpus(kind) >= wanted);
    let short = cpus(&alike.iter().collect::<Vec<_>>()) < wanted;
    if short && services > 1 { cores.to_vec() } else { alike }
}

fn each(ask: &Ask, services: u32, cores: u32) -> u32 {
    let wanted = ask.cpus_each.unwrap_or((cores / 2) / services).max(1);
    match ask.quota_cpus {
        Some(quota) if quota.is_finite() && quota > 0.0 => wanted.min((quota.ceil() as u32).max(1)),
        _ => wanted,
    }
}

/// The generator's part of a question.
pub(super) enum Load<'a> {
    /// So many CPUs; `u32::MAX`: all but one core each for observers and interrupts.
    Wanted(u32),
    /// These.
    Given(&'a CpuSet),
}

/// Roles around a SUT that has its CPUs already. `clear`: those of them that it mostly uses, which the generator
/// keeps away from when it cannot keep away from all.
pub(super) fn around(cores: &Cores, sut: &CpuSet, clear: &CpuSet, load: Load) -> CpuPlan {
    let (given, wanted) = match load {
        Load::Given(given) => (given.clone(), 0),
        Load::Wanted(wanted) => (CpuSet::new(), wanted),
    };
    let mut free = free_cores(cores, &sut.or(&given));
    let all_but_two = (free.len() as u32).saturating_sub(2).max(1);
    let wanted = if wanted == u32::MAX { all_but_two } else { wanted };
    let alike = for_generator(&mut free, wanted);
    // Observers and interrupts have cores of their own only when the generator has all that it asks for.
    let kept = (wanted as usize).min(alike);
    let mut own = || if free.len() > kept { free.pop().map(Core::set) } else { None };
    let (observers, irqs) = (own(), own());
    free.truncate(alike);
    let generator = match wanted {
        0 => given,
        _ if free.is_empty() => leftovers(cores, sut, clear, wanted),
        _ => threads(&free, wanted),
    };
    let everything: CpuSet = cores.all.iter().flat_map(|core| core.threads.clone()).collect();
    let fallback = || {
        let choices = [generator.minus(sut), everything.minus(sut), generator.clone()];
        choices.into_iter().find(|set| !set.is_empty()).unwrap_or_default()
    };
    let observers = observers.unwrap_or_else(fallback);
    let irqs = irqs.unwrap_or_else(|| observers.clone());
    let mut plan = CpuPlan {
        policy: Policy::Auto,
        sut: sut.clone(),
        services: vec![sut.clone()],
        generator,
        observers,
        irqs,
        notes: Vec::new(),
    };
    plan.notes = sharing(cores, &plan);
    plan
}

/// Moves the cores that the generator may have to the front: of one kind, so that its threads keep the same pace. How
/// many they are.
fn for_generator(free: &mut [&Core], wanted: u32) -> usize {
    let all: Vec<Core> = free.iter().map(|core| (*core).clone()).collect();
    let alike = of_one_kind(&all, |kind| kind.len() >= wanted as usize);
    let speed = alike.first().map(|core| core.speed);
    free.sort_by_key(|core| Some(core.speed) != speed);
    alike.len()
}

/// What roles share that they should not.
fn sharing(cores: &Cores, plan: &CpuPlan) -> Vec<String> {
    let mut notes = Vec::new();
    let shared = plan.generator.and(&plan.sut);
    if !shared.is_empty() {
        notes.push(format!("the server may run on the generator's CPUs {shared} (keep them apart with --sut-cpus and --load-cpus)"));
    }
    let of_sut = |core: &&Core| core.set().meets(&plan.sut);
    let touched = cores.all.iter().filter(of_sut).fold(CpuSet::new(), |all, core| all.or(&core.set()));
    let siblings = plan.generator.and(&touched).minus(&plan.sut);
    if !siblings.is_empty() {
        notes.push(format!("the generator's CPUs {siblings} are SMT siblings of the server's"));
    }
    if plan.observers.is_empty() || plan.observers.meets(&plan.sut) {
        notes.push("no CPU is left for the observers outside the server's".to_string());
    }
    for (role, cpus) in [("server", &plan.sut), ("generator", &plan.generator)] {
        let kinds = cores.kinds_of(cpus);
        if kinds > 1 {
            notes.push(format!("the {role}'s CPUs {cpus} are of {kinds} kinds of core, fast and slow ones"));
        }
    }
    if !cores.isolated.is_empty() {
        notes.push(format!(
            "CPUs {} are isolated: threads are not spread over them, so they are left out",
            cores.isolated
        ));
    }
    notes
}

/// Cores without a CPU of the SUT, nearest first: its node, its cache, then other nodes by distance. The last of a
/// cache first, as the SUT has the first.
fn free_cores<'a>(cores: &'a Cores, sut: &CpuSet) -> Vec<&'a Core> {
    let (used, mut free): (Vec<&Core>, Vec<&Core>) =
        cores.all.iter().partition(|core| core.threads.iter().any(|&cpu| sut.contains(cpu)));
    let far = |core: &Core| used.iter().map(|own| cores.distance(own.node, core.node)).min().unwrap_or(0);
    let same_cache = |core: &Core| used.iter().any(|own| own.cache == core.cache);
    free.sort_by_key(|core| {
        (far(core), core.node, !same_cache(core), Reverse(core.cache), Reverse(core.first()))
    });
    free
}

/// So many CPUs of these cores: one thread of each first.
fn threads(cores: &[&Core], wanted: u32) -> CpuSet {
    let deepest = cores.iter().map(|core| core.threads.len()).max().unwrap_or(0);
    let nth = |nth: usize| cores.iter().filter_map(move |core| core.threads.get(nth).copied());
    (0..deepest).flat_map(nth).take(wanted as usize).collect()
}

/// CPUs for a generator when no core is free: siblings of the SUT's, else CPUs that it mostly leaves alone, else
/// its own.
fn leftovers(cores: &Cores, sut: &CpuSet, clear: &CpuSet, wanted: u32) -> CpuSet {
    let last_first: Vec<&Core> = cores.all.iter().rev().collect();
    let among = |fits: &dyn Fn(&Core, u32) -> bool| -> CpuSet {
        let deepest = last_first.iter().map(|core| core.threads.len()).max().unwrap_or(0);
        let nth = |nth: usize| {
            let cpu = move |core: &&&Core| core.threads.get(nth).copied();
            last_first.iter().filter_map(move |core| Some((*core, cpu(&core)?))).collect::<Vec<_>>()
        };
        let all: Vec<(&Core, u32)> =
            (0..deepest).flat_map(nth).filter(|(core, cpu)| fits(core, *cpu)).collect();
        // As much of each core as fits, to find a kind that has enough.
        let here = |core: &Core| -> Vec<u32> {
            all.iter().filter(|(other, _)| other.index == core.index).map(|(_, cpu)| *cpu).collect()
        };
        let parts: Vec<Core> =
            cores.all.iter().map(|core| Core { threads: here(core), ..core.clone() }).collect();
        let alike = of_one_kind(&parts, |kind| cpus(kind) >= wanted as usize);
        let speed = alike.first().map(|core| core.speed);
        let of_kind = all.into_iter().filter(|(core, _)| Some(core.speed) == speed);
        of_kind.map(|(_, cpu)| cpu).take(wanted as usize).collect()
    };
    let apart = |core: &Core| !core.threads.iter().any(|&cpu| clear.contains(cpu));
    let choices = [
        among(&|_, cpu| !sut.contains(cpu)),
        among(&|core, _| apart(core)),
        among(&|_, cpu| !clear.contains(cpu)),
        among(&|_, _| true),
    ];
    choices.into_iter().find(|set| !set.is_empty()).unwrap_or_default()
}

/// Services that a policy of nearness could not keep in one node.
fn crossing(cores: &Cores, services: &[CpuSet], policy: Policy) -> Option<String> {
    if matches!(policy, Policy::Spread | Policy::Random(_)) {
        return None;
    }
    let nodes_of = |set: &CpuSet| {
        let mut nodes: Vec<u32> =
            cores.all.iter().filter(|core| core.set().meets(set)).map(|core| core.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let crossing = services.iter().filter(|set| nodes_of(set).len() > 1).count();
    match (crossing, services.len()) {
        (0, _) => None,
        (_, 1) => Some(format!(
            "the server's CPUs are in {} NUMA nodes: no single one has room",
            nodes_of(&services[0]).len()
        )),
        (count, _) => Some(format!("{count} services reach over more than one NUMA node")),
    }
}
