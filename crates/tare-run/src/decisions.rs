//! Who the SUT is and where everybody runs, for who does not believe it (`-v`, `-vv`).

use crate::request::ServerRequest;
use crate::subjects::sut::Sut;
use tare_machine::placement::Placement;
use tare_machine::{Root, cgroup, procs};
use tare_model::CpuSet;
use tare_model::plan::Transport;
use tracing::{Level, debug, enabled, info};

/// Processes that are listed one by one.
const LISTED_MAX: usize = 16;

/// Who it is, and why.
pub(crate) fn sut(sut: &Sut, why: &str) {
    if !enabled!(target: "sut", Level::INFO) || sut.pids.is_empty() {
        return;
    }
    let way = match sut.transport {
        Transport::Loopback => "over the loopback interface",
        Transport::Namespace => "from another network namespace of this machine",
        Transport::Remote => "from another host",
    };
    let processes = sut.pids.len();
    info!(target: "sut", "{} is measured, {processes} processes, reached {way}: {why}", sut.name());
    for pid in sut.pids.iter().take(LISTED_MAX) {
        let threads = procs::tasks_of(&Root::live(), *pid).len();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let quota = cgroup::quota_cpus(&Root::live(), *pid)
            .map_or("no CPU quota".to_owned(), |cpus| format!("a quota of {cpus:.2} CPUs"));
        debug!(target: "sut", "process {pid}: {}, {threads} threads, {quota}", name.trim_end());
    }
}

/// Who runs where, and by whose choice.
pub(crate) fn placement(placement: &Placement, request: &ServerRequest, sut: &Sut) {
    if !enabled!(target: "placement", Level::INFO) {
        return;
    }
    let list = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>().to_string();
    let place = &request.place;
    let why_sut = match (&place.sut_cpus, sut.pids.is_empty()) {
        (Some(_), _) => "given by --sut-cpus".to_owned(),
        (None, true) => "its processes are not seen".to_owned(),
        (None, false) => format!("what its {} threads may use", sut.tids().len()),
    };
    let why_load = match &place.load_cpus {
        Some(_) => "given by --load-cpus",
        None => "those that the server does not use, as far as there are such",
    };
    info!(target: "placement", "server on CPUs {}: {why_sut}", list(&placement.sut_cpus));
    info!(target: "placement", "load generator on CPUs {}: {why_load}", list(&placement.load_cpus));
    info!(target: "placement", "observers on CPUs {}", list(&placement.observer_cpus));
    for note in &placement.notes {
        debug!(target: "placement", "{note}");
    }
}
