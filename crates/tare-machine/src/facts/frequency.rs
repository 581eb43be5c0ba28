//! The clock, heat, power and idle states.

use super::energy;
use super::files::{self, CPU_DIR};
use crate::cpufreq;
use crate::root::Root;
use crate::topology::online_cpus;
use tare_model::survey::{Frequency, IdleState, Policy, PowerDomain, ThermalZone, ThrottleCount};
use tare_model::{CpuSet, Missing, Reading};

const ZONES: &str = "/sys/class/thermal";
const DOMAINS: &str = "/sys/class/powercap";
const KHZ: u64 = 1000;

pub(super) fn read(root: &Root) -> Frequency {
    Frequency {
        policies: policies(root).into(),
        boost: boost(root).into(),
        throttle_counts: throttle_counts(root).into(),
        zones: zones(root).into(),
        sensors: energy::sensors(root).into(),
        energy_bias: energy::bias(root).into(),
        uncore: energy::uncore(root).into(),
        power_domains: power_domains(root).into(),
        idle_driver: idle_driver(root).into(),
        idle_governor: files::word(root, &format!("{CPU_DIR}/cpuidle/current_governor"))
            .or_else(|_| files::word(root, &format!("{CPU_DIR}/cpuidle/current_governor_ro")))
            .into(),
        idle_states: idle_states(root).into(),
    }
}

/// The governor of each policy that has a CPU online.
pub(super) fn governors(root: &Root) -> Vec<Result<String, Missing>> {
    let folders = cpufreq::policies(root).into_iter();
    folders.map(|(_, dir)| files::word(root, &format!("{dir}/scaling_governor"))).collect()
}

fn policies(root: &Root) -> Result<Vec<Policy>, Missing> {
    let folders = cpufreq::policies(root);
    if folders.is_empty() {
        return Err(no_policy(root));
    }
    Ok(folders.into_iter().map(|(id, dir)| policy(root, id, &dir)).collect())
}

fn no_policy(root: &Root) -> Missing {
    match root.names(CPU_DIR) {
        Err(missing) if root.exists(CPU_DIR) => missing,
        Err(missing) => {
            Missing::with_remedy(missing.why, "every Linux has it: mount /sys, or capture more of it")
        }
        Ok(_) => Missing::new(
            "no cpufreq driver: the clock is not this system's to see or set; in a virtual machine, the host's",
        ),
    }
}

fn policy(root: &Root, id: u32, dir: &str) -> Policy {
    let file = |name: &str| format!("{dir}/{name}");
    let hz = |name: &str| Reading::from(files::scaled_positive(root, &file(name), KHZ));
    Policy {
        id,
        cpus: affected(root, dir).into(),
        driver: files::word(root, &file("scaling_driver")).into(),
        governor: files::word(root, &file("scaling_governor")).into(),
        governors: files::words(root, &file("scaling_available_governors")).into(),
        min_hz: hz("scaling_min_freq"),
        max_hz: hz("scaling_max_freq"),
        hardware_min_hz: hz("cpuinfo_min_freq"),
        hardware_max_hz: hz("cpuinfo_max_freq"),
        base_hz: hz("base_frequency"),
        current_hz: hz("scaling_cur_freq"),
        energy_preference: files::word(root, &file("energy_performance_preference")).into(),
    }
}

/// Separated by blanks, unlike any other list of CPUs.
fn affected(root: &Root, dir: &str) -> Result<CpuSet, Missing> {
    let path = format!("{dir}/affected_cpus");
    let text = root.text(&path)?;
    let numbers: Option<CpuSet> = text.split_ascii_whitespace().map(|cpu| cpu.parse::<u32>().ok()).collect();
    numbers.filter(|cpus| !cpus.is_empty()).ok_or_else(|| crate::root::nonsense(path.as_ref(), &text))
}

fn boost(root: &Root) -> Result<bool, Missing> {
    files::switch(root, &format!("{CPU_DIR}/intel_pstate/no_turbo"))
        .map(|off| !off)
        .or_else(|_| files::switch(root, &format!("{CPU_DIR}/cpufreq/boost")))
        .map_err(|_| Missing::new("neither cpufreq/boost nor intel_pstate/no_turbo tells"))
}

