//! A session with a server: it is found or started, placed, and driven (`drive`).

use crate::confirm;
use crate::error::LabError;
use crate::identity;
use crate::loads::drive::Drive;
use crate::loads::layout;
use crate::plan as resolve;
use crate::progress::{Event, Progress};
use crate::request::{HttpRequest, LoadRequest, SutRequest};
use crate::running::{Held, Running, Session};
use crate::subjects::fit;
use crate::subjects::server::{self, Sut};
use std::path::PathBuf;
use tare_machine::cgroup::Branch;
use tare_machine::journal::{Journal, Pinned, pin_tasks};
use tare_machine::placement::{self, Placement, Wanted};
use tare_machine::{Root, cgroup, procs};
use tare_model::plan::{self, HttpWorkload, Level, Plan, Purpose, Transport, TriedLayout, Workload};
use tare_model::topology::Topology;

/// More generator threads than this are used only when asked for.
const LOAD_THREADS_MAX: u32 = 8;

/// Measures a server. Trials that were finished are kept whatever the end.
pub fn measure(request: HttpRequest, session: &Session, progress: &mut dyn Progress) -> Held {
    let mut running = match Running::begin(session, progress) {
        Ok(running) => running,
        Err(error) => return Held { record: None, end: Err(error) },
    };
    let end = hold(&request, &mut running);
    running.end(end)
}

fn hold(request: &HttpRequest, running: &mut Running<'_>) -> Result<(), LabError> {
    let facts = running.facts.clone();
    let request = &resolve::within_budget(request)?;
    let target = resolve::target(request)?;
    request.traffic.validate().map_err(|error| LabError::usage(error.to_string(), ""))?;
    resolve::check_threads(request)?;
    resolve::check_unix_socket(request)?;
    resolve::check_cpus("--sut-cpus", request.sut_cpus.as_deref(), &facts)?;
    resolve::check_cpus("--load-cpus", request.load_cpus.as_deref(), &facts)?;

    let topology = running.topology.clone();
    let mut sut = open_sut(request, target, &topology, running)?;
    let mut placement = place(request, &sut, &topology)?;
    let (mut found, mut tried_layouts) = (None, Vec::new());
    if request.find_layout {
        let (best, tried) = layout::find(request, &placement, &topology, &mut sut, running)?;
        placement = place(&best, &sut, &topology)?;
        (found, tried_layouts) = (Some(best), tried);
    }
    let request = found.as_ref().unwrap_or(request);
    for note in &placement.notes {
        running.progress.show(Event::Notice(note.clone()));
    }
    // Kept until the end: dropping it puts an attached SUT back on the CPUs it came with.
    let journal = running.journal.clone();
    let pinned = pin(request, &sut, &journal)?;
    let threads = threads(request, &placement);
    let oversubscribed = threads as usize > placement.load_cpus.len().max(1);
    let levels = resolve::levels(request, sut.transport == Transport::Loopback, oversubscribed);
    let drive = Drive {
        request,
        placement: &placement,
        threads,
        levels: &levels,
        seed: tare_sys::time::monotonic_ns(),
        may_poll: has_cores_of_its_own(&placement, &topology),
    };
    let reference = open_reference(request, &placement, &sut, &levels, running)?;
    let programs = identity::of_server(&sut, &request.load);
    running.open_record(plan(request, &sut, &drive, tried_layouts), programs)?;
    let confirm_s = if request.confirm { confirm::EXPECTED_S } else { 0.0 };
    let layouts_s = if request.find_layout { layout::EXPECTED_S } else { 0.0 };
    running.progress.show(Event::Expected { total_s: layouts_s + drive.expected_s() + confirm_s });
    running.progress.show(Event::Step(format!("measuring {}{}", sut.name(), until(request))));
    drive.all(&mut sut, reference, running)?;
    if request.confirm {
        confirm::confirm(&drive, &mut sut, running)?;
    }
    drop(pinned);
    sut.stop();
    free_port(request, &sut, running)
}

