//! Applies what an arm is to be run with, and puts it back.

use super::counts::Counts;
use super::verify::Seen;
use super::wanted::{HugePages, Treatment};
use crate::error::LabError;
use crate::running::Running;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use tare_machine::Root;
use tare_machine::huge_pages::{self, Pool};
use tare_machine::journal::Journal;
use tare_machine::settings::{self, Applied, Lock, TuneError, Wanted};
use tare_machine::smaps::Memory;
use tare_model::Missing;
use tare_model::placement::Policy;

/// The setting of the pool, as `tare tune` calls it.
const HUGE_PAGES: &str = "huge-pages";

/// What each program is to be run with. The lock of settings is held from the first judgement to the end of the comparison: what another
/// tare applies meanwhile would be taken for what was there before.
pub(crate) struct Switch {
    pub(super) root: Root,
    journal: Rc<Journal>,
    lock: Option<Lock>,
    pub(super) arms: Vec<Arm>,
    /// The arms differ by where they run alone.
    pub(super) by_place_alone: bool,
    refused: RefCell<Option<Refused>>,
}

/// What a program is to be run with, as far as it is known.
#[derive(Default)]
pub(super) struct Arm {
    machine: Wanted,
    /// Until the memory of the program is known.
    huge_pages: Option<HugePages>,
    environment: Vec<(String, String)>,
    no_thp: bool,
    pub placement: Option<Policy>,
    /// What it chose.
    pub placed: RefCell<Placed>,
    /// What the user is to know of it.
    notes: Vec<String>,
}

/// Where a program is, once its policy has chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub cpus: Vec<u32>,
    /// Their NUMA nodes.
    pub nodes: Vec<u32>,
}

/// What could not be applied, though the machine has it.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// Of which program.
    pub program: usize,
    /// Name of the setting, as `tare tune` calls it.
    pub setting: &'static str,
    /// Why.
    pub why: Missing,
}

/// What is applied, until this is dropped.
pub(crate) struct Standing<'s> {
    applied: Option<Applied<'s>>,
    /// What the kernel had counted when it was; only where somebody wants to know.
    counted: Option<Counts>,
    switch: &'s Switch,
}

impl Switch {
    /// Judges what is wanted of each program. Nothing is changed.
    pub fn new(treatments: &[Treatment], running: &Running<'_>) -> Result<Switch, LabError> {
        let by_place_alone = matches!(treatments, [one, other, ..] if one.same_but_for_place(other));
        if let [one, other, ..] = treatments
            && by_place_alone
            && one.placement == other.placement
        {
            return Err(LabError::usage("A and B have the same settings", "give them different values"));
        }
        let switch = Switch::of(treatments, Rc::clone(&running.journal), running.state_dir())?;
        let switch = Switch { by_place_alone, ..switch };
        switch.check_differs()?;
        Ok(switch)
    }

    /// Judges what is wanted of each of any number of programs, which need not differ. Nothing is changed.
    pub fn of(treatments: &[Treatment], journal: Rc<Journal>, state_dir: &Path) -> Result<Switch, LabError> {
        let root = Root::live();
        let is_machine_wide = treatments.iter().any(Treatment::is_machine_wide);
        let lock = is_machine_wide.then(|| Lock::take(state_dir)).transpose();
        let lock = lock.map_err(|error| LabError::usage(error.to_string(), "wait for its end"))?;
        let arms = treatments.iter().map(|treatment| arm(&root, treatment)).collect::<Result<_, _>>()?;
        Ok(Switch { root, journal, lock, arms, by_place_alone: false, refused: RefCell::default() })
    }

    /// Whether anybody is treated.
    pub fn is_some(&self) -> bool {
        !self.arms.is_empty()
    }

    /// Variables of a program's environment.
    pub fn environment(&self, program: usize) -> &[(String, String)] {
        self.arms.get(program).map_or(&[], |arm| arm.environment.as_slice())
    }

    /// What the user is to know of a program's settings.
    pub fn notes(&self, program: usize) -> Vec<String> {
        self.arms.get(program).map_or_else(Vec::new, |arm| arm.notes.clone())
    }

    /// What could not be applied.
    pub fn refused(&self) -> Option<Refused> {
        self.refused.borrow().clone()
    }

    /// Whether a program is to get no transparent huge pages.
    pub fn no_thp(&self, program: usize) -> bool {
        self.arms.get(program).is_some_and(|arm| arm.no_thp)
    }

