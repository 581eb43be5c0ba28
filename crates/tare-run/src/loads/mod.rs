//! What makes the subject work: one file each, and the registry.

mod attached;
mod builtin;
mod command;
mod connections;
pub(crate) mod drive;
pub(crate) mod interleaved;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod none;
mod open;
mod profile;
mod staged;
mod warmup;

use crate::error::LabError;
use crate::plan::Resolved;
use crate::process::Started;
use crate::request::LoadRequest;
use crate::running::Running;
use crate::subjects::sut::Sut;
use drive::Drive;
use load::Load;

/// What a load may be made with.
pub(crate) struct Means {
    /// The generator that showed the SUT, at work.
    pub first: Option<Started>,
    /// The reference server, where a level is for it.
    pub reference: Option<Sut>,
}

/// A way to load a server.
struct Entry {
    /// Makes the load that was asked for; `None`: this is not it. Others than the asked level are driven by tare's own generator.
    make: for<'d> fn(&'d Drive<'d>, &mut Means) -> Option<Box<dyn Load + 'd>>,
    /// Where nobody knows the SUT yet: has the generator's connections show it.
    show: fn(&Resolved, &mut Sut, &mut Running<'_>) -> Result<Shown, LabError>,
}

/// What came of it: not this load, or the generator where tare has started it.
enum Shown {
    NotThis,
    By(Option<Started>),
}

/// Every load on a server. A program that runs by itself has [`none`].
static LOADS: [Entry; 3] = [
    Entry {
        make: |drive, means| {
            let own = drive.request.load.is_own();
            own.then(|| Box::new(builtin::Builtin::new(drive, means.reference.take())) as Box<dyn Load>)
        },
        show: |_, _, _| Ok(Shown::NotThis),
    },
    Entry {
        make: |drive, means| match &drive.request.load {
            LoadRequest::Start(command) => {
                Some(Box::new(command::Command::new(drive, command, means.first.take())))
            }
            LoadRequest::Own { .. } | LoadRequest::Pid(_) => None,
        },
        show: |resolved, sut, running| match &resolved.request.load {
            LoadRequest::Start(command) => {
                command::shown(command, resolved, sut, running).map(|started| Shown::By(Some(started)))
            }
            LoadRequest::Own { .. } | LoadRequest::Pid(_) => Ok(Shown::NotThis),
        },
    },
    Entry {
        make: |drive, _| match drive.request.load {
            LoadRequest::Pid(pid) => Some(Box::new(attached::Attached::new(drive, pid))),
            LoadRequest::Own { .. } | LoadRequest::Start(_) => None,
        },
        show: |resolved, sut, running| match resolved.request.load {
            LoadRequest::Pid(pid) => attached::shown(pid, sut, running).map(|()| Shown::By(None)),
            LoadRequest::Own { .. } | LoadRequest::Start(_) => Ok(Shown::NotThis),
        },
    },
];

/// Has the generator's connections show the SUT; the generator, where tare has started it.
pub(crate) fn show(
    resolved: &Resolved,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Option<Started>, LabError> {
    for entry in &LOADS {
        if let Shown::By(started) = (entry.show)(resolved, sut, running)? {
            return Ok(started);
        }
    }
    Ok(None)
}

/// The loads of a server's levels.
pub(crate) struct Loads<'d> {
    asked: Box<dyn Load + 'd>,
    /// Of the levels beside the asked one, where that is another.
    others: Option<Box<dyn Load + 'd>>,
}

impl<'d> Loads<'d> {
    /// The loads of all levels that are driven.
    pub fn of(drive: &'d Drive<'d>, mut means: Means) -> Result<Loads<'d>, LabError> {
        let asked = LOADS.iter().find_map(|entry| (entry.make)(drive, &mut means));
        let asked =
            asked.ok_or_else(|| LabError::usage("no load is named", "leave out --load for tare's own"))?;
        let is_other = !drive.request.load.is_own() && drive.levels.len() > 1;
        let own = || Box::new(builtin::Builtin::new(drive, means.reference.take())) as Box<dyn Load>;
        Ok(Loads { asked, others: is_other.then(own) })
    }

    /// The one of the asked level, or of the others.
    pub fn load(&mut self, is_asked: bool) -> &mut dyn Load {
        match &mut self.others {
            Some(others) if !is_asked => others.as_mut(),
            _ => self.asked.as_mut(),
        }
    }

    /// After the last trial.
    pub fn end(mut self, running: &mut Running<'_>) -> Result<(), LabError> {
        if let Some(others) = &mut self.others {
            others.end(running)?;
        }
        self.asked.end(running)
    }
}