/// Frees the port of a server that was started and stopped, where somebody has kept it who left its process group: the next launch would
/// find it taken.
fn free_port(request: &HttpRequest, sut: &Sut, running: &mut Running<'_>) -> Result<(), LabError> {
    let is_ours = matches!(sut.kind, plan::Sut::Started { .. }) && request.traffic.route.unix_socket.is_none();
    if !is_ours || !server::is_taken(&sut.target) {
        return Ok(());
    }
    server::stop_orphans();
    if server::is_taken(&sut.target) {
        // Of somebody whom another has started, a service manager say: whoever wants the port again is told.
        return Ok(());
    }
    let text = format!(
        "port {} was still taken when the server had been stopped: by processes that had left its group, which were stopped as well",
        sut.target.port()
    );
    running.notice("port-kept", &text, "have its command stay in the foreground, without setsid or a daemon")
}

/// When trials end before their time is up.
fn until(request: &HttpRequest) -> String {
    let precision = request.stopping.and_then(|stopping| stopping.precision);
    precision.map_or_else(String::new, |share| {
        format!(", and no longer than until gross is known to ±{} %", (1e4 * share).round() / 100.0)
    })
}

/// The reference server, on the SUT's CPUs, where a level is for it. It idles while the SUT does not.
fn open_reference(
    request: &HttpRequest,
    placement: &Placement,
    sut: &Sut,
    levels: &[Level],
    running: &mut Running<'_>,
) -> Result<Option<Sut>, LabError> {
    if levels.iter().all(|level| level.purpose != Purpose::Reference) {
        return Ok(None);
    }
    running.progress.show(Event::Step("starting the reference server".into()));
    let start = |groups: &[PathBuf]| {
        let program = &request.embedded_program;
        server::embedded(program, &placement.sut_cpus, groups, &running.journal, running.interrupt)
    };
    match group_of(sut) {
        // A group may refuse it: then it is measured from outside, as where nobody may put it there.
        Some(group) => start(&[group]).or_else(|_| start(&[])).map(Some),
        None => start(&[]).map(Some),
    }
}

/// The list of processes of the SUT's control group, where that is not ours and ours to join. A quota there holds the reference back at
/// the same moments as the SUT then: out of it, the reference would have the CPU to itself for as long as the SUT is held back, and
/// be the cheaper for it.
fn group_of(sut: &Sut) -> Option<PathBuf> {
    let root = Root::live();
    let first = |branch: Branch| branch.levels.into_iter().next().map(|(_, dir)| dir);
    let group = |pid: &u32| cgroup::branch_of(&root, *pid, "cpu").ok().and_then(first);
    let mut groups: Vec<PathBuf> = sut.pids.iter().map(group).collect::<Option<_>>()?;
    groups.dedup();
    let own = cgroup::own(&root, "cpu").ok().and_then(first);
    match groups.as_slice() {
        [one] if tare_sys::process::is_root() && own.as_ref() != Some(one) => Some(one.join("cgroup.procs")),
        _ => None,
    }
}

