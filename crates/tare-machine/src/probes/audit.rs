//! Whether the machine's clocks go at the same rate: MONOTONIC, MONOTONIC_RAW, REALTIME and the time stamp counter,
//! read together from time to time.
//!
//! Between two readings a pair of clocks advances by dx and dy; the rate of the one over the other is Σdx / Σdy,
//! over all steps but those in which a clock was set (it jumped further than slewing can carry it). All clocks of a
//! reading are read between two reads of MONOTONIC: none is off by more than the time between these two.

use crate::root::Root;
use tare_model::Missing;
use tare_model::probes::{ClockAudit, ClockId, ClockPair, Drift, SLEW_PPM_MAX};
use tare_sys::cpuid;
use tare_sys::time::{monotonic_ns, monotonic_raw_ns, realtime_ns, sleep_until_ns};

/// Of so many tries the reading that took the least time is kept.
const TRIES: usize = 8;
/// Readings of [`run`].
const READINGS: u64 = 9;
/// A step further than twice the fastest slewing is a clock that was set.
const SET_PPM: f64 = 2.0 * SLEW_PPM_MAX;
/// The pairs, the one that should be true last.
const PAIRS: [(ClockId, ClockId); 4] = [
    (ClockId::Monotonic, ClockId::MonotonicRaw),
    (ClockId::Realtime, ClockId::Monotonic),
    (ClockId::Realtime, ClockId::MonotonicRaw),
    (ClockId::Tsc, ClockId::MonotonicRaw),
];

/// All clocks, read within `took_ns` of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    monotonic_ns: u64,
    raw_ns: u64,
    realtime_ns: u64,
    tsc: Option<u64>,
    took_ns: u64,
}

/// What is said of the time stamp counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tsc {
    invariant: Option<bool>,
    stated: Option<Stated>,
}

/// A rate that somebody states.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stated {
    hz: f64,
    error_hz: f64,
}

/// Watches the clocks for `duration_ns`, asleep most of the time.
///
/// # Errors
/// The window is too short to say anything.
pub fn run(root: &Root, duration_ns: u64) -> Result<ClockAudit, Missing> {
    let begin_ns = monotonic_ns();
    let mut stamps = vec![stamp()];
    for at in 1..READINGS {
        sleep_until_ns(begin_ns.saturating_add(duration_ns / (READINGS - 1) * at));
        stamps.push(stamp());
    }
    compare(&stamps, tsc(root))
}

/// Reads all clocks.
pub(super) fn stamp() -> Stamp {
    let once = || {
        let begin_ns = monotonic_ns();
        let (raw_ns, realtime_ns, tsc) = (monotonic_raw_ns(), realtime_ns(), cpuid::tsc());
        let took_ns = monotonic_ns().saturating_sub(begin_ns);
        Stamp { monotonic_ns: begin_ns, raw_ns, realtime_ns, tsc, took_ns }
    };
    (1..TRIES)
        .map(|_| once())
        .fold(once(), |best, next| if next.took_ns < best.took_ns { next } else { best })
}

/// What processor, hypervisor and kernel say of the counter.
pub(super) fn tsc(root: &Root) -> Tsc {
    let exactly = |hz| Stated { hz, error_hz: 0.0 };
    let stated = cpuid::tsc_stated_hz().map(exactly).or_else(|| stated_by_kernel(root));
    Tsc { invariant: cpuid::invariant_tsc(), stated }
}

/// `cpu MHz` is the counter's rate where the kernel knows no other: without a cpufreq driver and without the counters
/// of the core's true clock. So it is in most virtual machines.
fn stated_by_kernel(root: &Root) -> Option<Stated> {
    const KILOHERTZ: f64 = 1e3;
    let text = root.text("/proc/cpuinfo").ok()?;
    let field = |key: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let has_clock_counters = field("flags")?.split_whitespace().any(|flag| flag == "aperfmperf");
    let has_cpufreq = root.names("/sys/devices/system/cpu/cpu0/cpufreq").is_ok();
    let mhz: f64 = field("cpu MHz")?.parse().ok()?;
    let is_the_counters = !has_clock_counters && !has_cpufreq && mhz.is_finite() && mhz > 1.0;
    is_the_counters.then_some(Stated { hz: mhz * 1e6, error_hz: KILOHERTZ })
}

