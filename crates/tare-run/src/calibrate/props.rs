//! What several injections put up.

use super::ground::{Ground, refused};
use super::injection::{Scene, Server};
use crate::error::LabError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;
use tare_machine::journal::MadeGroup;

/// Twenty periods of a quota: what is read at their edges is then right.
pub(super) const MANY_PERIODS: Duration = Duration::from_secs(2);
/// A program that computes for about a tenth of a second.
pub(super) const COMPUTES: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

/// The words that run a text in a shell.
pub(super) fn shell(text: &str) -> Vec<String> {
    ["sh", "-c", text].map(String::from).to_vec()
}

/// For what is seen from trial to trial.
pub(super) fn many_short_trials(scene: &mut Scene) {
    (scene.trials, scene.trial) = (8, Duration::from_millis(500));
}

/// A group with a quota.
pub(super) struct Quota(MadeGroup);

impl Quota {
    /// So many CPUs' worth of time.
    pub fn of(cpus: f64, ground: &Ground<'_>) -> Result<Quota, LabError> {
        let group = ground.group("cpu")?;
        group.set_quota(cpus).map_err(refused)?;
        Ok(Quota(group))
    }

    /// A group without a quota of its own inside of it.
    pub fn inner(&self) -> Result<Quota, LabError> {
        self.0.inner().map(Quota).map_err(refused)
    }

    /// Has the server born in it.
    pub fn holds(&self, server: &mut Server) {
        server.groups.push(self.0.procs());
    }
}

/// A table with one column for `{{csv:…}}`.
pub(super) fn table(
    column: &str,
    values: impl IntoIterator<Item = u64>,
) -> Result<(PathBuf, File), LabError> {
    let mut text = format!("{column}\n");
    values.into_iter().for_each(|value| text += &format!("{value}\n"));
    nameless(&text)
}

/// A file without a name: it is gone with whoever has it open.
pub(super) fn nameless(text: &str) -> Result<(PathBuf, File), LabError> {
    let pid = std::process::id();
    let make = || {
        let path = std::env::temp_dir().join(format!("tare-file-{pid}"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        (&file).write_all(text.as_bytes())?;
        Ok((PathBuf::from(format!("/proc/{pid}/fd/{}", file.as_raw_fd())), file))
    };
    make().map_err(|error: std::io::Error| LabError::State(format!("a file cannot be written: {error}")))
}
