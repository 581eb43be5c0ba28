//! Programs that run and end.

use crate::support::*;
use tare_explain::explain;
use tare_model::observation::{Observation, Role};
use tare_model::outcome::{Cause, NetOrMissing, Outcome, TareCause};
use tare_model::plan::Workload;
use tare_model::trial::Measure;

fn runs(scene: &Scene) -> Outcome {
    explain(&commands(&[(2.0, 0, scene.clone()), (2.01, 0, scene.clone()), (1.99, 0, scene.clone())]))
}

fn program(run: f64, wait: f64) -> Thread {
    Thread::new(Role::Sut, "program", 4712, 0, run, wait)
}

fn part(outcome: &Outcome, cause: TareCause) -> f64 {
    outcome.figures.tare.iter().find(|part| part.cause == cause).map_or(0.0, |part| part.ln_share)
}

fn net(outcome: &Outcome) -> f64 {
    match &outcome.figures.net {
        NetOrMissing::Net(net) => net.value,
        NetOrMissing::Missing(missing) => panic!("{missing}"),
    }
}

#[test]
fn a_busy_program_is_its_own_limit() {
    let outcome = runs(&Scene { threads: vec![program(0.99, 0.0)], ..Scene::default() });
    assert_eq!((outcome.verdict.bottleneck, outcome.verdict.valid), (Cause::ProgramCpuBound, true));
    assert!(
        (outcome.figures.gross.value().unwrap() - 2.0).abs() < 1e-9 && outcome.figures.gross.unit() == "s"
    );
    assert!((net(&outcome) - 2.0).abs() < 0.01);
    assert!(outcome.answers.requests.is_none() && outcome.answers.latency_ns.is_none());
    let summary = &outcome.answers.commands[0];
    assert_eq!((summary.runs, summary.exit_codes.len()), (3, 3));
    assert!((summary.stdev_s.unwrap() - 0.01).abs() < 1e-9);
    assert!((summary.min_s - 1.99).abs() < 1e-6 && (summary.max_s - 2.01).abs() < 1e-6);
}

#[test]
fn a_sleeping_program_is_idle_and_its_clock_does_not_matter() {
    let mut sleeper = program(0.05, 0.0);
    sleeper.samples = Some([0.0, 0.0, 0.0, 1.0]);
    let fast = Scene { threads: vec![sleeper], clock_hz: Some(3e9), ..Scene::default() };
    let slow = Scene { clock_hz: Some(1.5e9), ..fast.clone() };
    let outcome = explain(&commands(&[(2.0, 0, slow.clone()), (2.0, 0, slow), (2.0, 0, fast)]));
    assert_eq!(outcome.verdict.bottleneck, Cause::ProgramIdle);
    // Half the clock, but only a twentieth of the time is spent on a CPU.
    assert!((part(&outcome, TareCause::Clock) - (2.0f64 / 1.95).ln()).abs() < 1e-9);
}

/// A shell script that runs `sleep`.
#[test]
fn a_program_waits_for_what_its_children_wait_for() {
    let mut shell = program(0.02, 0.0);
    let mut child = Thread { pid: 4713, tid: 4713, name: "sleep", ..program(0.01, 0.0) };
    // In `wait4`, which has no name of its own, and for a time to pass.
    (shell.samples, child.samples) = (Some([0.0; 4]), Some([0.0, 0.0, 0.0, 1.0]));
    let outcome = runs(&Scene { threads: vec![shell, child], ..Scene::default() });
    let finding =
        outcome.verdict.findings.iter().find(|finding| finding.cause == Cause::ProgramIdle).unwrap();
    assert!(finding.summary.contains("for a timer 9"), "{}", finding.summary);
}

#[test]
fn what_others_took_is_not_in_net() {
    let neighbour = Thread::new(Role::Other, "busyloop", 999, 0, 0.5, 0.49);
    let outcome = runs(&Scene { threads: vec![program(0.5, 0.5), neighbour], ..Scene::default() });
    assert_eq!(outcome.verdict.bottleneck, Cause::CpuContended);
    assert!((net(&outcome) - 1.0).abs() < 0.02, "half of the two seconds was somebody else's");
    assert!((part(&outcome, TareCause::Preempted) - 2f64.ln()).abs() < 0.02);
    let parts: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
    assert!((parts - (outcome.figures.gross.value().unwrap() / net(&outcome)).ln()).abs() < 1e-9);

    let quota =
        Scene { threads: vec![program(0.3, 0.7)], throttled: vec![("/sut", 0.7)], ..Scene::default() };
    let outcome = runs(&quota);
    assert_eq!(outcome.verdict.bottleneck, Cause::CpuQuotaThrottled);
    assert!((net(&outcome) - 0.6).abs() < 0.01);
}

#[test]
fn failed_runs_are_said_and_counted() {
    let scene = Scene { threads: vec![program(0.99, 0.0)], ..Scene::default() };
    let outcome = explain(&commands(&[(2.0, 0, scene.clone()), (2.0, 1, scene)]));
    assert!(outcome.verdict.valid);
    let finding = outcome.verdict.findings.iter().find(|finding| finding.cause == Cause::Errors).unwrap();
    assert!(finding.summary.contains("1 of 2 runs"));
    assert!(outcome.verdict.warnings.iter().any(|warning| warning.id == "errors"));
}

