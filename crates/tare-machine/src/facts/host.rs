//! What stands between this kernel and the hardware.

use super::virtualization;
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
    let text = root.text("/proc/stat")?;
    let line = super::files::field(&text, "cpu ");
    let fields: Option<Vec<u64>> =
        line.map(|line| line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect());
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    match fields.as_deref() {
        Some(fields) if fields.len() >= 8 => {
            let total = fields[..8].iter().fold(0u64, |sum, field| sum.saturating_add(*field));
            if total == 0 {
                Err(Missing::new("/proc/stat counts no time"))
            } else {
                Ok(fields[7] as f64 / total as f64)
            }
        }
        _ => Err(Missing::new("/proc/stat has no steal column")),
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
