//! Linux under Windows.

use crate::root::Root;

/// `wsl` (1: Windows imitates a kernel) or `wsl2` (a kernel of its own under Hyper-V).
pub(super) fn kind(root: &Root) -> Option<&'static str> {
    let release = super::kernel::release(root);
    let release = if release.is_empty() { of_version(root)? } else { release };
    // Only the imitation spells it with a capital letter; kernels of WSL2 before 5.x do not say "WSL2".
    if release.contains("-Microsoft") {
        return Some("wsl");
    }
    if release.contains("microsoft") || release.contains("WSL2") {
        return Some("wsl2");
    }
    // A kernel that the user built may have any name.
    let interop =
        ["/run/WSL", "/proc/sys/fs/binfmt_misc/WSLInterop", "/proc/sys/fs/binfmt_misc/WSLInterop-late"];
    interop.iter().any(|mark| root.exists(mark)).then_some("wsl2")
}

/// `Linux version 4.4.0-19041-Microsoft (…)`: the builder's address behind it may be of any company.
fn of_version(root: &Root) -> Option<String> {
    let text = root.text("/proc/version").ok()?;
    text.strip_prefix("Linux version ")?.split_ascii_whitespace().next().map(str::to_string)
}