#[test]
fn a_run_too_short_to_be_seen_is_judged_by_its_rusage() {
    let outcome = runs(&Scene { threads: Vec::new(), ..Scene::default() });
    assert_eq!(outcome.verdict.bottleneck, Cause::ProgramCpuBound, "by rusage");
    assert!(outcome.verdict.valid && matches!(outcome.figures.net, NetOrMissing::Missing(_)));
}

#[test]
fn the_accounting_of_a_run_of_milliseconds_is_not_held_against_it() {
    let open = |seconds: f64| {
        let threads = vec![program(0.6, 0.0)];
        let scene = Scene { seconds, threads, hidden: 0.3, ..Scene::default() };
        explain(&commands(&[(seconds, 0, scene.clone()), (seconds, 0, scene.clone()), (seconds, 0, scene)]))
    };
    let long = open(2.0);
    assert!(!long.verdict.valid && long.accounting.residual_ratio.unwrap() > 0.29);
    let short = open(0.003);
    assert!(short.verdict.valid, "{:#?}", short.verdict.warnings);
    assert!(
        !short.accounting.residuals.contains_key("cpu 0"),
        "missing, not zero: {:?}",
        short.accounting.residuals
    );
    assert!(short.verdict.warnings.iter().any(|warning| warning.id == "accounting-unchecked"));
    // Every run has its own thread numbers; they are one program's first thread.
    assert_eq!(short.accounting.residuals.len(), 1, "{:?}", short.accounting.residuals);
}

#[test]
fn runs_that_were_only_timed_say_how_long_and_the_others_what_for() {
    let neighbour = Thread::new(Role::Other, "busyloop", 999, 0, 0.2, 0.79);
    let scene = Scene { seconds: 2.4, threads: vec![program(0.8, 0.2), neighbour], ..Scene::default() };
    let mut record = commands(&[
        // Observed, and longer by what that takes.
        (2.4, 0, scene.clone()),
        (2.0, 0, scene.clone()),
        (2.01, 0, scene.clone()),
        (1.99, 0, scene.clone()),
        (3.2, 0, Scene { seconds: 3.2, ..scene }),
    ]);
    for trial in &mut record.trials[1..4] {
        let Measure::Command(run) = &mut trial.sample else { panic!("no run") };
        run.unobserved = true;
        let Observation { begin_ns, end_ns, .. } = trial.observation;
        trial.observation = Observation { begin_ns, end_ns, ..Observation::default() };
    }
    let outcome = explain(&record);
    let summary = &outcome.answers.commands[0];
    let times_ms: Vec<f64> = summary.times_s.iter().map(|time_s| (1e3 * time_s).round()).collect();
    assert_eq!(times_ms, [2000.0, 2010.0, 1990.0]);
    assert!((outcome.figures.gross.value().unwrap() - 2.0).abs() < 1e-9);
    // A fifth of a run was somebody else's, by those that were observed.
    assert!((net(&outcome) - 1.6).abs() < 0.01, "{}", net(&outcome));
    let parts: f64 = outcome.figures.tare.iter().map(|part| part.ln_share).sum();
    assert!((parts - (outcome.figures.gross.value().unwrap() / net(&outcome)).ln()).abs() < 1e-9);
    let levels: Vec<&str> = outcome.trials.iter().map(|trial| trial.level.as_str()).collect();
    assert_eq!(levels, ["observed", "run", "run", "run", "observed"]);
    assert!(outcome.trials[1].residual_ratio.is_none(), "nothing was seen of it");
    assert!(outcome.verdict.valid, "{:?}", outcome.verdict.warnings);
    // The times are alike, whatever the two that were observed took.
    let ids: Vec<&str> = outcome.verdict.warnings.iter().map(|warning| warning.id.as_str()).collect();
    assert!(!ids.contains(&"too-noisy"), "{ids:?}");
}

/// `go test` compiles before it measures, and a program called as a compiler is may be what is measured.
#[test]
fn compilers_before_a_benchmark_are_named_and_a_compiler_that_is_measured_is_not() {
    let compiled = |command: &str, name: &'static str| {
        let compiler = Thread { pid: 4713, tid: 4713, name, ..program(0.6, 0.0) };
        let scene = Scene { threads: vec![program(0.3, 0.0), compiler], ..Scene::default() };
        let mut record = commands(&[(2.0, 0, scene.clone()), (2.0, 0, scene.clone()), (2.0, 0, scene)]);
        if let Workload::Command(workload) = &mut record.plan.workload {
            workload.commands = vec![command.to_owned()];
        }
        let warnings = explain(&record).verdict.warnings;
        warnings.into_iter().find(|warning| warning.id == "compiles-first")
    };
    let warning = compiled("go test -bench=. ./...", "compile").unwrap();
    assert!(warning.text.starts_with("67 % of the CPU time was of compilers"), "{}", warning.text);
    assert!(warning.hint.contains("go test -c"), "{}", warning.hint);
    assert!(compiled("/usr/local/bin/cargo bench", "rustc").is_some());
    for (command, name) in
        [("go test -bench=.", "link.test"), ("rustc main.rs", "rustc"), ("go build .", "compile")]
    {
        assert!(compiled(command, name).is_none(), "{command}");
    }
}
