//! What each kind of machine is told to be: processor, hypervisor, container, and what follows from them.

use crate::machines::{Tree, made_machine, write_out};
use std::time::Duration;
use tare_machine::doctor::{Examined, examine};
use tare_machine::facts::{Reach, survey};
use tare_machine::{Root, topology};
use tare_model::Reading;
use tare_model::check::{Check, Level};
use tare_model::survey::Survey;

fn surveyed(tree: &Tree) -> Survey {
    // A window is asked for, and not waited for: a tree has no time.
    survey(&Root::at(&tree.dir), Reach { company: Some(Duration::from_secs(60)), windows: true })
}

fn checks(tree: &Tree) -> Vec<Check> {
    let topology = topology::read(&Root::at(&tree.dir), None);
    let survey = surveyed(tree);
    let calibration = Reading::missing("not asked");
    examine(&Examined {
        survey: &survey,
        topology: &topology,
        probes: None,
        calibration: &calibration,
        now_unix_s: 0,
    })
}

/// Level and words of a check.
fn check(tree: &Tree, id: &str) -> Option<(Level, String)> {
    checks(tree).into_iter().find(|check| check.id == id).map(|check| (check.level, check.found))
}

fn text(reading: &Reading<String>) -> String {
    match reading {
        Reading::Measured(text) => text.clone(),
        Reading::Missing(missing) => format!("missing: {}", missing.why),
        Reading::NotApplicable { .. } => "not applicable".to_owned(),
    }
}

