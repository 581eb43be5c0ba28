use super::confusion::{judge, summary};
use super::injection::Injection;
use super::injections::{INJECTIONS, UNDISTURBED, leaves_net};
use super::itself;
use std::collections::BTreeSet;
use tare_model::calibration::{FINDINGS_MAX, Run, RunResult, SelfResult};
use tare_model::comparison::{self, Change, Comparison, Effect, Figure, Verdict};
use tare_model::outcome::{Cause, Finding, Net, NetOrMissing, Outcome, Warning};

fn named(name: &str) -> &'static Injection {
    INJECTIONS.iter().copied().find(|injection| injection.name == name).unwrap()
}

/// A verdict with this bottleneck and these further findings.
fn verdict(bottleneck: Cause, findings: &[(Cause, f64)]) -> Outcome {
    let finding = |(cause, effect_ln): (Cause, f64)| Finding {
        cause,
        title: String::new(),
        summary: String::new(),
        effect_ln,
        confidence: 1.0,
        evidence: Vec::new(),
        remedy: String::new(),
        confirm: String::new(),
    };
    let record = tare_model::Record {
        machine: tare_machine::facts::survey(
            &tare_machine::Root::live(),
            tare_machine::facts::Reach { company: None, windows: false },
        )
        .machine,
        plan: tare_model::plan::Plan {
            argv: Vec::new(),
            started_unix_s: 0,
            workload: tare_model::plan::Workload::Command(tare_model::plan::CommandWorkload {
                commands: Vec::new(),
                runs: 0,
                warmup: 0,
                shell: None,
                interleaved: false,
                start_up: None,
            }),
            sut_cpus: Vec::new(),
            load_cpus: Vec::new(),
            ref_clock_hz: None,
            stopping: None,
            bounds: tare_model::ceiling::KnownBounds::default(),
        },
        trials: Vec::new(),
        profile: Vec::new(),
        notices: Vec::new(),
        identity: None,
        intervention: None,
    };
    let mut outcome = tare_explain::explain(&record);
    outcome.verdict.bottleneck = bottleneck;
    outcome.verdict.findings = findings.iter().copied().map(finding).collect();
    outcome
}

#[test]
fn either_the_bottleneck_or_the_first_finding_beside_it_counts() {
    let quota = named("quota");
    let judged = |bottleneck, findings: &[_]| judge(quota, false, &verdict(bottleneck, findings));
    let bottleneck =
        judged(Cause::CpuQuotaThrottled, &[(Cause::CpuQuotaThrottled, 1.2), (Cause::Steal, 0.1)]);
    assert!(bottleneck.right && bottleneck.found == Cause::CpuQuotaThrottled);
    assert_eq!(bottleneck.first_finding, None, "a tenth that the host took stands before nothing");
    let own_first = [(Cause::ServerCpuBound, 0.5), (Cause::CpuQuotaThrottled, 0.2), (Cause::Steal, 0.1)];
    let first = judged(Cause::ServerCpuBound, &own_first);
    assert!(first.right && first.found == Cause::CpuQuotaThrottled);
    let noted =
        judged(Cause::ServerCpuBound, &[(Cause::CpuContended, 0.02), (Cause::CpuQuotaThrottled, 0.0)]);
    assert!(noted.right, "a note comes before it");
    let lost = judged(Cause::ServerCpuBound, &[(Cause::CpuContended, 0.04), (Cause::CpuQuotaThrottled, 0.0)]);
    assert!(!lost.right && lost.first_finding == Some(Cause::CpuContended), "what is reported is none");
    assert_eq!(noted.right_as_listed, Some(false), "and stands first in the list");
    let kept: Vec<(Cause, f64)> = noted.findings.iter().map(|one| (one.cause, one.effect_ln)).collect();
    assert_eq!(kept, [(Cause::CpuContended, 0.02), (Cause::CpuQuotaThrottled, 0.0)]);
    assert_eq!(first.right_as_listed, Some(false), "the bottleneck's own stands first");
    assert_eq!(bottleneck.right_as_listed, Some(true));
    let second = judged(Cause::ServerCpuBound, &[(Cause::Steal, 0.5), (Cause::CpuQuotaThrottled, 0.2)]);
    assert!(!second.right && second.found == Cause::ServerCpuBound);
    assert!(second.alarms.is_empty(), "alarms are of undisturbed runs");
}

