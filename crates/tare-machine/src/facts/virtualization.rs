//! Whose machine this really is.

use super::files;
use crate::root::Root;
use tare_model::Missing;

/// What DMI calls a machine, and what it is then.
const DMI_NAMES: &[(&str, &str)] = &[
    ("Amazon EC2", "ec2"),
    ("Google", "gce"),
    ("Microsoft", "hyper-v"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("QEMU", "kvm"),
    ("KVM", "kvm"),
];

/// `bare-metal`, `wsl2`, `firecracker`, `kvm`, `xen`, `hyper-v`, `vmware` … with ` container` behind it inside
/// of one.
pub(super) fn read(root: &Root) -> Result<String, Missing> {
    let host = host(root)?;
    Ok(if in_container(root) { format!("{host} container") } else { host })
}

fn host(root: &Root) -> Result<String, Missing> {
    let version = root.text("/proc/version").unwrap_or_default().to_ascii_lowercase();
    if version.contains("microsoft") {
        return Ok(if version.contains("wsl2") { "wsl2" } else { "wsl" }.to_string());
    }
    if let Some(kind) = root.text("/sys/hypervisor/type").ok().filter(|kind| !kind.trim().is_empty()) {
        return Ok(kind.trim().to_string());
    }
    // Firecracker sets no DMI table; its guests' kernels or command lines name it.
    let command_line = root.text("/proc/cmdline").unwrap_or_default();
    if command_line.contains("firecracker") || version.contains("-fc") {
        return Ok("firecracker".to_string());
    }
    let cpuinfo = root.text("/proc/cpuinfo")?;
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let flags = flags.ok_or_else(|| Missing::new("/proc/cpuinfo lists no flags"))?;
    // Only x86 tells by a flag. It decides before the vendor does: clouds rent out bare machines as well.
    let is_x86 = flags.starts_with("flags");
    if is_x86 && !flags.split_ascii_whitespace().any(|flag| flag == "hypervisor") {
        return Ok("bare-metal".to_string());
    }
    match dmi(root) {
        Some(name) => Ok(name.to_string()),
        None if is_x86 => Ok(if has_kvm_clock(root) { "kvm" } else { "virtual-machine" }.to_string()),
        None => Err(Missing::new("this CPU does not tell whether it is virtual, and no DMI table does")),
    }
}

fn has_kvm_clock(root: &Root) -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    root.text(path).is_ok_and(|names| names.contains("kvm-clock"))
}

fn dmi(root: &Root) -> Option<&'static str> {
    ["sys_vendor", "product_name", "board_vendor", "bios_vendor"].iter().find_map(|file| {
        let text = root.text(format!("/sys/class/dmi/id/{file}")).ok()?;
        DMI_NAMES.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| *name)
    })
}

/// What kind of container this is, where it is one.
pub(super) fn container(root: &Root) -> Option<String> {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    if let Some((_, kind)) = marks.iter().find(|(mark, _)| root.exists(mark)) {
        return Some((*kind).to_string());
    }
    // systemd writes the kind down for all to read; a container's first process carries it.
    let noted = files::word(root, "/run/systemd/container").ok();
    noted.or_else(|| {
        let environ = root.text("/proc/1/environ").ok()?;
        let kind = environ.split('\0').find_map(|entry| entry.strip_prefix("container="))?;
        Some(if kind.is_empty() { "container" } else { kind }.to_string())
    })
}

fn in_container(root: &Root) -> bool {
    container(root).is_some()
}
