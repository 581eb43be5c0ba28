//! What killed runs left behind: stopped, restored, and said.

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
            "the machine was started again since {} applied: nothing to undo",
            settings(report.rebooted, "was", "were")
        )
    });
    put_back.chain(changed).chain(report.notes.clone()).chain(report.failed.clone()).chain(rebooted).collect()
}

/// `1 setting was`, `2 settings were`.
pub fn settings(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 setting {one}") } else { format!("{count} settings {more}") }
}
