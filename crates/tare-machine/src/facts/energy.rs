//! What processors prefer between speed and energy, the clock of what cores share, and temperatures by chip.

use super::files::{self, CPU_DIR};
use crate::root::{Root, nonsense};
use std::collections::BTreeMap;
use tare_model::survey::{EnergyBias, Sensor, Uncore};
use tare_model::{CpuSet, Missing};

const HWMON: &str = "/sys/class/hwmon";
/// Chips that are looked at, and temperatures of one.
const CHIPS_MAX: usize = 64;
const TEMPERATURES_MAX: usize = 128;
/// The register has four bits.
const BIAS_MAX: u8 = 15;

/// `energy_perf_bias` of the CPUs that have it.
pub(super) fn bias(root: &Root) -> Result<Vec<EnergyBias>, Missing> {
    let mut by_bias: BTreeMap<u8, CpuSet> = BTreeMap::new();
    for (cpu, name) in files::numbered(root, CPU_DIR, "cpu")? {
        let path = format!("{CPU_DIR}/{name}/power/energy_perf_bias");
        if !root.exists(&path) {
            continue;
        }
        let bias: u8 = root.value(&path)?;
        if bias > BIAS_MAX {
            return Err(nonsense(path.as_ref(), &bias.to_string()));
        }
        by_bias.entry(bias).or_default().insert(cpu);
    }
    if by_bias.is_empty() {
        return Err(Missing::new("no CPU has energy_perf_bias (Intel's have, on bare metal)"));
    }
    Ok(by_bias.into_iter().map(|(bias, cpus)| EnergyBias { bias, cpus }).collect())
}

/// `intel_uncore_frequency`, a folder for each die.
pub(super) fn uncore(root: &Root) -> Result<Vec<Uncore>, Missing> {
    let dir = format!("{CPU_DIR}/intel_uncore_frequency");
    let names = root
        .names(&dir)
        .map_err(|missing| Missing::with_remedy(missing.why, "modprobe intel_uncore_frequency"))?;
    let hz =
        |name: &str, file: &str| files::scaled_positive(root, &format!("{dir}/{name}/{file}"), 1000).into();
    let die = |name: String| Uncore {
        min_hz: hz(&name, "min_freq_khz"),
        max_hz: hz(&name, "max_freq_khz"),
        initial_max_hz: hz(&name, "initial_max_freq_khz"),
        current_hz: hz(&name, "current_freq_khz"),
        name,
    };
    if names.is_empty() {
        return Err(Missing::new(format!("{dir} is empty")));
    }
    Ok(names.into_iter().take(CHIPS_MAX).map(die).collect())
}

/// Temperatures of all chips.
pub(super) fn sensors(root: &Root) -> Result<Vec<Sensor>, Missing> {
    let mut all = Vec::new();
    for (_, name) in files::numbered(root, HWMON, "hwmon")?.into_iter().take(CHIPS_MAX) {
        let dir = format!("{HWMON}/{name}");
        let Ok(chip) = files::word(root, &format!("{dir}/name")) else { continue };
        let files = root.names(&dir).unwrap_or_default();
        let inputs = files.iter().filter_map(|file| file.strip_prefix("temp")?.strip_suffix("_input"));
        for number in inputs.take(TEMPERATURES_MAX) {
            all.push(Sensor {
                chip: chip.clone(),
                label: files::word(root, &format!("{dir}/temp{number}_label")).into(),
                celsius: files::celsius(root, &format!("{dir}/temp{number}_input")).into(),
            });
        }
    }
    if all.is_empty() { Err(Missing::new("no chip tells a temperature")) } else { Ok(all) }
}
