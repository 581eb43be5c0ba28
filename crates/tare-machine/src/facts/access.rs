//! What may be observed here.

use super::files;
use crate::root::Root;
use tare_model::survey::Access;
use tare_model::{Missing, Reading};

pub(super) fn read(root: &Root) -> Access {
    let live = match root.is_live() {
        true => Reading::Measured(tare_sys::process::is_root()),
        false => Reading::missing("a captured tree does not say who looks"),
    };
    Access {
        root: live,
        perf_event_paranoid: root.value("/proc/sys/kernel/perf_event_paranoid").into(),
        kptr_restrict: root.value("/proc/sys/kernel/kptr_restrict").into(),
        ptrace_scope: root.value("/proc/sys/kernel/yama/ptrace_scope").into(),
        nmi_watchdog: files::switch(root, "/proc/sys/kernel/nmi_watchdog").into(),
        tracefs: mounted(root, "tracefs", "mount -t tracefs none /sys/kernel/tracing, as root").into(),
        debugfs: mounted(root, "debugfs", "mount -t debugfs none /sys/kernel/debug, as root").into(),
    }
}

fn mounted(root: &Root, kind: &str, remedy: &str) -> Result<String, Missing> {
    let mounts = crate::mounts::read(root)?;
    let target = mounts.iter().find(|mount| mount.kind == kind).map(|mount| mount.target.clone());
    target.ok_or_else(|| Missing::with_remedy(format!("{kind} is not mounted"), remedy))
}
