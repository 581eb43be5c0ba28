//! Kinds of core, nodes, and CPUs that are not to be used; and what placement makes of them.

use crate::machines::{Tree, made_machine, write_out};
use crate::surveyed::{check, place};
use tare_model::check::Level;

/// Name, CPUs and capacity of each kind, slowest first.
fn kinds(tree: &Tree) -> Vec<(String, String, Option<u32>)> {
    let kinds = place(tree).kinds.value().cloned().unwrap_or_default();
    kinds.into_iter().map(|kind| (kind.name, kind.cpus.to_string(), kind.capacity.value().copied())).collect()
}

#[test]
fn kinds_of_core_are_known_by_design_capacity_and_frequency() {
    let kind = |name: &str, cpus: &str, capacity| (name.to_owned(), cpus.to_owned(), capacity);
    assert_eq!(
        kinds(&made_machine("phone")),
        [
            kind("Cortex-A55", "0-3", Some(284)),
            kind("Cortex-A77", "4-6", Some(871)),
            kind("Cortex-A77", "7", Some(1024))
        ]
    );
    let clocks: Vec<Option<u64>> = place(&made_machine("phone"))
        .kinds
        .value()
        .unwrap()
        .iter()
        .map(|kind| kind.frequency_max_hz.value().copied())
        .collect();
    assert_eq!(clocks, [Some(1_804_800_000), Some(2_419_200_000), Some(2_841_600_000)]);
    assert_eq!(
        kinds(&made_machine("laptop-wireless-mouse")),
        [kind("atom", "8-15", None), kind("core", "0-7", None)]
    );
    let cpus = "@ /sys/devices/system/cpu/online\n0-3\n@ /proc/cpuinfo\nprocessor\t: 0\n";
    let clock = |cpus: &str, khz: u32| {
        format!("@ /sys/devices/system/cpu/cpu{{{cpus}}}/cpufreq/cpuinfo_max_freq\n{khz}\n")
    };
    // A core that the maker clocks a few per cent higher is no other kind; compact cores are.
    let favoured =
        write_out("favoured", &[cpus, &clock("0-1", 4_700_000), &clock("2-3", 4_900_000)].concat());
    assert_eq!(kinds(&favoured), [kind("cores", "0-3", None)]);
    let favoured: String = [4_700_000, 5_000_000, 5_300_000, 5_700_000]
        .iter()
        .zip(0..)
        .map(|(khz, cpu)| clock(&format!("{cpu}-{cpu}"), *khz))
        .collect();
    assert_eq!(kinds(&write_out("favoured", &[cpus, &favoured].concat())), [kind("cores", "0-3", None)]);
    let compact = write_out("compact", &[cpus, &clock("0-1", 5_100_000), &clock("2-3", 3_500_000)].concat());
    assert_eq!(kinds(&compact), [kind("cores", "2-3", None), kind("cores", "0-1", None)]);
    // Where a part is not known, nothing is.
    let more = "@ /sys/devices/system/cpu/cpu{2-3}/cpufreq/\n";
    let half = write_out("half", &[cpus, &clock("0-1", 5_100_000), more].concat());
    assert_eq!(kinds(&half), [kind("cores", "0-3", None)]);
    let register = |cpus: &str, part: &str| {
        format!(
            "@ /sys/devices/system/cpu/cpu{{{cpus}}}/regs/identification/midr_el1\n0x00000000410f{part}0\n"
        )
    };
    let registers =
        write_out("registers", &[cpus, &register("0-1", "d03"), &register("2-3", "d08")].concat());
    assert_eq!(kinds(&registers), [kind("Cortex-A53", "0-1", None), kind("Cortex-A72", "2-3", None)]);
    // A small core that is clocked higher is small all the same; within one design the clock tells.
    let clocks = [clock("0-1", 1_992_000), clock("2-2", 1_500_000), clock("3-3", 1_800_000)].concat();
    let of = |parts: [&str; 2]| {
        let tree = [cpus, &register("0-1", parts[0]), &register("2-3", parts[1]), &clocks].concat();
        kinds(&write_out("clocked", &tree))
    };
    assert_eq!(
        of(["d03", "d09"]),
        [kind("Cortex-A53", "0-1", None), kind("Cortex-A73", "2", None), kind("Cortex-A73", "3", None)]
    );
    // Of designs that nobody knows it is all there is.
    assert_eq!(of(["fff", "d09"]).last(), Some(&kind("implementer 0x41 part 0xfff", "0-1", None)));
}

