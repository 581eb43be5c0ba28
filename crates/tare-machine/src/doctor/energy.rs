//! What the processor prefers between speed and energy, the clock of what cores share, and its temperature by chip.

use super::draft::{Draft, note, ok};
use super::words::{clock, list};
use std::collections::BTreeSet;
use tare_model::Reading;
use tare_model::survey::{Frequency, Sensor, Uncore};

/// From here on the register asks for less than full speed at once.
const SAVING: u8 = 4;
/// Chips whose temperature is a processor's.
const PROCESSORS: [&str; 6] =
    ["k10temp", "zenpower", "coretemp", "cpu_thermal", "cpu-thermal", "soc_thermal"];

/// By policy (EPP), else by CPU (EPB).
pub(super) fn preference(frequency: &Frequency) -> Option<Draft> {
    let policies = frequency.policies.value().map(Vec::as_slice).unwrap_or_default();
    let words: BTreeSet<&str> =
        policies.iter().filter_map(|policy| policy.energy_preference.value()).map(String::as_str).collect();
    let is_fast = |governor: &Reading<String>| governor.value().is_some_and(|name| name == "performance");
    let governed = !policies.is_empty() && policies.iter().all(|policy| is_fast(&policy.governor));
    let slow = |draft: Draft| {
        match governed {
        // What the processor makes of both is its own: some leave the preference aside.
        true => draft
            .effect("beside the governor performance the processor may still save energy in pauses")
            .fix("energy_performance_preference performance"),
        false => draft
            .effect("the processor raises its clock with a delay, and the later the more it saves: short runs read low")
            .fix("energy_performance_preference performance, or the governor performance"),
    }
    };
    if !words.is_empty() {
        let names: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let found = format!("the processor's energy preference is {}", list(&names, 3));
        let fast = names == ["performance"] || names == ["0"];
        return Some(if fast {
            ok("energy-preference", found)
        } else {
            slow(note("energy-preference", found))
        });
    }
    let saving =
        frequency.energy_bias.value()?.iter().filter(|one| one.bias >= SAVING).max_by_key(|one| one.bias)?;
    Some(slow(note(
        "energy-preference",
        format!("the processor's energy bias is {} of 15 on CPUs {}", saving.bias, saving.cpus),
    )))
}

/// Limits below what was set at boot, and a clock that moves.
pub(super) fn uncore(dies: &[Uncore]) -> Option<Draft> {
    let limited = dies.iter().find_map(|die| {
        let (max, initial) = (*die.max_hz.value()?, *die.initial_max_hz.value()?);
        (max < initial).then_some((die, max as f64, initial as f64))
    });
    if let Some((die, max, initial)) = limited {
        let found = format!(
            "the clock of {}'s caches and memory is limited to {} of {}",
            die.name,
            clock(max),
            clock(initial)
        );
        return Some(note("uncore", found).effect("loads that miss the L2 take longer by as much"));
    }
    let (low, high) = dies.iter().find_map(|die| Some((*die.min_hz.value()?, *die.max_hz.value()?)))?;
    let found =
        format!("the clock of caches and memory goes from {} to {}", clock(low as f64), clock(high as f64));
    if low == high {
        return Some(ok("uncore", found));
    }
    Some(
        note("uncore", found)
            .effect("it follows the load of all cores: a server alone has slower caches than one with busy neighbours")
            .fix("min_freq_khz = max_freq_khz in /sys/devices/system/cpu/intel_uncore_frequency"),
    )
}

/// The processor's highest temperature, and who tells it.
pub(super) fn warmest(frequency: &Frequency) -> Option<(String, f64)> {
    let sensors = frequency.sensors.value()?.iter();
    let has_die = frequency.sensors.value()?.iter().any(|sensor| is_labelled(sensor, "Tdie"));
    // Some processors' Tctl is their temperature and 20 to 27 degrees more, for the fans.
    let of_processor = sensors.filter(|sensor| {
        PROCESSORS.contains(&sensor.chip.as_str()) && !(has_die && is_labelled(sensor, "Tctl"))
    });
    let read = of_processor.filter_map(|sensor| Some((sensor, *sensor.celsius.value()?)));
    let (sensor, celsius) = read.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((name(sensor), celsius))
}

fn is_labelled(sensor: &Sensor, label: &str) -> bool {
    sensor.label.value().is_some_and(|own| own == label)
}

fn name(sensor: &Sensor) -> String {
    let label = sensor.label.value().map(|label| format!(" {label}"));
    format!("{}{}", sensor.chip, label.unwrap_or_default())
}
