//! What is there of a traced session, and of one with a PMU or without.

use std::collections::BTreeMap;
use tare_model::outcome::{
    AgainstFastest, Contrast, CyclesFrom, Execution, Hypothesis, Judged, LatencyFall, Stage, Standing, State,
    Timeline, WarmUpTimeline,
};
use tare_model::schedule::{
    HolderShare, LockShare, Preemptor, ProgramLockShare, Quantiles, ScheduleSource, SwitchAccounting,
    WakerRates,
};
use tare_model::{Missing, Reading, observation::Role};

/// Cycles from the clock.
pub(super) fn without_pmu(cycles: f64) -> Execution {
    let missing = || {
        Reading::Missing(Missing::with_remedy(
            "this VM exposes no PMU",
            "measure on metal, or expose it (vPMU)",
        ))
    };
    Execution {
        ipc: missing(),
        instructions_per_request: missing(),
        cycles_per_request: Reading::Measured(cycles),
        cycles_from: CyclesFrom::Clock,
        on_pmu: None,
        events_per_request: BTreeMap::new(),
    }
}

/// Everything counted, the events interleaved.
pub(super) fn with_pmu(cycles: f64) -> Execution {
    Execution {
        ipc: Reading::Measured(1.32),
        instructions_per_request: Reading::Measured(1.32 * cycles),
        cycles_per_request: Reading::Measured(cycles),
        cycles_from: CyclesFrom::Pmu,
        on_pmu: Some(0.25),
        events_per_request: BTreeMap::from([("llc_misses".into(), 7.3), ("branch_misses".into(), 41.0)]),
    }
}

/// Waits of 2 µs to 8 ms, most of them short.
fn waits() -> Quantiles {
    let mut powers = vec![0.0; 11];
    powers.extend([12.0, 9800.0, 31_200.0, 9400.0, 3100.0, 640.0, 120.0, 0.0, 18.0, 7.0, 3.0, 2.0]);
    Quantiles { count: 54_302.0, p50: 16_384.0, p90: 32_768.0, p99: 65_536.0, max: 8_388_608.0, powers }
}

pub(super) fn traced() -> SwitchAccounting {
    let judged =
        |hypothesis, standing, figure, [refuted_below, supported_from]: [f64; 2], unit: &str| Judged {
            hypothesis,
            standing,
            of: "what it is of".into(),
            unit: unit.into(),
            figure,
            supported_from,
            refuted_below,
        };
    SwitchAccounting {
        blocked_source: Some(ScheduleSource::Tracepoints),
        not_traced: None,
        sampled_share: 0.0,
        events_lost: 0,
        preempted_by: vec![Preemptor {
            name: "neighbour".into(),
            pid: 99,
            role: Role::Other,
            share: 1.0,
            wait_s: 0.31,
        }],
        run_queue_ns: Some(waits()),
        wake_up_ns: Some(waits()),
        unseen_wake_share: None,
        migrations_hz: Some(1.69),
        woken_hz: Some(WakerRates {
            sut: 0.0,
            load: 9410.0,
            interrupt: 226.0,
            other: 0.0,
            cross_cpu: 9502.0,
        }),
        locks: vec![ProgramLockShare {
            at: "cache_lock in /srv/app".into(),
            contended_hz: 4012.0,
            share: 0.31,
            held_ns: Some(212_000.0),
            holders: vec![HolderShare { name: "worker-3".into(), tid: 1203, share: 0.84 }],
        }],
        kernel_locks: vec![LockShare {
            at: "lock_sock_nested".into(),
            spins: true,
            in_interrupt: false,
            locks: 3,
            contended_hz: 812.0,
            share: 0.021,
        }],
        downstream: Vec::new(),
        hypotheses: vec![
            judged(
                Hypothesis::SocketLock,
                Standing::Supported,
                Reading::Measured(0.021),
                [0.003, 0.015],
                "share",
            ),
            judged(
                Hypothesis::SoftirqOnBusyCpus,
                Standing::NotVisibleHere,
                Reading::missing("the modes of its CPUs were not read"),
                [0.03, 0.15],
                "share",
            ),
            judged(
                Hypothesis::CrossCpuWakeups,
                Standing::Refuted,
                Reading::Measured(0.012),
                [0.05, 0.3],
                "count",
            ),
        ],
    }
}

/// Of a command that is not the fastest.
pub fn against(is_fastest: bool) -> Option<AgainstFastest> {
    let contrast = |ratio: f64, distinguishable| Contrast {
        ratio,
        interval: Some([ratio * 0.96, ratio * 1.04]),
        distinguishable,
        smallest_detectable: Some(0.04),
    };
    (!is_fastest)
        .then(|| AgainstFastest { wall_time: contrast(2.2, true), cpu_time: Some(contrast(1.01, false)) })
}

/// Programs in a shell, each after three runs.
pub fn workload_of(named: [&str; 2]) -> tare_model::plan::Workload {
    tare_model::plan::Workload::Command(tare_model::plan::CommandWorkload {
        commands: named.map(String::from).to_vec(),
        runs: 10,
        warmup: 3,
        shell: Some("/bin/sh".into()),
        interleaved: false,
        start_up: None,
    })
}

/// A clock that sank, on a server that was compiled while it ran.
pub(super) fn timeline(typical_hz: f64) -> Timeline {
    let stage = |share: f64, clock_hz| Stage {
        rate_hz: share * typical_hz,
        clock_hz: Some(clock_hz),
        interference: Some(1.0),
    };
    Timeline {
        warm_up: Some(WarmUpTimeline {
            length_s: 4.25,
            steady_from_s: Some(0.85),
            growth: Some(2.31),
            compiled: None,
            latency_fall: Some(LatencyFall { from_s: 1.2, times: 3.1 }),
        }),
        slices: 60,
        state: Some(State::Drifting),
        floor: stage(0.83, 2.31e9),
        typical: stage(1.0, 2.89e9),
        burst: stage(1.04, 2.91e9),
    }
}
