//! What each setting makes of the files of machines that have it, have it not, or show nonsense.

use super::*;
use crate::value;
use proptest::prelude::*;
use std::path::Path;

/// A laptop with every setting: two clocks, Intel's boost switch, two NUMA nodes, control groups v2.
const MACHINE: &[(&str, &str)] = &[
    ("proc/meminfo", MEMINFO),
    ("proc/version", "Linux version 6.12.0 (builder)\n"),
    ("proc/cpuinfo", "flags\t\t: fpu sse2\n"),
    ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
    ("proc/7/cgroup", "0::/web\n"),
    ("proc/8/cgroup", "0::/\n"),
    ("proc/irq/16/smp_affinity_list", "0-3\n"),
    ("proc/irq/17/smp_affinity_list", "1\n"),
    ("proc/irq/18/smp_affinity_list", "2-3\n"),
    ("proc/sys/vm/nr_hugepages", "4\n"),
    ("proc/sys/vm/drop_caches", "0\n"),
    ("proc/sys/kernel/numa_balancing", "1\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("proc/sys/net/core/busy_read", "0\n"),
    ("proc/sys/net/core/busy_poll", "0\n"),
    ("proc/sys/net/core/rps_sock_flow_entries", "0\n"),
    ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
    ("sys/class/net/lo/queues/rx-0/rps_cpus", "0\n"),
    ("sys/class/net/lo/queues/rx-0/rps_flow_cnt", "0\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_flow_cnt", "0\n"),
    ("sys/class/net/eth0/queues/rx-10/rps_cpus", "3\n"),
    ("sys/class/net/eth0/queues/rx-10/rps_flow_cnt", "0\n"),
    ("sys/class/net/eth0/queues/rx-2/rps_cpus", "0\n"),
    ("sys/class/net/eth0/queues/rx-2/rps_flow_cnt", "0\n"),
    ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0\n"),
    ("sys/class/net/eth0/queues/tx-1/xps_cpus", "0\n"),
    ("sys/fs/cgroup/web/cpu.max", "max 100000\n"),
    ("sys/fs/cgroup/cpu.stat", ""),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/kernel/debug/sched/base_slice_ns", "3000000\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "performance powersave\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "4600000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "4600000\n"),
    ("sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpufreq/policy2/scaling_available_governors", "performance powersave\n"),
    ("sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq", "3300000\n"),
    ("sys/devices/system/cpu/cpufreq/policy2/cpuinfo_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy2/cpuinfo_max_freq", "3300000\n"),
    // Its CPUs are offline: it cannot be read, and is not asked.
    ("sys/devices/system/cpu/cpufreq/policy3/affected_cpus", "\n"),
];

const MEMINFO: &str = "MemTotal:        4194304 kB\nMemAvailable:    2097152 kB\nCached:          1048576 kB\n\
                       HugePages_Total:       4\nHugePages_Free:        3\nHugepagesize:       2048 kB\n";

fn write(root: &Path, file: &str, text: &[u8]) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in files {
        write(dir.path(), file, text.as_bytes());
    }
    let root = Root::at(dir.path());
    (dir, root)
}

fn all() -> Wanted {
    Wanted {
        clock: ClockWanted {
            governor: Some("performance".into()),
            min_frequency_hz: Some(2_000_000_000),
            max_frequency_hz: Some(2_000_000_000),
            boost: Some(false),
        },
        memory: MemoryWanted {
            thp: Some("never".into()),
            numa_balancing: Some(false),
            drop_caches: true,
            huge_pages_bytes: Some(100 << 20),
        },
        base_slice_ns: Some(6_000_000),
        autogroup: Some(false),
        irqs_off: vec![0, 1],
        network: NetworkWanted {
            somaxconn: Some(4096),
            port_range: Some((1024, 65_535)),
            busy_poll_ns: Some(50_000),
            rps: Some(vec![0, 1]),
            rps_flows: Some(3000),
            xps: Some(vec![0, 1, 2]),
        },
        quota: Some(QuotaWanted { group: Group::Of(7), cpus: Some(2.0) }),
    }
}

/// `setting: file before -> wanted`, or why not.
fn shown(plan: &[Planned]) -> String {
    let mut text = String::new();
    for Planned { setting, change } in plan {
        match change {
            Err(missing) => text += &format!("{}: {} ({})\n", setting.name(), missing.why, missing.remedy),
            Ok(change) => {
                for Step { path, before, wanted, .. } in &change.steps {
                    let before = before.as_deref().unwrap_or("once");
                    let (file, folder) =
                        (path.file_name().unwrap(), path.parent().unwrap().file_name().unwrap());
                    let file = format!("{}/{}", folder.display(), file.display());
                    text += &format!("{}: {file} {} -> {wanted}\n", setting.name(), before.escape_debug());
                }
                change.notes.iter().for_each(|note| text += &format!("  {note}\n"));
            }
        }
    }
    text
}

