//! What the iron law needs of a run, trial by trial and pooled.

use super::beside::Beside;
use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::accounting::{Core, Events};
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::trial::{CommandSample, Measure};

/// Threads that did this share of a program's work stand for it.
const SEEN_SHARE_MIN: f64 = 0.8;

/// What the terms are made of, summed over trials: pooling is adding.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// Requests, or runs of a program.
    pub work: f64,
    pub elapsed_s: f64,
    pub wall_s: f64,
    pub run_s: f64,
    /// CPU entitlement and losses; `None` where only the time on a CPU is known.
    pub accounting: Option<(f64, BTreeMap<&'static str, f64>)>,
    pub clocks_hz: Vec<f64>,
    /// Instructions and cycles, where a PMU counted them.
    pub core: Option<Core>,
}

impl Sums {
    /// Of one trial.
    ///
    /// # Errors
    /// What the law needs and the trial does not have.
    pub fn of(window: &Closed, sample: &Measure) -> Result<Sums, Missing> {
        match sample {
            Measure::Http(_) => {
                let work = window
                    .answered
                    .requests
                    .ok_or_else(|| Missing::new("the requests could not be counted"))?;
                Self::seen(window, work).ok_or_else(|| Missing::new("the server's threads could not be seen"))
            }
            Measure::Command(command) => Ok(Self::of_run(window, command)),
        }
    }

    fn seen(window: &Closed, work: f64) -> Option<Sums> {
        let sut = window.sut.as_ref()?;
        let lost_s = sut.lost_s.iter().map(|(loss, lost_s)| (loss.name(), *lost_s)).collect();
        Some(Sums {
            work,
            elapsed_s: window.answered.elapsed_s,
            wall_s: sut.wall_s,
            run_s: sut.run_s,
            accounting: Some((sut.entitled_s, lost_s)),
            clocks_hz: window.hardware.clocks_hz.clone(),
            core: window.hardware.sut.as_ref().and_then(Events::core),
        })
    }

    /// One run of a program; where most of its work was done by threads too short-lived to be seen, the kernel's own
    /// account of its CPU time stands alone.
    fn of_run(window: &Closed, command: &CommandSample) -> Sums {
        let cpu_s = (command.user_ns as f64 + command.system_ns as f64) / 1e9;
        let seen = Self::seen(window, 1.0);
        seen.filter(|sums| sums.run_s > 0.0 && sums.run_s >= SEEN_SHARE_MIN * cpu_s).unwrap_or(Sums {
            work: 1.0,
            elapsed_s: window.answered.elapsed_s,
            wall_s: window.answered.elapsed_s,
            run_s: cpu_s,
            accounting: None,
            clocks_hz: window.hardware.clocks_hz.clone(),
            core: None,
        })
    }

    /// The same in a time that is so many times as long.
    pub fn stretch(&mut self, factor: f64) {
        for seconds in [&mut self.elapsed_s, &mut self.wall_s, &mut self.run_s] {
            *seconds *= factor;
        }
        if let Some((entitled_s, lost_s)) = &mut self.accounting {
            *entitled_s *= factor;
            lost_s.values_mut().for_each(|lost_s| *lost_s *= factor);
        }
    }

    fn add(&mut self, other: &Sums) {
        self.work += other.work;
        self.elapsed_s += other.elapsed_s;
        self.wall_s += other.wall_s;
        self.run_s += other.run_s;
        self.clocks_hz.extend(&other.clocks_hz);
        self.core = self.core.zip(other.core).map(|(one, more)| Core {
            instructions: one.instructions + more.instructions,
            cycles: one.cycles + more.cycles,
            counted_s: one.counted_s + more.counted_s,
        });
        self.accounting = match (self.accounting.take(), &other.accounting) {
            (Some((entitled_s, mut lost_s)), Some((more_s, more))) => {
                for (name, lost) in more {
                    *lost_s.entry(name).or_default() += lost;
                }
                Some((entitled_s + more_s, lost_s))
            }
            _ => None,
        };
    }

    pub fn pool(trials: &[Sums], skip: Option<usize>) -> Option<Terms> {
        let mut kept = trials.iter().enumerate().filter(|(place, _)| Some(*place) != skip);
        let mut pool = kept.next()?.1.clone();
        kept.for_each(|(_, sums)| pool.add(sums));
        Some(Terms::of(&pool))
    }
}

/// The terms of the law for one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Terms {
    pub rate_hz: f64,
    pub busy: f64,
    pub entitled: Option<f64>,
    pub lost: BTreeMap<&'static str, f64>,
    pub clock_hz: Option<f64>,
    pub counted: Option<Counted>,
    /// What a request takes at saturation over what one of the reference takes, and what that takes, in seconds.
    pub beside: Option<(f64, f64)>,
}

/// What a PMU counted of the program's own time. All of its cycles over all of that time is the one clock by which
/// cost and IPC give the instructions that were counted; a median of steps is another's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub clock_hz: f64,
    /// Instructions per cycle.
    pub ipc: f64,
}

impl Terms {
    fn of(sums: &Sums) -> Terms {
        let per_wall = |seconds: f64| ratio(seconds, sums.wall_s);
        let lost = sums.accounting.iter().flat_map(|(_, lost)| lost);
        Terms {
            rate_hz: ratio(sums.work, sums.elapsed_s),
            busy: per_wall(sums.run_s),
            entitled: sums.accounting.as_ref().map(|(entitled_s, _)| per_wall(*entitled_s)),
            lost: lost.map(|(name, lost_s)| (*name, per_wall(*lost_s))).collect(),
            clock_hz: tare_stats::median(&sums.clocks_hz).filter(|hz| *hz > 0.0),
            counted: sums.core.filter(|core| core.counted_s > 0.0 && core.cycles > 0.0).map(|core| Counted {
                clock_hz: core.cycles / core.counted_s,
                ipc: core.instructions / core.cycles,
            }),
            beside: None,
        }
    }

    /// With what it and the reference took of a request each.
    pub fn with_reference(mut self, beside: Option<&Beside>) -> Terms {
        self.beside = beside.map(|beside| (beside.demand_ln.value.exp(), beside.reference_ln.value.exp()));
        self
    }

    /// Short trials have few samples of the clock: where the rest of them has none, it is that of all.
    pub fn with_clock_of(mut self, all: &Terms) -> Terms {
        self.clock_hz = self.clock_hz.or(all.clock_hz);
        self
    }

    pub fn lost(&self, name: &str) -> f64 {
        self.lost.get(name).copied().unwrap_or(0.0)
    }

    pub fn unexplained(&self) -> f64 {
        self.entitled.unwrap_or(self.busy) - self.busy - self.lost.values().sum::<f64>()
    }

    /// Cycles of a second, where something is in cycles; else 1.
    pub fn cycles(&self, in_cycles: bool) -> f64 {
        if in_cycles { self.clock_hz.unwrap_or(0.0) } else { 1.0 }
    }

    /// Service demand at saturation in requests of the reference.
    pub fn demand(&self) -> f64 {
        self.beside.map_or(0.0, |(demand, _)| demand)
    }

    /// Service demand of the reference in CPU seconds.
    pub fn reference_s(&self) -> f64 {
        self.beside.map_or(0.0, |(_, cost_s)| cost_s)
    }

    /// Service demand in CPU seconds.
    pub fn cost_s(&self) -> f64 {
        self.busy / self.rate_hz
    }
}
