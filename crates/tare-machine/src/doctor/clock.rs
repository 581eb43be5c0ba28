//! The clock, heat and power.

use super::draft::{Draft, Examined, Topic, bad, each, note, ok, several, unknown, warn};
use super::energy;
use super::words::{clock, list, percent, short, time};
use tare_model::check::Area;
use tare_model::probes::{CpuReading, EffectiveClock};
use tare_model::survey::{
    Frequency, IdleState, Policy, Power, PowerDomain, Supply, ThermalZone, ThrottleCount,
};
use tare_model::{Missing, Reading};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Clock,
    ids: &[
        "governor",
        "frequency-range",
        "energy-preference",
        "uncore",
        "boost",
        "throttled-by-heat",
        "temperature",
        "power-limit",
        "idle-states",
        "battery",
        "platform-profile",
        "effective-clock",
    ],
    look,
};

/// Waking up from a state that takes longer shows in latencies at low load.
const DEEP_NS: u64 = 20_000;
/// So close to the mark at which the clock is cut, it soon will be, degrees Celsius.
const MARGIN: f64 = 10.0;
/// Above this any processor is close to its own mark, degrees Celsius.
const HOT: f64 = 90.0;
/// A clock that moves by more during a few seconds moves results too.
const STEADY: f64 = 0.03;

fn look(examined: &Examined) -> Vec<Draft> {
    let frequency = &examined.survey.frequency;
    let virtual_kind = examined.survey.machine.virtualization.value().map_or("", String::as_str);
    let inside = !virtual_kind.is_empty() && !virtual_kind.starts_with("bare-metal");
    let mut drafts = match &frequency.policies {
        Reading::Measured(policies) => of_policies(policies),
        Reading::Missing(missing) => vec![no_driver(missing, inside, virtual_kind)],
        Reading::NotApplicable { .. } => Vec::new(),
    };
    drafts.extend(boost(frequency, inside));
    drafts.extend(energy::preference(frequency));
    drafts.extend(energy::uncore(frequency.uncore.value().map_or(&[], Vec::as_slice)));
    drafts.extend(heat(frequency, inside));
    drafts.extend(each("idle-states", &frequency.idle_states, |states| idle_states(states, frequency)));
    drafts.extend(battery(&examined.survey.power));
    if let Some(probes) = examined.probes {
        drafts.extend(several("effective-clock", &probes.clock.found, |cpus| effective(cpus)));
    }
    drafts
}

fn no_driver(missing: &Missing, inside: bool, kind: &str) -> Draft {
    let draft = unknown("governor", missing);
    // It is not the driver that is missing.
    if !missing.remedy.is_empty() {
        return draft;
    }
    match kind {
        kind if kind.starts_with("wsl") => draft
            .effect("Windows moves the clock; what sets a governor here has no effect")
            .fix("on Windows: powercfg /setactive SCHEME_MIN (High performance)"),
        kind if kind.starts_with("xen-dom0") => draft
            .effect("Xen moves the clock; what sets a governor here has no effect")
            .fix("xenpm set-scaling-governor performance"),
        _ if inside => draft
            .effect("the host may move the clock between two runs and nothing here tells but the work itself")
            .fix(
                "on the host: governor performance; here: the effective-clock probe, and runs in alternation",
            ),
        _ => draft
            .effect("the clock may move with load, heat and firmware; nothing here tells but the work itself")
            .fix("load the processor's cpufreq driver, or set the clock in the firmware"),
    }
}

fn of_policies(policies: &[Policy]) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let mut governors: Vec<String> =
        policies.iter().filter_map(|policy| policy.governor.value().cloned()).collect();
    governors.sort();
    governors.dedup();
    let missing = policies.iter().find_map(|policy| match &policy.governor {
        Reading::Missing(missing) => Some(missing),
        _ => None,
    });
    let driver = policies.iter().find_map(|policy| policy.driver.value()).map_or("", String::as_str);
    match (governors.as_slice(), missing) {
        // What is not known of some CPUs is not fine.
        ([], Some(missing)) => drafts.push(unknown("governor", missing)),
        ([one], Some(missing)) if one == "performance" => drafts.push(unknown("governor", missing)),
        ([one], _) => drafts.push(governor(one, driver, policies)),
        ([], None) => {}
        (several, _) => drafts.push(
            warn("governor", format!("not the same on all CPUs: {}", several.join(", ")))
                .effect("which CPU a thread lands on decides how fast it is")
                .fix("one governor, performance, on all CPUs")
                .setting("governor"),
        ),
    }
    drafts.extend(range(policies));
    drafts
}

