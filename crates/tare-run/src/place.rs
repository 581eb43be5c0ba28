//! Who runs where: the SUT's CPUs where tare starts it, then the generator's and the observers' around it.

use crate::error::LabError;
use crate::request::{PlaceRequest, ServerRequest, SutRequest};
use tare_machine::placement::{self, Placement, Wanted};
use tare_machine::{Root, cgroup};
use tare_model::CpuSet;
use tare_model::topology::Topology;
use tracing::{Level, debug, enabled, info};

/// More generator threads than this are used only when asked for.
const LOAD_THREADS_MAX: u32 = 8;

/// The CPUs that a SUT is started on; none: wherever it wants to.
pub(crate) fn started_on(request: &ServerRequest, topology: &Topology) -> Result<Vec<u32>, LabError> {
    let threads = match (&request.sut, &request.place) {
        // Tare's own has one CPU unless others are asked for.
        (SutRequest::Embedded, _) => 1,
        (_, PlaceRequest { sut_cpus: Some(given), .. }) => return Ok(given.clone()),
        (_, PlaceRequest { policy: None, .. }) => return Ok(Vec::new()),
        (_, PlaceRequest { policy: Some(_), .. }) => {
            let cores = topology.cores.value().or(topology.threads.value()).copied().unwrap_or(1);
            (cores / 2).max(1)
        }
    };
    choose(request, topology, &[], threads).map(|place| place.sut_cpus)
}

/// The CPUs of generator and observers, around a SUT whose threads are these.
pub(crate) fn around(
    request: &ServerRequest,
    tids: &[u32],
    topology: &Topology,
) -> Result<Placement, LabError> {
    let mut allowed: Vec<u32> =
        tids.iter().flat_map(|tid| tare_sys::affinity::get(*tid).unwrap_or_default()).collect();
    allowed.sort_unstable();
    allowed.dedup();
    choose(request, topology, &allowed, tids.len() as u32)
}

fn choose(
    request: &ServerRequest,
    topology: &Topology,
    allowed: &[u32],
    threads: u32,
) -> Result<Placement, LabError> {
    let place = &request.place;
    let wanted = Wanted {
        sut_allowed: allowed,
        sut_threads: threads,
        load_threads: request.load.own_threads().unwrap_or_else(|| load_threads(topology)),
        given_sut: place.sut_cpus.as_deref().unwrap_or_default(),
        given_load: place.load_cpus.as_deref().unwrap_or_default(),
        policy: place.policy.unwrap_or_default(),
        // What tare starts is in tare's own group.
        quota_cpus: cgroup::quota_cpus(&Root::live(), std::process::id()),
    };
    placement::choose(topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))
}

/// Prints who runs where, and by whose choice (`-v`). `threads`: of the server.
pub(crate) fn report(placement: &Placement, place: &PlaceRequest, threads: usize, topology: &Topology) {
    if !enabled!(target: "placement", Level::INFO) {
        return;
    }
    let list = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>().to_string();
    let why_sut = match (&place.sut_cpus, threads) {
        (Some(_), _) => "given by --sut-cpus".to_owned(),
        (None, 0) => "its processes are not seen".to_owned(),
        (None, threads) => format!("what its {threads} threads may use"),
    };
    let why_load = match &place.load_cpus {
        Some(_) => "given by --load-cpus",
        None if placement.sut_cpus.is_empty() => "where the server runs is not known",
        None if has_cores_of_its_own(placement, topology) => {
            "the server uses none of them, nor a core of theirs"
        }
        None if placement.load_cpus.iter().any(|cpu| placement.sut_cpus.contains(cpu)) => {
            "the server may use them too, and no others are left"
        }
        None => "the server uses none of them",
    };
    info!(target: "placement", "server on CPUs {}: {why_sut}", list(&placement.sut_cpus));
    info!(target: "placement", "load generator on CPUs {}: {why_load}", list(&placement.load_cpus));
    info!(target: "placement", "observers on CPUs {}", list(&placement.observer_cpus));
    for note in &placement.notes {
        debug!(target: "placement", "{note}");
    }
}

/// Generator threads unless others are asked for: half of the machine's cores, so that the other half can serve.
pub(crate) fn load_threads(topology: &Topology) -> u32 {
    (topology.cpus.len() as u32 / 2).clamp(1, LOAD_THREADS_MAX)
}

/// Whether no CPU of the generator's is one of the SUT's, nor beside it on the same core.
pub(crate) fn has_cores_of_its_own(placement: &Placement, topology: &Topology) -> bool {
    let Placement { sut_cpus, load_cpus, .. } = placement;
    let on_cores_of = |cpu: &u32| {
        let place = topology.cpus.iter().find(|place| place.cpu == *cpu);
        place.map_or_else(|| vec![*cpu], |place| place.siblings.iter().collect())
    };
    let taken: Vec<u32> = sut_cpus.iter().flat_map(on_cores_of).collect();
    !sut_cpus.is_empty() && !load_cpus.is_empty() && load_cpus.iter().all(|cpu| !taken.contains(cpu))
}
