//! Who the SUT is and why, so that a reader can check it (`-v`, `-vv`).

use super::sut::Sut;
use tare_machine::{Root, cgroup, procs};
use tare_model::plan::{self, Transport};
use tracing::{Level, debug, enabled, info};

/// Processes that are listed one by one.
const LISTED_MAX: usize = 16;

/// Who it is, and why.
pub(crate) fn report(sut: &Sut, why: &str) {
    if !enabled!(target: "sut", Level::INFO) {
        return;
    }
    if let Sut { kind: plan::Sut::Unseen { why }, .. } = sut {
        info!(target: "sut", "{} is measured, and its processes are not seen: {why}", sut.name());
        return;
    }
    let way = match sut.transport {
        Transport::Loopback => "over the loopback interface",
        Transport::Namespace => "from another network namespace of this machine",
        Transport::Remote => "from another host",
    };
    let processes = match sut.pids.len() {
        1 => "one process".to_owned(),
        count => format!("{count} processes"),
    };
    info!(target: "sut", "{} is measured, {processes}, reached {way}: {why}", sut.name());
    for pid in sut.pids.iter().take(LISTED_MAX) {
        let threads = procs::tasks_of(&Root::live(), *pid).len();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let quota = cgroup::quota_cpus(&Root::live(), *pid)
            .map_or("no CPU quota".to_owned(), |cpus| format!("a quota of {cpus:.2} CPUs"));
        debug!(target: "sut", "process {pid}: {}, {threads} threads, {quota}", name.trim_end());
    }
}