fn governor(name: &str, driver: &str, policies: &[Policy]) -> Draft {
    let found =
        format!("governor {name}{}", if driver.is_empty() { String::new() } else { format!(" ({driver})") });
    if name == "performance" {
        return ok("governor", found);
    }
    let span = policies.iter().find_map(|policy| {
        let (low, high) = (*policy.hardware_min_hz.value()? as f64, *policy.hardware_max_hz.value()? as f64);
        (low < high).then(|| format!("between {} and {}", clock(low), clock(high)))
    });
    let moves = span.unwrap_or_else(|| "between its lowest and highest rate".to_owned());
    warn("governor", found)
        .effect(format!(
            "the clock follows load and heat {moves}, with a delay: CPU-bound throughput moves as much, short runs read low"
        ))
        .fix("governor performance")
        .setting("governor")
}

/// Limits that somebody set below what the hardware can.
fn range(policies: &[Policy]) -> Option<Draft> {
    let limited = policies.iter().find_map(|policy| {
        let (max, hardware) = (*policy.max_hz.value()?, *policy.hardware_max_hz.value()?);
        (max < hardware).then_some((policy, max as f64, hardware as f64))
    });
    match limited {
        Some((policy, max, hardware)) => Some(
            note(
                "frequency-range",
                format!("policy {} is limited to {} of {}", policy.id, clock(max), clock(hardware)),
            )
            .effect(format!(
                "CPU-bound work runs at {} of the hardware's speed, and steadier",
                percent(max / hardware)
            ))
            .fix("leave it for comparisons; lift it for absolute figures")
            .setting("frequency"),
        ),
        None => policies.iter().find_map(|policy| {
            let (min, max) = (*policy.min_hz.value()? as f64, *policy.max_hz.value()? as f64);
            Some(ok("frequency-range", format!("{} to {}", clock(min), clock(max))))
        }),
    }
}

fn boost(frequency: &Frequency, inside: bool) -> Option<Draft> {
    match &frequency.boost {
        Reading::Measured(true) => Some(
            note("boost", "boost is on")
                .effect("a cold machine runs above its lasting clock for seconds to minutes: the first runs read high")
                .fix("off for comparisons, or runs long enough to settle (30–180 s)")
                .setting("boost"),
        ),
        Reading::Measured(false) => Some(ok("boost", "boost is off")),
        // A machine without a cpufreq driver has said so already.
        Reading::Missing(missing) if frequency.policies.value().is_some() && !inside => Some(unknown("boost", missing)),
        _ => None,
    }
}

/// Counters, zones and limits; on a virtual machine, which has none of them, one line for all.
fn heat(frequency: &Frequency, inside: bool) -> Vec<Draft> {
    let none = frequency.throttle_counts.value().is_none()
        && frequency.zones.value().is_none()
        && energy::warmest(frequency).is_none()
        && frequency.power_domains.value().is_none();
    if none && inside {
        let missing = Missing::new("heat and power limits are the host's to see");
        return vec![
            unknown("temperature", &missing)
                .effect("a host that gets hot cuts the clock, and nothing here tells")
                .fix("watch the host's temperature; leave pauses between runs"),
        ];
    }
    let mut drafts = each("throttled-by-heat", &frequency.throttle_counts, |counts| throttled(counts));
    // A zone may be of a wireless card alone.
    let zones = frequency.zones.value().map(Vec::as_slice).unwrap_or_default();
    let hottest = zones.iter().filter_map(|zone| zone.celsius.value().copied()).fold(f64::MIN, f64::max);
    match energy::warmest(frequency).filter(|(_, celsius)| *celsius > hottest) {
        Some((name, celsius)) if celsius >= HOT => drafts.push(
            warn("temperature", format!("{name} has {celsius:.0} °C"))
                .effect("the clock is about to be cut, or is cut already")
                .fix("let it cool before measuring"),
        ),
        Some((name, celsius)) => drafts.push(ok("temperature", format!("{celsius:.0} °C at most ({name})"))),
        None => drafts.extend(each("temperature", &frequency.zones, |zones| temperature(zones))),
    }
    drafts.extend(each("power-limit", &frequency.power_domains, |domains| power_limit(domains)));
    drafts
}

