//! Who the SUT is and why, so that a reader can check it (`-v`, `-vv`).

use super::sut::Sut;
use tare_machine::{Root, cgroup, procs};
use tare_model::CpuSet;
use tare_model::plan::{self, Transport};
use tare_sys::affinity;
use tracing::{Level, debug, enabled, info};

/// Processes that are listed one by one.
const LISTED_MAX: usize = 16;

/// Who it is, and why. At `-vv` what can be held against `ss`, `ps` and `/proc`.
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
        Transport::Namespace => "in another network namespace of this machine",
        Transport::Remote => "from another host",
    };
    let processes = match sut.pids.len() {
        1 => "one process".to_owned(),
        count => format!("{count} processes"),
    };
    info!(target: "sut", "{} is measured, {processes}, reached {way}: {why}", sut.name());
    if let Some(port) = sut.port.filter(|_| sut.transport == Transport::Loopback) {
        debug!(target: "sut", "its port is {port}: 'ss -ltnp sport = :{port}' shows who listens there");
    }
    sut.pids.iter().take(LISTED_MAX).for_each(|pid| debug!(target: "sut", "{}", process(*pid)));
}

/// A process in words, as `ps` and `/proc` show it.
fn process(pid: u32) -> String {
    let root = Root::live();
    let threads = procs::tasks_of(&root, pid).len();
    let (name, parent) = match procs::stat(&root, pid) {
        Ok(stat) => (stat.name, format!("child of {}", stat.ppid)),
        Err(missing) => return format!("process {pid}: {}", missing.why),
    };
    let cpus = match affinity::get(pid) {
        Ok(cpus) => format!("may use CPUs {}", cpus.into_iter().collect::<CpuSet>()),
        Err(error) => format!("the CPUs that it may use are not known: {error}"),
    };
    let quota = cgroup::quota_cpus(&root, pid)
        .map_or("no CPU quota".to_owned(), |cpus| format!("a quota of {cpus:.2} CPUs"));
    let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    format!("process {pid}: {name}, {parent}, {threads}, {cpus}, {quota}")
}