#[test]
fn every_setting_of_a_machine_that_has_them_all() {
    let (_dir, root) = tree(MACHINE);
    insta::assert_snapshot!(shown(&plan(&root, &all())));
    let now: Vec<String> = SETTINGS
        .iter()
        .map(|setting| format!("{}: {}", setting.name(), setting.now(&root).unwrap_or_else(|m| m.why)))
        .collect();
    insta::assert_snapshot!(now.join("\n"));
}

#[test]
fn what_stands_as_wanted_needs_no_step() {
    let (dir, root) = tree(MACHINE);
    for Planned { change, .. } in plan(&root, &all()) {
        for step in change.unwrap().steps {
            write(dir.path(), step.path.strip_prefix("/").unwrap().to_str().unwrap(), step.wanted.as_bytes());
        }
    }
    let steps = plan(&root, &Wanted { memory: MemoryWanted { drop_caches: false, ..all().memory }, ..all() })
        .into_iter()
        .flat_map(|p| p.change.unwrap().steps);
    assert_eq!(steps.collect::<Vec<_>>(), vec![]);
}

#[test]
fn a_machine_without_says_why_and_what_to_do_instead() {
    let (_dir, root) = tree(&[("proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2\n")]);
    insta::assert_snapshot!(shown(&plan(&root, &all())));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let firecracker = plan(&Root::at(fixtures.join("firecracker")), &Wanted::still());
    insta::assert_snapshot!(shown(&firecracker));
}

#[test]
fn what_this_machine_cannot_do_is_refused_with_numbers() {
    let (dir, root) = tree(MACHINE);
    write(dir.path(), "proc/meminfo", MEMINFO.replace("Free:        3", "Free:        0").as_bytes());
    let refused = |wanted: Wanted| shown(&plan(&root, &wanted));
    let texts = [
        refused(Wanted {
            memory: MemoryWanted { huge_pages_bytes: Some(3 << 30), ..MemoryWanted::default() },
            ..Wanted::default()
        }),
        refused(Wanted {
            memory: MemoryWanted { huge_pages_bytes: Some(0), ..MemoryWanted::default() },
            ..Wanted::default()
        }),
        refused(Wanted {
            clock: ClockWanted { governor: Some("schedutil".into()), ..ClockWanted::default() },
            ..Wanted::default()
        }),
        refused(Wanted {
            clock: ClockWanted { max_frequency_hz: Some(5_000_000_000), ..ClockWanted::default() },
            ..Wanted::default()
        }),
        refused(Wanted {
            clock: ClockWanted {
                min_frequency_hz: Some(3_000_000_000),
                max_frequency_hz: Some(2_000_000_000),
                ..ClockWanted::default()
            },
            ..Wanted::default()
        }),
        refused(Wanted { irqs_off: vec![0, 1, 2, 3], ..Wanted::default() }),
        refused(Wanted { base_slice_ns: Some(1), ..Wanted::default() }),
        refused(Wanted {
            network: NetworkWanted { busy_poll_ns: Some(1500), ..NetworkWanted::default() },
            ..Wanted::default()
        }),
        refused(Wanted {
            network: NetworkWanted { rps: Some(vec![0, 9]), ..NetworkWanted::default() },
            ..Wanted::default()
        }),
        refused(Wanted {
            quota: Some(QuotaWanted { group: Group::Of(8), cpus: Some(1.0) }),
            ..Wanted::default()
        }),
        refused(Wanted {
            quota: Some(QuotaWanted { group: Group::At("/web".into()), cpus: Some(0.001) }),
            ..Wanted::default()
        }),
        refused(Wanted {
            quota: Some(QuotaWanted { group: Group::At("/../etc".into()), cpus: Some(1.0) }),
            ..Wanted::default()
        }),
    ];
    insta::assert_snapshot!(texts.concat());
}

/// Loopback has one send queue, and its file cannot be read.
#[test]
fn a_machine_with_one_send_queue_has_nothing_to_choose() {
    let (dir, root) = tree(MACHINE);
    for queue in ["tx-0", "tx-1"] {
        std::fs::remove_dir_all(dir.path().join("sys/class/net/eth0/queues").join(queue)).unwrap();
    }
    let xps = |cpus: &[u32]| Wanted {
        network: NetworkWanted { xps: Some(cpus.to_vec()), ..NetworkWanted::default() },
        ..Wanted::default()
    };
    let missing = plan(&root, &xps(&[0])).remove(0).change.unwrap_err();
    assert!(missing.why.contains("more than one send queue"), "{missing:?}");
    // Off is what they are already: nothing to do.
    let (_dir, root) = tree(MACHINE);
    assert_eq!(plan(&root, &xps(&[])).remove(0).change.unwrap().steps, []);
}

