//! Facts that move a measurement, and what is said of them: power, clocks, interrupts, groups, memory.

use crate::machines::{made_machine, write_out};
use crate::surveyed::{check, checks, place, surveyed, text};
use tare_machine::facts::{Reach, survey};
use tare_machine::{Root, topology};
use tare_model::Reading;
use tare_model::check::Level;

#[test]
fn what_feeds_a_mouse_does_not_feed_the_machine() {
    let laptop = made_machine("laptop-wireless-mouse");
    assert_eq!(check(&laptop, "battery"), Some((Level::Ok, "a battery, on mains".into())));
    let supply = |name: &str, lines: &[(&str, &str)]| -> String {
        lines
            .iter()
            .map(|(file, text)| format!("@ /sys/class/power_supply/{name}/{file}\n{text}\n"))
            .collect()
    };
    let mouse =
        supply("hid-1-battery", &[("type", "Battery"), ("scope", "Device"), ("status", "Discharging")]);
    assert_eq!(check(&write_out("desktop", &mouse), "battery"), None);
    let cradle = supply("wacom_ac_1", &[("type", "Mains"), ("scope", "Device"), ("online", "1")]);
    let battery = |status: &str| supply("BAT0", &[("type", "Battery"), ("status", status)]);
    let drained = write_out("drained", &(cradle.clone() + &battery("Discharging")));
    assert_eq!(check(&drained, "battery").unwrap().0, Level::Bad);
    let usb = supply("ucsi-source-psy-USBC000:001", &[("type", "USB"), ("scope", "System"), ("online", "1")]);
    let charged = write_out("usb", &(usb + &battery("Unknown")));
    assert_eq!(check(&charged, "battery"), Some((Level::Ok, "a battery, on mains".into())));
    // A charger that negotiates its voltage, and a charging pad.
    for (kind, online) in [("USB", "2"), ("USB_PD", "1"), ("Wireless", "1")] {
        let charger = supply("charger", &[("type", kind), ("online", online)]);
        let off = supply("AC", &[("type", "Mains"), ("online", "0")]);
        let charged = write_out("charged", &(charger + &off + &battery("Discharging")));
        assert_eq!(check(&charged, "battery"), Some((Level::Ok, "a battery, on mains".into())), "{kind}");
    }
    let unknown = check(&write_out("unknown", &(cradle + &battery("Unknown"))), "battery").unwrap();
    assert!(unknown.0 == Level::Note && unknown.1.starts_with("missing: neither"), "{unknown:?}");
}

#[test]
fn clock_sources_that_trap_are_bad() {
    let clock = |now: &str, all: &str| {
        let dir = "@ /sys/devices/system/clocksource/clocksource0";
        let tree = format!("{dir}/current_clocksource\n{now}\n{dir}/available_clocksource\n{all}");
        check(&write_out("clock", &tree), "clocksource").unwrap()
    };
    for name in ["hpet", "acpi_pm", "jiffies", "hyperv_clocksource_msr", "arch_mem_counter"] {
        assert_eq!(clock(name, "tsc hpet acpi_pm"), (Level::Bad, format!("time comes from {name}")));
    }
    for name in ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "tod"] {
        assert_eq!(
            clock(name, name),
            (Level::Ok, format!("time comes from {name}, read without a system call"))
        );
    }
    assert_eq!(clock("xen", "xen tsc").0, Level::Warn);
    // Without a list of them, nobody is advised a clock of other processors.
    for (features, name, is_x86) in
        [("Features\t: fp asimd", "arch_mem_counter", false), ("flags\t\t: fpu tsc", "hpet", true)]
    {
        let dir = "@ /sys/devices/system/clocksource/clocksource0";
        let tree = format!("@ /proc/cpuinfo\nprocessor\t: 0\n{features}\n{dir}/current_clocksource\n{name}");
        let all = checks(&write_out("clock", &tree));
        let fix = all.iter().find(|check| check.id == "clocksource").map(|check| check.fix.as_str());
        assert_eq!(fix.map(|fix| fix.contains("tsc")), Some(is_x86), "{fix:?}");
    }
    let unknown = clock("some_soc_timer", "some_soc_timer");
    assert!(unknown.0 == Level::Note && unknown.1.contains("is not known"), "{unknown:?}");
    let tcg = checks(&made_machine("tcg"));
    let level = |id: &str| tcg.iter().find(|check| check.id == id).map(|check| check.level);
    assert_eq!((level("clocksource"), level("virtual")), (Some(Level::Bad), Some(Level::Bad)));
}

