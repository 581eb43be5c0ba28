//! What ceilings are measured on: CPUs, a folder, and what several of them share.

use super::served::Reference;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tare_machine::journal::Journal;
use tare_machine::placement::Placement;
use tare_machine::probes::bandwidth::Bandwidth;
use tare_machine::probes::choose;
use tare_model::Missing;
use tare_model::machine::CpuFacts;
use tare_model::survey::Survey;

/// Bytes of an array of each thread: several times the last cache, within these bounds.
const ARRAY_BYTES_MIN: u64 = 4 << 20;
const ARRAY_BYTES_MAX: u64 = 64 << 20;
/// All arrays together take at most this, and at most this part of what memory there is.
const ARRAYS_BYTES_MAX: u64 = 2 << 30;
const ARRAYS_PART: u64 = 4;
const ARRAYS_EACH: u64 = 3;

/// The machine, and what was made for the samples.
pub(super) struct Ground {
    /// CPUs that this process may use, ascending.
    pub cpus: Vec<u32>,
    /// Where a server and its generator run.
    pub placement: Placement,
    /// Whether a generator may look for answers without sleeping.
    pub may_poll: bool,
    /// The folder in use.
    pub dir: PathBuf,
    /// This program, which is the reference server too.
    pub program: PathBuf,
    /// What was started.
    pub journal: Rc<Journal>,
    /// Set when the user has had enough.
    pub interrupt: Arc<AtomicBool>,
    /// Facts of the CPUs.
    pub facts: Vec<CpuFacts>,
    /// Bytes that the arrays may take together.
    pub arrays_bytes: u64,
    /// Threads with arrays, made when they are first needed.
    pub bandwidth: OnceCell<Result<Rc<Bandwidth>, Missing>>,
    /// The reference server, started when it is first needed.
    pub reference: OnceCell<Result<Rc<Reference>, Missing>>,
}

impl Ground {
    /// Where a probe runs that needs one CPU: the last, as the first serves most interrupts.
    pub fn cpu(&self) -> u32 {
        self.cpus.last().copied().unwrap_or(0)
    }

    /// Two CPUs of two cores.
    pub fn apart(&self) -> Result<[u32; 2], Missing> {
        choose::apart(&self.facts, &self.cpus)
    }

    /// A server's and a client's CPU, as many pairs as both have CPUs.
    pub fn pairs(&self) -> Vec<[u32; 2]> {
        let Placement { sut_cpus, load_cpus, .. } = &self.placement;
        sut_cpus.iter().zip(load_cpus).map(|(server, client)| [*server, *client]).collect()
    }

    /// The threads with arrays.
    pub fn bandwidth(&self) -> Result<Rc<Bandwidth>, Missing> {
        let made = self.bandwidth.get_or_init(|| {
            let each = self.arrays_bytes / ARRAYS_EACH / self.cpus.len().max(1) as u64;
            let bytes = each.min(ARRAY_BYTES_MAX);
            if bytes < ARRAY_BYTES_MIN {
                return Err(Missing::with_remedy(
                    format!(
                        "{} MiB of memory are too few for arrays that no cache holds",
                        self.arrays_bytes >> 20
                    ),
                    "free some memory, or raise the limit of the control group",
                ));
            }
            Bandwidth::new(&self.cpus, bytes as usize).map(Rc::new)
        });
        made.clone()
    }

    /// The reference server.
    pub fn reference(&self) -> Result<Rc<Reference>, Missing> {
        let start = || {
            let cpus = &self.placement.sut_cpus;
            Reference::start(&self.program, cpus, &self.journal, &self.interrupt).map(Rc::new)
        };
        self.reference.get_or_init(start).clone()
    }
}

/// Bytes that arrays may take: a part of what is free here and in every group up to the root.
pub(super) fn arrays_bytes(survey: &Survey) -> u64 {
    let free = survey.memory.available_bytes.value().copied().unwrap_or(ARRAYS_BYTES_MAX);
    let groups = survey.groups.memory.value().map(Vec::as_slice).unwrap_or_default();
    // The page cache that a group holds gives way.
    let limits = groups.iter().filter_map(|group| group.limit_bytes.value().copied());
    limits.chain([free]).map(|bytes| bytes / ARRAYS_PART).fold(ARRAYS_BYTES_MAX, u64::min)
}
