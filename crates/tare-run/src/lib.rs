//! Runs a session: resolves what was asked, starts or finds the system under test, drives load on it trial by
//! trial while the observers watch, and leaves every finished trial on disk before the next starts.
//!
//! [`request`] is what the user asked for, unjudged; `plan` judges it without touching anything that runs;
//! [`session`] is the one way through: a subject is opened, a load driven, each trial read by a meter.
//! [`generate`] is load alone. Whatever is started is stopped and whatever is changed
//! is put back when a session ends, fails or is interrupted; what a killed one left behind is dealt with by the
//! next start ([`recover`]).

mod blocks;
pub mod calibrate;
pub mod compare;
mod confirm;
mod duration;
pub mod error;
pub mod generate;
mod identity;
mod levels;
mod loads;
mod meters;
mod place;
mod plan;
mod process;
pub mod progress;
pub mod records;
pub mod request;
mod running;
pub mod session;
pub mod study;
mod subjects;

pub use duration::duration;
pub use error::LabError;
pub use running::{Held, Session};

use std::path::Path;
use tare_machine::{Root, journal};

/// Stops and restores what killed runs left behind; one line for each thing done, none when there was nothing.
/// Called at the start of every session.
pub fn recover(state_dir: &Path) -> Vec<String> {
    recovered(&journal::recover(state_dir, &Root::live()))
}

/// What was stopped and restored, a line for each thing; none when there was nothing.
pub fn recovered(recovery: &journal::Recovery) -> Vec<String> {
    let journal::Recovery { stopped, restored, groups, settings, failed } = recovery;
    let stopped = stopped
        .iter()
        .map(|left| format!("stopped {} (pid {}), left by a run that was killed", left.name, left.pid));
    let restored = restored.iter().map(|left| {
        let cpus = tare_model::CpuSet::from(left.cpus.as_slice());
        format!("put thread {} back on CPUs {cpus}, left pinned by a run that was killed", left.tid)
    });
    let groups = groups
        .iter()
        .map(|group| format!("removed the control group {}, left by a run that was killed", group.display()));
    stopped.chain(restored).chain(groups).chain(reported(settings)).chain(failed.iter().cloned()).collect()
}

/// What became of settings that were put back, a line for each thing.
pub fn reported(report: &journal::Report) -> Vec<String> {
    let put_back = report.put_back.iter().map(|setting| {
        format!("{}: {} is '{}' again", setting.setting, setting.path.display(), setting.value)
    });
    let changed = report.changed.iter().map(|setting| {
        format!(
            "{}: {} is '{}', neither what tare made it ('{}') nor what it was ('{}'): somebody else has set it, and it is \
             left so ('tare tune --restore --force' puts it back)",
            setting.setting,
            setting.path.display(),
            setting.now,
            setting.applied,
            setting.before
        )
    });
    let rebooted = (report.rebooted > 0).then(|| {
        format!(
            "the machine was started again since {} turned: nothing to undo",
            settings(report.rebooted, "was", "were")
        )
    });
    put_back.chain(changed).chain(report.notes.clone()).chain(report.failed.clone()).chain(rebooted).collect()
}

/// `1 setting was`, `2 settings were`.
pub fn settings(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 setting {one}") } else { format!("{count} settings {more}") }
}