    /// Nothing seen yet, of so many programs.
    pub fn unseen(&self, programs: usize) -> Vec<Seen> {
        vec![Seen::nothing(self.has_place()); programs]
    }

    /// Whether anybody has asked for a place.
    pub fn has_place(&self) -> bool {
        self.arms.iter().any(|arm| arm.placement.is_some())
    }

    /// Applies what each program is to be run with and puts it back at once: what the machine does not let us do is known then before
    /// anything is started.
    pub fn rehearse(&self) -> Result<(), LabError> {
        (0..self.arms.len()).try_for_each(|program| self.on(program)?.end().map(drop))
    }

    /// Whether the memory of the first program has to be known before the others are run.
    pub fn needs_trial(&self) -> bool {
        self.arms.iter().any(|arm| arm.huge_pages.is_some())
    }

    /// Chooses the size of the pool by what the first program had mapped, and sets what makes the program use it.
    pub fn fit(&mut self, seen: &Seen) -> Result<(), LabError> {
        let Some(huge_pages) = self.arms.iter().find_map(|arm| arm.huge_pages) else { return Ok(()) };
        let memory = match (&seen.memory, huge_pages) {
            (Ok(memory), _) => memory,
            (Err(_), HugePages::Pages(_)) => return Ok(()),
            (Err(missing), HugePages::Auto) => {
                return Err(LabError::usage(
                    format!("hugepages=auto: the memory of A is not known: {}", missing.why),
                    "give a number of pages, or a program that runs for longer",
                ));
            }
        };
        let asks = huge_pages::asks(memory);
        for arm in &mut self.arms {
            let Some(huge_pages) = arm.huge_pages.take() else { continue };
            if huge_pages == HugePages::Auto {
                arm.take_pool(&self.root, memory)?;
            }
            arm.notes.push(asks.words.to_owned());
            if let Some((name, part)) = asks.variable {
                add(&mut arm.environment, name, part);
            }
        }
        (0..self.arms.len()).try_for_each(|program| self.check(program))
    }

    /// What is wanted of a program must be possible here.
    fn check(&self, program: usize) -> Result<(), LabError> {
        self.arms.get(program).map_or(Ok(()), |arm| possible(&self.root, &arm.machine).map(drop))
    }

    /// Somebody must be run with something that he would not have anyway.
    fn check_differs(&self) -> Result<(), LabError> {
        let is_alone = |arm: &Arm| {
            arm.huge_pages.is_some() || arm.no_thp || !arm.environment.is_empty() || arm.placement.is_some()
        };
        if self.arms.is_empty() || self.arms.iter().any(is_alone) {
            return Ok(());
        }
        let mut as_it_stands = Vec::new();
        for arm in &self.arms {
            for planned in possible(&self.root, &arm.machine)? {
                match &planned.change {
                    Ok(change) if change.steps.is_empty() => as_it_stands.push(planned.setting),
                    _ => return Ok(()),
                }
            }
        }
        let now = |setting: &&dyn settings::Setting| {
            let now = setting.now(&self.root).unwrap_or_default();
            format!("{} is '{now}' already", setting.name())
        };
        Err(LabError::usage(
            format!(
                "{}: A and B would be the same",
                as_it_stands.iter().map(now).collect::<Vec<_>>().join(", ")
            ),
            "give another value; 'tare tune --status' shows how each setting stands",
        ))
    }