#[test]
fn the_governors_of_all_policies_are_reported() {
    let governor = |name: &str| text(&surveyed(&made_machine(name)).machine.governor);
    assert_eq!(governor("phone"), "performance, schedutil");
    assert_eq!(governor("laptop-wireless-mouse"), "performance, powersave");
}

/// With SMT off the kernel keeps the policies of the CPUs that are off, and answers "busy" to who reads them.
#[test]
fn policies_of_cpus_that_are_off_say_nothing() {
    let cpus = "@ /sys/devices/system/cpu/online\n0-1\n@ /sys/devices/system/cpu/present\n0-3\n";
    let dir = "@ /sys/devices/system/cpu/cpufreq/";
    let policy = |n: u32| {
        format!(
            "{dir}policy{n}/affected_cpus\n{n}\n{dir}policy{n}/scaling_governor\nperformance\n{dir}policy{n}/scaling_driver\nx\n"
        )
    };
    let on = policy(0) + &policy(1);
    let of = |more: &str| write_out("smt-off", &format!("{cpus}{on}{more}"));
    let fine = Some((Level::Ok, "governor performance (x)".to_owned()));
    let empty = of(&format!("{dir}policy2/\n{dir}policy3/\n"));
    assert_eq!(check(&empty, "governor"), fine);
    let survey = surveyed(&empty);
    assert_eq!(text(&survey.machine.governor), "performance");
    assert_eq!(survey.frequency.policies.value().map(Vec::len), Some(2));
    assert_eq!(check(&of(&format!("{dir}policy2/related_cpus\n2 3\n")), "governor"), fine);
    // A policy of a CPU that is on, but not its governor, is there: it is one name and something missing.
    let hidden = check(&of(&format!("{dir}policy2/affected_cpus\n2 3\n")), "governor").unwrap();
    assert!(hidden.0 == Level::Note && hidden.1.starts_with("missing: "), "{hidden:?}");
    let other = of(&(policy(2).replace("performance", "powersave")));
    assert_eq!(check(&other, "governor").map(|check| check.0), Some(Level::Warn));
}

