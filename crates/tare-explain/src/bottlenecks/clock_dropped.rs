//! `clock-dropped`: the CPUs ran below the clock they are known to reach in this record.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number_if};
use crate::bottlenecks::input::Input;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// Below this the median's distance from the 95th percentile is the probe's own spread.
const NOTICE_LN: f64 = 0.05;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ClockDropped,
    title: "The clock is the bottleneck",
    scope: Scope::Any,
    needs: &[Input::Clock, Input::Net],
    gross_is: GrossIs::Capacity,
    holds: |_| None,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "the clock is not changed under a run",
        instead: "hold it with 'tare tune --apply', and run again",
    },
    injections: &[],
    page: &PAGE,
};

fn applies(accounting: &Accounting) -> bool {
    accounting.effect(TareCause::Clock) >= NOTICE_LN
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let clock_hz = pool.clock_hz();
    let reference_hz =
        accounting.net_estimate.as_ref().ok().and_then(|net_estimate| net_estimate.reference_hz);
    let ghz = |hz: Option<f64>| hz.map_or("unknown".to_owned(), |hz| format!("{:.2} GHz", hz / 1e9));
    let mut evidence = Vec::new();
    evidence.extend(number_if("effective clock", clock_hz, "Hz"));
    evidence.extend(number_if("reference clock", reference_hz, "Hz"));
    evidence.extend(number_if("samples", Some(pool.hardware.clocks_hz.len() as f64), "count"));
    let threshold = reference_hz.map_or(0.0, |hz| hz * (-NOTICE_LN).exp());
    Draft {
        summary: format!("The CPUs ran at {} where the reference is {}.", ghz(clock_hz), ghz(reference_hz)),
        effect_ln: accounting.effect(TareCause::Clock),
        confidence: 1.0 - accounting.support(crate::accounting::Closed::clock_hz, threshold),
        evidence,
        remedy:
            "hold the clock (governor, power profile, cooling); under a hypervisor that is the host's to do"
                .to_owned(),
        confirm: "with the clock held the part is gone and the cost in cycles stays".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The CPUs ran below the clock that they are known to reach.",
    means: &[
        "The median effective clock of the program's CPUs was 5 % or more below the reference: \
         `--ref-clock`, else the 95th percentile of this record. The same request takes the same cycles, \
         and more time.",
        "Heat, power limits, other cores that are awake, AVX code and a slow governor lower the clock. Net \
         is stated at the reference clock.",
    ],
    evidence: &[
        "Effective clock and reference clock in Hz, and how many samples there are.",
        "Without hardware counters the clock is measured by a chain of dependent multiplications, at most \
         twice a second on a CPU that the program uses.",
    ],
    looks_the_same: &[
        "`steal`: the probe runs for less of the time. Short samples and their median tell the two apart.",
        "`cold-caches`: the clock stays, and an instruction takes more cycles.",
        "A sibling hardware thread at work makes the probe look slower, too. See `placement-conflict`.",
    ],
    to_do: &[
        "Hold the clock: `tare tune --apply --governor performance --boost off`, or a fixed one: `tare tune \
         --apply --min-frequency 2.4GHz --max-frequency 2.4GHz`.",
        "Look for heat and power limits: `turbostat`, `cpupower frequency-info`, `dmesg | grep -i throttl`.",
        "In a virtual machine the host holds the clock. Compare interleaved there: `tare compare`.",
    ],
    to_confirm: &[
        "There is no intervention: the clock is not changed under a run. Hold it with `tare tune --apply`, \
         and run again. The part is gone, and the cycles per request stay.",
        "By hand: `perf stat -e cycles,task-clock -p PID -- sleep 5` prints the effective GHz where the CPU \
         has counters.",
    ],
    source: &[
        "The clock probe, or cycles divided by run time from the PMU; checked against APERF and MPERF. \
         Intel Software Developer's Manual, volume 3, Power and Thermal Management.",
    ],
};
