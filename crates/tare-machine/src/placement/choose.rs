//! How the CPUs of services are chosen among the cores.

use super::cores::{Core, Cores};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tare_model::CpuSet;
use tare_model::placement::Policy;
use tare_stats::SplitMix64;

/// What is to be chosen.
#[derive(Clone, Copy)]
pub(super) struct Pick {
    pub policy: Policy,
    pub services: u32,
    /// CPUs of each service.
    pub each: u32,
}

/// Each service's CPUs among the cores of `pool`. Services have cores of their own while there are enough; a
/// service gets fewer CPUs than it asks for where there are no more.
pub(super) fn pick(cores: &Cores, pool: &[Core], pick: Pick) -> Vec<CpuSet> {
    let smt = pool.iter().map(|core| core.threads.len()).max().unwrap_or(1).max(1);
    let (each, services) = (pick.each as usize, pick.services as usize);
    let per_core = match pick.policy {
        Policy::SmtPairs | Policy::Random(_) => smt,
        Policy::SameNode if !by(pool, |core| core.node).values().any(|node| node.len() >= each) => smt,
        _ if each.saturating_mul(services) <= pool.len() => 1,
        _ => smt,
    };
    let cores_each = each.div_ceil(per_core);
    let random = matches!(pick.policy, Policy::Random(_));
    let share_cores = random || cores_each.saturating_mul(services) > pool.len();
    // One service alone has its threads on as many cores as it can; one of a fleet on as few.
    let wide = services == 1 && pick.policy != Policy::SmtPairs;
    let mut dice = Dice::new(pick.policy);
    let mut free = pool.to_vec();
    let mut chosen = Vec::new();
    for _ in 0..services {
        let set = match pick.policy {
            Policy::Random(_) => dice.cpus(&free, each),
            Policy::Spread => threads(&in_turn(&free), each, per_core, wide),
            Policy::SameNode => {
                threads(&near(cores, &free, each, per_core, &[&|core| (core.node, 0)]), each, per_core, wide)
            }
            Policy::Auto | Policy::SmtPairs => {
                // Nodes may share a cache, and caches a node: what is within both is nearest.
                let levels: [Level; 3] =
                    [&|core| (core.cache, core.node), &|core| (core.node, 0), &|core| (core.package, 0)];
                threads(&near(cores, &free, each, per_core, &levels), each, per_core, wide)
            }
        };
        for core in &mut free {
            let touched = core.threads.iter().any(|&cpu| set.contains(cpu));
            core.threads.retain(|&cpu| !set.contains(cpu) && (share_cores || !touched));
        }
        free.retain(|core| !core.threads.is_empty());
        chosen.push(set);
    }
    chosen
}

/// What cores have in common, by numbers.
type Level<'a> = &'a dyn Fn(&Core) -> (u32, u32);

fn by<Key: Ord>(cores: &[Core], level: impl Fn(&Core) -> Key) -> BTreeMap<Key, Vec<&Core>> {
    let mut groups: BTreeMap<Key, Vec<&Core>> = BTreeMap::new();
    for core in cores {
        groups.entry(level(core)).or_default().push(core);
    }
    groups
}

/// The cores of the first group that has room, at the narrowest level where one has; else all, from the roomiest
/// node outwards by distance. Faster cores first.
fn near<'a>(
    cores: &Cores,
    free: &'a [Core],
    each: usize,
    per_core: usize,
    levels: &[Level],
) -> Vec<&'a Core> {
    let room = |group: &[&Core]| group.iter().map(|core| core.threads.len().min(per_core)).sum::<usize>();
    for level in levels {
        let mut groups: Vec<Vec<&Core>> = by(free, level).into_values().collect();
        groups.sort_by_key(|group| Reverse(group.iter().map(|core| core.speed).max()));
        if let Some(mut group) = groups.into_iter().find(|group| room(group) >= each) {
            group.sort_by_key(|core| (Reverse(core.speed), core.node, core.cache, core.index));
            return group;
        }
    }
    let nodes = by(free, |core| core.node);
    let roomiest = nodes.iter().max_by_key(|(node, group)| (room(group), Reverse(**node)));
    let start = roomiest.map_or(0, |(node, _)| *node);
    let mut all: Vec<&Core> = free.iter().collect();
    all.sort_by_key(|core| (cores.distance(start, core.node), core.node, core.cache, core.index));
    all
}

/// One core of each node in turn, and of each cache in turn.
fn in_turn(free: &[Core]) -> Vec<&Core> {
    let caches = by(free, |core| core.cache);
    let nodes = by(free, |core| core.node);
    let rank = |core: &&Core| {
        let in_cache = caches[&core.cache].iter().position(|other| other.index == core.index);
        let mut of_node: Vec<u32> = nodes[&core.node].iter().map(|other| other.cache).collect();
        of_node.dedup();
        (in_cache, of_node.iter().position(|&cache| cache == core.cache), core.node, core.index)
    };
    let mut all: Vec<&Core> = free.iter().collect();
    all.sort_by_cached_key(rank);
    all
}

/// So many CPUs of the first cores: one thread of each, then the next of each. `wide`: of as many cores as there
/// are CPUs, else of as few as will do.
fn threads(order: &[&Core], each: usize, per_core: usize, wide: bool) -> CpuSet {
    let mut room = 0;
    let narrow = order.iter().take_while(|core| {
        let wanted = room < each;
        room += core.threads.len().min(per_core);
        wanted
    });
    let count = if wide { order.len().min(each) } else { narrow.count() };
    let mut set = CpuSet::new();
    for nth in 0..per_core {
        let nths = order[..count].iter().filter_map(|core| core.threads.get(nth).copied());
        let left = each - set.len();
        set.extend(nths.take(left));
    }
    set
}

/// Numbers from a policy's seed.
struct Dice(SplitMix64);

impl Dice {
    fn new(policy: Policy) -> Dice {
        Dice(SplitMix64::new(if let Policy::Random(seed) = policy { seed } else { 0 }))
    }

    fn roll(&mut self, below: usize) -> usize {
        (self.0.next_u64() % below.max(1) as u64) as usize
    }

    fn cpus(&mut self, free: &[Core], each: usize) -> CpuSet {
        let mut all: Vec<u32> = free.iter().flat_map(|core| core.threads.clone()).collect();
        all.sort_unstable();
        let mut set = CpuSet::new();
        while set.len() < each && !all.is_empty() {
            let nth = self.roll(all.len());
            set.insert(all.swap_remove(nth));
        }
        set
    }
}
