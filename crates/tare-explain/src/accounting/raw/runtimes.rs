//! What schedules a process's work onto its threads, and how many of them it lets run at once.

use std::collections::BTreeMap;
use tare_model::Record;
use tare_model::identity::{Program, Runtime, Setting};
use tare_model::observation::Role;

/// What bounds how many of a program's threads run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LimitedBy {
    /// Go's number of processors, set in the environment.
    GoMaxProcs,
    /// A runtime whose threads run its code one at a time: CPython's.
    PythonLock,
    /// And Ruby's.
    RubyLock,
    /// It has no more threads that work.
    Threads,
    /// Most samples found so many running at once, few found more, and nothing is known of what keeps the others.
    Seen,
}

/// How a process's threads share its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Its idle threads sleep in a timer or a futex as if they worked, and its work sleeps without a thread.
    pub parks: bool,
    /// One thread runs the program; others help it, whatever they are called.
    pub one_loop: bool,
    /// Threads at once, and by what.
    pub at_once: Option<(u32, LimitedBy)>,
    /// Its interpreter is a library of it: what its threads do may be other work.
    pub is_embedded: bool,
}

/// What is known of the SUT's processes from their programs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runtimes {
    of_pid: BTreeMap<u32, Rules>,
    /// Of processes that began later, where all programs have the same.
    of_others: Option<Rules>,
}

impl Runtimes {
    pub fn read(record: &Record) -> Runtimes {
        let programs = record.identity.iter().flat_map(|identity| &identity.programs);
        let programs: Vec<&Program> = programs.filter(|program| program.role == Role::Sut).collect();
        let of_pid = programs.iter().flat_map(|program| {
            let rules = rules(program);
            program.pids.iter().map(move |pid| (*pid, rules))
        });
        let first = programs.first().map(|program| rules(program));
        Runtimes {
            of_pid: of_pid.collect(),
            of_others: first.filter(|first| programs.iter().all(|program| rules(program) == *first)),
        }
    }

    pub fn of(&self, pid: u32) -> Option<Rules> {
        self.of_pid.get(&pid).copied().or(self.of_others)
    }
}

fn rules(program: &Program) -> Rules {
    if program.runtime == Some(Runtime::Go) {
        let at_once = go_max_procs(program).map(|most| (most, LimitedBy::GoMaxProcs));
        return Rules { parks: true, one_loop: false, at_once, is_embedded: false };
    }
    let path = program.path.value().map(String::as_str).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let by_name = [(is_python(name), LimitedBy::PythonLock), (is_ruby(name), LimitedBy::RubyLock)];
    let by_name = by_name.into_iter().find(|(is, _)| *is).map(|(_, by)| by);
    let by_library = match program.runtime {
        Some(Runtime::Python) => Some(LimitedBy::PythonLock),
        Some(Runtime::Ruby) => Some(LimitedBy::RubyLock),
        _ => None,
    };
    let one_loop = ONE_LOOP.contains(&name) || program.runtime == Some(Runtime::Node);
    let is_embedded = by_name.is_none() && by_library.is_some();
    Rules { parks: false, one_loop, at_once: by_name.or(by_library).map(|by| (1, by)), is_embedded }
}

/// Programs that run JavaScript on one thread.
const ONE_LOOP: [&str; 4] = ["node", "nodejs", "deno", "bun"];

/// `GOMAXPROCS` as the process was started with; a number that Go refuses sets nothing.
fn go_max_procs(program: &Program) -> Option<u32> {
    match program.environment.value()?.get("GOMAXPROCS")? {
        Setting::Clear(text) => text.parse().ok().filter(|most| *most > 0),
        Setting::Hidden { .. } => None,
    }
}

/// `python3`, `python3.12`, `pypy3`; a build without the lock is called `python3.13t`.
fn is_python(name: &str) -> bool {
    let version = ["python", "pypy"].into_iter().find_map(|begin| name.strip_prefix(begin));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// `ruby`, `ruby3.1`.
fn is_ruby(name: &str) -> bool {
    let version = name.strip_prefix("ruby");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_with_one_lock_for_their_code_are_known_by_name() {
        assert!(["python", "python3", "python3.11", "pypy3"].into_iter().all(is_python));
        assert!(!["python3.13t", "pythonish", "py"].into_iter().any(is_python));
        assert!(is_ruby("ruby3.1") && is_ruby("ruby") && !is_ruby("rubyfmt"));
    }
}
