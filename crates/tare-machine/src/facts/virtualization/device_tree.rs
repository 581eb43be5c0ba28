//! What firmware tells of the machine where it has no DMI table: a tree of properties, strings that end with NUL.

use crate::root::Root;

/// The kernel shows it in both places; captured trees may hold one.
const DIRS: [&str; 2] = ["/proc/device-tree", "/sys/firmware/devicetree/base"];
/// What makers of virtual machines write where the name of a board stands.
const NO_BOARD: [&str; 4] = ["linux,dummy-virt", "riscv-virtio", "qemu", "virt"];

/// The strings of a property; empty where there is none.
pub(super) fn strings(root: &Root, property: &str) -> Vec<String> {
    let text = DIRS.iter().find_map(|dir| root.text(format!("{dir}/{property}")).ok()).unwrap_or_default();
    let strings = text.split('\0').map(str::trim).filter(|word| is_name(word));
    strings.map(str::to_string).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Whether the tree can be read at all: containers hide it.
pub(super) fn is_shown(root: &Root) -> bool {
    DIRS.iter().any(|dir| root.names(dir).is_ok_and(|names| !names.is_empty()))
}

pub(super) fn has(root: &Root, property: &str) -> bool {
    DIRS.iter().any(|dir| root.exists(format!("{dir}/{property}")))
}

/// Who made this virtual machine, where the tree tells of one.
pub(super) fn hypervisor(root: &Root) -> Option<&'static str> {
    let named = strings(root, "hypervisor/compatible");
    let is = |word: &str| named.iter().any(|name| name.contains(word));
    match () {
        () if is("linux,kvm") => return Some("kvm"),
        () if is("xen") => return Some("xen"),
        () if is("vmware") => return Some("vmware"),
        // The first guest of a phone's or car's hypervisor has the hardware.
        () if is("gunyah") || named.is_empty() => {}
        () => return Some("virtual-machine"),
    }
    let names = DIRS.iter().find_map(|dir| root.names(dir).ok()).unwrap_or_default();
    let board = [strings(root, "model"), strings(root, "compatible")].concat();
    let is = |word: &str| board.iter().any(|name| name.contains(word));
    if names.iter().any(|name| name.starts_with("fw-cfg@")) || is("qemu") {
        return Some("qemu");
    }
    (is("dummy-virt") || is("riscv-virtio")).then_some("virtual-machine")
}

/// Whether the tree names a board that somebody made.
pub(super) fn names_a_board(root: &Root) -> bool {
    strings(root, "model").iter().any(|model| NO_BOARD.iter().all(|none| !model.contains(none)))
}
