//! What is measured: one file each, and the registry. How a subject is found or started, what belongs to it and how it is stopped is
//! known here alone.

pub(crate) mod answer;
mod attached;
mod connected;
pub(crate) mod decided;
pub(crate) mod embedded;
pub(crate) mod fit;
mod found;
mod group;
mod named;
pub(crate) mod program;
pub(crate) mod started;
pub(crate) mod subject;
pub(crate) mod sut;

pub(crate) use connected::met;

use crate::error::LabError;
use crate::plan::Resolved;
use subject::Subject;

/// Every kind of server. The first that is what was asked for is opened.
static SUBJECTS: [&dyn Subject; 6] = [
    &embedded::Embedded,
    &started::Command,
    &attached::Attached,
    &group::Group,
    &found::Found,
    &connected::Connected,
];

/// What a request is about.
pub(crate) fn of(resolved: &Resolved) -> Result<&'static dyn Subject, LabError> {
    let asked = SUBJECTS.iter().copied().find(|subject| subject.is_asked(resolved));
    asked.ok_or_else(|| {
        LabError::usage(
            "no server is named",
            "give a URL, --sut 'COMMAND', --sut-pid PID or --sut-group GROUP",
        )
    })
}
