//! Facts of the machine that bear on a measurement, read once at the start of a session.

mod access;
mod company;
mod energy;
mod files;
mod frequency;
mod groups;
mod host;
mod interrupts;
mod kernel;
mod limits;
mod memory;
mod network;
mod power;
mod processor;
mod resctrl;
mod scheduler;
mod virtualization;
mod windows;

pub use crate::topology::online_cpus;

use crate::root::Root;
use files::{CLOCKSOURCE, CPU_DIR};
use std::time::Duration;
use tare_model::machine::MachineFacts;
use tare_model::survey::{Survey, WindowsHost};
use tare_model::{Missing, Reading};

/// How far a survey goes beyond reading files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// How long to watch who else uses CPU; `None`: not at all.
    pub company: Option<Duration>,
    /// Whether a Windows host may be asked, which takes a second or more.
    pub windows: bool,
}

/// Reads everything that can move a measurement. What cannot be read is missing, with the reason.
pub fn survey(root: &Root, reach: Reach) -> Survey {
    // The other areas are read while the window runs.
    let window =
        reach.company.filter(|_| root.is_live()).map(|window| (window, company::Snapshot::take(root)));
    let config = kernel::Config::read(root);
    let machine = read_with(root, &config);
    let windows = windows(root, &machine, reach);
    Survey {
        processor: processor::read(root),
        frequency: frequency::read(root),
        scheduler: scheduler::read(root, &config),
        groups: groups::read(root),
        memory: memory::read(root),
        clocksources: files::words(root, &format!("{CLOCKSOURCE}/available_clocksource")).into(),
        host: host::read(root, windows),
        limits: limits::read(root),
        network: network::read(root),
        access: access::read(root),
        power: power::read(root),
        machine,
        company: match window {
            Some((window, first)) => Reading::Measured(first.finish(root, window)),
            None if root.is_live() => Reading::missing("it was not asked who else uses CPU"),
            None => Reading::missing("a captured tree does not show who is using CPU"),
        },
    }
}

fn windows(root: &Root, machine: &MachineFacts, reach: Reach) -> Reading<WindowsHost> {
    if !machine.virtualization.value().is_some_and(|kind| kind.starts_with("wsl")) {
        return Reading::NotApplicable { not_applicable: "this does not run on Windows".into() };
    }
    match (root.is_live(), reach.windows) {
        (true, true) => windows::ask(std::env::var_os("PATH").as_deref()).into(),
        (true, false) => Reading::missing("Windows was not asked"),
        (false, _) => Reading::missing("a captured tree does not tell what Windows says"),
    }
}

/// Reads the facts that every record holds. What cannot be read is missing, with the reason.
pub fn read(root: &Root) -> MachineFacts {
    read_with(root, &kernel::Config::read(root))
}

fn read_with(root: &Root, config: &kernel::Config) -> MachineFacts {
    MachineFacts {
        kernel: kernel::release(root),
        cpu_model: crate::topology::cpu_model(root).into(),
        cpus: crate::topology::cpu_facts(root),
        memory_bytes: memory_bytes(root).into(),
        tick_hz: config.tick_hz().into(),
        base_slice_ns: kernel::base_slice_ns(root).into(),
        regime: kernel::regime(root, config),
        virtualization: virtualization::read(root).into(),
        clocksource: files::word(root, &format!("{CLOCKSOURCE}/current_clocksource")).into(),
        governor: governor(root).into(),
        pmu: pmu(root).into(),
        boot_id: boot_id(root).into(),
    }
}

/// Identity of this boot: pids and start times mean nothing across it.
///
/// # Errors
/// Why it cannot be read.
pub fn boot_id(root: &Root) -> Result<String, Missing> {
    files::word(root, "/proc/sys/kernel/random/boot_id")
}

fn memory_bytes(root: &Root) -> Result<u64, Missing> {
    let text = root.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| Missing::new("/proc/meminfo has no MemTotal"))
}

