//! A server that runs already and was named: its processes are known, and not found by its sockets.

use super::answer::{landed, reach};
use super::sut::Sut;
use crate::error::LabError;
use crate::plan::Resolved;
use crate::running::Running;
use tare_model::plan;

/// The SUT of these processes: whoever the generator is connected to among them, or where it answers the load's first request.
pub(super) fn named(pids: Vec<u32>, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError> {
    let kind = plan::Sut::Attached { pids: pids.clone() };
    if resolved.by_connections {
        return Ok(Sut::connected(pids, kind));
    }
    let load = &resolved.request.traffic;
    let preflight = reach(load, running.interrupt)?;
    let sut = Sut::answering(landed(load, &preflight)?, pids, kind).answered(&preflight);
    Ok(sut.reached_by(&load.route).seen_from_here())
}