fn open_sut(
    request: &HttpRequest,
    target: Option<tare_load::Target>,
    topology: &Topology,
    running: &mut Running<'_>,
) -> Result<Sut, LabError> {
    match (&request.sut, target) {
        (SutRequest::Embedded, _) | (_, None) => {
            let place = choose(request, topology, &[], 1)?;
            running.progress.show(Event::Step("starting the built-in server".into()));
            server::embedded(
                &request.embedded_program,
                &place.sut_cpus,
                &[],
                &running.journal,
                running.interrupt,
            )
        }
        (SutRequest::Start(command), Some(target)) => {
            running.progress.show(Event::Step(format!("starting {command}")));
            let cpus = started_on(request, topology)?;
            let load = request.traffic.aimed_at(target);
            let environment = match request.fit_runtime {
                true => fit::environment(&cpus, topology, running.progress),
                false => Vec::new(),
            };
            server::start(command, &load, &cpus, environment, &running.journal, running.interrupt)
        }
        (SutRequest::Pid(pid), Some(target)) => server::attach(*pid, &request.traffic.aimed_at(target)),
        (SutRequest::Find, Some(target)) => {
            let sut = server::find(&request.traffic.aimed_at(target))?;
            if let plan::Sut::Unseen { why } = &sut.kind {
                running.notice(
                    "sut-unseen",
                    why,
                    "the accounting hold the generator's side only; --sut-pid names the server's process",
                )?;
            }
            Ok(sut)
        }
    }
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

fn request_threads(request: &HttpRequest) -> Option<u32> {
    match request.load {
        LoadRequest::Own { threads } => threads,
        LoadRequest::Start(_) | LoadRequest::Pid(_) => None,
    }
}

/// The CPUs that a program of the user's is started on; none: wherever it wants to.
fn started_on(request: &HttpRequest, topology: &Topology) -> Result<Vec<u32>, LabError> {
    match (&request.sut_cpus, request.placement) {
        (Some(given), _) => Ok(given.clone()),
        (None, None) => Ok(Vec::new()),
        (None, Some(_)) => {
            let cores = topology.cores.value().or(topology.threads.value()).copied().unwrap_or(1);
            choose(request, topology, &[], (cores / 2).max(1)).map(|place| place.sut_cpus)
        }
    }
}

fn place(request: &HttpRequest, sut: &Sut, topology: &Topology) -> Result<Placement, LabError> {
    let tids = tids(sut);
    let mut allowed: Vec<u32> =
        tids.iter().flat_map(|tid| tare_sys::affinity::get(*tid).unwrap_or_default()).collect();
    allowed.sort_unstable();
    allowed.dedup();
    choose(request, topology, &allowed, tids.len() as u32)
}

fn choose(
    request: &HttpRequest,
    topology: &Topology,
    allowed: &[u32],
    threads: u32,
) -> Result<Placement, LabError> {
    let wanted = Wanted {
        sut_allowed: allowed,
        sut_threads: threads,
        load_threads: request_threads(request).unwrap_or_else(|| load_threads(topology)),
        given_sut: request.sut_cpus.as_deref().unwrap_or_default(),
        given_load: request.load_cpus.as_deref().unwrap_or_default(),
        policy: request.placement.unwrap_or_default(),
        // What tare starts is in tare's own group.
        quota_cpus: cgroup::quota_cpus(&Root::live(), std::process::id()),
    };
    placement::choose(topology, &wanted).map_err(|error| LabError::usage(error.to_string(), ""))
}

/// Generator threads unless told otherwise: half of the machine's cores, so that the other half can serve.
pub(crate) fn load_threads(topology: &Topology) -> u32 {
    (topology.cpus.len() as u32 / 2).clamp(1, LOAD_THREADS_MAX)
}

fn tids(sut: &Sut) -> Vec<u32> {
    sut.pids.iter().flat_map(|pid| procs::tasks_of(&Root::live(), *pid)).collect()
}

/// Pins an attached SUT where that was asked for; one that tare starts is born on its CPUs.
fn pin<'j>(request: &HttpRequest, sut: &Sut, journal: &'j Journal) -> Result<Option<Pinned<'j>>, LabError> {
    let (Some(cpus), plan::Sut::Attached { .. }) = (&request.sut_cpus, &sut.kind) else { return Ok(None) };
    pin_tasks(journal, &Root::live(), &tids(sut), cpus)
        .map(Some)
        .map_err(|error| LabError::usage(format!("cannot pin the SUT: {error}"), "leave out --sut-cpus"))
}

fn plan(request: &HttpRequest, sut: &Sut, drive: &Drive<'_>, tried_layouts: Vec<TriedLayout>) -> Plan {
    let placement = drive.placement;
    let generator = match &request.load {
        LoadRequest::Own { .. } => plan::Generator::Own { threads: drive.threads },
        LoadRequest::Start(command) => plan::Generator::Started { command: command.clone() },
        LoadRequest::Pid(pid) => plan::Generator::Attached { pid: *pid },
    };
    Plan {
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        workload: Workload::Http(HttpWorkload {
            url: sut.target.to_string(),
            sut: sut.kind.clone(),
            generator,
            transport: sut.transport,
            levels: drive.levels.to_vec(),
            seed: (drive.levels.len() > 1).then_some(drive.seed),
            tried_layouts,
        }),
        sut_cpus: match (&sut.kind, &request.sut_cpus) {
            (_, Some(cpus)) => cpus.clone(),
            (plan::Sut::Embedded, None) => placement.sut_cpus.clone(),
            _ => Vec::new(),
        },
        load_cpus: match &request.load {
            LoadRequest::Own { .. } => placement.load_cpus.clone(),
            _ => request.load_cpus.clone().unwrap_or_default(),
        },
        ref_clock_hz: request.ref_clock_hz,
        stopping: request.stopping,
    }
}

fn threads(request: &HttpRequest, placement: &Placement) -> u32 {
    request_threads(request).unwrap_or(placement.load_cpus.len().max(1) as u32)
}
