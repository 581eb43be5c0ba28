//! What is known of threads in a window.

use super::at_once::AtOnce;
use super::others::Others;
use super::resting::Rest;
use super::watched::{Source, Watched};
use crate::scene::Scene;
use crate::sleep::Peers;
use crate::tape::Tape;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::Missing;

pub(super) struct Tasks {
    pub(super) watched: Vec<Watched>,
    /// How many of them were there when the window opened.
    pub(super) at_begin: usize,
    /// Those that do not run.
    pub(super) rest: Rest,
    /// Threads that are in `watched` or rest, gone ones included.
    pub(super) known: BTreeSet<u32>,
    /// How many threads each process had when they were listed.
    pub(super) listed: BTreeMap<u32, u64>,
    /// Processes that were looked at in this window.
    pub(super) pids: BTreeSet<u32>,
    pub(super) others: Others,
    /// Why a thread of the SUT could not be opened, of the last that could not.
    pub(super) unopened: Option<Missing>,
    /// Why what threads are doing could not be read.
    pub(super) unseen: Option<Missing>,
    pub(super) peers: Peers,
    /// Between the edges, and until the window is reported.
    pub(super) is_open: bool,
    pub(super) at_once: AtOnce,
    pub(super) tape: Tape,
}

/// What is read where a thread is met, and at the edges.
pub(super) const ALL: [Source; 4] = [Source::Schedstat, Source::Stat, Source::Status, Source::Process];

impl Tasks {
    pub(super) fn new(scene: &Scene) -> Tasks {
        Tasks {
            watched: Vec::new(),
            at_begin: 0,
            rest: Rest::new(&scene.root),
            known: BTreeSet::new(),
            listed: BTreeMap::new(),
            pids: BTreeSet::new(),
            others: Others::default(),
            unopened: None,
            unseen: None,
            peers: Peers::default(),
            is_open: false,
            at_once: AtOnce::default(),
            tape: Tape::default(),
        }
    }

    /// Reads files of a thread, which may have ended.
    pub(super) fn read_one(&mut self, at: usize, sources: &[Source]) {
        let Tasks { watched, tape, .. } = self;
        let Some(watched) = watched.get_mut(at) else { return };
        for &source in sources {
            let Some(file) = watched.file(source) else { continue };
            let number = source.number(at as u32);
            match tape.record(number, file, source.bytes_max()) {
                Ok(()) => match tape.last().filter(|reading| reading.source == number) {
                    Some(reading) if source == Source::Schedstat => watched.state_samples.heed(&reading),
                    Some(reading) => watched.hold(source, reading.bytes),
                    None => {}
                },
                // ESRCH: it has ended, and its files with it.
                Err(_) => {
                    watched.gone = true;
                    return;
                }
            }
        }
    }
}
