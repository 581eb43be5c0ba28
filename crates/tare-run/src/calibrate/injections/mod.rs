//! The injections: one file each, and one line in the registry. What several of them put up is here.

mod backlog;
mod bandwidth;
mod cold_start;
mod costly_handler;
mod costly_requests;
mod delayed_ack;
mod downstream;
mod drift;
mod error_page;
mod few_ports;
mod fixed_rate;
mod fsync;
mod garbage;
mod generator_neighbour;
mod generator_oversubscribed;
mod hot_thread;
mod little_memory;
mod lock;
mod loss;
mod memory_neighbour;
mod neighbour;
mod none;
mod one_connection;
mod one_loop;
mod oversubscribed_quota;
mod packet_rate;
mod parent_quota;
mod program_computes;
mod program_neighbour;
mod program_quota;
mod program_sleeps;
mod quota;
mod server_oversubscribed;
mod shared_core;
mod shared_cpu;

use super::hosts::{LINK, reported};
use super::injection::{Ground, Injection, Need, Scene, Server, refused};
use crate::error::LabError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;
use tare_machine::journal::MadeGroup;

/// The injection that disturbs nothing.
pub(super) const UNDISTURBED: &str = "none";

/// Every injection.
pub(super) static INJECTIONS: &[&Injection] = &[
    &none::INJECTION,
    &costly_handler::INJECTION,
    &costly_requests::INJECTION,
    &quota::INJECTION,
    &parent_quota::INJECTION,
    &oversubscribed_quota::INJECTION,
    &neighbour::INJECTION,
    &generator_neighbour::INJECTION,
    &server_oversubscribed::INJECTION,
    &generator_oversubscribed::INJECTION,
    &shared_cpu::INJECTION,
    &shared_core::INJECTION,
    &one_connection::INJECTION,
    &fixed_rate::INJECTION,
    &hot_thread::INJECTION,
    &one_loop::INJECTION,
    &lock::INJECTION,
    &fsync::INJECTION,
    &downstream::INJECTION,
    &backlog::INJECTION,
    &bandwidth::INJECTION,
    &packet_rate::INJECTION,
    &loss::INJECTION,
    &few_ports::INJECTION,
    &delayed_ack::INJECTION,
    &little_memory::INJECTION,
    &garbage::INJECTION,
    &memory_neighbour::INJECTION,
    &error_page::INJECTION,
    &cold_start::INJECTION,
    &drift::INJECTION,
    &program_computes::INJECTION,
    &program_sleeps::INJECTION,
    &program_neighbour::INJECTION,
    &program_quota::INJECTION,
];

/// Those that leave net alone. The built-in server has its one thread, its CPU and its requests as undisturbed, and has all the work
/// that it can do: then alone does a session without a saturating level, as all are here, see what a request costs at saturation.
///
/// All others do not: what is asked for or answered is another thing (costly, failing, slow or drifting requests), or the server is
/// (another program, more threads, another architecture); another transport (two hosts); a sibling or a generator in the
/// same caches; or too little to do, whereupon a request costs more and net is a bound or missing (fixed rate, one connection,
/// a generator that is held back).
static LEAVE_NET: &[&Injection] =
    &[&none::INJECTION, &quota::INJECTION, &parent_quota::INJECTION, &neighbour::INJECTION];

/// Whether net is to be what it is undisturbed.
pub(super) fn leaves_net(name: &str) -> bool {
    LEAVE_NET.iter().any(|injection| injection.name == name)
}

/// Twenty periods of a quota: what is read at their edges is then right.
const MANY_PERIODS: Duration = Duration::from_secs(2);
/// A program that computes for about a tenth of a second.
const COMPUTES: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

/// What a shell is told.
fn shell(text: &str) -> Vec<String> {
    ["sh", "-c", text].map(String::from).to_vec()
}

/// For what is seen from trial to trial.
fn many_short_trials(scene: &mut Scene) {
    (scene.trials, scene.trial) = (8, Duration::from_millis(500));
}

/// A group with a quota.
struct Quota(MadeGroup);

impl Quota {
    /// So many CPUs' worth of time.
    fn of(cpus: f64, ground: &Ground<'_>) -> Result<Quota, LabError> {
        let group = ground.group("cpu")?;
        group.set_quota(cpus).map_err(refused)?;
        Ok(Quota(group))
    }

    /// A group without a quota of its own inside of it.
    fn inner(&self) -> Result<Quota, LabError> {
        self.0.inner().map(Quota).map_err(refused)
    }

    /// Has the server born in it.
    fn holds(&self, server: &mut Server) {
        server.groups.push(self.0.procs());
    }
}

/// A table with one column for `{{csv:…}}`.
fn table(column: &str, values: impl IntoIterator<Item = u64>) -> Result<(PathBuf, File), LabError> {
    let mut text = format!("{column}\n");
    values.into_iter().for_each(|value| text += &format!("{value}\n"));
    nameless(&text)
}

/// A file without a name: it is gone with whoever has it open.
fn nameless(text: &str) -> Result<(PathBuf, File), LabError> {
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
