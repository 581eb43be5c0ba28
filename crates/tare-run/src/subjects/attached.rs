//! A server that runs already, named by its process.

use super::named::named;
use super::subject::Subject;
use super::sut::Sut;
use crate::error::LabError;
use crate::plan::Resolved;
use crate::process::{alive, families};
use crate::request::SutRequest;
use crate::running::Running;

/// The given process and its descendants.
pub(super) struct Attached;

impl Subject for Attached {
    fn is_asked(&self, resolved: &Resolved) -> bool {
        matches!(resolved.request.sut, SutRequest::Pid(_))
    }

    fn why(&self) -> &'static str {
        "--sut-pid names it, with all that descends from it"
    }

    fn open(&self, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError> {
        let SutRequest::Pid(pid) = resolved.request.sut else {
            return Err(LabError::usage("no process is named", "give --sut-pid PID"));
        };
        if !alive(pid) {
            return Err(LabError::usage(
                format!("there is no process {pid}"),
                "'pgrep -af NAME' shows the PIDs of a program",
            ));
        }
        let mut pids = vec![pid];
        pids.extend(families(&[pid]).into_iter().filter(|descendant| *descendant != pid));
        named(pids, resolved, running)
    }
}
