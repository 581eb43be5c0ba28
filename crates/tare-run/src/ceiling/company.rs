//! Who else used the CPUs while ceilings were measured.

use std::time::Instant;
use tare_machine::{Root, cpu_times};
use tare_model::warning::Warning;
use tare_sys::time::process_cpu_ns;

/// CPUs of others, and of the hypervisor's other guests, from which on it is said.
const OTHERS_CPUS: f64 = 0.15;
const STEAL_CPUS: f64 = 0.05;

/// A reading of the CPUs.
pub(super) struct Stamp {
    at: Instant,
    ticks: Option<cpu_times::CpuTicks>,
    own_ns: u64,
}

impl Stamp {
    /// Now.
    pub fn now() -> Stamp {
        Stamp { at: Instant::now(), ticks: cpu_times::of_all(&Root::live()).ok(), own_ns: own_ns(&[]) }
    }

    /// What others took since then; `served`: processes that were started meanwhile and are ours.
    pub fn warnings(&self, served: &[u32]) -> Vec<Warning> {
        let (Some(before), Some(after)) = (self.ticks, cpu_times::of_all(&Root::live()).ok()) else {
            return Vec::new();
        };
        let window_ns = self.at.elapsed().as_nanos() as f64;
        let own_ns = own_ns(served).saturating_sub(self.own_ns) as f64;
        let cpus = |before: u64, after: u64| {
            after.saturating_sub(before) as f64 * cpu_times::TICK_NS as f64 / window_ns.max(1.0)
        };
        let others = cpus(before.busy(), after.busy()) - own_ns / window_ns.max(1.0);
        let steal = cpus(before.steal, after.steal);
        said(others, steal)
    }
}

/// A warning of this session.
pub(super) fn warning(id: &str, text: String, hint: &str) -> Warning {
    Warning { id: id.to_owned(), text, hint: hint.to_owned() }
}

fn own_ns(served: &[u32]) -> u64 {
    let pids = served.iter().copied().chain([std::process::id()]);
    pids.filter_map(|pid| process_cpu_ns(pid).ok()).sum()
}

fn said(others_cpus: f64, steal_cpus: f64) -> Vec<Warning> {
    let others = (others_cpus > OTHERS_CPUS).then(|| {
        warning(
            "others-busy",
            format!(
                "other processes used {others_cpus:.1} CPUs meanwhile: the machine can do more than is shown"
            ),
            "stop what else runs here (top), and measure again",
        )
    });
    let steal = (steal_cpus > STEAL_CPUS).then(|| {
        warning(
            "stolen",
            format!("the hypervisor gave {steal_cpus:.2} CPUs to others meanwhile: the machine can do more than is shown"),
            "measure again when the host is less busy",
        )
    });
    others.into_iter().chain(steal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_take_is_said_from_a_share_on_that_matters() {
        assert_eq!(said(0.1, 0.01), []);
        let ids: Vec<String> = said(1.0, 0.2).into_iter().map(|warning| warning.id).collect();
        assert_eq!(ids, ["others-busy", "stolen"]);
    }
}