fn throttle_counts(root: &Root) -> Result<Vec<ThrottleCount>, Missing> {
    let cpus = files::numbered(root, CPU_DIR, "cpu")?.into_iter().map(|(cpu, _)| cpu);
    let dir = |cpu: u32| format!("{CPU_DIR}/cpu{cpu}/thermal_throttle");
    let count = |cpu: u32| ThrottleCount {
        cpu,
        core: root.value(format!("{}/core_throttle_count", dir(cpu))).into(),
        package: root.value(format!("{}/package_throttle_count", dir(cpu))).into(),
    };
    let counts: Vec<ThrottleCount> = cpus.filter(|cpu| root.exists(dir(*cpu))).map(count).collect();
    if counts.is_empty() {
        return Err(Missing::new("no CPU has thermal_throttle counters (Intel's have, on bare metal)"));
    }
    Ok(counts)
}

fn zones(root: &Root) -> Result<Vec<ThermalZone>, Missing> {
    let zones = files::numbered(root, ZONES, "thermal_zone")?;
    let zone = |(_, name): (u32, String)| {
        let file = |file: &str| format!("{ZONES}/{name}/{file}");
        ThermalZone {
            kind: files::word(root, &file("type")).into(),
            celsius: files::celsius(root, &file("temp")).into(),
            passive_celsius: passive(root, &format!("{ZONES}/{name}")).into(),
        }
    };
    if zones.is_empty() {
        return Err(Missing::new("no thermal zone is shown; in a virtual machine, only the host sees heat"));
    }
    Ok(zones.into_iter().map(zone).collect())
}

/// The lowest trip point at which the clock is cut.
fn passive(root: &Root, zone: &str) -> Result<f64, Missing> {
    let names = root.names(zone)?;
    let trips = names.iter().filter_map(|name| name.strip_suffix("_type"));
    let cutting = trips.filter(|trip| {
        let kind = root.text(format!("{zone}/{trip}_type")).unwrap_or_default();
        trip.starts_with("trip_point_") && ["passive", "hot"].contains(&kind.trim())
    });
    let temperatures = cutting.filter_map(|trip| files::celsius(root, &format!("{zone}/{trip}_temp")).ok());
    temperatures.reduce(f64::min).ok_or_else(|| Missing::new(format!("{zone} has no passive trip point")))
}

fn power_domains(root: &Root) -> Result<Vec<PowerDomain>, Missing> {
    let names = root.names(DOMAINS)?;
    let domain = |name: &String| {
        let file = |file: &str| format!("{DOMAINS}/{name}/{file}");
        let microwatts: Result<u64, Missing> =
            files::scaled_positive(root, &file("constraint_0_power_limit_uw"), 1);
        PowerDomain {
            name: files::word(root, &file("name")).into(),
            limit_watts: microwatts.map(|microwatts| microwatts as f64 / 1e6).into(),
            readable: readable(root, &file("energy_uj")).into(),
        }
    };
    let rapl = |name: &&String| name.contains("rapl:");
    let domains: Vec<PowerDomain> = names.iter().filter(rapl).map(domain).collect();
    if domains.is_empty() { Err(Missing::new("no RAPL domain is shown")) } else { Ok(domains) }
}

fn readable(root: &Root, path: &str) -> Result<bool, Missing> {
    if !root.is_live() {
        return Err(Missing::new("a captured tree does not tell who may read it"));
    }
    match root.value::<u64>(path) {
        Ok(_) => Ok(true),
        Err(missing) if !missing.remedy.is_empty() => Ok(false),
        Err(missing) => Err(missing),
    }
}

fn idle_driver(root: &Root) -> Result<String, Missing> {
    let driver = files::word(root, &format!("{CPU_DIR}/cpuidle/current_driver"))?;
    if driver == "none" {
        Err(Missing::new("no cpuidle driver: the host decides how deep a CPU sleeps"))
    } else {
        Ok(driver)
    }
}

fn idle_states(root: &Root) -> Result<Vec<IdleState>, Missing> {
    // The first CPU may be off, or another system's.
    let cpu = online_cpus(root).ok().and_then(|online| online.first().copied()).unwrap_or(0);
    let dir = format!("{CPU_DIR}/cpu{cpu}/cpuidle");
    let states = files::numbered(root, &dir, "state")?;
    let state = |(_, name): (u32, String)| IdleState {
        name: files::word(root, &format!("{dir}/{name}/name")).into(),
        exit_latency_ns: files::scaled(root, &format!("{dir}/{name}/latency"), 1000).into(),
        disabled: files::switch(root, &format!("{dir}/{name}/disable")).into(),
    };
    Ok(states.into_iter().map(state).collect())
}