#[test]
fn an_undisturbed_run_raises_no_alarm() {
    let none = named(UNDISTURBED);
    let judged = |bottleneck, findings: &[_]| judge(none, true, &verdict(bottleneck, findings));
    let same = [(Cause::ServerCpuBound, 0.0), (Cause::CrossCpuWakeups, 0.02)];
    let noted = judged(Cause::ServerCpuBound, &same);
    assert!(noted.right && noted.right_as_listed == Some(false));
    let nothing = judged(Cause::ServerCpuBound, &same[..1]);
    assert_eq!((nothing.right, nothing.right_as_listed), (true, Some(true)));
    let many = [(Cause::ServerCpuBound, 0.0); FINDINGS_MAX + 1];
    assert_eq!(judged(Cause::ServerCpuBound, &many).findings.len(), FINDINGS_MAX);
    // A loss that would limit, a cause that costs nothing but is not there, a bottleneck that is none of the two.
    for (bottleneck, finding) in [
        (Cause::ServerCpuBound, (Cause::Steal, 0.2)),
        (Cause::ServerCpuBound, (Cause::NotSteady, 0.06)),
        (Cause::ServerCpuBound, (Cause::Steal, 0.04)),
        (Cause::CpuContended, (Cause::CpuContended, 0.3)),
    ] {
        let found = judged(bottleneck, &[finding]);
        assert!(!found.right && found.alarms == [finding.0], "{found:?}");
    }
    assert!(!judged(Cause::Unknown, &[]).right);
}

#[test]
fn runs_are_counted() {
    let run = |injection: &str, result| Run {
        injection: injection.into(),
        begin_s: 0.0,
        took_s: 1.0,
        disturbed: Vec::new(),
        result,
    };
    let measured = |name: &str, bottleneck, findings: &[_]| {
        let found = judge(named(name), name == UNDISTURBED, &verdict(bottleneck, findings));
        run(name, RunResult::Measured(found))
    };
    let mut runs: Vec<Run> = (0..38)
        .map(|_| measured("quota", Cause::CpuQuotaThrottled, &[(Cause::CpuQuotaThrottled, 1.0)]))
        .collect();
    runs.push(measured("none", Cause::ServerCpuBound, &[(Cause::ServerCpuBound, 0.0)]));
    runs.push(run("lock", RunResult::Failed { why: "it did not answer".into() }));
    let is_undisturbed = |name: &str| name == UNDISTURBED;
    let good = summary(&runs, is_undisturbed);
    assert_eq!((good.runs, good.right, good.undisturbed, good.false_alarms), (40, 39, 1, 0));
    assert_eq!(good.right_as_listed, Some(39));
    assert_eq!(good.confusion["quota"][&Cause::CpuQuotaThrottled], 38);
    assert!(!good.confusion.contains_key("lock"));
    assert!(good.is_good());
    runs.push(measured("none", Cause::ServerCpuBound, &[(Cause::TooNoisy, 0.0)]));
    let alarmed = summary(&runs, is_undisturbed);
    assert_eq!((alarmed.right, alarmed.false_alarms), (39, 1));
    assert!(!alarmed.is_good(), "right often enough, but for an alarm");
    // An alarm of a run that the host disturbed is none, and the run no undisturbed one.
    runs.last_mut().unwrap().disturbed = vec![comparison::Disturbance::Steal];
    let disturbed = summary(&runs, is_undisturbed);
    assert_eq!((disturbed.runs, disturbed.undisturbed, disturbed.disturbed), (40, 1, 1));
    assert!(disturbed.is_good() && disturbed.confusion["none"].len() == 1);
    runs.pop();
    runs.extend((0..2).map(|_| measured("lock", Cause::Unknown, &[])));
    assert!(!summary(&runs, is_undisturbed).is_good(), "39 of 42");
    let RunResult::Measured(found) = &mut runs[0].result else { unreachable!("all but one were measured") };
    found.right_as_listed = None;
    assert_eq!(summary(&runs, is_undisturbed).right_as_listed, None, "one does not tell");
    assert!(!summary(&[], is_undisturbed).is_good(), "nothing is no report");
}

#[test]
fn every_injection_has_a_name_of_its_own_and_something_to_find() {
    let names: BTreeSet<&str> = INJECTIONS.iter().map(|injection| injection.name).collect();
    assert_eq!(names.len(), INJECTIONS.len());
    assert!(INJECTIONS.iter().all(|injection| injection.expected().next().is_some()));
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    assert!(names.contains(UNDISTURBED));
    let causes: BTreeSet<Cause> = INJECTIONS.iter().flat_map(|injection| injection.expected()).collect();
    assert!(causes.len() >= 14, "{causes:?}");
}

