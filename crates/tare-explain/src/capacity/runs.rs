//! The runs of a program that ends.

use crate::accounting::{Closed, Loss, ratio};
use tare_model::Record;
use tare_model::outcome::TareCause;
use tare_model::trial::{CommandSample, Measure};

/// A program that keeps at least so many CPUs busy is held by them more than by waiting for itself.
pub(crate) const CPU_BOUND: f64 = 0.5;

/// The samples of one command.
pub(crate) fn runs_of(record: &Record, command: u32) -> impl Iterator<Item = &CommandSample> {
    record.trials.iter().filter_map(move |trial| match &trial.sample {
        Measure::Command(sample) if sample.command == command => Some(sample),
        _ => None,
    })
}

/// The samples of one command whose times count: where some of its runs were only timed, those.
pub(crate) fn timed_runs_of(record: &Record, command: u32) -> impl Iterator<Item = &CommandSample> {
    let apart = are_timed_apart(record, command);
    runs_of(record, command).filter(move |run| counts(run, apart))
}

/// Whether runs of a command were timed without observers, and others observed.
pub(crate) fn are_timed_apart(record: &Record, command: u32) -> bool {
    runs_of(record, command).any(|run| run.unobserved)
}

/// Whether the time of a run counts, of a command whose runs were timed apart or were not.
pub(crate) fn counts(run: &CommandSample, apart: bool) -> bool {
    !apart || run.unobserved
}

/// Mean seconds of a run.
pub(crate) fn mean_s(window: &Closed) -> Option<f64> {
    (window.span.trials > 0 && window.answered.elapsed_s > 0.0)
        .then(|| window.answered.elapsed_s / f64::from(window.span.trials))
}

/// CPUs that runs kept busy on average, from the kernel's account of them; `None` without a run.
pub(crate) fn rusage_cpus<'r>(runs: impl Iterator<Item = &'r CommandSample>) -> Option<f64> {
    let (mut wall_ns, mut cpu_ns) = (0.0, 0.0);
    for run in runs {
        wall_ns += run.wall_ns as f64;
        cpu_ns += run.user_ns as f64 + run.system_ns as f64;
    }
    (wall_ns > 0.0).then(|| cpu_ns / wall_ns)
}

/// CPUs that the runs' threads were ready to use and others had; `None` when no thread was seen.
pub(crate) fn taken_cpus(window: &Closed) -> Option<f64> {
    let sut = window.sut.as_ref()?;
    let is_taken = |loss: &Loss| matches!(loss, Loss::Tare(cause) if *cause != TareCause::NoWork);
    let taken: f64 = sut.lost_s.iter().filter(|(loss, _)| is_taken(loss)).map(|(_, lost)| lost).sum();
    Some(ratio(taken, sut.wall_s))
}
