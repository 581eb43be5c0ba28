//! Programs that the SUT calls, over one window or several: who they are, and on how many connections callers waited for them.

use std::collections::BTreeSet;
use tare_model::downstream::DownstreamSeen;
use tare_model::observation::Observation;

/// All of them; callers stand before those that they call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Downstream {
    pub programs: Vec<Program>,
}

/// One of them: the fields of `DownstreamSeen` as sums over samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub name: String,
    pub at: BTreeSet<String>,
    pub pids: BTreeSet<u32>,
    /// Its place; `None` is the SUT.
    pub caller: Option<usize>,
    pub samples: f64,
    pub open: f64,
    pub waiting: f64,
    pub unsure: f64,
    pub queued: f64,
    /// Segments sent per second, times the samples of the windows in which that was known; and those samples.
    pub sends: f64,
    pub sends_samples: f64,
    pub throttled_s: Option<f64>,
    pub quota_cpus: Option<f64>,
}

impl Downstream {
    pub fn of(observation: &Observation) -> Downstream {
        Downstream { programs: observation.downstream.iter().map(Program::of).collect() }
    }

    pub fn absorb(&mut self, other: &Downstream) {
        let mut places: Vec<usize> = Vec::new();
        for program in &other.programs {
            let caller = program.caller.and_then(|caller| places.get(caller).copied());
            let known = self.programs.iter().position(|known| known.is(program));
            places.push(known.unwrap_or(self.programs.len()));
            match known.and_then(|at| self.programs.get_mut(at)) {
                Some(known) => known.absorb(program),
                None => self.programs.push(Program { caller, ..program.clone() }),
            }
        }
    }
}

impl Program {
    fn of(seen: &DownstreamSeen) -> Program {
        let samples = f64::from(seen.samples);
        let sends_hz = seen.sends_hz.filter(|hz| hz.is_finite() && *hz >= 0.0);
        Program {
            name: seen.name.clone(),
            at: seen.at.iter().cloned().collect(),
            pids: seen.pids.iter().copied().collect(),
            caller: seen.caller.map(|caller| caller as usize),
            samples,
            open: seen.open as f64,
            waiting: seen.waiting as f64,
            unsure: seen.unsure as f64,
            queued: seen.queued as f64,
            sends: sends_hz.unwrap_or(0.0) * samples,
            sends_samples: if sends_hz.is_some() { samples } else { 0.0 },
            throttled_s: seen.throttled_ns.map(|ns| ns as f64 / 1e9),
            quota_cpus: seen.quota_cpus.filter(|cpus| *cpus > 0.0),
        }
    }

    /// Whether it is the same: a program that was started anew has other processes, and is called at the same place.
    fn is(&self, other: &Program) -> bool {
        !self.pids.is_disjoint(&other.pids) || self.name == other.name && !self.at.is_disjoint(&other.at)
    }

    fn absorb(&mut self, other: &Program) {
        self.at.extend(other.at.iter().cloned());
        self.pids.extend(&other.pids);
        self.samples += other.samples;
        self.open += other.open;
        self.waiting += other.waiting;
        self.unsure += other.unsure;
        self.queued += other.queued;
        self.sends += other.sends;
        self.sends_samples += other.sends_samples;
        self.throttled_s = match (self.throttled_s, other.throttled_s) {
            (Some(one), Some(more)) => Some(one + more),
            (one, more) => one.or(more),
        };
        self.quota_cpus = self.quota_cpus.or(other.quota_cpus);
    }

    /// Segments sent per second; `None` where most windows do not say.
    pub fn sends_hz(&self) -> Option<f64> {
        (self.sends_samples > 0.5 * self.samples).then(|| self.sends / self.sends_samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_stays_the_same_over_windows_and_its_caller_too() {
        let seen = |name: &str, pid: u32, caller| DownstreamSeen {
            name: name.to_owned(),
            at: vec![format!("127.0.0.1:{}", name.len())],
            pids: vec![pid],
            caller,
            samples: 2,
            waiting: 3,
            sends_hz: Some(f64::from(pid)),
            ..DownstreamSeen::default()
        };
        let window = |programs: Vec<DownstreamSeen>| {
            Downstream::of(&Observation { downstream: programs, ..Observation::default() })
        };
        let mut all = window(vec![seen("app", 10, None)]);
        all.absorb(&window(vec![seen("cache", 30, None), seen("app", 20, None), seen("db", 40, Some(1))]));
        let names: Vec<(&str, Option<usize>, f64)> = all
            .programs
            .iter()
            .map(|program| (program.name.as_str(), program.caller, program.waiting))
            .collect();
        assert_eq!(names, [("app", None, 6.0), ("cache", None, 3.0), ("db", Some(0), 3.0)]);
        assert_eq!(all.programs[0].sends_hz(), Some(15.0));
    }
}
