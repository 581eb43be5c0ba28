//! The kernel: its build options, and what it counts where.

use crate::cgroup;
use crate::cpu_times;
use crate::root::Root;
use flate2::read::GzDecoder;
use std::io::Read;
use tare_model::machine::Regime;
use tare_model::{CpuSet, Missing};

/// Longest build configuration that is read, unpacked.
const CONFIG_BYTES_MAX: u64 = 4 << 20;

/// `uname -r`, empty where not even that is known.
pub(super) fn release(root: &Root) -> String {
    super::files::word(root, "/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// The kernel's build configuration, or why it is not known.
pub(super) struct Config(Result<String, Missing>);

impl Config {
    pub(super) fn read(root: &Root) -> Config {
        Config(unpack(root).or_else(|packed| {
            let release = release(root);
            let candidates = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
            candidates.iter().find_map(|path| root.text(path).ok()).ok_or(packed)
        }))
    }

    /// Whether a yes-or-no option is on. Options that were not chosen stand as comments or not at all.
    pub(super) fn has(&self, option: &str) -> Result<bool, Missing> {
        let text = self.0.as_ref().map_err(Missing::clone)?;
        Ok(text.lines().any(|line| line.strip_prefix(option) == Some("=y")))
    }

    pub(super) fn tick_hz(&self) -> Result<u32, Missing> {
        let text = self.0.as_ref().map_err(Missing::clone)?;
        let value = text.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="));
        let hz = value.and_then(|value| value.trim().parse().ok()).filter(|hz| (1..=100_000).contains(hz));
        hz.ok_or_else(|| Missing::new("the kernel's configuration has no CONFIG_HZ"))
    }
}

fn unpack(root: &Root) -> Result<String, Missing> {
    let unknown = |why: String| {
        Missing::with_remedy(why, "a kernel with CONFIG_IKCONFIG_PROC, or its /boot/config file, would tell")
    };
    let packed = root.bytes("/proc/config.gz").map_err(|missing| unknown(missing.why))?;
    let mut text = String::new();
    match GzDecoder::new(packed.as_slice()).take(CONFIG_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(unknown(format!("/proc/config.gz: {error}"))),
    }
}

/// What the kernel puts into a task's run and what it keeps apart.
pub(super) fn regime(root: &Root, config: &Config) -> Regime {
    let paravirt = config.has("CONFIG_PARAVIRT_TIME_ACCOUNTING");
    let full = config
        .has("CONFIG_VIRT_CPU_ACCOUNTING_NATIVE")
        .and_then(|native| Ok(native || config.has("CONFIG_VIRT_CPU_ACCOUNTING_GEN")? && nohz_full(root)));
    Regime {
        irq_time_accounting: config.has("CONFIG_IRQ_TIME_ACCOUNTING").into(),
        paravirt_time_accounting: paravirt.and_then(|on| Ok(on && steal_clock(root)?)).into(),
        cpu_accounting: full.map(|full| if full { "full" } else { "tick" }.to_string()).into(),
        cgroup: cgroup::layout(root).into(),
    }
}

/// `CONFIG_VIRT_CPU_ACCOUNTING_GEN` measures only on CPUs given to `nohz_full`.
fn nohz_full(root: &Root) -> bool {
    let text = root.text("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    CpuSet::from_list(&text).is_some_and(|cpus| !cpus.is_empty())
}

/// Whether the hypervisor tells how much it stole: no flag says so, a count that has grown does.
fn steal_clock(root: &Root) -> Result<bool, Missing> {
    cpu_times::of_all(root).map(|ticks| ticks.steal > 0)
}

/// The scheduler's base slice, from debugfs.
pub(super) fn base_slice_ns(root: &Root) -> Result<u64, Missing> {
    const PATHS: [&str; 2] =
        ["/sys/kernel/debug/sched/base_slice_ns", "/sys/kernel/debug/sched/min_granularity_ns"];
    let found = PATHS.iter().find_map(|path| root.value(path).ok()).filter(|&ns: &u64| ns > 0);
    found.ok_or_else(|| {
        Missing::with_remedy(
            "the base slice is only shown in debugfs",
            "mount -t debugfs none /sys/kernel/debug, as root",
        )
    })
}
