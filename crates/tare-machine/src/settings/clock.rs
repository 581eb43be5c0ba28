//! The clock of the CPUs: governor, its range, and boost.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::cpufreq;
use crate::facts;
use crate::root::Root;
use crate::value::{self, Step};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tare_model::Missing;

/// Intel's own driver: 1 switches boost *off*.
const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
/// Everybody else's: 1 switches it on.
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

/// The folders of cpufreq policies: groups of CPUs that share a clock. Those whose CPUs are all offline are left out.
fn policies(root: &Root) -> Result<Vec<PathBuf>, Missing> {
    let folders: Vec<PathBuf> =
        cpufreq::policies(root).into_iter().map(|(_, folder)| PathBuf::from(folder)).collect();
    if folders.is_empty() { Err(no_driver(root)) } else { Ok(folders) }
}

/// Why the clock cannot be seen or held from here, and who can.
fn no_driver(root: &Root) -> Missing {
    let kind = facts::read(root).virtualization.value().cloned().unwrap_or_default();
    let kind = kind.split(' ').next().unwrap_or_default();
    match kind {
        "wsl2" => Missing::with_remedy(
            "no cpufreq driver: under WSL2 the clock is Windows', and nothing that is set here has an effect on it",
            "on the host, as administrator: powercfg /setactive SCHEME_MIN (high performance); to switch boost off: \
             powercfg /setacvalueindex SCHEME_CURRENT SUB_PROCESSOR PROCTHROTTLEMAX 99, then powercfg /setactive SCHEME_CURRENT",
        ),
        "" => Missing::with_remedy(
            "no cpufreq driver",
            "in a virtual machine the clock is the host's: there, cpupower frequency-set -g performance",
        ),
        "xen-dom0" => Missing::with_remedy(
            "no cpufreq driver: the clock is Xen's to set",
            "xenpm set-scaling-governor performance",
        ),
        "bare-metal" => Missing::with_remedy(
            "no cpufreq driver",
            "modprobe acpi_cpufreq, or let the system manage power in the firmware's setup",
        ),
        machine => Missing::with_remedy(
            format!("no cpufreq driver: the clock is the host's of this virtual machine ({machine})"),
            "on the host: cpupower frequency-set -g performance; where the host is not yours, take a type of instance with \
             a fixed clock, and repeat measurements at other times",
        ),
    }
}

/// The governor: who chooses the clock.
#[derive(Debug)]
pub(super) struct Governor;

impl Setting for Governor {
    fn name(&self) -> &'static str {
        "governor"
    }

    fn about(&self) -> &'static str {
        "who chooses the clock: performance does not wait for load"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let read = |folder: PathBuf| value::read(root, folder.join("scaling_governor"));
        distinct(policies(root)?.into_iter().map(read))
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let wanted = wanted.clock.governor.as_deref()?;
        Some(policies(root).and_then(|folders| {
            let steps = folders.into_iter().map(|folder| {
                let path = folder.join("scaling_governor");
                let before = value::read(root, &path)?;
                let known = value::read(root, folder.join("scaling_available_governors"))?;
                if !known.split_ascii_whitespace().any(|name| name == wanted) {
                    return Err(Missing::with_remedy(
                        format!("there is no governor '{wanted}'"),
                        format!("there are: {known}"),
                    ));
                }
                Ok(Step::change(path, before, wanted))
            });
            steps.collect::<Result<Vec<_>, _>>().map(Change::of)
        }))
    }
}

/// The range that the governor chooses in.
#[derive(Debug)]
pub(super) struct Frequency;

/// A policy's range and the hardware's, kilohertz.
struct Range {
    folder: PathBuf,
    low: u64,
    high: u64,
    hardware: (u64, u64),
}

impl Range {
    fn read(root: &Root, folder: PathBuf) -> Result<Range, Missing> {
        let khz = |file: &str| value::number(root, folder.join(file));
        let (low, high) = (khz("scaling_min_freq")?, khz("scaling_max_freq")?);
        let hardware = (khz("cpuinfo_min_freq")?, khz("cpuinfo_max_freq")?);
        if low > high || hardware.0 > hardware.1 || hardware.1 == 0 {
            return Err(Missing::new(format!("the clock's range in {} makes no sense", folder.display())));
        }
        Ok(Range { folder, low, high, hardware })
    }

