//! Whose machine this really is.

mod container;
mod device_tree;
mod dmi;
mod mainframe;
mod power;
mod wsl;
mod xen;

pub(super) use container::kind as container;

use super::files::CLOCKSOURCE;
use super::kernel;
use crate::root::Root;
use dmi::Dmi;
use tare_model::Missing;

/// `bare-metal`, `wsl`, `wsl2`, `firecracker`, `kvm`, `tcg`, `qemu`, `xen`, `xen-dom0`, `hyper-v`, `vmware`, `ec2` … with
/// ` container` behind it inside of one.
pub(super) fn read(root: &Root) -> Result<String, Missing> {
    let host = host(root)?;
    Ok(if container(root).is_some() { format!("{host} container") } else { host })
}

fn host(root: &Root) -> Result<String, Missing> {
    let by_kernel = wsl::kind(root).or_else(|| xen::kind(root));
    if let Some(kind) = by_kernel {
        return Ok(kind.to_string());
    }
    let cpuinfo = root.text("/proc/cpuinfo");
    let text = cpuinfo.as_deref().unwrap_or_default();
    let dmi = Dmi::read(root);
    let kind = match Architecture::of(text) {
        Architecture::X86 { hypervisor: Some(false) } if !dmi.is_virtual_for_sure() => Some("bare-metal"),
        _ if is_firecracker(root) => Some("firecracker"),
        // The flag can be hidden.
        Architecture::X86 { hypervisor: Some(_) } => Some(x86_guest(root, text, &dmi)),
        // A machine's vendor decides nothing here: hypervisors have been seen that show their host's.
        Architecture::X86 { hypervisor: None } => dmi.hypervisor(),
        Architecture::S390 => mainframe::kind(root),
        Architecture::Power => power::kind(root, text),
        Architecture::Other => elsewhere(root, text, &dmi)?,
    };
    kind.map(str::to_string).ok_or_else(|| unknown(cpuinfo.err()))
}

fn unknown(no_cpuinfo: Option<Missing>) -> Missing {
    no_cpuinfo.unwrap_or_else(|| {
        Missing::new("this CPU does not tell whether it is virtual, and no DMI table does")
    })
}

/// As far as it matters for who tells of a hypervisor.
enum Architecture {
    /// The processor's own flags tell; `None` where they are not shown.
    X86 {
        hypervisor: Option<bool>,
    },
    S390,
    Power,
    Other,
}

impl Architecture {
    fn of(cpuinfo: &str) -> Architecture {
        let field = |key: &str| {
            cpuinfo.lines().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                (found.trim() == key).then(|| value.trim())
            })
        };
        let is_x86_vendor =
            |vendor: &str| !vendor.starts_with("IBM") && vendor.bytes().all(|byte| byte.is_ascii_graphic());
        // `POWER10`, and `Power11` since that one.
        let is_power = |cpu: &str| ["POWER", "PPC"].iter().any(|name| starts_with_any_case(cpu, name));
        if let Some(flags) = field("flags") {
            let virtual_one = flags.split_ascii_whitespace().any(|flag| flag == "hypervisor");
            return Architecture::X86 { hypervisor: Some(virtual_one) };
        }
        match (field("vendor_id"), field("cpu")) {
            (Some("IBM/S390"), _) => Architecture::S390,
            (_, Some(cpu)) if is_power(cpu) => Architecture::Power,
            (Some(vendor), None) if is_x86_vendor(vendor) => Architecture::X86 { hypervisor: None },
            _ => Architecture::Other,
        }
    }
}

fn starts_with_any_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

/// Firecracker's guests have no DMI table; their kernel's release or command line names it.
fn is_firecracker(root: &Root) -> bool {
    let release = kernel::release(root);
    let named = release.split(['-', '.']).any(|part| part == "fc" || part == "firecracker");
    named || root.text("/proc/cmdline").is_ok_and(|text| text.contains("firecracker"))
}