fn throttled(counts: &[ThrottleCount]) -> Draft {
    let sum = |of: fn(&ThrottleCount) -> &Reading<u64>| -> u64 {
        counts.iter().filter_map(|count| of(count).value()).fold(0, |sum, count| sum.saturating_add(*count))
    };
    let (cores, packages) = (sum(|count| &count.core), sum(|count| &count.package));
    let reported = counts.iter().any(|count| count.core.value().is_some() || count.package.value().is_some());
    match (reported, cores.max(packages)) {
        (false, _) => unknown("throttled-by-heat", &Missing::new("the counters hold no numbers")),
        (true, 0) => ok("throttled-by-heat", "never slowed down for heat since boot"),
        (true, times) => warn("throttled-by-heat", format!("slowed down for heat {times} times since boot"))
            .effect("each time the clock falls, down to below half on a laptop, and throughput with it")
            .fix("cooling; pauses between runs; a lower highest clock that it can hold")
            .setting("frequency"),
    }
}

fn temperature(zones: &[ThermalZone]) -> Draft {
    let read: Vec<(&ThermalZone, f64)> =
        zones.iter().filter_map(|zone| Some((zone, *zone.celsius.value()?))).collect();
    let close = |(zone, celsius): &&(&ThermalZone, f64)| {
        *celsius >= HOT || zone.passive_celsius.value().is_some_and(|mark| *celsius >= mark - MARGIN)
    };
    let name = |zone: &ThermalZone| zone.kind.value().cloned().unwrap_or_else(|| "a zone".to_owned());
    if let Some((zone, celsius)) = read.iter().find(close) {
        let mark =
            zone.passive_celsius.value().map_or_else(String::new, |mark| format!(" (cut at {mark:.0} °C)"));
        return warn("temperature", format!("{} has {celsius:.0} °C{mark}", name(zone)))
            .effect("the clock is about to be cut, or is cut already")
            .fix("let it cool before measuring");
    }
    match read.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((zone, celsius)) => ok("temperature", format!("{celsius:.0} °C at most ({})", name(zone))),
        None => unknown("temperature", &Missing::new("no thermal zone tells a temperature")),
    }
}

fn power_limit(domains: &[PowerDomain]) -> Draft {
    let limits: Vec<String> = domains
        .iter()
        .filter_map(|domain| {
            Some(format!("{} {} W", domain.name.value()?, short(*domain.limit_watts.value()?)))
        })
        .collect();
    if limits.is_empty() {
        return unknown("power-limit", &Missing::new("RAPL tells no limits"));
    }
    ok("power-limit", format!("lasting power limits: {}", list(&limits, 3)))
}

fn idle_states(states: &[IdleState], frequency: &Frequency) -> Draft {
    let on = states.iter().filter(|state| state.disabled.value() != Some(&true));
    let deepest =
        on.filter_map(|state| Some((state, *state.exit_latency_ns.value()?))).max_by_key(|(_, ns)| *ns);
    let driver = frequency.idle_driver.value().map_or_else(String::new, |driver| format!(" ({driver})"));
    let Some((state, latency_ns)) = deepest else {
        return unknown("idle-states", &Missing::new("no idle state tells how long it takes to leave"));
    };
    let name = state.name.value().map_or("the deepest state", String::as_str);
    let found = format!("waking up from {name} takes {}{driver}", time(latency_ns as f64));
    match latency_ns > DEEP_NS {
        true => note("idle-states", found)
            .effect("at low load this is in every latency, on the server's side and on the generator's")
            .fix("hold /dev/cpu_dma_latency at 0 while measuring latency at low load; --busy-poll for the generator"),
        false => ok("idle-states", found),
    }
}

