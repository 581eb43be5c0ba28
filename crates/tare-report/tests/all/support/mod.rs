//! Records and outcomes as runs would have produced them.

mod details;
mod records;
pub mod scramble;

pub use records::{machine, record};

use details::{against, timeline, traced, with_pmu, without_pmu, workload_of};
use records::{plan, regime};
use std::collections::BTreeMap;
use tare_model::observation::Role;
use tare_model::outcome::*;
use tare_model::plan::{StartUp, Sut};
use tare_model::{Missing, Reading, Record};

fn thread(pid: u32, name: &str, run: f64, wait: f64, switches: [f64; 2], cpu: u32) -> ThreadRow {
    ThreadRow {
        lived: 1.0,
        role: Role::Sut,
        pid,
        tid: pid,
        name: name.into(),
        user: run * 0.29,
        system: run * 0.71,
        run,
        wait,
        voluntary_hz: switches[0],
        involuntary_hz: switches[1],
        cpus: vec![cpu],
    }
}

/// The same threads, of the generator or of tare.
fn works_for(role: Role, threads: Vec<ThreadRow>) -> Vec<ThreadRow> {
    threads.into_iter().map(|thread| ThreadRow { role, ..thread }).collect()
}

fn role(threads: &[ThreadRow], losses: &[(&str, f64)]) -> RoleAccounting {
    let wall_s = 6.0 * threads.len() as f64;
    let busy_cpus: f64 = threads.iter().map(|thread| thread.run).sum();
    let wait_s: f64 = threads.iter().map(|thread| thread.wait * 6.0).sum();
    let throttled =
        losses.iter().find(|(cause, _)| *cause == "throttled").map_or(0.0, |(_, cpus)| cpus * 6.0);
    let blocked_s = BTreeMap::from([("event".into(), (wall_s - busy_cpus * 6.0 - wait_s).max(0.0))]);
    RoleAccounting {
        wall_s,
        run_s: busy_cpus * 6.0,
        sut_wakeups_hz: None,
        wait_s: WaitSplit {
            throttled,
            preempted: 0.0,
            self_contention: 0.0,
            scheduler: (wait_s - throttled).max(0.0),
        },
        idle_threads: 0,
        serving: ServingAccounting { threads: threads.len(), wall_s, blocked_s: blocked_s.clone() },
        blocked_s,
        busy_cpus,
        entitled_cpus: 1.0,
        losses_cpus: losses.iter().map(|(cause, cpus)| (cause.to_string(), *cpus)).collect(),
        execution: None,
    }
}

fn cpu(cpu: u32, sut: f64, load: f64, throttled: f64) -> CpuAccounting {
    let (tare, others, irq) = (0.001, 0.002, 0.001);
    CpuAccounting {
        cpu,
        sut,
        downstream: 0.0,
        load,
        tare,
        others,
        throttled,
        steal: 0.0,
        irq,
        irq_error: (cpu == 1).then_some(0.013),
        idle: 1.0 - sut - load - throttled - tare - others - irq,
        share: ModeShare {
            user: (sut + load) * 0.27,
            system: (sut + load) * 0.43,
            softirq: (sut + load) * 0.3,
        },
    }
}

fn part(cause: TareCause, ln_share: f64) -> TarePart {
    TarePart { cause, ln_share, ci95: Some([ln_share - 0.004, ln_share + 0.004]) }
}

fn net(value: f64) -> NetOrMissing {
    NetOrMissing::Net(Net {
        value,
        unit: "req/s".into(),
        ci95: Some([value * 0.985, value * 1.015]),
        transport: "loopback".into(),
        cpus: 1.0,
        ref_clock_hz: Some(2.9e9),
        against_reference: None,
    })
}

fn rate(value: f64) -> Estimate {
    Estimate { value, unit: "req/s".into(), ci95: Some([value * 0.988, value * 1.012]) }
}

fn evidence(name: &str, value: f64, unit: &str) -> Evidence {
    Evidence { name: name.into(), value, unit: unit.into() }
}