/// On x86 the processor's flag, or DMI, has said already that there is a hypervisor.
fn x86_guest(root: &Root, cpuinfo: &str, dmi: &Dmi) -> &'static str {
    let clocks = root.text(format!("{CLOCKSOURCE}/available_clocksource"));
    let has_clock = |name: &str| clocks.as_ref().is_ok_and(|names| names.contains(name));
    let has_kvm = has_clock("kvm-clock");
    // The name that QEMU gives the processor that it emulates itself. `QEMU Virtual CPU` may be any accelerator's.
    let emulated = cpuinfo.contains("QEMU TCG CPU") || by_id(root) == Some("tcg");
    // Before DMI: clouds and distributions write their names over QEMU's, whatever it runs on.
    if emulated && !has_kvm {
        return "tcg";
    }
    // A guest of a guest may show the DMI table of a machine without a hypervisor.
    match dmi.hypervisor().filter(|named| *named != "bare-metal") {
        Some("qemu") | None if has_kvm => "kvm",
        Some("qemu") => by_id(root).unwrap_or("qemu"),
        Some(named) => named,
        None if has_clock("hyperv_clocksource") || has_devices(root, "vmbus") => "hyper-v",
        None if has_clock("xen") => "xen",
        None => by_id(root).unwrap_or("virtual-machine"),
    }
}

/// What the processor says of its hypervisor. Not by Microsoft's name, which others have besides their own for guests that expect it.
fn by_id(root: &Root) -> Option<&'static str> {
    let known = [
        ("KVMKVMKVM", "kvm"),
        ("Linux KVM Hv", "kvm"),
        ("TCGTCGTCGTCG", "tcg"),
        ("VMwareVMware", "vmware"),
        ("XenVMMXenVMM", "xen"),
        ("bhyve bhyve", "bhyve"),
        ("prl hyperv", "parallels"),
        ("lrpepyh  vr", "parallels"),
        ("VBoxVBoxVBox", "virtualbox"),
    ];
    let ids = root.hypervisor_ids();
    let is_said = |mark: &str| ids.lines().any(|id| id.trim() == mark);
    known.iter().find(|(mark, _)| is_said(mark)).map(|(_, name)| *name)
}

/// ARM, RISC-V, LoongArch and others: firmware tells, by DMI or by a device tree.
fn elsewhere(root: &Root, cpuinfo: &str, dmi: &Dmi) -> Result<Option<&'static str>, Missing> {
    let candidates = [device_tree::hypervisor(root), dmi.hypervisor()];
    let vague = |named: &str| ["qemu", "virtual-machine"].contains(&named);
    if let Some(named) = candidates.into_iter().flatten().find(|named| !vague(named)) {
        return Ok(Some(named));
    }
    if let Some(named) = candidates.into_iter().flatten().next() {
        // QEMU's own emulation shows a processor that is nobody's (with a part number of its own: some accelerators show zeroes alone),
        // or one of ARM's own designs.
        let maker = value_of(cpuinfo, "CPU implementer");
        let emulated = (maker == Some("0x00") && value_of(cpuinfo, "CPU part") == Some("0x051"))
            || (maker == Some("0x41") && dmi.is_emulation());
        return Ok(Some(match (has_kvm_clock(root), emulated) {
            (true, _) => "kvm",
            (false, true) => "tcg",
            (false, false) => named,
        }));
    }
    if has_devices(root, "vmbus") {
        return Ok(Some("hyper-v"));
    }
    if has_kvm_clock(root) {
        return Ok(Some("kvm"));
    }
    // Before virtio: the other processors of a board, and its network cards, may speak it too.
    if device_tree::names_a_board(root) {
        return Ok(Some("bare-metal"));
    }
    if has_devices(root, "virtio") {
        return match dmi.names_a_machine() && dmi.has_a_chassis() {
            true => Err(Missing::new(
                "DMI names a real machine, which may be the host's of a virtual one, and there are virtio devices, which may be \
                 a network card's",
            )),
            false => Ok(Some("virtual-machine")),
        };
    }
    Ok(if dmi.names_a_machine() { Some("bare-metal") } else { dmi.is_rented().then_some("virtual-machine") })
}

/// Of the first processor.
fn value_of<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| line.strip_prefix(key)?.split_once(':')).map(|(_, id)| id.trim())
}

/// A clock that KVM alone offers, on every architecture.
fn has_kvm_clock(root: &Root) -> bool {
    let clocks = root.names("/sys/class/ptp").unwrap_or_default();
    let is_of_kvm = |name: &String| {
        root.text(format!("/sys/class/ptp/{name}/clock_name")).is_ok_and(|text| text.starts_with("KVM"))
    };
    clocks.iter().any(is_of_kvm)
}

/// Whether a bus that only hypervisors have carries a device.
fn has_devices(root: &Root, bus: &str) -> bool {
    root.names(format!("/sys/bus/{bus}/devices")).is_ok_and(|names| !names.is_empty())
}
