//! A server that runs already, named by its control group: a service of systemd, or a container.

use super::named::named;
use super::subject::Subject;
use super::sut::Sut;
use crate::error::LabError;
use crate::plan::Resolved;
use crate::process::families;
use crate::request::SutRequest;
use crate::running::Running;
use tare_machine::Root;
use tare_machine::group_members::{NoMembers, group_members};

/// All processes of a group and their descendants.
pub(super) struct Group;

impl Subject for Group {
    fn is_asked(&self, resolved: &Resolved) -> bool {
        matches!(resolved.request.sut, SutRequest::Group(_))
    }

    fn why(&self) -> &'static str {
        "--sut-group names its control group"
    }

    fn open(&self, resolved: &Resolved, running: &mut Running<'_>) -> Result<Sut, LabError> {
        let SutRequest::Group(group) = &resolved.request.sut else {
            return Err(LabError::usage("no control group is named", "give --sut-group GROUP"));
        };
        named(members(group)?, resolved, running)
    }
}

/// Who is in the group, with all descendants.
fn members(group: &str) -> Result<Vec<u32>, LabError> {
    let pids = group_members(&Root::live(), group).map_err(|why| {
        let hint = match why {
            NoMembers::Ambiguous(..) => "give the whole path of one of them",
            _ => "/proc/PID/cgroup shows the groups of a process; the path of one is what --sut-group takes",
        };
        LabError::usage(why.to_string(), hint)
    })?;
    if pids.contains(&std::process::id()) {
        return Err(LabError::usage(
            format!("tare itself is in the control group {group}"),
            "start tare outside of it, or name the server's process with --sut-pid",
        ));
    }
    Ok(families(&pids))
}