/// nginx on its CPU nearly all of the time.
pub fn server_bound() -> Outcome {
    let gross = 178_412.0;
    let parts = vec![
        part(TareCause::NoWork, 0.0121),
        part(TareCause::Cost, 0.0093),
        part(TareCause::Clock, 0.0041),
        part(TareCause::Preempted, 0.0006),
        part(TareCause::Irq, 0.0004),
        part(TareCause::Steal, 0.0),
    ];
    let total: f64 = parts.iter().map(|part| part.ln_share).sum();
    let trial = |seq: u32, level: &str, connections, value| TrialSummary {
        seq,
        level: level.into(),
        stage: None,
        connections: Some(connections),
        elapsed_s: 2.0,
        value: Some(value),
        sut_cpu_ns: Some(5480.0),
        clock_hz: Some(2.89e9),
        transfer_ns: Some(22.0),
        residual_ratio: Some(0.0031),
        residual_of: Some("cpu 0".into()),
    };
    let sut = vec![thread(4711, "nginx", 0.978, 0.004, [12.0, 103.0], 0)];
    let load = works_for(Role::Load, vec![thread(4800, "tare-load", 0.812, 0.001, [2410.0, 31.0], 1)]);
    let tare = works_for(Role::Tare, vec![thread(4799, "tare", 0.002, 0.0, [20.0, 1.0], 1)]);
    Outcome {
        verdict: Verdict {
            valid: true,
            warnings: Vec::new(),
            bottleneck: Cause::ServerCpuBound,
            bottleneck_confidence: Some(0.99),
            findings: vec![Finding {
                cause: Cause::ServerCpuBound,
                title: "The server's CPU is the bottleneck".into(),
                summary: "nginx ran 98 % of the time on the one CPU that it may use.".into(),
                effect_ln: 0.0,
                confidence: 0.99,
                evidence: vec![
                    evidence("busy of its CPU", 98.0, "%"),
                    evidence("CPU of a request", 5480.0, "ns"),
                ],
                remedy: "give nginx a second worker and a second CPU, or make a request use less CPU".into(),
                confirm: "with two workers on two CPUs the rate nearly doubles".into(),
            }],
            confirmation: None,
        },
        figures: Figures {
            gross: Gross::Measured(rate(gross)),
            gross_is: GrossIs::Capacity,
            stopping: None,
            net: net(gross * total.exp()),
            tare: parts,
            ceiling: tare_model::Reading::default(),
            metrics: Vec::new(),
        },
        answers: Answers {
            requests: Some(Requests {
                count: Some(1_070_472),
                errors: ["connect", "io", "timeout", "status", "malformed"]
                    .map(|kind| (kind.into(), 0))
                    .into(),
                error_reasons: BTreeMap::new(),
                cpu_ns_per_request: PerRole { sut: Some(5480.0), load: Some(4550.0) },
                switches_per_request: SwitchesPerRequest {
                    voluntary: Some(0.00007),
                    involuntary: Some(0.0006),
                },
                sut_wakeups_per_request: Reading::Measured(SutWakeups { sut: 0.0 }),
            }),
            latency_ns: Some(LatencySummary {
                p50: Some(360e3),
                p90: Some(420e3),
                p99: Some(900e3),
                p99_9: Some(2.4e6),
                max: Some(9.1e6),
                mean: Some(371e3),
                stdev: Some(112e3),
                ..LatencySummary::default()
            }),
            ..Answers::default()
        },
        over_time: OverTime {
            spikes: tare_model::Reading::missing("no slices"),
            timeline: Some(timeline(gross)),
        },
        conditions: Conditions { tried_layouts: Vec::new(), own_cost: None, machine: machine() },
        schema: SCHEMA,
        workload: "http".into(),
        accounting: TimeAccounting {
            residual_ratio: Some(0.0031),
            residuals: BTreeMap::from([("cpu 0".into(), 0.0031)]),
            regime: regime(),
            sut: Some(RoleAccounting {
                execution: Some(without_pmu(15_800.0)),
                ..role(&sut, &[("no-work", 0.012)])
            }),
            load: Some(role(&load, &[])),
            tare: Some(role(&tare, &[])),
            threads: [sut, load, tare].concat(),
            cpus: vec![cpu(0, 0.978, 0.0, 0.0), cpu(1, 0.0, 0.812, 0.0)],
            switches: None,
            downstream: Vec::new(),
        },
        trials: vec![
            trial(0, "asked", 64, 178_100.0),
            trial(1, "saturating", 256, 179_900.0),
            trial(2, "asked", 64, 178_700.0),
            trial(3, "asked", 64, 178_430.0),
        ],
    }
}

