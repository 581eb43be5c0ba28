//! The effective clock of the SUT: counted by the PMU for its threads, else by its CPUs for themselves, else timed by the probe.

use crate::accounting::raw::readings::Readings;
use crate::accounting::reconcile::cpus::OccupiedCpu;
use std::collections::BTreeMap;
use tare_model::metric::Subject;
use tare_model::metrics::{clock, pmu};
use tare_model::observation::Role;

/// A step of the series with less run than this is too short for a clock.
const CLOCK_STEP_NS_MIN: f64 = 2e7;

/// Samples of the best source there is.
pub(super) fn clocks_hz(
    readings: &Readings,
    sut_cpus: &[u32],
    cpus: &BTreeMap<u32, OccupiedCpu>,
) -> Vec<f64> {
    // Counted is better than timed.
    let counted = [of_threads_hz(readings), of_cpus_hz(readings, sut_cpus)];
    counted.into_iter().find(|clocks| !clocks.is_empty()).unwrap_or_else(|| probed_hz(readings, cpus))
}

/// Clock of a thread's cycles over its run, step by step: of all threads of the SUT that were counted.
fn of_threads_hz(readings: &Readings) -> Vec<f64> {
    let mut clocks = Vec::new();
    for (index, _) in readings.observation.tasks_of(Role::Sut) {
        let subject = Subject::Task(index);
        let cycles = readings.samples(&pmu::CYCLES, &subject);
        let running = readings.samples(&pmu::CORE_RUNNING_NS, &subject);
        let mut steps = cycles.iter().zip(&running);
        let Some(mut from) = steps.next() else { continue };
        for to in steps {
            let ran_ns = to.1.value - from.1.value;
            if ran_ns >= CLOCK_STEP_NS_MIN {
                clocks.push((to.0.value - from.0.value) / ran_ns * 1e9);
                from = to;
            }
        }
    }
    clocks
}

/// Clock of CPUs by APERF and MPERF, step by step: the fixed clock × the ratio of the two.
fn of_cpus_hz(readings: &Readings, cpus: &[u32]) -> Vec<f64> {
    let mut clocks = Vec::new();
    for cpu in cpus {
        let of = |metric| readings.samples(metric, &Subject::Cpu(*cpu));
        let (aperf, mperf, tsc) = (of(&clock::APERF), of(&clock::MPERF), of(&clock::TSC));
        let all: Vec<_> = aperf.iter().zip(&mperf).zip(&tsc).collect();
        for step in all.windows(2) {
            let [((a0, m0), t0), ((a1, m1), t1)] = step else { continue };
            let seconds = t1.at_ns.saturating_sub(t0.at_ns) as f64 / 1e9;
            let (aperf, mperf, tsc) = (a1.value - a0.value, m1.value - m0.value, t1.value - t0.value);
            // A CPU that hardly ran has no clock to speak of.
            if seconds > 0.0 && aperf > 0.0 && tsc > 0.0 && mperf > 0.01 * tsc {
                clocks.push(aperf / mperf * tsc / seconds);
            }
        }
    }
    clocks
}

/// Clock samples of the CPUs that the SUT used; of all CPUs where it used none that was sampled.
fn probed_hz(readings: &Readings, cpus: &BTreeMap<u32, OccupiedCpu>) -> Vec<f64> {
    let mut used = Vec::new();
    let mut all = Vec::new();
    let columns = readings.observation.columns.iter();
    for column in columns.filter(|column| column.metric == clock::EFFECTIVE_HZ.id) {
        let values = readings.samples(&clock::EFFECTIVE_HZ, &column.subject);
        // Slower than 1 MHz is a failed sample, not a clock.
        let values = values.into_iter().map(|sample| sample.value).filter(|hz| (1e6..1e11).contains(hz));
        let Subject::Cpu(cpu) = column.subject else { continue };
        let sut_ran = cpus.get(&cpu).is_some_and(|cpu| cpu.ran_s.sut > 0.01 * cpu.times.wall_s);
        if sut_ran { &mut used } else { &mut all }.extend(values);
    }
    if used.is_empty() { all } else { used }
}
