//! Linux under Windows.

use crate::root::Root;

/// `wsl` (1: Windows imitates a kernel) or `wsl2` (a kernel of its own under Hyper-V).
pub(super) fn kind(root: &Root) -> Option<&'static str> {
    // The oldest imitation has its maker's name in the version alone (release `3.4.0+`).
    let names = [super::kernel::release(root), of_version(root).unwrap_or_default()];
    let is = |word: &str| names.iter().any(|name| name.contains(word));
    // Only the imitation spells it with a capital letter; kernels of WSL2 before 5.x do not say "WSL2".
    if is("-Microsoft") {
        return Some("wsl");
    }
    if is("microsoft") || is("WSL2") {
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