/// The same nginx under a quota of 30 %.
/// A quota that runs out now and then.
fn spikes() -> Spikes {
    let is_spike: Vec<bool> = (0..20).map(|at| at % 7 == 3).collect();
    let of =
        |high: f64, low: f64| is_spike.iter().map(|is| if *is { high } else { low }).collect::<Vec<f64>>();
    Spikes {
        slices: 60,
        spikes: 9,
        p99_median_ns: Some(1.1e6),
        largest: vec![Spike { trial: 1, at_s: 0.3, length_s: 0.1, p99_ns: Some(71.3e6) }],
        series: 83,
        series_left_out: 0,
        moved: Reading::Measured(vec![Moved {
            series: "group /demo: held back by a quota".into(),
            metric: "groups.throttled_ns".into(),
            unit: "s/s".into(),
            in_spikes: 0.7,
            in_quiet: 0.0,
            spikes_with: 1.0,
            quiet_with: 0.04,
            chance: 0.001,
        }]),
        throttle_bursts: Reading::Measured(ThrottleBursts { slices: 14, with_spike: 9 }),
        timeline: Some(SpikeTimeline {
            trial: 1,
            ends_s: (1..=20).map(|at| f64::from(at) / 10.0).collect(),
            p99_ns: of(71.3e6, 1.1e6).into_iter().map(Some).collect(),
            series: Some("group /demo: held back by a quota".into()),
            unit: "s/s".into(),
            values: of(0.7, 0.0),
            is_spike,
        }),
    }
}

pub fn throttled() -> Outcome {
    let ours = vec![thread(4711, "nginx", 0.301, 0.67, [4.0, 10.0], 0)];
    let sut = role(&ours, &[("throttled", 0.668), ("no-work", 0.02)]);
    let usual = server_bound().accounting;
    let others = usual.threads.iter().filter(|thread| thread.role != Role::Sut).cloned();
    let parts = vec![part(TareCause::Throttled, 1.148), part(TareCause::NoWork, 0.035)];
    let accounting = TimeAccounting {
        sut: Some(sut),
        threads: ours.into_iter().chain(others).collect(),
        cpus: vec![cpu(0, 0.301, 0.0, 0.668), cpu(1, 0.0, 0.25, 0.0)],
        ..usual
    };
    let finding = Finding {
        cause: Cause::CpuQuotaThrottled,
        title: "A CPU quota is the bottleneck".into(),
        summary: "The quota of /demo (30 ms of every 100 ms) held nginx back for 66.8 % of the time.".into(),
        effect_ln: 1.148,
        confidence: 1.0,
        evidence: vec![
            evidence("throttled", 4.008, "s"),
            evidence("periods throttled", 60.0, "of 60"),
            evidence("quota", 0.3, "CPUs"),
        ],
        remedy: "raise cpu.cfs_quota_us of /demo, or take it away with -1; a quota below the need of the server costs more than its share because every request that is caught waits for the next period".into(),
        confirm: "measure it again with the quota at 100 %: about 178k req/s are expected".into(),
    };
    let note = Finding {
        cause: Cause::ServerCpuBound,
        title: "The server's CPU is the bottleneck".into(),
        summary: "When it was let, nginx ran without a pause.".into(),
        effect_ln: 0.0,
        confidence: 0.8,
        evidence: Vec::new(),
        remedy: String::new(),
        confirm: String::new(),
    };
    {
        let base = server_bound();
        Outcome {
            verdict: Verdict {
                confirmation: None,
                bottleneck: Cause::CpuQuotaThrottled,
                findings: vec![finding, note],
                ..base.verdict
            },
            figures: Figures {
                gross: Gross::Measured(rate(54_300.0)),
                net: net(54_300.0 * 1.183f64.exp()),
                tare: parts,
                ..base.figures
            },
            over_time: OverTime { spikes: Reading::Measured(spikes()), ..base.over_time },
            conditions: Conditions {
                tried_layouts: Vec::new(),
                own_cost: Some(OwnCost {
                    observers_cpus: Reading::Measured(0.0061),
                    observers_ran_on: vec![1],
                    observers_on_sut_cpus: Reading::Measured(0.0007),
                    generator_cpus: Some(0.25),
                    generator_ran_on: vec![1],
                    recorded_bytes_hz: 14_300.0,
                }),
                ..base.conditions
            },
            accounting,
            ..base
        }
    }
}