/// Nothing of this machine or of the user who runs the test is in what is said of a tree.
#[test]
fn the_answer_is_the_same_whoever_reads() {
    let metal = surveyed(&made_machine("arm-metal"));
    let paranoid = "@ /sys/bus/event_source/devices/cpu/type\n4\n@ /proc/sys/kernel/perf_event_paranoid\n2\n\
                    @ /sys/class/powercap/intel-rapl:0/name\npackage-0\n@ /sys/class/powercap/intel-rapl:0/energy_uj\n5";
    let survey = surveyed(&write_out("paranoid", paranoid));
    let why = |reading: &Reading<bool>| match reading {
        Reading::Missing(missing) => missing.why.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(why(&survey.machine.pmu), "perf_event_paranoid is 2: a captured tree does not say who looks");
    // Energy of packages, and clocks, are no counters of a core.
    let none =
        "@ /sys/bus/event_source/devices/power/type\n9\n@ /sys/bus/event_source/devices/software/type\n1\n";
    assert_eq!(surveyed(&write_out("energy", none)).machine.pmu, Reading::Measured(false));
    let apple = "@ /sys/bus/event_source/devices/apple_icestorm_pmu/type\n9\n@ /proc/sys/kernel/perf_event_paranoid\n-1\n";
    assert_eq!(surveyed(&write_out("apple", apple)).machine.pmu, Reading::Measured(true));
    let domain = &survey.frequency.power_domains.value().unwrap()[0];
    assert_eq!(why(&domain.readable), "a captured tree does not tell who may read it");
    assert_eq!(why(&survey.access.root), "a captured tree does not say who looks");
    assert!(metal.company.value().is_none() && metal.host.uptime_ns.value().is_none());
    assert!(metal.groups.allowed_cpus.value().is_none() && metal.limits.open_files.value().is_none());
}

#[test]
fn timers_and_calls_between_cpus_are_no_devices() {
    use tare_model::survey::LocalKind;
    for (name, devices, timers, ipis) in [
        (
            "arm-metal",
            &[(60, "nvme0q0"), (61, "mlx5_comp0@pci:0000:01:00.0")][..],
            &["11", "12"][..],
            &["IPI0", "IPI1"][..],
        ),
        ("power-kvm", &[(17, "RAS-EPOW"), (19, "virtio0")], &["LOC"], &["16", "DBL"]),
        (
            "xen-dom0",
            &[(8, "rtc0"), (70, "eth0-TxRx-0"), (71, "vif1.0-q0-tx")],
            &["48", "LOC"],
            &["49", "50"],
        ),
        ("s390-kvm", &[(3, "virtio0-input")], &["CLK"], &["EXC"]),
    ] {
        let network = surveyed(&made_machine(name)).network;
        let found: Vec<(u32, &str)> =
            network.interrupts.value().unwrap().iter().map(|one| (one.id, one.name.as_str())).collect();
        assert_eq!(found, devices, "{name}");
        let local = network.local_interrupts.value().unwrap();
        let of = |kind| {
            local.iter().filter(move |one| one.kind == kind && one.count > 0).map(|one| one.id.as_str())
        };
        // What was never served is left out here.
        let wanted = |ids: &[&str]| {
            ids.iter().filter(|id| local.iter().any(|one| one.id == **id && one.count > 0)).count()
        };
        assert_eq!(of(LocalKind::Timer).count(), wanted(timers), "{name}");
        assert_eq!(of(LocalKind::Ipi).count(), wanted(ipis), "{name}");
    }
    let text = check(&made_machine("arm-metal"), "interrupts").unwrap().1;
    assert!(!text.contains("arch_timer"), "{text}");
}

#[test]
fn devices_whose_cpus_are_not_shown_have_interrupted_all_the_same() {
    let found = |kind: &str, lines: &str| {
        let tree = format!("{kind}\n@ /proc/interrupts\n           CPU0       CPU1\n{lines}\n");
        check(&write_out("interrupts", &tree), "interrupts").unwrap()
    };
    let unknown = |most: &str| {
        let why = "missing: devices have interrupted, and nothing shows which CPUs serve them; most for";
        (Level::Note, format!("{why} {most}"))
    };
    let quiet = (Level::Ok, "no device has interrupted much".to_owned());
    let network = " 60:  500000  7  PCI-MSIX-0000:01:00.0  1-edge  eth0-rx-1\n";
    assert_eq!(found("", network), unknown("eth0-rx-1 (100 %)"));
    // s390 names its devices, and counts them twice: the totals have no words.
    let s390 = "EXT: 5000000 4000000\nI/O: 8000000 8000000\nAIO: 9000000 900000\nCLK: 120000 110000  [EXT] Clock Comparator\n";
    let devices = "DAS: 6000000 5000000  [I/O] DASD\nQAI: 2000000 7000000  [AIO] QDIO Adapter Interrupt\nNMI: 0 0  [NMI] Machine Check";
    assert_eq!(found("", &format!("{s390}{devices}")), unknown("[I/O] DASD (55 %)"));
    assert_eq!(found("", s390), quiet);
    let vmbus = "  8:  0  0   IO-APIC   8-edge      rtc0\nHYP:   50000000   40000000   Hypervisor callback interrupts";
    let hyper_v = "@ /proc/cpuinfo\nflags\t: fpu hypervisor\n@ /sys/bus/vmbus/devices/1-2/";
    assert_eq!(found(hyper_v, vmbus), unknown("Hypervisor callback interrupts (100 %)"));
    let passed_through = format!("@ /proc/irq/60/smp_affinity_list\n1\n{hyper_v}");
    assert_eq!(
        found(&passed_through, &format!("{network}{vmbus}")).1,
        "devices interrupt CPUs 1; most for Hypervisor callback interrupts (99 %); for 99 % of them no CPU is shown"
    );
    // Xen's events have numbers of their own.
    assert_eq!(found("@ /sys/hypervisor/type\nxen", vmbus), quiet);
}

#[test]
fn what_holds_a_group_back_without_a_quota_is_said() {
    let pod = made_machine("pod-containerd");
    let groups = surveyed(&pod).groups;
    let group = &groups.cpu.value().unwrap()[0];
    assert_eq!((group.idle.value(), group.uclamp_max_ratio.value()), (Some(&false), Some(&0.5)));
    assert_eq!(check(&pod, "uclamp").map(|check| check.0), Some(Level::Warn));
    assert_eq!(text(&groups.cpuset.value().unwrap()[0].partition), "member");
    let tree = |more: &str| {
        let text = "@ /proc/self/mounts\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n@ /proc/self/cgroup\n0::/a\n\
                    @ /sys/fs/cgroup/cgroup.controllers\ncpu cpuset\n@ /sys/fs/cgroup/a/cgroup.controllers\ncpu cpuset\n\
                    @ /sys/fs/cgroup/a/cgroup.type\ndomain\n@ /sys/fs/cgroup/a/";
        write_out("group", &format!("{text}{more}"))
    };
    assert_eq!(check(&tree("cpu.idle\n1"), "cpu-idle").map(|check| check.0), Some(Level::Bad));
    assert_eq!(check(&tree("cpu.uclamp.max\nmax"), "uclamp"), None);
    let invalid = check(
        &tree(
            "cpuset.cpus.partition\nisolated invalid (partition config conflicts with housekeeping setup, not exclusive)",
        ),
        "cpu-partition",
    );
    assert!(invalid.is_some_and(|(level, text)| level == Level::Warn && text.contains("not exclusive")));
}

#[test]
fn energy_and_the_clock_outside_of_the_cores_are_reported() {
    let laptop = surveyed(&made_machine("laptop-wireless-mouse")).frequency;
    let bias: Vec<(u8, String)> =
        laptop.energy_bias.value().unwrap().iter().map(|one| (one.bias, one.cpus.to_string())).collect();
    assert_eq!(bias, [(0, "8-9".to_owned()), (6, "0-3".to_owned())]);
    let found = check(&made_machine("laptop-wireless-mouse"), "energy-preference").unwrap();
    assert_eq!(found, (Level::Note, "the processor's energy bias is 6 of 15 on CPUs 0-3".into()));
    let policy = "@ /sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference\n";
    let preference =
        |word: &str| check(&write_out("epp", &format!("{policy}{word}")), "energy-preference").unwrap().0;
    assert_eq!((preference("performance"), preference("balance_power")), (Level::Ok, Level::Note));
    let die = "@ /sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/";
    let uncore = |min: u32, max: u32| {
        let tree = format!(
            "{die}min_freq_khz\n{min}\n{die}max_freq_khz\n{max}\n{die}initial_max_freq_khz\n2200000\n"
        );
        check(&write_out("uncore", &tree), "uncore").unwrap()
    };
    assert_eq!(uncore(2_200_000, 2_200_000).0, Level::Ok);
    assert!(uncore(800_000, 2_200_000).1.ends_with("goes from 0.80 GHz to 2.20 GHz"));
    assert!(uncore(800_000, 1_100_000).1.ends_with("is limited to 1.10 GHz of 2.20 GHz"));
    let chip = "@ /sys/class/hwmon/hwmon2/";
    let sensor = |celsius: i64| {
        let tree = format!("{chip}name\nk10temp\n{chip}temp1_input\n{celsius}\n{chip}temp1_label\nTctl\n");
        check(&write_out("sensor", &tree), "temperature").unwrap()
    };
    assert_eq!(sensor(45_125), (Level::Ok, "45 °C at most (k10temp Tctl)".into()));
    assert_eq!(sensor(94_500).0, Level::Warn);
    // A control value that stands above the die's own, and a zone that is a wireless card's.
    let both = format!(
        "{chip}name\nk10temp\n{chip}temp1_input\n92000\n{chip}temp1_label\nTctl\n{chip}temp2_input\n65000\n{chip}temp2_label\nTdie\n\
         @ /sys/class/thermal/thermal_zone0/type\niwlwifi_1\n@ /sys/class/thermal/thermal_zone0/temp\n28000\n"
    );
    let found = check(&write_out("sensor", &both), "temperature");
    assert_eq!(found, Some((Level::Ok, "65 °C at most (k10temp Tdie)".into())));
}

#[test]
fn idle_states_are_those_of_a_cpu_that_is_on() {
    let state = "@ /sys/devices/system/cpu/cpu{4-7}/cpuidle/state1/";
    let tree = format!(
        "@ /sys/devices/system/cpu/online\n4-7\n{state}name\nC6\n{state}latency\n170\n{state}disable\n0\n"
    );
    let found = check(&write_out("from-4", &tree), "idle-states");
    assert_eq!(found, Some((Level::Note, "waking up from C6 takes 170 µs".into())));
}

#[test]
fn what_else_moves_figures_is_reported() {
    let found = |tree: &str, id: &str| check(&write_out("else", tree), id);
    let ops = "@ /sys/kernel/sched_ext/state\nenabled\n@ /sys/kernel/sched_ext/root/ops\nlavd_1.0";
    assert!(
        found(ops, "sched-ext")
            .is_some_and(|(level, text)| level == Level::Warn && text.contains("lavd_1.0"))
    );
    assert_eq!(found("@ /sys/kernel/sched_ext/state\ndisabled", "sched-ext"), None);
    assert_eq!(
        found("@ /sys/kernel/mm/ksm/run\n1", "same-page-merging").map(|check| check.0),
        Some(Level::Warn)
    );
    assert_eq!(found("@ /sys/kernel/mm/ksm/run\n0", "same-page-merging"), None);
    let swap = "@ /proc/meminfo\nMemTotal: 100 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB\n@ /proc/swaps\nFilename Type Size Used Priority\n";
    let on = |device: &str| found(&format!("{swap}{device} partition 8 4 100"), "swap").unwrap().1;
    assert!(
        on("/dev/block/zram0").contains("zram")
            && on("/dev/zram0").ends_with("compressed memory (zram)")
            && !on("/dev/sda2").contains("zram")
    );
    let unlisted = |tree: &str| {
        let all = checks(&write_out("swap", tree));
        let swap = all.iter().find(|check| check.id == "swap").unwrap();
        assert!(swap.level == Level::Warn && !swap.effect.contains("from disk"), "{}", swap.effect);
        swap.found.clone()
    };
    let meminfo = swap.split("@ /proc/swaps").next().unwrap();
    assert!(unlisted(meminfo).ends_with("where it lies is missing: /proc/swaps is not there"));
    // A container shows its own memory, and the host's swaps or none.
    assert!(unlisted(swap).ends_with("where it lies is missing: /proc/swaps lists none that is used"));
    let resctrl = "@ /proc/self/mounts\nresctrl /sys/fs/resctrl resctrl rw 0 0\n@ /sys/fs/resctrl/info/L3/cbm_mask\n7ff\n\
                   @ /sys/fs/resctrl/schemata\n    MB:0=100;1=100\n    L3:0=7f8;1=7ff\n@ /sys/fs/resctrl/web/schemata\n    L3:0=7;1=7ff";
    let survey = surveyed(&write_out("resctrl", resctrl));
    let parts: Vec<(String, u32, u32)> = survey
        .processor
        .cache_parts
        .value()
        .unwrap()
        .iter()
        .map(|part| (part.group.clone(), part.id, (part.ratio * 11.0).round() as u32))
        .collect();
    let part = |group: &str, id, ways| (group.to_owned(), id, ways);
    assert_eq!(parts, [part("", 0, 8), part("", 1, 11), part("web", 0, 3), part("web", 1, 11)]);
    assert!(found(resctrl, "cache-parts").is_some_and(|(_, text)| text.contains("web 27 % of L3 0")));
}

/// What is packed of a tree is surveyed as the tree itself.
#[test]
fn a_capture_of_each_machine_tells_the_same() {
    for tree in crate::machines::made() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("machine.tar.gz");
        tare_machine::capture::pack(&Root::at(&tree.dir), &archive).unwrap();
        let captured = tare_machine::capture::Captured::open(&archive).unwrap();
        let again = survey(captured.root(), Reach { company: None, windows: false });
        let machine = surveyed(&tree);
        assert_eq!(again.machine, machine.machine, "{}", tree.name);
        assert_eq!((again.host, again.power), (machine.host, machine.power), "{}", tree.name);
        assert_eq!(topology::read(captured.root(), None).kinds, place(&tree).kinds, "{}", tree.name);
    }
}