    /// The steps to a new range, so that the lower end is at no moment above the upper one.
    fn change(&self, low: u64, high: u64) -> [Option<Step>; 2] {
        let step = |file: &str, before: u64, wanted: u64| {
            Step::change(self.folder.join(file), before.to_string(), wanted.to_string())
                .map(|step| Step { moves_by_itself: true, ..step })
        };
        let lower = step("scaling_min_freq", self.low, low);
        let upper = step("scaling_max_freq", self.high, high);
        if low > self.high { [upper, lower] } else { [lower, upper] }
    }
}

impl Setting for Frequency {
    fn name(&self) -> &'static str {
        "frequency"
    }

    fn about(&self) -> &'static str {
        "the range of the clock (--min-frequency, --max-frequency): both alike hold it at one rate"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let range = |folder| {
            let Range { low, high, .. } = Range::read(root, folder)?;
            Ok(if low == high { ghz(low) } else { format!("{} to {}", ghz(low), ghz(high)) })
        };
        distinct(policies(root)?.into_iter().map(range))
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let khz = |hz: Option<u64>| hz.map(|hz| hz / 1000);
        let (low, high) = (khz(wanted.clock.min_frequency_hz), khz(wanted.clock.max_frequency_hz));
        (low.is_some() || high.is_some()).then(|| range_change(root, low, high))
    }
}

fn range_change(root: &Root, low: Option<u64>, high: Option<u64>) -> Result<Change, Missing> {
    if let (Some(low), Some(high)) = (low, high)
        && low > high
    {
        return Err(Missing::new(format!(
            "--min-frequency {} is above --max-frequency {}",
            ghz(low),
            ghz(high)
        )));
    }
    let ranges: Vec<Range> =
        policies(root)?.into_iter().map(|folder| Range::read(root, folder)).collect::<Result<_, _>>()?;
    for khz in [low, high].into_iter().flatten() {
        if !ranges.iter().any(|range| (range.hardware.0..=range.hardware.1).contains(&khz)) {
            let (least, most) = ranges.first().map(|range| range.hardware).unwrap_or_default();
            return Err(Missing::new(format!(
                "no CPU here can run at {}: the clock goes from {} to {}",
                ghz(khz),
                ghz(least),
                ghz(most)
            )));
        }
    }
    let steps = ranges.iter().flat_map(|range| {
        // Cores of two kinds: what one kind cannot do, it does as nearly as it can.
        let within = |khz: u64| khz.clamp(range.hardware.0, range.hardware.1);
        let (to_low, to_high) = match (low.map(within), high.map(within)) {
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, range.high.max(low)),
            (None, Some(high)) => (range.low.min(high), high),
            (None, None) => (range.low, range.high),
        };
        range.change(to_low, to_high)
    });
    Ok(Change::of(steps))
}

/// Clocks above the nominal one, for as long as temperature and power allow.
#[derive(Debug)]
pub(super) struct Boost;

/// The switch that this machine has, and whether 1 means off.
fn boost_switch(root: &Root) -> Result<(&'static str, bool), Missing> {
    for (path, inverted) in [(NO_TURBO, true), (BOOST, false)] {
        if root.exists(path) {
            return Ok((path, inverted));
        }
    }
    policies(root)?;
    Err(Missing::with_remedy(
        "this cpufreq driver has no switch for boost",
        "--max-frequency with the CPU's nominal clock does the same",
    ))
}

impl Setting for Boost {
    fn name(&self) -> &'static str {
        "boost"
    }

    fn about(&self) -> &'static str {
        "clocks above the nominal one, which last until it gets warm or other cores wake"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let (path, inverted) = boost_switch(root)?;
        Ok(if flag(root, path)? == inverted { "off" } else { "on" }.to_string())
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let on = wanted.clock.boost?;
        Some(boost_switch(root).and_then(|(path, inverted)| {
            let number = |set: bool| if set { "1" } else { "0" };
            let before = flag(root, path)?;
            Ok(Change::of([Step::change(path, number(before), number(on != inverted))]))
        }))
    }
}

/// A setting that is 0 or 1.
fn flag(root: &Root, path: &str) -> Result<bool, Missing> {
    match value::number(root, path)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Missing::new(format!("{path} holds {other}"))),
    }
}

/// Different values, once each: `performance`, or `performance, powersave`.
fn distinct(values: impl Iterator<Item = Result<String, Missing>>) -> Result<String, Missing> {
    let values = values.collect::<Result<BTreeSet<String>, Missing>>()?;
    Ok(values.into_iter().collect::<Vec<_>>().join(", "))
}

/// `2.8 GHz`.
fn ghz(khz: u64) -> String {
    format!("{} GHz", khz as f64 / 1e6)
}