fn battery(power: &Power) -> Vec<Draft> {
    let mut drafts = several("battery", &power.supplies, |supplies| supply(supplies).into_iter().collect());
    if let Some(profile) = power.platform_profile.value() {
        let found = format!("the firmware's profile is {profile}");
        drafts.push(match profile.as_str() {
            "low-power" | "quiet" | "cool" => warn("platform-profile", found)
                .effect("the firmware holds power and clock down, whatever the governor says")
                .fix("echo performance > /sys/firmware/acpi/platform_profile"),
            _ => ok("platform-profile", found),
        });
    }
    drafts
}

/// What feeds the machine; batteries of mice and keyboards do not.
fn supply(supplies: &[Supply]) -> Option<Draft> {
    let own = || supplies.iter().filter(|supply| supply.serves_machine());
    let is = |supply: &Supply, word: &str| supply.kind.value().is_some_and(|kind| kind == word);
    let batteries: Vec<&Supply> = own().filter(|supply| is(supply, "Battery")).collect();
    if batteries.is_empty() {
        return None;
    }
    // Many laptops are charged through USB, and show no other mains; phones have charging pads. Older kernels have a type
    // for each way of charging through USB.
    let is_mains = |supply: &&Supply| {
        let kind = supply.kind.value().map_or("", String::as_str);
        ["Mains", "Wireless"].contains(&kind) || kind.starts_with("USB")
    };
    let mains: Vec<&Supply> = own().filter(is_mains).collect();
    let plugged = mains.iter().any(|supply| supply.online.value() == Some(&true));
    let status =
        |word: &str| batteries.iter().any(|battery| battery.status.value().is_some_and(|is| is == word));
    let unplugged = mains.iter().any(|supply| supply.online.value() == Some(&false));
    Some(match (plugged, status("Discharging")) {
        (true, _) => ok("battery", "a battery, on mains"),
        (false, true) => bad("battery", "running on battery")
            .effect("firmware holds the clock down to half and less: 100–140k instead of 220–317k req/s seen")
            .fix("plug it in"),
        (false, false) if status("Charging") => ok("battery", "a battery, on mains"),
        (false, false) if !unplugged && (status("Full") || status("Not charging")) => {
            ok("battery", "a battery, on mains")
        }
        (false, false) => unknown(
            "battery",
            &Missing::new(match unplugged {
                true => "no mains is plugged in, and the battery does not tell whether it is drained",
                false => "neither mains nor battery tells which of them feeds the machine",
            }),
        ),
    })
}

fn effective(cpus: &[CpuReading<EffectiveClock>]) -> Vec<Draft> {
    let read: Vec<&EffectiveClock> = cpus.iter().filter_map(|cpu| cpu.found.value()).collect();
    let extreme = |of: fn(&EffectiveClock) -> f64, pick: fn(f64, f64) -> f64| {
        read.iter().map(|cpu| of(cpu)).reduce(pick)
    };
    let middle = (extreme(|cpu| cpu.hz.low, f64::min), extreme(|cpu| cpu.hz.high, f64::max));
    let (Some(low), Some(high)) = middle else {
        let missing = cpus.iter().find_map(|cpu| match &cpu.found {
            Reading::Missing(missing) => Some(missing),
            _ => None,
        });
        return missing.map(|missing| unknown("effective-clock", missing)).into_iter().collect();
    };
    let spread = if high > 0.0 { (high - low) / high } else { 0.0 };
    let found = format!("the cores really run at {} to {}", clock(low), clock(high));
    vec![match spread > STEADY {
        false => ok("effective-clock", found),
        true => warn("effective-clock", found)
            .effect(format!(
                "CPU-bound work differs by {} from CPU to CPU or from second to second",
                percent(spread)
            ))
            .fix("hold the clock (governor, boost, the host's power plan), or compare per cycle"),
    }]
}