    /// Applies what a program is to be run with.
    pub fn on(&self, program: usize) -> Result<Standing<'_>, LabError> {
        // Of those, too, that are run as the machine is: what is counted of the others is held against it.
        let wants_counts = |arm: &Arm| {
            let network = &arm.machine.network;
            network.rps.is_some() || network.rps_flows.is_some() || network.busy_poll_ns.is_some()
        };
        let counted = self.arms.iter().any(wants_counts).then(|| Counts::read(&self.root));
        let nothing = Standing { applied: None, counted, switch: self };
        let (Some(arm), Some(lock)) = (self.arms.get(program), &self.lock) else { return Ok(nothing) };
        if arm.machine == Wanted::default() {
            return Ok(nothing);
        }
        let plan = possible(&self.root, &arm.machine)?;
        let applied = settings::apply(&self.journal, lock.clone(), &self.root, &plan, &|| ());
        let applied = applied.map_err(|error| self.refuse(program, error))?;
        let standing = Standing { applied: Some(applied), ..nothing };
        if let Some(bytes) = arm.machine.memory.huge_pages_bytes {
            self.check_pool(program, bytes)?;
        }
        Ok(standing)
    }

    /// The kernel makes as many huge pages as it finds pieces of memory for.
    fn check_pool(&self, program: usize, bytes: u64) -> Result<(), LabError> {
        let Ok(pool) = Pool::read(&self.root) else { return Ok(()) };
        let asked = bytes.div_ceil(pool.page_bytes);
        if pool.total >= asked {
            return Ok(());
        }
        let why = Missing::with_remedy(
            format!(
                "memory is fragmented: the kernel made {} huge pages of the {asked} asked for",
                pool.total
            ),
            "echo 1 > /proc/sys/vm/compact_memory, or start the machine anew and try at once",
        );
        Err(self.refused_for(program, HUGE_PAGES, why))
    }

    fn refuse(&self, program: usize, error: TuneError) -> LabError {
        match &error {
            TuneError::Refused { setting, path, wanted, source, .. }
                if source.kind() != std::io::ErrorKind::PermissionDenied =>
            {
                let why = format!("{} did not take '{wanted}': {source}", path.display());
                self.refused_for(
                    program,
                    setting,
                    Missing::with_remedy(why, "'tare tune' shows what it can be"),
                )
            }
            _ if error.is_undone() => LabError::usage(error.to_string(), "run tare as root"),
            _ => {
                self.keep_journal();
                LabError::State(error.to_string())
            }
        }
    }

    fn refused_for(&self, program: usize, setting: &'static str, why: Missing) -> LabError {
        let text = format!("{setting} could not be applied: {} (hint: {})", why.why, why.remedy);
        *self.refused.borrow_mut() = Some(Refused { program, setting, why });
        LabError::State(text)
    }

    /// Something is not as it was: whoever starts next finds it by the journal, which stays while somebody has it.
    fn keep_journal(&self) {
        std::mem::forget(Rc::clone(&self.journal));
    }
}

impl Arm {
    /// A pool that holds this memory. What others have of it stays theirs; what lies free already is enough where it is.
    fn take_pool(&mut self, root: &Root, memory: &Memory) -> Result<(), LabError> {
        let usage =
            |missing: Missing| LabError::usage(format!("hugepages=auto: {}", missing.why), missing.remedy);
        let pool = Pool::read(root).map_err(usage)?;
        let pages = huge_pages::pages_of(memory, pool.page_bytes).map_err(usage)?;
        let wanted = (pool.used + pages).max(pool.total);
        self.machine.memory.huge_pages_bytes = Some(pool.bytes(wanted));
        let mib = pool.page_bytes >> 20;
        self.notes.push(format!("{pages} pages of {mib} MiB hold what a run of A has mapped"));
        Ok(())
    }
}

/// What is wanted of the machine, where all of it can be done here.
fn possible(root: &Root, wanted: &Wanted) -> Result<Vec<settings::Planned>, LabError> {
    let plan = settings::plan(root, wanted);
    for planned in &plan {
        if let Err(missing) = &planned.change {
            let text = format!("{}: {}; nothing was changed", planned.setting.name(), missing.why);
            return Err(LabError::usage(text, missing.remedy.clone()));
        }
    }
    Ok(plan)
}

fn arm(root: &Root, treatment: &Treatment) -> Result<Arm, LabError> {
    let mut machine = treatment.machine.clone();
    let usage = |missing: Missing| LabError::usage(format!("hugepages: {}", missing.why), missing.remedy);
    if treatment.huge_pages.is_some() {
        let pool = Pool::read(root).map_err(usage)?;
        if let Some(HugePages::Pages(pages)) = treatment.huge_pages {
            machine.memory.huge_pages_bytes = Some(pool.bytes(pages));
        }
    }
    possible(root, &machine)?;
    Ok(Arm {
        machine,
        huge_pages: treatment.huge_pages,
        environment: treatment.environment.clone(),
        no_thp: treatment.no_thp,
        placement: treatment.placement,
        placed: RefCell::default(),
        notes: Vec::new(),
    })
}

