//! s390: the machine itself tells who divides it, in `/proc/sysinfo`.

use crate::root::Root;

/// `tcg`, `kvm`, `zvm` or, one level further down, `lpar`: a mainframe runs nothing without a partition.
pub(super) fn kind(root: &Root) -> Option<&'static str> {
    let text = root.text("/proc/sysinfo").ok()?;
    let field =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
    // KVM shows the maker of the real machine; QEMU by itself is one, and names KVM's control program all the same.
    if field("Manufacturer").is_some_and(|maker| maker.starts_with("QEMU")) {
        return Some("tcg");
    }
    match field("VM00 Control Program") {
        Some(program) if program.starts_with("KVM") => Some("kvm"),
        Some(program) if program.starts_with("z/VM") => Some("zvm"),
        Some(_) => Some("virtual-machine"),
        None => field("LPAR Number").map(|_| "lpar"),
    }
}
