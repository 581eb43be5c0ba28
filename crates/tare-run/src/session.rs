//! The one way in: what was asked for is resolved, the subject opened, its load driven trial by trial, each trial read by its meter
//! and put on disk, and everything closed.

use crate::blocks::{self, Stint};
use crate::bounds;
use crate::confirm;
use crate::driven::keep;
use crate::error::LabError;
use crate::identity;
use crate::loads::drive::Drive;
use crate::loads::{self, Loads, Means, layout};
use crate::place;
use crate::plan::{self as plans, Resolved};
use crate::programs;
use crate::progress::{Event, Progress};
use crate::reference_level::Reference;
use crate::request::{LoadRequest, Request};
use crate::running::{Held, Running, Session};
use crate::subjects::answer::notes;
use crate::subjects::sut::Sut;
use crate::subjects::{self, embedded};
use std::path::PathBuf;
use tare_machine::cgroup::Branch;
use tare_machine::journal::{Journal, Pinned, pin_tasks};
use tare_machine::{Root, cgroup};
use tare_model::ceiling::KnownBounds;
use tare_model::plan::{self, HttpWorkload, Plan, Purpose, Transport, TriedLayout, Workload};
use tare_model::reference_level::KnownReference;

/// Measures what was asked for. Trials that were finished are kept whatever the end.
pub fn measure(request: Request, session: &Session, progress: &mut dyn Progress) -> Held {
    let mut running = match Running::begin(session, progress) {
        Ok(running) => running,
        Err(error) => return Held { record: None, end: Err(error) },
    };
    let end = match request {
        Request::Server(request) => {
            plans::resolve(*request, &running.facts).and_then(|resolved| server(resolved, &mut running))
        }
        Request::Program(request) => programs::measure(&request, &mut running),
    };
    running.end(end)
}

fn server(mut resolved: Resolved, running: &mut Running<'_>) -> Result<(), LabError> {
    let topology = running.topology.clone();
    let subject = subjects::of(&resolved)?;
    let mut sut = subject.open(&resolved, running)?;
    subjects::decided::report(&sut, subject.why());
    notes(&resolved.request.traffic, &sut, running)?;
    let first = match resolved.by_connections {
        true => loads::show(&resolved, &mut sut, running)?,
        false => None,
    };
    let mut placement = place::around(&resolved.request, &sut.tids(), &topology)?;
    let mut tried_layouts = Vec::new();
    if resolved.request.beside.find_layout {
        tried_layouts = layout::find(&resolved.request, &placement, &topology, &mut sut, running)?;
        if let Some(best) = tried_layouts.first() {
            resolved.request.load = LoadRequest::Own { threads: Some(best.threads) };
            resolved.request.place.load_cpus = Some(best.cpus.clone());
        }
        placement = place::around(&resolved.request, &sut.tids(), &topology)?;
    }
    for note in &placement.notes {
        running.progress.show(Event::Notice(note.clone()));
    }
    place::report(&placement, &resolved.request.place, sut.tids().len(), &topology);
    let request = &resolved.request;
    // Kept until the end: dropping it puts an attached SUT back on the CPUs it came with.
    let journal = running.journal.clone();
    let pinned = pin(&resolved, &sut, &journal)?;
    let threads = request.load.own_threads().unwrap_or(placement.load_cpus.len().max(1) as u32);
    let oversubscribed = threads as usize > placement.load_cpus.len().max(1);
    let levels = resolved.levels.driven(sut.transport == Transport::Loopback, oversubscribed);
    let profile = resolved.levels.profile();
    let drive = Drive {
        request,
        placement: &placement,
        threads,
        levels: &levels,
        profile: profile.as_ref(),
        seed: tare_sys::time::monotonic_ns(),
        may_poll: place::has_cores_of_its_own(&placement, &topology),
    };
    let reference = open_reference(&drive, &sut, running)?;
    let taking_part = identity::of_server(&sut, &request.load);
    let known = Reference::of(&drive, running);
    let before = Beforehand {
        tried_layouts,
        reference: known.as_ref().map(Reference::known),
        bounds: bounds::of_server(&sut, running),
    };
    let plan = plan_of_server(&sut, &drive, before);
    running.open_record(plan, taking_part)?;
    let confirm_s = if request.beside.confirm { confirm::EXPECTED_S } else { 0.0 };
    // How long somebody else's generator runs in each trial is known to it alone.
    if !matches!(request.load, LoadRequest::Start(_)) {
        // Layouts have been tried by now, and the time passed since then counts.
        running.progress.show(Event::Expected { total_s: drive.expected_s() + confirm_s });
    }
    running.progress.show(Event::Step(format!(
        "measuring {}{}",
        sut.name(),
        until(&resolved, running.target())
    )));
    all_levels(&drive, Means { first, reference }, &mut sut, running)?;
    known.map_or(Ok(()), |known| known.keep(running))?;
    if request.beside.confirm {
        confirm::confirm(&drive, &mut sut, running)?;
    }
    drop(pinned);
    subject.close(&mut sut, &resolved, running)
}

