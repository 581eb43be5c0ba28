//! Facts of the machine that bear on a measurement, read once at the start of a sitting.

mod kernel;
mod topology;
mod virtualization;

pub use topology::online_cpus;

use crate::root::Root;
use tare_record::Missing;
use tare_record::machine::MachineFacts;

/// Reads all facts. What cannot be read is missing, with the reason.
pub fn read(root: &Root) -> MachineFacts {
    let config = kernel::Config::read(root);
    MachineFacts {
        kernel: kernel::release(root),
        cpu_model: topology::cpu_model(root).into(),
        cpus: topology::cpus(root),
        memory_bytes: memory_bytes(root).into(),
        tick_hz: config.tick_hz().into(),
        base_slice_ns: kernel::base_slice_ns(root).into(),
        regime: kernel::regime(root, &config),
        virtualization: virtualization::read(root).into(),
        clocksource: root.value("/sys/devices/system/clocksource/clocksource0/current_clocksource").into(),
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
    let id: String = root.value("/proc/sys/kernel/random/boot_id")?;
    if id.is_empty() { Err(Missing::new("/proc/sys/kernel/random/boot_id is empty")) } else { Ok(id) }
}

fn memory_bytes(root: &Root) -> Result<u64, Missing> {
    let text = root.text("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .and_then(|kib| kib.checked_mul(1024))
        .ok_or_else(|| Missing::new("/proc/meminfo has no MemTotal"))
}

fn governor(root: &Root) -> Result<String, Missing> {
    let governor: Result<String, Missing> =
        root.value("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    match governor {
        Ok(name) if name.is_empty() => Err(Missing::new("scaling_governor is empty")),
        Ok(name) => Ok(name),
        Err(missing) => Err(Missing::new(format!(
            "no cpufreq driver ({}): the clock is not this system's to set; in a virtual machine, the host's",
            missing.why
        ))),
    }
}

/// Hardware counters: there when the kernel registered a PMU for the cores and lets us use it.
fn pmu(root: &Root) -> Result<bool, Missing> {
    let devices = root.names("/sys/bus/event_source/devices")?;
    let of_a_core = |name: &String| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv");
    if !devices.iter().any(of_a_core) {
        return Ok(false);
    }
    let paranoid: i32 = root.value("/proc/sys/kernel/perf_event_paranoid")?;
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