/// The clocks against each other, from readings in the order they were taken.
pub(super) fn compare(stamps: &[Stamp], tsc: Tsc) -> Result<ClockAudit, Missing> {
    let too_short = || Missing::new("the clocks were not watched for long enough");
    let (first, last) = stamps.first().zip(stamps.last()).ok_or_else(too_short)?;
    let window_ns = last.monotonic_ns.saturating_sub(first.monotonic_ns);
    if window_ns == 0 {
        return Err(too_short());
    }
    let pair = |&(clock, against): &(ClockId, ClockId)| {
        let drift = track(stamps, clock, tsc).and_then(|x| drift(stamps, &x, &track(stamps, against, tsc)?));
        let drift = drift.map(|drift| Drift { error_ppm: drift.error_ppm + stated_ppm(clock, tsc), ..drift });
        ClockPair { clock, against, drift: drift.into() }
    };
    Ok(ClockAudit {
        window_ns,
        readings: u32::try_from(stamps.len()).unwrap_or(u32::MAX),
        tsc_hz: tsc_hz(stamps, tsc).into(),
        pairs: PAIRS.iter().map(pair).collect(),
    })
}

/// Nanoseconds since the first reading by one clock.
fn track(stamps: &[Stamp], clock: ClockId, tsc: Tsc) -> Result<Vec<f64>, Missing> {
    let since_first = |of: fn(&Stamp) -> u64| {
        let first = stamps.first().map_or(0, of);
        stamps.iter().map(|stamp| (of(stamp) as i64).wrapping_sub(first as i64) as f64).collect()
    };
    match clock {
        ClockId::Monotonic => Ok(since_first(|stamp| stamp.monotonic_ns)),
        ClockId::MonotonicRaw => Ok(since_first(|stamp| stamp.raw_ns)),
        ClockId::Realtime => Ok(since_first(|stamp| stamp.realtime_ns)),
        ClockId::Tsc => {
            let ticks = counter(stamps, tsc)?;
            let stated = tsc.stated.ok_or_else(|| {
                Missing::new(
                    "nobody here states the rate of the time stamp counter: processor, hypervisor, kernel",
                )
            })?;
            Ok(ticks.iter().map(|ticks| ticks * 1e9 / stated.hz).collect())
        }
    }
}

/// How far off the stated rate of a clock may be, parts per million.
fn stated_ppm(clock: ClockId, tsc: Tsc) -> f64 {
    let of_counter = tsc.stated.filter(|_| clock == ClockId::Tsc);
    of_counter.map_or(0.0, |stated| stated.error_hz / stated.hz * 1e6)
}

/// Ticks since the first reading.
fn counter(stamps: &[Stamp], tsc: Tsc) -> Result<Vec<f64>, Missing> {
    let none = || Missing::new("this architecture has no time stamp counter that programs can read");
    match tsc.invariant {
        Some(true) => {}
        Some(false) => {
            return Err(Missing::new("the time stamp counter follows the core's clock, or stops with it"));
        }
        None => return Err(none()),
    }
    let ticks: Option<Vec<u64>> = stamps.iter().map(|stamp| stamp.tsc).collect();
    let ticks = ticks.ok_or_else(none)?;
    Ok(ticks.iter().map(|now| (*now as i64).wrapping_sub(ticks[0] as i64) as f64).collect())
}

fn tsc_hz(stamps: &[Stamp], tsc: Tsc) -> Result<f64, Missing> {
    let ticks = counter(stamps, tsc)?;
    let raw_ns = track(stamps, ClockId::MonotonicRaw, tsc)?;
    match (ticks.last(), raw_ns.last()) {
        (Some(ticks), Some(&ns)) if ns > 0.0 => Ok(ticks * 1e9 / ns),
        _ => Err(Missing::new("CLOCK_MONOTONIC_RAW stands still")),
    }
}