#[test]
fn names_are_there_once_and_say_something() {
    let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name()).collect();
    assert!(SETTINGS.iter().all(|setting| !setting.about().is_empty()));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Applying the steps one by one, forwards and backwards, the lower end is never above the upper one.
    #[test]
    fn the_range_of_the_clock_is_one_at_every_moment(
        (low, high) in (8u64..46, 8u64..46).prop_map(|(a, b)| (a.min(b), a.max(b))),
        to_low in proptest::option::of(8u64..46),
        to_high in proptest::option::of(8u64..46),
    ) {
        let (dir, root) = tree(MACHINE);
        let policy = "sys/devices/system/cpu/cpufreq/policy0";
        std::fs::remove_dir_all(dir.path().join("sys/devices/system/cpu/cpufreq/policy2")).unwrap();
        let set = |file: &str, steps: u64| write(dir.path(), &format!("{policy}/{file}"), format!("{}", steps * 100_000).as_bytes());
        set("scaling_min_freq", low);
        set("scaling_max_freq", high);
        let hz = |steps: Option<u64>| steps.map(|steps| steps * 100_000_000);
        let wanted = Wanted { clock: ClockWanted { min_frequency_hz: hz(to_low), max_frequency_hz: hz(to_high), ..ClockWanted::default() }, ..Wanted::default() };
        let read = |file: &str| -> u64 { root.value(format!("/{policy}/{file}")).unwrap() };
        let range = || (read("scaling_min_freq"), read("scaling_max_freq"));
        let before = range();
        for Planned { change, .. } in plan(&root, &wanted) {
            let Ok(change) = change else {
                prop_assert!(to_low > to_high);
                continue;
            };
            for step in &change.steps {
                value::write(&root, &step.path, &step.wanted).unwrap();
                prop_assert!(range().0 <= range().1, "{:?}", range());
            }
            prop_assert!(to_low.is_none_or(|low| range().0 == low * 100_000));
            prop_assert!(to_high.is_none_or(|high| range().1 == high * 100_000));
            for step in change.steps.iter().rev() {
                value::write(&root, &step.path, step.before.as_ref().unwrap()).unwrap();
                prop_assert!(range().0 <= range().1, "{:?}", range());
            }
        }
        prop_assert_eq!(range(), before);
    }

    /// A file that holds nonsense: its setting is missing with a reason, or has no steps that rest on it.
    #[test]
    fn nonsense_is_missing_and_nothing_is_turned(
        which in 0..MACHINE.len(),
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let (dir, root) = tree(MACHINE);
        let (file, _) = MACHINE[which];
        write(dir.path(), file, &bytes);
        for Planned { change, .. } in plan(&root, &all()) {
            match change {
                Err(missing) => prop_assert!(!missing.why.is_empty()),
                Ok(change) => for step in change.steps {
                    // What cannot be distinguished from a value may be taken for one; it is then put back as it stood.
                    let before = step.before.unwrap_or_default();
                    prop_assert!(!before.contains('\n') && !before.contains('\0'), "{before:?}");
                    let text = root.text(&step.path).unwrap_or_default();
                    prop_assert!(text.contains(&before), "{before:?} in {text:?}");
                },
            }
        }
        for setting in SETTINGS {
            let _ = setting.now(&root);
        }
    }
}

#[test]
fn plain_garbage_in_a_settings_own_file_is_named() {
    for (setting, file) in [
        ("governor", "sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors"),
        ("frequency", "sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq"),
        ("boost", "sys/devices/system/cpu/intel_pstate/no_turbo"),
        ("thp", "sys/kernel/mm/transparent_hugepage/enabled"),
        ("numa-balancing", "proc/sys/kernel/numa_balancing"),
        ("huge-pages", "proc/sys/vm/nr_hugepages"),
        ("huge-pages", "proc/meminfo"),
        ("drop-caches", "proc/meminfo"),
        ("base-slice", "sys/kernel/debug/sched/base_slice_ns"),
        ("irqs-off", "proc/irq/17/smp_affinity_list"),
        ("somaxconn", "proc/sys/net/core/somaxconn"),
        ("port-range", "proc/sys/net/ipv4/ip_local_port_range"),
        ("busy-poll", "proc/sys/net/core/busy_read"),
        ("busy-poll", "proc/sys/net/core/busy_poll"),
        ("autogroup", "proc/sys/kernel/sched_autogroup_enabled"),
        ("rps", "sys/class/net/lo/queues/rx-0/rps_cpus"),
        ("rps-flows", "proc/sys/net/core/rps_sock_flow_entries"),
        ("rps-flows", "sys/class/net/eth0/queues/rx-2/rps_flow_cnt"),
        ("xps", "sys/class/net/eth0/queues/tx-1/xps_cpus"),
        ("quota", "sys/fs/cgroup/web/cpu.max"),
    ] {
        for garbage in ["", "\n", "banana\n", "-7\n", "1 2 3\n", "99999999999999999999999\n"] {
            let (dir, root) = tree(MACHINE);
            write(dir.path(), file, garbage.as_bytes());
            let planned =
                plan(&root, &all()).into_iter().find(|planned| planned.setting.name() == setting).unwrap();
            let missing = planned.change.expect_err(&format!("{setting}: {file} holds {garbage:?}"));
            assert!(!missing.why.is_empty());
        }
    }
}
