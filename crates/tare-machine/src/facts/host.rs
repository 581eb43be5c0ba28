//! What stands between this kernel and the hardware.

use super::virtualization;
use crate::cpu_times;
use crate::root::Root;
use tare_model::survey::{Host, WindowsHost};
use tare_model::{Missing, Reading};

pub(super) fn read(root: &Root, windows: Reading<WindowsHost>) -> Host {
    let container = match virtualization::container(root) {
        Some(kind) => Reading::Measured(kind),
        None => Reading::NotApplicable { not_applicable: "nothing says that this is a container".into() },
    };
    Host { container, steal_share: steal_share(root).into(), uptime_ns: uptime_ns(root).into(), windows }
}

fn steal_share(root: &Root) -> Result<f64, Missing> {
    let ticks = cpu_times::of_all(root)?;
    match ticks.all() {
        0 => Err(Missing::new("/proc/stat counts no time")),
        all => Ok(ticks.steal as f64 / all as f64),
    }
}

fn uptime_ns(root: &Root) -> Result<u64, Missing> {
    let text = root.text("/proc/uptime")?;
    let seconds = text.split_ascii_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    let valid = seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0 && *seconds < 1e10);
    valid
        .map(|seconds| (seconds * 1e9) as u64)
        .ok_or_else(|| crate::root::nonsense("/proc/uptime".as_ref(), &text))
}
