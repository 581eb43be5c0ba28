//! What each kind of machine is reported to be: processor, hypervisor, container.

use crate::machines::{made_machine, write_out};
use crate::surveyed::{surveyed, text};

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
        ("", ["Google", "Google Compute Engine"], "Intel(R) Xeon(R)", tsc, "bare-metal"),
        // The flag can be hidden, but these make no machines.
        ("", ["innotek GmbH", "VirtualBox"], "Intel(R) Core(TM)", tsc, "virtualbox"),
        ("", ["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "AMD EPYC", "acpi_pm", "qemu"),
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
            "qemu",
        ),
        ("hypervisor", ["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "QEMU TCG CPU version 2.5+", tsc, "tcg"),
        ("hypervisor", ["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "Intel(R) Xeon(R) Gold", tsc, "qemu"),
        ("hypervisor", ["OpenStack Foundation", "OpenStack Nova"], "QEMU TCG CPU version 2.5+", tsc, "tcg"),
        ("hypervisor", ["Red Hat", "KVM"], "QEMU TCG CPU version 2.5+", tsc, "tcg"),
        ("hypervisor", ["Dell Inc.", "PowerEdge R640"], "Intel(R) Xeon(R)", tsc, "virtual-machine"),
        ("hypervisor", ["Amazon EC2", "m5.metal"], "Intel(R) Xeon(R)", tsc, "virtual-machine"),
    ] {
        assert_eq!(virtualization("x86", &x86(flag, dmi, model, clocks)), wanted, "{dmi:?} {model} {clocks}");
    }
}

#[test]
fn where_no_table_names_it_the_processor_does() {
    let tsc = "tsc";
    for (dmi, id, wanted) in [
        (["", ""], "KVMKVMKVM", "kvm"),
        (["", ""], "TCGTCGTCGTCG", "tcg"),
        (["", ""], "bhyve bhyve", "bhyve"),
        (["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "KVMKVMKVM", "kvm"),
        (["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "TCGTCGTCGTCG", "tcg"),
        // Others take this name, for guests that expect it.
        (["QEMU", "Standard PC (Q35 + ICH9, 2009)"], "Microsoft Hv", "qemu"),
        (["", ""], "Microsoft Hv", "virtual-machine"),
        (["", ""], "Microsoft Hv\nKVMKVMKVM", "kvm"),
        // What rents the machine out says more than whose hypervisor runs it.
        (["Amazon EC2", "m5.large"], "KVMKVMKVM", "ec2"),
        // But not that there is no real processor.
        (["OpenStack Foundation", "OpenStack Nova"], "TCGTCGTCGTCG", "tcg"),
        (["", ""], "", "virtual-machine"),
    ] {
        let tree = x86("hypervisor", dmi, "Intel(R) Xeon(R)", tsc) + "\n@ /tare/hypervisor-ids\n" + id + "\n";
        assert_eq!(virtualization("x86-id", &tree), wanted, "{dmi:?} {id}");
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
    let both = "missing: DMI names a real machine, which may be the host's of a virtual one, and there are virtio devices, \
                which may be a network card's";
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
        (
            ["Somebody", "Some Thing"],
            &format!("{virtio}\n@ /sys/class/dmi/id/chassis_type\n1"),
            "virtual-machine",
        ),
        // A server with a network card that speaks virtio, or a guest that is shown its host's DMI.
        (["GIGABYTE", "R272-P30-JG"], &format!("{virtio}\n@ /sys/class/dmi/id/chassis_type\n23"), both),
        (["Somebody", "Some Thing"], "@ /sys/class/dmi/id/chassis_type\n1", unknown),
        (["VMware, Inc.", "VMware20,1"], "", "vmware"),
        (["QEMU", "KVM Virtual Machine"], &firmware, "kvm"),
        (["", ""], board, "bare-metal"),
        (["", ""], &format!("{board}\n{virtio}"), "bare-metal"),
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
    // Zeroes alone are what an accelerator hides; QEMU's own processor has a part number.
    let nobodys = |part: &str| {
        let cpuinfo =
            format!("@ /proc/cpuinfo\nprocessor\t: 0\nCPU implementer\t: 0x00\nCPU part\t: {part}\n");
        virtualization("arm", &(cpuinfo + &named(["QEMU", "QEMU Virtual Machine"])))
    };
    assert_eq!((nobodys("0x000").as_str(), nobodys("0x051").as_str()), ("qemu", "tcg"));
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
        // In a container whose engine hides the tree, where KVM's guests name the same model.
        (power(emulated, "@ /sys/firmware/"), "qemu"),
        (power(emulated, ""), "qemu"),
        (power("POWER9 (raw)\nplatform\t: PowerNV\nmodel\t: IBM PowerNV (emulated by qemu)", ""), "tcg"),
        (power("POWER9 (raw)", "@ /proc/device-tree/compatible\nqemu,powernv9\0ibm,powernv\0"), "tcg"),
        (power("POWER7 (architected), altivec supported", ""), "virtual-machine"),
        (power("Power11 (architected)\nplatform\t: pSeries\nmodel\t: IBM,9105-22A", lpar), "powervm"),
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
        ("@ /proc/sysinfo\nManufacturer:  QEMU\nLPAR Number: 1\nVM00 Control Program: KVM/Linux", "tcg"),
        ("@ /proc/sysinfo\nManufacturer:  IBM\nLPAR Number: 1\nVM00 Control Program: KVM/Linux", "kvm"),
        ("", "missing: this CPU does not tell whether it is virtual, and no DMI table does"),
    ] {
        assert_eq!(virtualization("s390", &s390(sysinfo)), wanted, "{sysinfo}");
    }
}

#[test]
fn wsl_is_known_by_how_the_kernel_spells_its_maker() {
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
        (
            release("3.4.0+")
                + "\n@ /proc/version\nLinux version 3.4.0-Microsoft (Microsoft@Microsoft.com) #1",
            "wsl",
        ),
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
        ("@ /proc/self/cgroup\n0::/kubelet.slice/kubelet-kubepods.slice/x.scope".to_owned(), "kubernetes"),
        ("@ /proc/self/cgroup\n0::/kubepods-besteffort-pod1.slice/x.scope".to_owned(), "kubernetes"),
        ("@ /proc/1/environ\nPATH=/bin\0KUBERNETES_SERVICE_HOST=10.0.0.1\0".to_owned(), "kubernetes"),
        ("@ /run/.containerenv\n\n@ /run/secrets/kubernetes.io/serviceaccount/".to_owned(), "kubernetes"),
        (mounts(layers), "containerd"),
        ("@ /proc/self/cgroup\n0::/system.slice/docker-1a2b.scope".to_owned(), "docker"),
        ("@ /proc/self/cgroup\n0::/system.slice/docker.service".to_owned(), "not applicable"),
        ("@ /proc/1/environ\ncontainer=lxc\0".to_owned(), "lxc"),
        ("@ /proc/1/environ\ncontainer=wsl\0container_host_id=windows\0".to_owned(), "not applicable"),
        ("@ /run/systemd/container\nwsl".to_owned(), "not applicable"),
        ("@ /.dockerenv\n\n@ /proc/1/environ\ncontainer=wsl\0".to_owned(), "docker"),
        (mounts(node), "not applicable"),
    ] {
        assert_eq!(text(&surveyed(&write_out("container", &tree)).host.container), wanted, "{tree}");
    }
}