/// How much faster `x` goes than `y`; both in nanoseconds since the first of `stamps`.
fn drift(stamps: &[Stamp], x: &[f64], y: &[f64]) -> Result<Drift, Missing> {
    let steps: Vec<Step> = (1..stamps.len())
        .map(|at| Step {
            dx: x[at] - x[at - 1],
            dy: y[at] - y[at - 1],
            error_ns: (stamps[at - 1].took_ns + stamps[at].took_ns) as f64,
        })
        .collect();
    let usual = median_rate(&steps).ok_or_else(|| Missing::new("a clock stands still"))?;
    let jump_ns = |step: &Step| step.dx - step.dy * usual;
    let is_set = |step: &Step| jump_ns(step).abs() > step.error_ns + step.dy.abs() * SET_PPM * 1e-6;
    let (mut dx, mut dy, mut error_ns, mut step_ns) = (0.0, 0.0, 0.0, 0.0f64);
    let mut before_is_kept = false;
    for (at, step) in steps.iter().enumerate() {
        let is_kept = !is_set(step);
        if is_kept {
            dx += step.dx;
            dy += step.dy;
        } else if jump_ns(step).abs() > step_ns.abs() {
            step_ns = jump_ns(step);
        }
        // Errors of readings between two kept steps cancel; those at the edge of a run of them stay.
        if is_kept != before_is_kept {
            error_ns += stamps[at].took_ns as f64;
        }
        before_is_kept = is_kept;
    }
    if before_is_kept {
        error_ns += stamps.last().map_or(0, |stamp| stamp.took_ns) as f64;
    }
    if dy <= 0.0 {
        return Err(Missing::new("the clocks were set over and over"));
    }
    Ok(Drift { ppm: (dx / dy - 1.0) * 1e6, error_ppm: error_ns / dy * 1e6, step_ns })
}

/// What two clocks did from one reading to the next.
struct Step {
    dx: f64,
    dy: f64,
    error_ns: f64,
}