/// Drives the levels in blocks, a trial of each in an order drawn at random.
fn all_levels(
    drive: &Drive<'_>,
    means: Means,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<(), LabError> {
    let mut loads = Loads::of(drive, means)?;
    running.warm_up = loads.load(true).warm_up(sut, running)?;
    let is_asked = |stint: &Stint| {
        let level = stint.first().and_then(|(index, _)| drive.levels.get(*index));
        level.is_some_and(|level| level.purpose == Purpose::Asked)
    };
    if !drive.request.load.is_own() {
        running.begin_in_step()?;
    }
    for block in blocks::blocks(drive.seed, drive.levels) {
        for stint in block {
            for driven in loads.load(is_asked(&stint)).drive(&stint, sut, running)? {
                keep(driven, running)?;
            }
        }
        if running.is_enough(0) {
            break;
        }
    }
    let profile = loads.load(true).profile(sut, running);
    running.keep_profile(profile);
    loads.end(running)
}

/// When trials end before their time is up.
fn until(resolved: &Resolved, figure: &str) -> String {
    let precision = resolved.request.trials.stopping.and_then(|stopping| stopping.precision);
    precision.map_or_else(String::new, |share| {
        format!(", and no longer than until {figure} is known to ±{} %", (1e4 * share).round() / 100.0)
    })
}

/// The reference server, on the SUT's CPUs, where a level is for it. It idles while the SUT does not.
fn open_reference(drive: &Drive<'_>, sut: &Sut, running: &mut Running<'_>) -> Result<Option<Sut>, LabError> {
    if drive.levels.iter().all(|level| level.purpose != Purpose::Reference) {
        return Ok(None);
    }
    running.progress.show(Event::Step("starting the reference server".into()));
    let start = |groups: &[PathBuf]| {
        let program = &drive.request.embedded_program;
        let cpus = &drive.placement.sut_cpus;
        embedded::embedded(program, cpus, groups, &running.journal, running.interrupt)
    };
    match group_of(sut) {
        // A group may refuse it: then it is measured from outside, as where nobody may put it there.
        Some(group) => start(&[group]).or_else(|_| start(&[])).map(Some),
        None => start(&[]).map(Some),
    }
}

/// The list of processes of the SUT's control group, where that is not ours and ours to join. A quota there then throttles the reference at
/// the same moments as the SUT: out of it, the reference would have the CPU to itself for as long as the SUT is throttled, and
/// need less CPU time for a request.
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

/// Pins an attached SUT where that was asked for; one that tare starts is born on its CPUs.
fn pin<'j>(resolved: &Resolved, sut: &Sut, journal: &'j Journal) -> Result<Option<Pinned<'j>>, LabError> {
    let (Some(cpus), plan::Sut::Attached { .. }) = (&resolved.request.place.sut_cpus, &sut.kind) else {
        return Ok(None);
    };
    pin_tasks(journal, &Root::live(), &sut.tids(), cpus).map(Some).map_err(|error| {
        LabError::usage(format!("cannot pin the SUT: {error}"), "run as root, or leave out --sut-cpus")
    })
}

/// What was found out before the plan.
struct Beforehand {
    /// Layouts that were tried.
    tried_layouts: Vec<TriedLayout>,
    /// The level of the reference.
    reference: Option<KnownReference>,
    /// What bounds the figure.
    bounds: KnownBounds,
}

fn plan_of_server(sut: &Sut, drive: &Drive<'_>, beforehand: Beforehand) -> Plan {
    let request = drive.request;
    Plan {
        argv: request.argv.clone(),
        started_unix_s: tare_sys::time::wall_s(),
        workload: Workload::Http(workload(sut, drive, beforehand.tried_layouts, beforehand.reference)),
        sut_cpus: match (&sut.kind, &request.place.sut_cpus) {
            (_, Some(cpus)) => cpus.clone(),
            (plan::Sut::Embedded, None) => drive.placement.sut_cpus.clone(),
            _ => Vec::new(),
        },
        load_cpus: match &request.load {
            LoadRequest::Own { .. } => drive.placement.load_cpus.clone(),
            _ => request.place.load_cpus.clone().unwrap_or_default(),
        },
        ref_clock_hz: request.ref_clock_hz,
        stopping: request.trials.stopping,
        bounds: beforehand.bounds,
    }
}

fn workload(
    sut: &Sut,
    drive: &Drive<'_>,
    tried_layouts: Vec<TriedLayout>,
    reference: Option<KnownReference>,
) -> HttpWorkload {
    HttpWorkload {
        url: sut.target.as_ref().map(ToString::to_string),
        sut: sut.kind.clone(),
        generator: match &drive.request.load {
            LoadRequest::Own { .. } => plan::Generator::Own { threads: drive.threads },
            LoadRequest::Start(command) => plan::Generator::Started { command: command.clone() },
            LoadRequest::Pid(pid) => plan::Generator::Attached { pid: *pid },
        },
        transport: sut.transport,
        levels: drive.levels.to_vec(),
        seed: (drive.levels.len() > 1).then_some(drive.seed),
        tried_layouts,
        reference,
        profile: drive.profile.cloned(),
    }
}