#[test]
fn each_machine_is_known_for_what_it_is() {
    for (name, virtualization, model) in [
        ("arm-apple", "apple", "implementer 0x61 part 0x000"),
        ("arm-ec2", "ec2", "Neoverse-V1"),
        ("arm-ec2-metal", "bare-metal", "Neoverse-V1"),
        ("arm-hyper-v", "hyper-v", "Azure-Cobalt-100"),
        ("arm-kvm", "kvm", "Neoverse-N1"),
        ("arm-metal", "bare-metal", "Neoverse-N1"),
        ("arm-tcg", "tcg", "Cortex-A72"),
        ("laptop-wireless-mouse", "bare-metal", "12th Gen Intel(R) Core(TM) i5-1240P"),
        ("offline", "vmware", "AMD EPYC 7763 64-Core Processor"),
        ("phone", "bare-metal", "Cortex-A55 + Cortex-A77"),
        ("pod-containerd", "openstack container", "Intel Xeon Processor (Cascadelake)"),
        ("power-kvm", "kvm", "POWER9 (architected)"),
        ("s390-kvm", "kvm", "IBM z15 (8561)"),
        ("snc", "bare-metal", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"),
        ("tcg", "tcg", "QEMU TCG CPU version 2.5+"),
        ("wsl1", "wsl", "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz"),
        ("wsl2-old", "wsl2", "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz"),
        ("xen-dom0", "xen-dom0", "Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz"),
    ] {
        let machine = surveyed(&made_machine(name)).machine;
        let found = (text(&machine.virtualization), text(&machine.cpu_model));
        assert_eq!(found, (virtualization.to_owned(), model.to_owned()), "{name}");
    }
}

/// An x86 machine by its flag, DMI vendor and product, processor and clock sources.
fn x86(flag: &str, dmi: [&str; 2], model: &str, clocks: &str) -> String {
    let cpuinfo =
        format!("@ /proc/cpuinfo\nvendor_id\t: GenuineIntel\nmodel name\t: {model}\nflags\t\t: fpu {flag}");
    let clocks = format!("@ /sys/devices/system/clocksource/clocksource0/available_clocksource\n{clocks}");
    [cpuinfo, named(dmi), clocks].join("\n")
}

fn arm(dmi: [&str; 2], more: &str) -> String {
    let cpuinfo =
        "@ /proc/cpuinfo\nprocessor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c";
    [cpuinfo, &named(dmi), more].join("\n")
}

fn named([vendor, product]: [&str; 2]) -> String {
    let file = |name: &str, text: &str| match text {
        "" => String::new(),
        text => format!("@ /sys/class/dmi/id/{name}\n{text}\n"),
    };
    file("sys_vendor", vendor) + &file("product_name", product)
}

fn virtualization(name: &str, tree: &str) -> String {
    text(&surveyed(&write_out(name, tree)).machine.virtualization)
}

#[test]
fn on_x86_the_flag_says_whether_and_product_and_clock_say_whose() {
    let tsc = "tsc hpet acpi_pm";
    for (flag, dmi, model, clocks, wanted) in [
        ("", ["Microsoft Corporation", "Surface Laptop 4"], "AMD Ryzen 5", tsc, "bare-metal"),
        ("", ["Google", "Eve"], "Intel(R) Core(TM) i5-7Y57", tsc, "bare-metal"),
        ("", ["Amazon EC2", "m5.metal"], "Intel(R) Xeon(R)", tsc, "bare-metal"),
        ("", ["Oracle Corporation", "ORACLE SERVER X9-2"], "Intel(R) Xeon(R)", tsc, "bare-metal"),
        ("hypervisor", ["Microsoft Corporation", "Virtual Machine"], "Intel(R) Xeon(R)", tsc, "hyper-v"),
        ("hypervisor", ["", ""], "Intel(R) Xeon(R)", "hyperv_clocksource_tsc_page tsc", "hyper-v"),
        ("hypervisor", ["Google", "Google Compute Engine"], "Intel(R) Xeon(R)", "kvm-clock tsc", "gce"),
        ("hypervisor", ["Amazon EC2", "c5.large"], "Intel(R) Xeon(R)", "kvm-clock tsc", "ec2"),
        (
            "hypervisor",
            ["Parallels International GmbH.", "Parallels ARM Virtual Machine"],
            "x",
            tsc,
            "parallels",
        ),
        (
            "hypervisor",
            ["Parallels Software International Inc.", "Parallels Virtual Platform"],
            "x",
            tsc,
            "parallels",
        ),
        ("hypervisor", ["FreeBSD", "BHYVE"], "Intel(R) Xeon(R)", tsc, "bhyve"),
        (
            "hypervisor",
            ["OpenStack Foundation", "OpenStack Nova"],
            "Intel Xeon Processor",
            "kvm-clock",
            "openstack",
        ),
        ("hypervisor", ["innotek GmbH", "VirtualBox"], "Intel(R) Core(TM)", tsc, "virtualbox"),
        ("hypervisor", ["Xen", "HVM domU"], "Intel(R) Xeon(R)", "xen tsc", "xen"),
        (
            "hypervisor",
            ["QEMU", "Standard PC (Q35 + ICH9, 2009)"],
            "Intel(R) Xeon(R)",
            "kvm-clock tsc",
            "kvm",
        ),
        (
            "hypervisor",
            ["QEMU", "Standard PC (Q35 + ICH9, 2009)"],
            "QEMU Virtual CPU version 2.5+",
            tsc,
            "tcg",
        ),
        ("hypervisor", ["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "Intel(R) Xeon(R) Gold", tsc, "qemu"),
        ("hypervisor", ["Dell Inc.", "PowerEdge R640"], "Intel(R) Xeon(R)", tsc, "virtual-machine"),
        ("hypervisor", ["Amazon EC2", "m5.metal"], "Intel(R) Xeon(R)", tsc, "virtual-machine"),
    ] {
        assert_eq!(virtualization("x86", &x86(flag, dmi, model, clocks)), wanted, "{dmi:?} {model} {clocks}");
    }
}

#[test]
fn elsewhere_a_vendor_alone_says_nothing() {
    let unknown = "missing: this CPU does not tell whether it is virtual, and no DMI table does";
    let board = "@ /proc/device-tree/model\nRaspberry Pi 4 Model B Rev 1.4\0";
    let dummy = "@ /proc/device-tree/compatible\nlinux,dummy-virt\0";
    let hypervisor = |name: &str| format!("@ /proc/device-tree/hypervisor/compatible\n{name}\0xen,xen\0");
    let in_sys = "@ /sys/firmware/devicetree/base/hypervisor/compatible\nlinux,kvm\0";
    let firmware = format!("{dummy}\n@ /proc/device-tree/fw-cfg@9020000/compatible\nqemu,fw-cfg-mmio\0");
    let kvm_clock = format!("{firmware}\n@ /sys/class/ptp/ptp0/clock_name\nKVM virtual PTP");
    let virtio = "@ /sys/bus/virtio/devices/virtio0/";
    for (dmi, more, wanted) in [
        (["Microsoft Corporation", ""], "", unknown),
        (["Amazon EC2", ""], "", unknown),
        (["Huawei", ""], "", unknown),
        (["", ""], "", unknown),
        (["Microsoft Corporation", "Surface Pro X"], "", "bare-metal"),
        (["HUAWEI", "TaiShan 200 (Model 2280)"], "", "bare-metal"),
        (["Amazon EC2", "m7g.metal-48xl"], "", "bare-metal"),
        (["Google", "Google Compute Engine"], "", "gce"),
        (["Hetzner", "vServer"], "", "virtual-machine"),
        (["Somebody", "Some Thing"], virtio, "virtual-machine"),
        (["Somebody", "Some Thing"], "@ /sys/class/dmi/id/chassis_type\n1", unknown),
        (["VMware, Inc.", "VMware20,1"], "", "vmware"),
        (["QEMU", "KVM Virtual Machine"], &firmware, "kvm"),
        (["", ""], board, "bare-metal"),
        (["", ""], dummy, "virtual-machine"),
        (["", ""], &firmware, "qemu"),
        (["", ""], &kvm_clock, "kvm"),
        (["", ""], in_sys, "kvm"),
        (["", ""], &hypervisor("xen,xen-4.14"), "xen"),
        (["", ""], "@ /sys/bus/vmbus/devices/1-2/", "hyper-v"),
        (["", ""], "@ /proc/cmdline\nreboot=k init=/sbin/firecracker-init", "firecracker"),
    ] {
        assert_eq!(virtualization("arm", &arm(dmi, more)), wanted, "{dmi:?} {more}");
    }
    let processor = |text: &str| format!("@ /proc/cpuinfo\nprocessor\t: 0\n{text}\n");
    let risc_v = processor("hart\t: 0\nisa\t: rv64imafdch");
    let (qemu, board) = ("riscv-virtio,qemu", "StarFive VisionFive 2 v1.3B");
    let tree = |model: &str| format!("{risc_v}@ /proc/device-tree/model\n{model}\0");
    assert_eq!(
        (virtualization("r", &tree(qemu)), virtualization("r", &tree(board))),
        ("qemu".into(), "bare-metal".into())
    );
    let loong = processor("CPU Family\t: Loongson-64bit\nModel Name\t: Loongson-3A5000-HV");
    assert_eq!(virtualization("l", &(loong.clone() + &named(["QEMU", "KVM Virtual Machine"]))), "kvm");
    assert_eq!(
        virtualization("l", &(loong + &named(["Loongson", "Loongson-3A5000-7A1000-1w-EVB"]))),
        "bare-metal"
    );
}

#[test]
fn mainframes_and_power_tell_who_divides_them() {
    let power =
        |lines: &str, more: &str| format!("@ /proc/cpuinfo\nprocessor\t: 0\ncpu\t\t: {lines}\n{more}");
    let lpar = "@ /proc/device-tree/ibm,partition-name\nlinux01\0";
    let emulated = "POWER9 (architected), altivec supported\nmodel\t\t: IBM pSeries (emulated by qemu)";
    for (tree, wanted) in [
        (power("POWER9, altivec supported\nplatform\t: PowerNV\nmodel\t: 8335-GTH", ""), "bare-metal"),
        (power("POWER9 (architected)\nplatform\t: pSeries\nmodel\t: IBM,9009-42A", lpar), "powervm"),
        (power(emulated, "@ /proc/device-tree/compatible\nqemu,pseries\0"), "tcg"),
        (power("POWER7 (architected), altivec supported", ""), "virtual-machine"),
    ] {
        assert_eq!(virtualization("power", &tree), wanted, "{tree}");
    }
    let s390 = |sysinfo: &str| {
        format!(
            "@ /proc/cpuinfo\nvendor_id       : IBM/S390\nprocessor 0: version = FF,  machine = 2964\n{sysinfo}"
        )
    };
    for (sysinfo, wanted) in [
        ("@ /proc/sysinfo\nLPAR Number:          3\nVM00 Control Program: z/VM    6.4.0", "zvm"),
        ("@ /proc/sysinfo\nManufacturer:  IBM\nLPAR Number:          3", "lpar"),
        ("", "missing: this CPU does not tell whether it is virtual, and no DMI table does"),
    ] {
        assert_eq!(virtualization("s390", &s390(sysinfo)), wanted, "{sysinfo}");
    }
}

#[test]
fn wsl_is_told_by_how_the_kernel_spells_its_maker() {
    let release = |name: &str| {
        format!("@ /proc/sys/kernel/osrelease\n{name}\n{}", x86("hypervisor", ["", ""], "x", "tsc"))
    };
    let version = "@ /proc/version\nLinux version 4.4.0-17763-Microsoft (Microsoft@Microsoft.com) #1";
    let azure = "@ /proc/version\nLinux version 6.6.57.1-7.azl3 (builder@microsoft.com) #1 SMP";
    for (tree, wanted) in [
        (release("4.4.0-17763-Microsoft"), "wsl"),
        (release("4.19.128-microsoft-standard"), "wsl2"),
        (release("6.6.87.2-microsoft-standard-WSL2+"), "wsl2"),
        (release("6.6.57.1-7.azl3"), "virtual-machine"),
        (version.to_owned(), "wsl"),
        (format!("{azure}\n{}", x86("", ["", ""], "x", "tsc")), "bare-metal"),
        (release("6.9.0-mine") + "\n@ /proc/sys/fs/binfmt_misc/WSLInterop\nenabled", "wsl2"),
    ] {
        assert_eq!(virtualization("wsl", &tree), wanted, "{tree}");
    }
}

#[test]
fn containers_are_known_by_what_their_engines_leave() {
    let pod = surveyed(&made_machine("pod-containerd"));
    assert_eq!(text(&pod.host.container), "kubernetes");
    let mounts = |line: &str| format!("@ /proc/self/mounts\n{line}");
    let layers =
        "overlay / overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1/fs 0 0";
    let node = "tmpfs /var/lib/kubelet/pods/6f7a/volumes/kubernetes.io~projected/kube-api tmpfs rw 0 0";
    for (tree, wanted) in [
        (mounts("/dev/sda1 /dev/termination-log ext4 rw 0 0"), "kubernetes"),
        ("@ /proc/self/cgroup\n4:cpu:/kubepods/burstable/pod6f7a/1a2b".to_owned(), "kubernetes"),
        ("@ /proc/1/environ\nPATH=/bin\0KUBERNETES_SERVICE_HOST=10.0.0.1\0".to_owned(), "kubernetes"),
        ("@ /run/.containerenv\n\n@ /run/secrets/kubernetes.io/serviceaccount/".to_owned(), "kubernetes"),
        (mounts(layers), "containerd"),
        ("@ /proc/self/cgroup\n0::/system.slice/docker-1a2b.scope".to_owned(), "docker"),
        ("@ /proc/self/cgroup\n0::/system.slice/docker.service".to_owned(), "not applicable"),
        ("@ /proc/1/environ\ncontainer=lxc\0".to_owned(), "lxc"),
        (mounts(node), "not applicable"),
    ] {
        assert_eq!(text(&surveyed(&write_out("container", &tree)).host.container), wanted, "{tree}");
    }
}

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
    let untold = check(&write_out("untold", &(cradle + &battery("Unknown"))), "battery").unwrap();
    assert!(untold.0 == Level::Note && untold.1.starts_with("missing: neither"), "{untold:?}");
}

fn place(tree: &Tree) -> tare_model::topology::Topology {
    topology::read(&Root::at(&tree.dir), None)
}

/// Name, CPUs and capacity of each kind, slowest first.
fn kinds(tree: &Tree) -> Vec<(String, String, Option<u32>)> {
    let kinds = place(tree).kinds.value().cloned().unwrap_or_default();
    kinds.into_iter().map(|kind| (kind.name, kind.cpus.to_string(), kind.capacity.value().copied())).collect()
}

#[test]
fn kinds_of_core_are_told_by_design_capacity_and_frequency() {
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
}

#[test]
fn no_role_has_fast_and_slow_cores_unless_it_is_told_to() {
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
    // Who names CPUs of both is told.
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
    let nothing = place(&write_out("nothing", "@ /proc/cpuinfo\nprocessor\t: 0"));
    assert!(nothing.offline.value().is_none());
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
    let unknown = clock("some_soc_timer", "some_soc_timer");
    assert!(unknown.0 == Level::Note && unknown.1.contains("is not known"), "{unknown:?}");
    let tcg = checks(&made_machine("tcg"));
    let level = |id: &str| tcg.iter().find(|check| check.id == id).map(|check| check.level);
    assert_eq!((level("clocksource"), level("virtual")), (Some(Level::Bad), Some(Level::Bad)));
}

#[test]
fn the_governors_of_all_policies_are_told() {
    let governor = |name: &str| text(&surveyed(&made_machine(name)).machine.governor);
    assert_eq!(governor("phone"), "performance, schedutil");
    assert_eq!(governor("laptop-wireless-mouse"), "performance, powersave");
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
    assert_eq!(why(&survey.machine.pmu), "perf_event_paranoid is 2: a captured tree does not tell who looks");
    let domain = &survey.frequency.power_domains.value().unwrap()[0];
    assert_eq!(why(&domain.readable), "a captured tree does not tell who may read it");
    assert_eq!(why(&survey.access.root), "a captured tree does not tell who looks");
    assert!(metal.company.value().is_none() && metal.host.uptime_ns.value().is_none());
    assert!(metal.groups.allowed_cpus.value().is_none() && metal.limits.open_files.value().is_none());
}