/// The rate at which half of the time went faster: a clock that is set once does not move it.
fn median_rate(steps: &[Step]) -> Option<f64> {
    let mut rates: Vec<(f64, f64)> =
        steps.iter().filter(|step| step.dy > 0.0).map(|step| (step.dx / step.dy, step.dy)).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = rates.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    rates.into_iter().find_map(|(rate, weight)| {
        sum += weight;
        (sum >= half).then_some(rate)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TSC: Tsc = Tsc { invariant: Some(true), stated: Some(Stated { hz: 2.3e9, error_hz: 0.0 }) };
    const TOOK_NS: u64 = 80;

    /// Clocks that differ from true time by so many parts in a million, read every 0.3 s for 3 s; within a reading
    /// each is late by its share of `TOOK_NS`.
    fn stamps(ppm: [f64; 3], tsc_hz: f64, late: [u64; 3]) -> Vec<Stamp> {
        let at = |step: u64| {
            let true_ns = (step * 300_000_000) as f64;
            let clock = |base: u64, ppm: f64, late: u64| base + (true_ns * (1.0 + ppm * 1e-6)) as u64 + late;
            Stamp {
                monotonic_ns: clock(5_000_000, ppm[0], 0),
                raw_ns: clock(7_000_000, ppm[1], if step.is_multiple_of(2) { late[0] } else { 0 }),
                realtime_ns: clock(
                    1_700_000_000_000_000_000,
                    ppm[2],
                    if step.is_multiple_of(3) { late[1] } else { 0 },
                ),
                tsc: Some((true_ns * tsc_hz / 1e9) as u64 + if step == 10 { late[2] } else { 0 }),
                took_ns: TOOK_NS,
            }
        };
        (0..=10).map(at).collect()
    }

    fn drift_of(audit: &ClockAudit, clock: ClockId, against: ClockId) -> Drift {
        let pair = audit.pairs.iter().find(|pair| (pair.clock, pair.against) == (clock, against)).unwrap();
        pair.drift.clone().ok().unwrap()
    }

    #[test]
    fn a_monotonic_clock_that_is_7_percent_fast_is_found() {
        let audit = compare(&stamps([70_000.0, 0.0, 70_000.0], 2.3e9, [0; 3]), TSC).unwrap();
        let fast = drift_of(&audit, ClockId::Monotonic, ClockId::MonotonicRaw);
        assert!(
            (fast.ppm - 70_000.0).abs() <= fast.error_ppm && fast.is_suspect() && fast.step_ns == 0.0,
            "{fast:?}"
        );
        assert!(!drift_of(&audit, ClockId::Realtime, ClockId::Monotonic).is_suspect());
        assert!(!drift_of(&audit, ClockId::Tsc, ClockId::MonotonicRaw).is_suspect());
        assert!((audit.tsc_hz.ok().unwrap() / 2.3e9 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_clock_that_is_set_does_not_drift() {
        let mut stamps = stamps([0.0, 0.0, 20.0], 2.3e9, [0; 3]);
        for stamp in &mut stamps[6..] {
            stamp.realtime_ns -= 1_000_000_000;
        }
        let drift = drift_of(&compare(&stamps, TSC).unwrap(), ClockId::Realtime, ClockId::Monotonic);
        assert!((drift.ppm - 20.0).abs() <= drift.error_ppm && !drift.is_suspect(), "{drift:?}");
        assert!((drift.step_ns + 1e9).abs() < 1e3, "{drift:?}");
    }

    #[test]
    fn what_cannot_be_compared_is_missing() {
        let good = stamps([0.0; 3], 2.3e9, [0; 3]);
        let tsc_drift = |stamps: &[Stamp], tsc| compare(stamps, tsc).unwrap().pairs[3].drift.clone().ok();
        assert!(tsc_drift(&good, TSC).is_ok());
        assert!(tsc_drift(&good, Tsc { stated: None, ..TSC }).unwrap_err().why.contains("states"));
        assert!(
            tsc_drift(&good, Tsc { invariant: Some(false), ..TSC }).unwrap_err().why.contains("core's clock")
        );
        assert!(tsc_drift(&good, Tsc { invariant: None, ..TSC }).unwrap_err().why.contains("architecture"));
        assert!(compare(&good[..1], TSC).is_err() && compare(&[], TSC).is_err());
        let mut still = good.clone();
        still.iter_mut().for_each(|stamp| stamp.raw_ns = 1);
        assert!(compare(&still, TSC).unwrap().pairs[0].drift.value().is_none());
    }

    #[test]
    fn the_clocks_of_this_machine_go_on() {
        let audit = run(&Root::live(), 20_000_000).unwrap();
        assert!(audit.window_ns >= 15_000_000 && audit.pairs[0].drift.value().is_some(), "{audit:?}");
    }

    #[test]
    fn the_kernel_states_the_rate_of_the_counter_where_it_knows_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (root, proc) = (Root::at(dir.path()), dir.path().join("proc"));
        std::fs::create_dir_all(&proc).unwrap();
        let stated = |text: &str| {
            std::fs::write(proc.join("cpuinfo"), text).unwrap();
            stated_by_kernel(&root)
        };
        let guest = "processor\t: 0\ncpu MHz\t\t: 2300.000\nflags\t\t: fpu tsc nonstop_tsc\n";
        assert_eq!(stated(guest), Some(Stated { hz: 2.3e9, error_hz: 1e3 }));
        assert_eq!(stated(&guest.replace("nonstop_tsc", "aperfmperf")), None);
        assert_eq!(stated(&guest.replace("2300", "x")), None);
        assert_eq!(stated(""), None);
        std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu/cpu0/cpufreq")).unwrap();
        assert_eq!(stated(guest), None);
    }

    proptest! {
        #[test]
        fn the_true_rate_lies_within_the_error(
            ppm in proptest::array::uniform3(-450.0f64..450.0),
            tsc_ppm in -450.0f64..450.0,
            late in proptest::array::uniform3(0..=TOOK_NS),
        ) {
            let audit = compare(&stamps(ppm, 2.3e9 * (1.0 + tsc_ppm * 1e-6), late), TSC).unwrap();
            let [monotonic, raw, realtime] = ppm;
            for (pair, (x, y)) in audit.pairs.iter().zip([(monotonic, raw), (realtime, monotonic), (realtime, raw), (tsc_ppm, raw)]) {
                let drift = pair.drift.clone().ok().unwrap();
                let truth = ((1.0 + x * 1e-6) / (1.0 + y * 1e-6) - 1.0) * 1e6;
                // The synthetic clocks are whole nanoseconds: two more.
                let rounding_ppm = 2.0 / 3e9 * 1e6;
                prop_assert!((drift.ppm - truth).abs() <= drift.error_ppm + rounding_ppm, "{:?} {}", drift, truth);
                prop_assert!(drift.step_ns == 0.0);
            }
        }

        #[test]
        fn no_reading_makes_it_panic(values in proptest::collection::vec(any::<(u64, u64, u64, Option<u64>, u64)>(), 0..8)) {
            let stamps: Vec<Stamp> = values
                .into_iter()
                .map(|(monotonic_ns, raw_ns, realtime_ns, tsc, took_ns)| Stamp { monotonic_ns, raw_ns, realtime_ns, tsc, took_ns: took_ns / 4 })
                .collect();
            let _ = compare(&stamps, TSC);
        }
    }
}