/// Sets a variable, or adds to what it is: options of a JVM are apart by blanks, tunables of glibc by colons.
fn add(environment: &mut Vec<(String, String)>, name: &str, part: &str) {
    let between = if name == "GLIBC_TUNABLES" { ":" } else { " " };
    let joined = |before: &str| match before {
        "" => part.to_owned(),
        before => format!("{before}{between}{part}"),
    };
    match environment.iter_mut().find(|(known, _)| known == name) {
        Some((_, value)) if value.contains(part) => {}
        Some((_, value)) => *value = joined(value),
        None => {
            let before = std::env::var(name).unwrap_or_default();
            environment.push((name.to_owned(), joined(&before)));
        }
    }
}

impl Standing<'_> {
    /// What was changed: the setting's name, and in words; empty where nothing had to be.
    pub fn changes(&self) -> Vec<(String, String)> {
        self.applied.as_ref().map_or_else(Vec::new, Applied::changes)
    }

    /// What the user is to know of it: what the kernel made of values.
    pub fn notes(&self) -> Vec<String> {
        self.applied.as_ref().map_or_else(Vec::new, |applied| applied.notes().to_vec())
    }

    /// Puts it back, and says what the kernel has counted meanwhile.
    pub fn end(mut self) -> Result<Counts, LabError> {
        let counts = self.counted.map(|before| Counts::read(&self.switch.root).since(before));
        self.put_back().map(|()| counts.unwrap_or_default())
    }

    fn put_back(&mut self) -> Result<(), LabError> {
        let Some(applied) = self.applied.take() else { return Ok(()) };
        let report = applied.restore();
        if report.is_clean() {
            return Ok(());
        }
        self.switch.keep_journal();
        let lines = crate::recovery::reported(&report).join("; ");
        Err(LabError::State(format!(
            "a setting is not as it was: {lines} (hint: 'tare recover' puts it back)"
        )))
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        // What fails stays in the journal for the next start.
        self.put_back().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel of this machine makes no huge pages, whatever is asked for.
    #[test]
    fn fewer_huge_pages_than_asked_for_are_refused_and_put_back() {
        let [machine, state] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let write = |file: &str, text: &str| {
            let path = machine.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "proc/meminfo",
            "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\nHugePages_Total: 1\nHugePages_Free: 1\nHugepagesize: 2048 kB\n",
        );
        write("proc/sys/vm/nr_hugepages", "1\n");
        let root = Root::at(machine.path());
        let treatment = Treatment { huge_pages: Some(HugePages::Pages(512)), ..Treatment::default() };
        let switch = Switch {
            arms: vec![Arm::default(), arm(&root, &treatment).unwrap()],
            journal: Rc::new(Journal::create(state.path(), &Root::live()).unwrap()),
            lock: Some(Lock::take(state.path()).unwrap()),
            by_place_alone: false,
            refused: RefCell::default(),
            root: root.clone(),
        };
        assert!(switch.on(0).unwrap().changes().is_empty());
        let Err(error) = switch.rehearse() else { panic!("512 pages") };
        assert!(error.to_string().contains("the kernel made 1 huge pages of the 512 asked for"), "{error}");
        let refused = switch.refused().unwrap();
        assert_eq!((refused.program, refused.setting), (1, HUGE_PAGES));
        assert!(refused.why.why.contains("memory is fragmented") && !refused.why.remedy.is_empty());
        let now = std::fs::read_to_string(machine.path().join("proc/sys/vm/nr_hugepages")).unwrap();
        assert_eq!(now.trim(), "1");
        // More than there is memory for is refused before.
        let treatment = Treatment { huge_pages: Some(HugePages::Pages(4096)), ..Treatment::default() };
        assert!(matches!(arm(&root, &treatment), Err(LabError::Usage { .. })));
    }

    #[test]
    fn a_variable_that_is_set_keeps_what_it_says() {
        let mut environment = vec![("GLIBC_TUNABLES".to_owned(), "glibc.malloc.check=1".to_owned())];
        add(&mut environment, "GLIBC_TUNABLES", "glibc.malloc.hugetlb=2");
        add(&mut environment, "GLIBC_TUNABLES", "glibc.malloc.hugetlb=2");
        add(&mut environment, "TARE_NOT_SET", "-XX:+UseLargePages");
        assert_eq!(environment[0].1, "glibc.malloc.check=1:glibc.malloc.hugetlb=2");
        assert_eq!(environment[1].1, "-XX:+UseLargePages");
    }
}