#[test]
fn no_role_has_fast_and_slow_cores_unless_it_is_asked_to() {
    use tare_machine::placement::{Ask, Wanted, choose, plan};
    use tare_model::placement::Policy;
    for name in ["phone", "laptop-wireless-mouse"] {
        let topology = place(&made_machine(name));
        let kinds = topology.kinds.value().unwrap();
        let mixes = |cpus: &tare_model::CpuSet| kinds.iter().filter(|kind| kind.cpus.meets(cpus)).count() > 1;
        for policy in [Policy::Auto, Policy::Spread, Policy::SameNode, Policy::SmtPairs, Policy::Random(3)] {
            for cpus_each in [None, Some(1), Some(2), Some(3), Some(6), Some(12), Some(40)] {
                for generator in [0, 1, 4, u32::MAX] {
                    let plan =
                        plan(&topology, &Ask { policy, cpus_each, generator, ..Ask::default() }).unwrap();
                    assert!(!mixes(&plan.sut) && !mixes(&plan.generator), "{name}: {plan:?}");
                    assert!(
                        !plan.sut.is_empty() && (generator == 0) == plan.generator.is_empty(),
                        "{plan:?}"
                    );
                }
            }
        }
    }
    let phone = place(&made_machine("phone"));
    let sut = |cpus_each| plan(&phone, &Ask { cpus_each, generator: 2, ..Ask::default() }).unwrap();
    assert_eq!(sut(Some(1)).sut.to_string(), "7");
    assert_eq!(sut(Some(2)).sut.to_string(), "4-5");
    assert_eq!(sut(None).sut.to_string(), "4");
    let most = sut(Some(6));
    assert_eq!(most.sut.to_string(), "0-3");
    assert!(most.notes[0].contains("no kind of core has more"), "{:?}", most.notes);
    // A server that may run everywhere: the generator shares its CPUs, and keeps to one kind as well.
    let all: Vec<u32> = (0..8).collect();
    for load_threads in [1, 2, 4, 6] {
        let wanted = Wanted {
            sut_allowed: &all,
            sut_threads: 8,
            load_threads,
            given_sut: &[],
            given_load: &[],
            policy: Policy::Auto,
            quota_cpus: None,
        };
        let load = choose(&phone, &wanted).unwrap().load_cpus;
        let of = |cpus: std::ops::Range<u32>| load.iter().all(|cpu| cpus.contains(cpu));
        assert!(of(0..4) || of(4..7) || of(7..8), "{load_threads}: {load:?}");
    }
    // Who names CPUs of both is warned.
    let wanted = Wanted {
        sut_allowed: &[],
        sut_threads: 1,
        load_threads: 1,
        given_sut: &[3, 4],
        given_load: &[],
        policy: Policy::Auto,
        quota_cpus: None,
    };
    let named = choose(&phone, &wanted).unwrap();
    assert_eq!(named.sut_cpus, [3, 4]);
    assert!(named.notes[0].contains("2 kinds of core"), "{:?}", named.notes);
}

#[test]
fn nodes_that_share_a_cache_are_kept_apart() {
    let snc = place(&made_machine("snc"));
    assert_eq!(
        (snc.packages.value(), snc.numa_nodes.value(), snc.cores.value()),
        (Some(&1), Some(&2), Some(&8))
    );
    let caches = snc.caches.value().unwrap();
    assert_eq!((caches.len(), caches[0].cpus.to_string()), (1, "0-7".to_owned()));
    let nodes: Vec<String> = snc.numa.value().unwrap().iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(nodes, ["0-1,4-5", "2-3,6-7"]);
    use tare_machine::placement::{Ask, plan};
    let fleet = plan(&snc, &Ask { services: 2, cpus_each: Some(3), generator: 0, ..Ask::default() }).unwrap();
    let services: Vec<String> = fleet.services.iter().map(tare_model::CpuSet::to_string).collect();
    assert_eq!(services, ["0-1,4", "2-3,6"], "within one node each, though one cache has room for both");
}

#[test]
fn offline_is_what_is_there_and_not_online() {
    let machine = place(&made_machine("offline"));
    assert_eq!(machine.offline.value().unwrap().to_string(), "3-4");
    assert_eq!(machine.online.value().unwrap().to_string(), "0-2,5");
    assert_eq!(check(&made_machine("offline"), "offline"), Some((Level::Note, "CPUs 3-4 are off".into())));
    // A kernel that does not tell who is there has a folder for each.
    let folders = "@ /sys/devices/system/cpu/online\n0-1\n@ /sys/devices/system/cpu/offline\n2-7\n\
                   @ /sys/devices/system/cpu/cpu{0-1}/topology/core_id\n{n}\n@ /sys/devices/system/cpu/cpu2/online\n0";
    assert_eq!(place(&write_out("folders", folders)).offline.value().unwrap().to_string(), "2");
    // A container may see fewer online than there are, which are not off for that.
    let hidden = "@ /sys/devices/system/cpu/online\n0\n@ /sys/devices/system/cpu/present\n0-31\n@ /sys/devices/system/cpu/offline\n";
    assert_eq!(place(&write_out("hidden", hidden)).offline.value().map(tare_model::CpuSet::len), Some(0));
    let nothing = place(&write_out("nothing", "@ /proc/cpuinfo\nprocessor\t: 0"));
    assert!(nothing.offline.value().is_none());
}

