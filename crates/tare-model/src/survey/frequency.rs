use crate::{CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The clock: who governs it, between which limits, and what takes it away.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Frequency {
    /// Each cpufreq policy; missing where there is no driver.
    pub policies: Reading<Vec<Policy>>,
    /// Whether the clock may rise above its nominal rate, in either of the kernel's two spellings
    /// (`cpufreq/boost`, `intel_pstate/no_turbo`).
    pub boost: Reading<bool>,
    /// How often each CPU was slowed down for heat since boot.
    pub throttle_counts: Reading<Vec<ThrottleCount>>,
    /// Thermal zones.
    pub zones: Reading<Vec<ThermalZone>>,
    /// Temperatures of the chips that tell them (hwmon): processors of AMD show theirs here alone.
    #[serde(default)]
    pub sensors: Reading<Vec<Sensor>>,
    /// The processor's own preference between speed and energy (EPB), by the CPUs that have it.
    #[serde(default)]
    pub energy_bias: Reading<Vec<EnergyBias>>,
    /// The clock of what cores share: last-level cache and memory controllers.
    #[serde(default)]
    pub uncore: Reading<Vec<Uncore>>,
    /// RAPL domains and their power limits.
    pub power_domains: Reading<Vec<PowerDomain>>,
    /// `intel_idle`, `acpi_idle`, `haltpoll` …
    pub idle_driver: Reading<String>,
    /// `menu`, `teo`, `haltpoll` …
    pub idle_governor: Reading<String>,
    /// Idle states of the first CPU, shallow first.
    pub idle_states: Reading<Vec<IdleState>>,
}

/// CPUs whose clock is set together.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Policy {
    /// The kernel's number of the policy.
    pub id: u32,
    /// The CPUs.
    pub cpus: Reading<CpuSet>,
    /// `intel_pstate`, `acpi-cpufreq`, `amd-pstate-epp`, `cppc_cpufreq` …
    pub driver: Reading<String>,
    /// `performance`, `powersave`, `schedutil` …
    pub governor: Reading<String>,
    /// Governors that it may have.
    pub governors: Reading<Vec<String>>,
    /// Lowest rate that is set, hertz.
    pub min_hz: Reading<u64>,
    /// Highest rate that is set, hertz.
    pub max_hz: Reading<u64>,
    /// Lowest rate of the hardware, hertz.
    pub hardware_min_hz: Reading<u64>,
    /// Highest rate of the hardware, boost included, hertz.
    pub hardware_max_hz: Reading<u64>,
    /// Rate without boost, hertz.
    pub base_hz: Reading<u64>,
    /// What the kernel last asked for, hertz.
    pub current_hz: Reading<u64>,
    /// `performance`, `balance_power` …
    pub energy_preference: Reading<String>,
}

/// Thermal throttling of one CPU since boot.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ThrottleCount {
    /// The CPU.
    pub cpu: u32,
    /// Times that its core was slowed down.
    pub core: Reading<u64>,
    /// Times that its package was.
    pub package: Reading<u64>,
}

/// A temperature and the marks at which something happens.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ThermalZone {
    /// `x86_pkg_temp`, `acpitz` …
    pub kind: Reading<String>,
    /// Degrees Celsius now.
    pub celsius: Reading<f64>,
    /// Lowest `passive` or `hot` trip point, degrees Celsius: there the clock is cut.
    pub passive_celsius: Reading<f64>,
}

/// A part of the machine whose power is counted and limited.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PowerDomain {
    /// `package-0`, `dram` …
    pub name: Reading<String>,
    /// Long-term limit, watts.
    pub limit_watts: Reading<f64>,
    /// Whether its energy may be read by this user.
    pub readable: Reading<bool>,
}

/// An idle state.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct IdleState {
    /// `POLL`, `C1`, `C6` …
    pub name: Reading<String>,
    /// Time to leave it, nanoseconds.
    pub exit_latency_ns: Reading<u64>,
    /// Whether it is switched off.
    pub disabled: Reading<bool>,
}

/// A temperature that a chip tells.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sensor {
    /// `k10temp`, `coretemp`, `nvme` …
    pub chip: String,
    /// `Tctl`, `Package id 0` …; missing where it has no label.
    pub label: Reading<String>,
    /// Degrees Celsius now.
    pub celsius: Reading<f64>,
}

/// CPUs with the same preference.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct EnergyBias {
    /// 0 for speed to 15 for energy.
    pub bias: u8,
    /// The CPUs.
    pub cpus: CpuSet,
}

/// The clock outside of the cores, of one die.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Uncore {
    /// `package_00_die_00` …
    pub name: String,
    /// Lowest rate that is set, hertz.
    pub min_hz: Reading<u64>,
    /// Highest rate that is set, hertz.
    pub max_hz: Reading<u64>,
    /// Highest rate at boot, hertz.
    pub initial_max_hz: Reading<u64>,
    /// Now, hertz.
    pub current_hz: Reading<u64>,
}