/// A generator of many threads on one CPU that gives out first.
pub fn generator_bound() -> Outcome {
    let load: Vec<ThreadRow> =
        (0..16).map(|at| thread(4800 + at, "wrk", 0.0624, 0.93, [3.1, 14.9], 1)).collect();
    let load = works_for(Role::Load, load);
    let ours = vec![thread(4711, "nginx", 0.71, 0.01, [9410.0, 18.0], 0)];
    let mut sut = role(&ours, &[("no-work", 0.28)]);
    let tare = works_for(Role::Tare, vec![thread(4799, "tare", 0.002, 0.0, [20.0, 1.0], 1)]);
    sut.execution = Some(with_pmu(15_900.0));
    let switches = Some(traced());
    {
        let base = server_bound();
        Outcome {
            verdict: Verdict {
                bottleneck: Cause::LoadGeneratorBound,
                warnings: vec![Warning {
                    id: "gross-is-a-lower-bound".into(),
                    text: "the load generator was busy all the time, so the server may be able to do more"
                        .into(),
                    hint: "give the generator more CPUs (--load-cpus) or fewer threads (-t)".into(),
                }],
                findings: vec![Finding {
                    cause: Cause::Oversubscribed,
                    title: "More threads than CPUs are the bottleneck".into(),
                    summary: "16 threads of wrk share one CPU: each waits 15 slices of 4 ms for its turn."
                        .into(),
                    effect_ln: 0.0,
                    confidence: 0.95,
                    evidence: vec![evidence("involuntary switches of wrk/4801", 14.9, "/s")],
                    remedy: "run wrk with -t1".into(),
                    confirm: String::new(),
                }],
                ..base.verdict
            },
            figures: Figures {
                gross: Gross::Measured(rate(129_000.0)),
                gross_is: GrossIs::LowerBound,
                tare: vec![part(TareCause::NoWork, 0.337), part(TareCause::Clock, -0.0212)],
                ceiling: tare_model::Reading::default(),
                net: net(129_000.0 * 0.3158f64.exp()),
                ..base.figures
            },
            accounting: TimeAccounting {
                sut: Some(sut),
                load: Some(role(&load, &[])),
                threads: [ours, load, tare].concat(),
                switches,
                ..server_bound().accounting
            },
            ..base
        }
    }
}

/// Every answer is a 404.
pub fn errors() -> Outcome {
    let mut outcome = server_bound();
    if let Some(requests) = &mut outcome.answers.requests {
        requests.errors.insert("status".into(), 1_070_472);
    }
    Outcome {
        verdict: Verdict {
            valid: false,
            bottleneck: Cause::Errors,
            findings: vec![Finding {
                cause: Cause::Errors,
                title: "Errors are being measured, not the server".into(),
                summary: "100 % of the answers had status 404.".into(),
                effect_ln: 0.0,
                confidence: 1.0,
                evidence: Vec::new(),
                remedy: "correct the path".into(),
                confirm: "curl -i http://127.0.0.1:8080/absent".into(),
            }],
            ..outcome.verdict
        },
        figures: Figures {
            net: NetOrMissing::Missing(Missing::with_remedy(
                "the answers are errors",
                "give a URL that the server answers with a status below 400",
            )),
            ..outcome.figures
        },
        ..outcome
    }
}

/// A server that this host cannot look into.
pub fn unseen() -> (Record, Outcome) {
    let why = "another host (10.0.0.7) holds the server's sockets".to_string();
    let outcome = server_bound();
    let others: Vec<ThreadRow> =
        outcome.accounting.threads.iter().filter(|thread| thread.role != Role::Sut).cloned().collect();
    let outcome = Outcome {
        verdict: Verdict {
            bottleneck: Cause::Unknown,
            bottleneck_confidence: None,
            findings: Vec::new(),
            warnings: vec![Warning {
                id: "sut-unseen".into(),
                text: why.clone(),
                hint: "run tare on that host".into(),
            }],
            ..outcome.verdict
        },
        figures: Figures {
            net: NetOrMissing::Missing(Missing::new("the server's CPUs cannot be seen from here")),
            tare: Vec::new(),
            ceiling: tare_model::Reading::default(),
            ..outcome.figures
        },
        answers: Answers {
            latency_ns: Some(LatencySummary {
                p50: Some(1.1e6),
                p99: Some(4e6),
                ..LatencySummary::default()
            }),
            ..outcome.answers
        },
        accounting: TimeAccounting { sut: None, residual_ratio: None, threads: others, ..outcome.accounting },
        ..outcome
    };
    (Record { plan: plan(Sut::Unseen { why }), ..record() }, outcome)
}

