//! POWER: the device tree tells, and the platform that the kernel was started on.

use super::device_tree;
use crate::root::Root;

/// `bare-metal`, `kvm`, `tcg`, `qemu` where it is not known which of both, or `powervm` for a partition of IBM's own
/// hypervisor.
pub(super) fn kind(root: &Root, cpuinfo: &str) -> Option<&'static str> {
    let field = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == key).then(|| value.trim())
        })
    };
    let platform = field("platform").unwrap_or_default();
    let machine = field("model").or_else(|| field("machine")).unwrap_or_default();
    let compatible = device_tree::strings(root, "compatible");
    if let Some(named) = device_tree::hypervisor(root).filter(|named| *named != "qemu") {
        return Some(named);
    }
    // `qemu,powernv9` and the like, by the processor.
    let is_of_qemu = compatible.iter().any(|one| one == "qemu,pseries" || one.starts_with("qemu,powernv"));
    if is_of_qemu || machine.contains("emulated by qemu") {
        // Under KVM there would be a node for the hypervisor: where the tree is hidden, as in many containers, nothing
        // tells. KVM has no PowerNV.
        let is_shown = device_tree::is_shown(root) || platform == "PowerNV";
        return Some(if is_shown { "tcg" } else { "qemu" });
    }
    if platform == "PowerNV" || compatible.iter().any(|one| one == "ibm,powernv") {
        return Some("bare-metal");
    }
    if platform == "pSeries" || device_tree::has(root, "ibm,partition-name") {
        return Some("powervm");
    }
    if !platform.is_empty() && device_tree::names_a_board(root) {
        return Some("bare-metal");
    }
    // In this mode a processor runs only what a hypervisor gives it.
    field("cpu").filter(|cpu| cpu.contains("(architected)")).map(|_| "virtual-machine")
}
