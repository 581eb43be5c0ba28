//! How late a sleeping thread wakes up, measured as `cyclictest` does: sleep until a given time on the monotonic
//! clock, read that clock on waking, take the difference; again one interval later.

use super::place::on_cpu;
use std::fs::File;
use std::io::Write;
use tare_model::probes::{Durations, Lateness, Policy, Wakeup, WakeupSetting};
use tare_model::{Missing, Reading};
use tare_sys::time::{monotonic_ns, sleep_until_ns};
use tare_sys::{sched, slack};

/// The interval that `cyclictest` has unless set otherwise.
pub const INTERVAL_NS: u64 = 1_000_000;
/// Wake-ups that are kept, at most.
const SAMPLES_MAX: usize = 1 << 20;

/// Sleeps and wakes on `cpu` for `duration_ns`. A setting that is not permitted is missing in the result.
pub fn run(cpu: u32, setting: WakeupSetting, interval_ns: u64, duration_ns: u64) -> Wakeup {
    let late = on_cpu(cpu, duration_ns, move || {
        // The kernel takes the request back when the file is closed.
        let _idle_held = setting.idle_held.then(hold_idle).transpose()?;
        apply(setting)?;
        summary(measure(interval_ns.max(1), duration_ns))
    });
    Wakeup { cpu, setting, interval_ns, late: late.into() }
}

/// Forbids idle states with an exit latency for as long as the file is open (the kernel's PM QoS interface).
fn hold_idle() -> Result<File, Missing> {
    const PATH: &str = "/dev/cpu_dma_latency";
    let open = || {
        let mut file = File::options().write(true).open(PATH)?;
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(file)
    };
    open().map_err(|error: std::io::Error| {
        Missing::with_remedy(format!("idle states cannot be held off ({PATH}: {error})"), "run tare as root")
    })
}

fn apply(setting: WakeupSetting) -> Result<(), Missing> {
    // A larger slack than a filter of the kernel can name is as good as the largest.
    let slack_ns = u32::try_from(setting.slack_ns).unwrap_or(u32::MAX);
    slack::set_timer_slack_ns(slack_ns)
        .map_err(|error| Missing::new(format!("the timer slack cannot be set: {error}")))?;
    match setting.policy {
        Policy::Other => sched::set_other().map_err(|error| Missing::new(format!("SCHED_OTHER: {error}"))),
        Policy::Fifo(priority) => sched::set_fifo(priority).map_err(|error| {
            Missing::with_remedy(
                format!("real-time priority {priority} is not to be had: {error}"),
                "run tare as root, or raise RLIMIT_RTPRIO; in a control group of version 1, give it cpu.rt_runtime_us",
            )
        }),
    }
}

/// How late each wake-up was, and how many had to be left out.
fn measure(interval_ns: u64, duration_ns: u64) -> (Vec<f64>, u32) {
    let wanted = usize::try_from(duration_ns / interval_ns).unwrap_or(SAMPLES_MAX).clamp(1, SAMPLES_MAX);
    let mut late_ns = Vec::with_capacity(wanted);
    let mut overruns = 0;
    let begin_ns = monotonic_ns();
    let mut next_ns = begin_ns + interval_ns;
    while late_ns.len() < wanted && next_ns - begin_ns <= duration_ns.max(interval_ns) {
        sleep_until_ns(next_ns);
        let now_ns = monotonic_ns();
        if now_ns < next_ns {
            continue; // a signal
        }
        late_ns.push((now_ns - next_ns) as f64);
        let passed = (now_ns - next_ns) / interval_ns;
        overruns += u32::try_from(passed).unwrap_or(u32::MAX);
        next_ns += (passed + 1) * interval_ns;
    }
    (late_ns, overruns)
}

fn summary((mut late_ns, overruns): (Vec<f64>, u32)) -> Result<Lateness, Missing> {
    let latency = Durations::of(&late_ns).ok_or_else(|| Missing::new("no wake-up in the time given"))?;
    late_ns.sort_by(f64::total_cmp);
    let at = |share: f64| late_ns[((late_ns.len() - 1) as f64 * share).round() as usize];
    Ok(Lateness { latency, jitter_ns: (at(0.95) - at(0.05)) / 2.0, overruns })
}

/// One reading for each setting; an empty list makes no sense as a result.
pub(super) fn all(wakeups: Vec<Wakeup>) -> Reading<Vec<Wakeup>> {
    if wakeups.is_empty() { Reading::missing("no setting was asked for") } else { Reading::Measured(wakeups) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_half_the_range_of_nine_in_ten() {
        let late_ns: Vec<f64> = (0..=100).map(f64::from).chain([1e9]).collect();
        let lateness = summary((late_ns, 3)).unwrap();
        assert_eq!((lateness.jitter_ns, lateness.overruns, lateness.latency.max_ns), (45.5, 3, 1e9));
        assert!(summary((Vec::new(), 0)).is_err());
    }

    #[test]
    fn wake_ups_come_after_their_time() {
        let setting = WakeupSetting { policy: Policy::Other, slack_ns: 1, idle_held: false };
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let wakeup = run(cpu, setting, 100_000, 20_000_000);
        let late = wakeup.late.ok().unwrap();
        assert!(late.latency.count >= 1 && late.latency.min_ns > 0.0, "{late:?}");
    }

    #[test]
    fn a_priority_that_cannot_be_is_missing_with_a_remedy() {
        let setting = WakeupSetting { policy: Policy::Fifo(200), slack_ns: 1, idle_held: false };
        let cpu = tare_sys::affinity::get(0).unwrap()[0];
        let missing = run(cpu, setting, INTERVAL_NS, INTERVAL_NS).late.ok().unwrap_err();
        assert!(missing.why.contains("real-time") && !missing.remedy.is_empty());
    }
}