#[test]
fn every_injection_that_a_bottleneck_names_is_there() {
    for bottleneck in tare_explain::bottlenecks::all() {
        for name in bottleneck.injections {
            let there = INJECTIONS.iter().any(|injection| injection.name == *name);
            assert!(there, "{}: there is no injection '{name}'", bottleneck.cause.id());
        }
    }
}

#[test]
fn net_is_kept_where_there_is_one() {
    let none = named(UNDISTURBED);
    let mut outcome = verdict(Cause::ServerCpuBound, &[]);
    assert_eq!(judge(none, true, &outcome).net, None);
    let (unit, transport) = ("req/s".to_owned(), "loopback".to_owned());
    let net = Net {
        value: 99e3,
        unit,
        ci95: None,
        transport,
        cpus: 1.0,
        ref_clock_hz: None,
        against_reference: None,
    };
    outcome.figures.net = NetOrMissing::Net(net);
    assert_eq!(judge(none, true, &outcome).net, Some(99e3));
}

#[test]
fn what_leaves_net_alone_is_there_and_nothing_that_changes_the_program() {
    let left: Vec<&str> =
        INJECTIONS.iter().map(|injection| injection.name).filter(|name| leaves_net(name)).collect();
    assert_eq!(left, [UNDISTURBED, "quota", "parent-quota", "neighbour"]);
}

/// A comparison of a server with itself that ended so.
fn compared(effects: Vec<Effect>, warnings: &[&str]) -> Comparison {
    let warning = |id: &&str| Warning { id: (*id).into(), text: format!("{id}!"), hint: String::new() };
    Comparison {
        parts: Vec::new(),
        schema: comparison::SCHEMA,
        argv: Vec::new(),
        programs: Vec::new(),
        seed: 7,
        budget_s: 10.0,
        precision: 0.01,
        margin: 0.02,
        planned: Some(10),
        turn_ns: 5_000_000,
        sut_cpus: vec![0],
        load_cpus: vec![1],
        ended: Some(comparison::Ended::Budget),
        elapsed_s: 10.0,
        launches: Vec::new(),
        effects,
        not_known: Vec::new(),
        interleaving: Vec::new(),
        treatments: Vec::new(),
        benchmarks: Vec::new(),
        warnings: warnings.iter().map(warning).collect(),
    }
}

#[test]
fn what_could_have_been_called_different_and_was_not_differs_from_what_could_not() {
    let effect = |figure, verdict, change: Option<f64>| Effect {
        program: "B".into(),
        figure,
        baseline: 1.0,
        value: 1.0,
        launches: 10,
        change: change.map(|value| Change { value, interval: [value, value] }),
        adjusted: None,
        aa_control: None,
        verdict,
        detectable: change.map(|_| 0.04),
        one_percent_s: None,
    };
    let rate = effect(Figure::Throughput, Verdict::CannotTell, Some(0.01));
    let slower = effect(Figure::P99, Verdict::Slower, Some(0.03));
    let SelfResult::Compared(same) = itself::judge(&compared(vec![rate.clone()], &["disturbed"])) else {
        unreachable!("an interval is there")
    };
    assert!(same.different.is_empty() && same.detectable == Some(0.04) && same.seed == 7);
    let SelfResult::Compared(reported) = itself::judge(&compared(vec![rate, slower.clone()], &[])) else {
        unreachable!("two intervals are there")
    };
    assert_eq!((reported.different.len(), reported.different[0].figure), (1, Figure::P99));
    // Percentiles alone tell nothing of throughput.
    let SelfResult::Compared(no_rate) = itself::judge(&compared(vec![slower], &[])) else {
        unreachable!("an interval is there")
    };
    assert_eq!(no_rate.detectable, None);
    let silent = effect(Figure::Throughput, Verdict::CannotTell, None);
    let few = itself::judge(&compared(vec![silent], &["not-saturated", "too-few-launches"]));
    assert_eq!(few, SelfResult::Failed { why: "too-few-launches!".into() });
    assert!(
        matches!(itself::judge(&compared(Vec::new(), &[])), SelfResult::Failed { why } if why.contains("0 launches"))
    );
}