/// The governors of all policies, each once: `performance`, or `performance, schedutil`.
fn governor(root: &Root) -> Result<String, Missing> {
    let governors = frequency::governors(root);
    if governors.is_empty() {
        let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let missing = match files::word(root, path) {
            Ok(word) => return Ok(word),
            Err(missing) => missing,
        };
        return Err(match root.exists(path) || !root.exists(CPU_DIR) {
            true => missing,
            false => Missing::new(format!(
                "no cpufreq driver ({}): the clock is not this system's to set; in a virtual machine, the host's",
                missing.why
            )),
        });
    }
    let names: std::collections::BTreeSet<String> = governors.into_iter().collect::<Result<_, _>>()?;
    Ok(names.into_iter().collect::<Vec<_>>().join(", "))
}

/// Hardware counters: there when the kernel registered a PMU for the cores and lets us use it.
fn pmu(root: &Root) -> Result<bool, Missing> {
    let devices = root.names("/sys/bus/event_source/devices")?;
    let of_a_core = |name: &String| {
        // Not `power`, which is the energy of packages on x86.
        let starts = ["cpu_", "armv", "cpum_", "apple_"];
        name == "cpu" || starts.iter().any(|start| name.starts_with(start))
    };
    if !devices.iter().any(of_a_core) {
        return Ok(false);
    }
    let paranoid: i32 = root.value("/proc/sys/kernel/perf_event_paranoid")?;
    if paranoid > 0 && !root.is_live() {
        return Err(Missing::new(format!(
            "perf_event_paranoid is {paranoid}: a captured tree does not say who looks"
        )));
    }
    if paranoid > 0 && !tare_sys::process::is_root() {
        return Err(Missing::with_remedy(
            format!("perf_event_paranoid is {paranoid}"),
            "run tare as root, or sysctl kernel.perf_event_paranoid=0",
        ));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    fn this_machine_is_read() {
        let facts = read(&Root::live());
        assert!(!facts.kernel.is_empty() && !facts.cpus.is_empty());
        assert!(facts.memory_bytes.value().is_some_and(|&bytes| bytes > 1 << 20));
        assert!(facts.boot_id.value().is_some());
    }

    #[test]
    fn captured_machines() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        for machine in ["firecracker", "laptop-wsl2", "metal-smt-numa"] {
            let facts = read(&Root::at(fixtures.join(machine)));
            insta::assert_json_snapshot!(machine, facts);
        }
    }

    #[test]
    fn an_empty_tree_is_all_missing() {
        let dir = tempfile::tempdir().unwrap();
        let facts = read(&Root::at(dir.path()));
        assert!(facts.cpus.is_empty());
        assert!(facts.memory_bytes.value().is_none() && facts.tick_hz.value().is_none());
        assert!(facts.virtualization.value().is_none() && facts.pmu.value().is_none());
    }

    const FILES: &[&str] = &[
        "proc/meminfo",
        "proc/cpuinfo",
        "proc/config.gz",
        "proc/stat",
        "proc/version",
        "proc/cmdline",
        "proc/sys/kernel/osrelease",
        "proc/sys/kernel/perf_event_paranoid",
        "proc/sys/kernel/random/boot_id",
        "proc/self/mounts",
        "sys/devices/system/cpu/online",
        "sys/devices/system/cpu/cpu0/topology/core_id",
        "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "sys/kernel/debug/sched/base_slice_ns",
    ];

    proptest! {
        #[test]
        fn garbage_is_missing_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let dir = tempfile::tempdir().unwrap();
            for file in FILES {
                let path = dir.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, &bytes).unwrap();
            }
            let facts = read(&Root::at(dir.path()));
            prop_assert!(facts.memory_bytes.value().is_none());
            prop_assert!(facts.tick_hz.value().is_none());
            prop_assert!(facts.cpu_model.value().is_none());
        }
    }
}
