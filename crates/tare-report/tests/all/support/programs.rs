//! Results of programs instead of servers.

use super::*;

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