/// Two programs, run ten times each.
pub fn commands() -> (Record, Outcome) {
    let named = ["sort -u words.txt", "awk '!seen[$0]++' words.txt, \"all\" | wc -l"];
    let summary = |command: &str, mean: f64, failed: bool| CommandSummary {
        command: command.into(),
        gross: Estimate { value: mean, unit: "s".into(), ci95: Some([mean * 0.98, mean * 1.02]) },
        stopping: None,
        net: NetOrMissing::Net(Net {
            value: mean * 0.93,
            unit: "s".into(),
            ci95: None,
            transport: "none".into(),
            cpus: 1.0,
            ref_clock_hz: None,
            against_reference: None,
        }),
        stdev_s: Some(mean * 0.03),
        median_s: mean * 0.99,
        min_s: mean * 0.95,
        max_s: mean * 1.08,
        user_s: mean * 0.8,
        system_s: mean * 0.1,
        runs: 10,
        times_s: (0..10).map(|run| mean * (0.96 + 0.01 * f64::from(run * 7 % 10))).collect(),
        exit_codes: vec![if failed { Some(1) } else { Some(0) }; 10],
        against_fastest: against(failed),
        start_up: Some(StartUp { program: "sh -c ''".into(), median_s: 0.0009, runs: 21 }),
    };
    let outcome = server_bound();
    let outcome = Outcome {
        verdict: Verdict { bottleneck: Cause::ProgramCpuBound, findings: Vec::new(), ..outcome.verdict },
        figures: Figures {
            gross: Gross::Measured(Estimate { value: 0.412, unit: "s".into(), ci95: Some([0.404, 0.42]) }),
            net: NetOrMissing::Missing(Missing::new("several commands have no common weight")),
            tare: Vec::new(),
            ceiling: tare_model::Reading::default(),
            ..outcome.figures
        },
        answers: Answers {
            commands: vec![summary(named[0], 0.412, false), summary(named[1], 0.1873, true)],
            ..Answers::default()
        },
        over_time: OverTime { timeline: None, ..outcome.over_time },
        workload: "command".into(),
        accounting: TimeAccounting {
            load: None,
            sut: None,
            tare: None,
            threads: Vec::new(),
            cpus: Vec::new(),
            ..outcome.accounting
        },
        trials: (0..20)
            .map(|seq| TrialSummary {
                level: "run".into(),
                connections: None,
                elapsed_s: 0.3,
                value: Some(0.3),
                seq,
                ..outcome.trials[0].clone()
            })
            .collect(),
        ..outcome
    };
    let mut record = record();
    record.trials.clear();
    record.plan.workload = workload_of(named);
    (record, outcome)
}

/// One program with a weight of its own.
pub fn one_command() -> (Record, Outcome) {
    let (record, outcome) = commands();
    let mut first = outcome.answers.commands[0].clone();
    first.against_fastest = None;
    let parts = vec![part(TareCause::Preempted, 0.05), part(TareCause::Clock, 0.0226)];
    if let NetOrMissing::Net(net) = &mut first.net {
        net.value = first.gross.value * (-0.0726f64).exp();
        net.ref_clock_hz = Some(2.9e9);
    }
    let outcome = Outcome {
        figures: Figures { net: first.net.clone(), tare: parts, ..outcome.figures },
        answers: Answers { commands: vec![first], ..outcome.answers },
        trials: outcome.trials[..10].to_vec(),
        ..outcome
    };
    (record, outcome)
}

/// A run that was stopped before its first trial ended.
pub fn empty() -> (Record, Outcome) {
    let (mut record, outcome) = unseen();
    record.trials.clear();
    let outcome = Outcome {
        verdict: Verdict { valid: false, warnings: Vec::new(), ..outcome.verdict },
        figures: Figures {
            gross: Gross::Missing { reason: Missing::new("no trial was finished"), unit: "req/s".into() },
            ..outcome.figures
        },
        answers: Answers { requests: None, latency_ns: None, ..outcome.answers },
        trials: Vec::new(),
        accounting: TimeAccounting {
            load: None,
            tare: None,
            threads: Vec::new(),
            cpus: Vec::new(),
            ..outcome.accounting
        },
        ..outcome
    };
    (record, outcome)
}

/// Every outcome with its record, by name.
pub fn all() -> Vec<(&'static str, Record, Outcome)> {
    let http = |name, outcome| (name, record(), outcome);
    let pair = |name, (record, outcome)| (name, record, outcome);
    vec![
        http("server-bound", server_bound()),
        http("throttled", throttled()),
        http("generator-bound", generator_bound()),
        http("errors", errors()),
        pair("unseen", unseen()),
        pair("commands", commands()),
        pair("one-command", one_command()),
        pair("empty", empty()),
    ]
}