/// What a tree does not hold is missing, and is not taken for what is not there.
#[test]
fn what_is_listed_is_there_though_its_folder_is_not() {
    let list = "@ /sys/devices/system/cpu/online\n0-7\n";
    let of = |more: &str| place(&write_out("partial", &format!("{list}{more}")));
    let online = |more: &str| of(more).online.value().map(ToString::to_string);
    let one = "@ /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\nperformance\n";
    assert_eq!(online(one).as_deref(), Some("0-7"));
    let topology = "@ /sys/devices/system/cpu/cpu0/topology/core_id\n0\n@ /sys/devices/system/cpu/cpu0/topology/thread_siblings_list\n0-1\n";
    assert_eq!(online(topology).as_deref(), Some("0-7"));
    let machine = of(topology);
    assert_eq!((machine.threads.value(), machine.cores.value()), (Some(&8), None));
    // Folders tell more than the list: a switch that is off, no topology where others have one.
    let off = format!(
        "{topology}@ /sys/devices/system/cpu/cpu1/online\n0\n@ /sys/devices/system/cpu/cpu1/topology/core_id\n0\n@ /sys/devices/system/cpu/cpu2/\n"
    );
    assert_eq!(online(&off).as_deref(), Some("0,3-7"));
    let nodes = |listed: &str| {
        let node = "@ /sys/devices/system/node/node0/cpulist\n0-3\n@ /sys/devices/system/node/node0/distance\n10 21\n";
        of(&format!("@ /sys/devices/system/node/online\n{listed}\n{node}")).numa_nodes
    };
    assert_eq!(nodes("0").value(), Some(&1));
    let missing = format!("{:?}", nodes("0-1"));
    assert!(missing.contains("node1 is not there"), "{missing}");
}

#[test]
fn isolated_cpus_are_those_of_cpusets_too() {
    let tree = |more: &str| {
        let text = "@ /proc/self/mounts\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n@ /sys/devices/system/cpu/isolated\n1\n";
        let topology = place(&write_out("isolated", &format!("{text}{more}")));
        topology.isolated.value().map(tare_model::CpuSet::to_string)
    };
    assert_eq!(tree("").as_deref(), Some("1"));
    assert_eq!(tree("@ /sys/fs/cgroup/cpuset.cpus.isolated\n4-5").as_deref(), Some("1,4-5"));
    let partition = "@ /sys/fs/cgroup/fast/cpuset.cpus.partition\nisolated\n@ /sys/fs/cgroup/fast/cpuset.cpus.effective\n6-7\n\
                     @ /sys/fs/cgroup/slow/cpuset.cpus.partition\nmember\n@ /sys/fs/cgroup/slow/cpuset.cpus.effective\n2-3";
    assert_eq!(tree(partition).as_deref(), Some("1,6-7"));
}

#[test]
fn in_the_first_version_of_cpusets_what_no_group_balances_is_isolated() {
    let tree = |groups: &[(&str, &str, &str)], more: &str| {
        let mount = "@ /proc/self/mounts\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n@ /sys/devices/system/cpu/isolated\n\n";
        let files = groups.iter().map(|(group, cpus, balanced)| {
            let dir = format!("@ /sys/fs/cgroup/cpuset{group}/cpuset");
            format!("{dir}.cpus\n{cpus}\n{dir}.sched_load_balance\n{balanced}\n")
        });
        let topology =
            place(&write_out("isolated-v1", &format!("{mount}{}{more}", files.collect::<String>())));
        topology.isolated.value().map(tare_model::CpuSet::to_string)
    };
    let top = "@ /sys/fs/cgroup/cpuset/cgroup.sane_behavior\n0\n";
    let shielded = [("", "0-7", "0"), ("/system", "0-3", "1"), ("/user", "4-7", "0")];
    assert_eq!(tree(&shielded, top).as_deref(), Some("4-7"));
    let inner = [("", "0-7", "0"), ("/user", "0-7", "0"), ("/user/a", "1-2", "1")];
    assert_eq!(tree(&inner, top).as_deref(), Some("0,3-7"));
    let balanced = [("", "0-7", "1"), ("/user", "4-7", "0")];
    assert_eq!(tree(&balanced, top).as_deref(), Some(""));
    // A container sees its own group alone.
    assert_eq!(tree(&shielded, "").as_deref(), Some(""));
}
