//! The iron law between two runs: X = b · f / C, so that ln(X₂/X₁) = Δln b + Δln f − Δln C exactly; with a PMU in both
//! C = I / IPC, and −Δln C = Δln IPC − Δln I.
//!
//! b is what was left of the CPU entitlement, b = A − Σ Lᵢ, so that with Λ the logarithmic mean of b₁ and b₂ its part is
//! Δln b = (A₂ − A₁)/Λ − Σ (Lᵢ₂ − Lᵢ₁)/Λ (log-mean Divisia index: Ang, Energy Policy 32, 2004). What the accounting does not
//! explain of A − b is a loss by the name of `unexplained`.
//!
//! No part is known better than the accounting closes that it is taken from: what that of both runs leaves open, as a share of their busy
//! time, widens the interval of every such part. Nor do the trials of a run show all that two runs differ by: their errors
//! are widened to what a machine's interference leaves between runs that lie so far apart ([`Jackknife::between_runs`]).

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::accounting::{Core, Events};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::Missing;
use tare_model::trial::{CommandSample, Measure};
use tare_stats::{Interval, Jackknife, jackknife, log_mean, simultaneous_intervals};

/// Threads that did this share of a program's work stand for it.
const SEEN_SHARE_MIN: f64 = 0.8;

/// What the terms are made of, summed over trials: pooling is adding.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// Requests, or runs of a program.
    work: f64,
    elapsed_s: f64,
    wall_s: f64,
    run_s: f64,
    /// CPU entitlement and losses; `None` where only the time on a CPU is known.
    accounting: Option<(f64, BTreeMap<&'static str, f64>)>,
    clocks_hz: Vec<f64>,
    /// Instructions and cycles, where a PMU counted them.
    core: Option<Core>,
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

    fn pool(trials: &[Sums], skip: Option<usize>) -> Option<Terms> {
        let mut kept = trials.iter().enumerate().filter(|(place, _)| Some(*place) != skip);
        let mut pool = kept.next()?.1.clone();
        kept.for_each(|(_, sums)| pool.add(sums));
        Some(Terms::of(&pool))
    }
}

/// The terms of the law for one run.
#[derive(Debug, Clone, Default)]
struct Terms {
    rate_hz: f64,
    busy: f64,
    entitled: Option<f64>,
    lost: BTreeMap<&'static str, f64>,
    clock_hz: Option<f64>,
    counted: Option<Counted>,
}

/// What a PMU counted of the program's own time. All of its cycles over all of that time is the one clock by which
/// cost and IPC give the instructions that were counted; a median of steps is another's.
#[derive(Debug, Clone, Copy)]
struct Counted {
    clock_hz: f64,
    /// Instructions per cycle.
    ipc: f64,
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
        }
    }

    /// Short trials have few samples of the clock: where the rest of them has none, it is that of all.
    fn with_clock_of(mut self, all: &Terms) -> Terms {
        self.clock_hz = self.clock_hz.or(all.clock_hz);
        self
    }

    fn lost(&self, name: &str) -> f64 {
        self.lost.get(name).copied().unwrap_or(0.0)
    }

    fn unexplained(&self) -> f64 {
        self.entitled.unwrap_or(self.busy) - self.busy - self.lost.values().sum::<f64>()
    }

    /// Service demand in CPU seconds.
    fn cost_s(&self) -> f64 {
        self.busy / self.rate_hz
    }
}

/// A term of the split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    /// All of b in one, where its parts are not known.
    Busy,
    Entitlement,
    Lost(&'static str),
    Unexplained,
    /// Counted in both runs, or measured beside them.
    Clock {
        counted: bool,
    },
    Ipc,
    Instructions,
    /// In cycles, or in seconds where a clock is missing.
    Cost {
        in_cycles: bool,
    },
}

impl Term {
    fn id(self) -> &'static str {
        match self {
            Term::Busy => "busy",
            Term::Entitlement => "entitlement",
            Term::Lost(name) => name,
            Term::Unexplained => "unexplained",
            Term::Clock { .. } => "clock",
            Term::Ipc => "ipc",
            Term::Instructions => "instructions",
            Term::Cost { .. } => "cost",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Term::Clock { .. } => "Hz",
            Term::Ipc => "instructions per cycle",
            Term::Instructions => "instructions",
            Term::Cost { in_cycles: true } => "cycles",
            Term::Cost { in_cycles: false } => "s",
            _ => "CPUs",
        }
    }

    fn figure(self, of: &Terms) -> f64 {
        match self {
            Term::Busy => of.busy,
            Term::Entitlement => of.entitled.unwrap_or(0.0),
            Term::Lost(name) => of.lost(name),
            Term::Unexplained => of.unexplained(),
            Term::Clock { counted: true } => of.counted.map_or(0.0, |counted| counted.clock_hz),
            Term::Clock { counted: false } => of.clock_hz.unwrap_or(0.0),
            Term::Ipc => of.counted.map_or(0.0, |counted| counted.ipc),
            Term::Instructions => {
                of.counted.map_or(0.0, |counted| of.cost_s() * counted.clock_hz * counted.ipc)
            }
            Term::Cost { in_cycles } => {
                of.cost_s() * if in_cycles { of.clock_hz.unwrap_or(0.0) } else { 1.0 }
            }
        }
    }

    /// Whether it stands in the time accounting; clocks and counters are instruments of their own.
    fn is_of_accounting(self) -> bool {
        !matches!(self, Term::Clock { .. } | Term::Ipc | Term::Instructions)
    }

    /// Its part of ln(X₂/X₁).
    fn ln(self, from: &Terms, to: &Terms) -> Option<f64> {
        let (before, after) = (self.figure(from), self.figure(to));
        let ln = match self {
            Term::Busy | Term::Clock { .. } | Term::Ipc => (after / before).ln(),
            Term::Entitlement => (after - before) / log_mean(to.busy, from.busy)?,
            Term::Lost(_) | Term::Unexplained => -(after - before) / log_mean(to.busy, from.busy)?,
            Term::Cost { .. } | Term::Instructions => -(after / before).ln(),
        };
        ln.is_finite().then_some(ln)
    }
}

/// A part with its figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Share {
    pub id: &'static str,
    pub unit: &'static str,
    pub ln: f64,
    pub ci95: Option<Interval>,
    pub from: f64,
    pub to: f64,
}

/// The difference between two runs.
#[derive(Debug, Clone)]
pub(super) struct Split {
    pub ln: f64,
    pub ci95: Option<Interval>,
    pub from_hz: f64,
    pub to_hz: f64,
    pub parts: Vec<Share>,
    /// A run has no clock, so that cost is in seconds.
    pub clockless: bool,
}

/// Splits the difference between the rates of two runs of at least one trial each.
///
/// `open_ln`: how far the accounting of both is from closing, as shares of their busy time, together. `apart`: how many lengths of
/// a run the one began before the other.
///
/// # Errors
/// Which term is zero or less, so that it has no logarithm.
pub(super) fn split(a: &[Sums], b: &[Sums], open_ln: f64, apart: f64) -> Result<Split, Missing> {
    let none = || Missing::new("a run has no trial");
    let (from, to) = (Sums::pool(a, None).ok_or_else(none)?, Sums::pool(b, None).ok_or_else(none)?);
    for (name, side) in [("A", &from), ("B", &to)] {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !positive(side.rate_hz) {
            return Err(Missing::new(format!("nothing was finished in {name}, and 0 has no logarithm")));
        }
        if !positive(side.busy) {
            return Err(Missing::new(format!("in {name} the program did not run, and 0 has no logarithm")));
        }
    }
    let terms = terms(&from, &to);
    let shares = |from: &Terms, to: &Terms| -> Option<Vec<f64>> {
        let whole = (to.rate_hz / from.rate_hz).ln();
        let parts = terms.iter().map(|term| term.ln(from, to));
        std::iter::once(Some(whole).filter(|ln| ln.is_finite())).chain(parts).collect()
    };
    let all = shares(&from, &to).ok_or_else(|| Missing::new("a term of the law is not a number"))?;
    let by_trials =
        |trials: &[Sums], of: &dyn Fn(Option<usize>) -> Option<Vec<f64>>| -> Option<Vec<Jackknife>> {
            Some(jackknife(trials.len(), of)?.into_iter().map(|one| one.between_runs(apart)).collect())
        };
    let first = by_trials(a, &|skip| shares(&Sums::pool(a, skip)?.with_clock_of(&from), &to));
    let second = by_trials(b, &|skip| shares(&from, &Sums::pool(b, skip)?.with_clock_of(&to)));
    let intervals = first.zip(second).and_then(|(first, second)| simultaneous_intervals(&first, &second));
    let interval = |place: usize| intervals.as_ref().and_then(|all| all.get(place)).copied();
    let part = |(place, (term, ln)): (usize, (&Term, &f64))| Share {
        id: term.id(),
        unit: term.unit(),
        ln: *ln,
        ci95: interval(place + 1).and_then(|known| match term.is_of_accounting() {
            true => Interval::new(known.lo - open_ln, known.hi + open_ln),
            false => Some(known),
        }),
        from: term.figure(&from),
        to: term.figure(&to),
    };
    Ok(Split {
        ln: all.first().copied().unwrap_or(0.0),
        ci95: interval(0),
        from_hz: from.rate_hz,
        to_hz: to.rate_hz,
        parts: terms.iter().zip(all.iter().skip(1)).enumerate().map(part).collect(),
        clockless: !terms.iter().any(|term| matches!(term, Term::Clock { .. })),
    })
}

/// The terms that both runs have.
fn terms(from: &Terms, to: &Terms) -> Vec<Term> {
    let mut terms = Vec::new();
    if from.entitled.is_some() && to.entitled.is_some() {
        let names: BTreeSet<&'static str> = from.lost.keys().chain(to.lost.keys()).copied().collect();
        terms.push(Term::Entitlement);
        terms.extend(names.into_iter().map(Term::Lost));
        terms.push(Term::Unexplained);
    } else {
        terms.push(Term::Busy);
    }
    let in_cycles = from.clock_hz.is_some() && to.clock_hz.is_some();
    if from.counted.is_some() && to.counted.is_some() {
        terms.extend([Term::Clock { counted: true }, Term::Ipc, Term::Instructions]);
    } else {
        terms.extend(in_cycles.then_some(Term::Clock { counted: false }));
        terms.push(Term::Cost { in_cycles });
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums() -> impl Strategy<Value = Sums> {
        let lost = proptest::collection::btree_map(
            prop_oneof![Just("no-work"), Just("throttled"), Just("preempted"), Just("lock")],
            0.0..3.0f64,
            0..4,
        );
        let accounting = proptest::option::weighted(0.9, (0.01..8.0f64, lost));
        let clocks = proptest::collection::vec(1e8..6e9f64, 0..3);
        let core =
            proptest::option::of(
                (1e6..1e12f64, 1e6..1e12f64, 0.01..8.0f64)
                    .prop_map(|(instructions, cycles, counted_s)| Core { instructions, cycles, counted_s }),
            );
        (1.0..1e7f64, 0.1..10.0f64, 0.1..10.0f64, 1e-6..8.0f64, accounting, clocks, core).prop_map(
            |(work, elapsed_s, wall_s, run_s, accounting, clocks_hz, core)| Sums {
                work,
                elapsed_s,
                wall_s,
                run_s,
                accounting,
                clocks_hz,
                core,
            },
        )
    }

    proptest! {
        #[test]
        fn the_parts_are_all_of_the_difference(
            a in proptest::collection::vec(sums(), 1..5),
            b in proptest::collection::vec(sums(), 1..5),
        ) {
            let split = split(&a, &b, 0.0, 1.0).unwrap();
            let sum: f64 = split.parts.iter().map(|part| part.ln).sum();
            let scale = split.parts.iter().map(|part| part.ln.abs()).fold(1.0, f64::max);
            prop_assert!((sum - split.ln).abs() < 1e-9 * scale, "{sum} {}", split.ln);
            prop_assert!((split.ln - (split.to_hz / split.from_hz).ln()).abs() < 1e-12);
            for part in &split.parts {
                prop_assert!(part.ci95.is_none_or(|ci| ci.lo <= part.ln && part.ln <= ci.hi), "{part:?}");
            }
        }

        #[test]
        fn the_way_back_is_the_way_there(a in sums(), b in sums()) {
            let (a, b) = ([a], [b]);
            let (there, back) = (split(&a, &b, 0.0, 1.0).unwrap(), split(&b, &a, 0.0, 1.0).unwrap());
            for (one, other) in there.parts.iter().zip(&back.parts) {
                prop_assert!((one.ln + other.ln).abs() < 1e-9 * one.ln.abs().max(1.0));
            }
        }
    }

    #[test]
    fn open_accounting_widens_what_is_taken_from_it() {
        let run = |work: f64, no_work_s: f64| Sums {
            work,
            elapsed_s: 1.0,
            wall_s: 1.0,
            run_s: 0.5,
            accounting: Some((1.0, BTreeMap::from([("no-work", no_work_s)]))),
            clocks_hz: vec![1e9 + work],
            core: None,
        };
        let (a, b) = ([run(1000.0, 0.48), run(1010.0, 0.49)], [run(1005.0, 0.49), run(1002.0, 0.48)]);
        let (closed, open) = (split(&a, &b, 0.0, 1.0).unwrap(), split(&a, &b, 0.01, 1.0).unwrap());
        assert_eq!(closed.ci95, open.ci95, "the rate is counted");
        for (closed, open) in closed.parts.iter().zip(&open.parts) {
            let ([closed_ci, open_ci], wider) =
                ([closed.ci95.unwrap(), open.ci95.unwrap()], closed.id != "clock");
            let by = if wider { 0.01 } else { 0.0 };
            assert!(
                (closed_ci.lo - open_ci.lo - by).abs() < 1e-12
                    && (open_ci.hi - closed_ci.hi - by).abs() < 1e-12
            );
        }
    }

    #[test]
    fn runs_that_lie_further_apart_are_distinguished_less_well() {
        let run = |work: f64| Sums { work, elapsed_s: 1.0, wall_s: 1.0, run_s: 0.5, ..Sums::default() };
        let (a, b) = ([1000.0, 1010.0, 1003.0].map(run), [1005.0, 1002.0, 1008.0].map(run));
        let half_ln = |apart: f64| {
            let ci = split(&a, &b, 0.0, apart).unwrap().ci95.unwrap();
            0.5 * (ci.hi - ci.lo)
        };
        // Independent trials of these deviations, 0.51 and 0.30 %, would give the rate to ±1.05 % (3.2 degrees of freedom).
        assert!(half_ln(1.0) > 0.0105 * 2f64.sqrt(), "{}", half_ln(1.0));
        assert!(half_ln(100.0) > 2.0 * half_ln(1.0), "{} {}", half_ln(100.0), half_ln(1.0));
    }

    #[test]
    fn with_a_pmu_in_both_cost_falls_apart_into_instructions_and_their_pace() {
        // The median of the clock's steps is another one than that of all the cycles.
        let run = |core: Option<(f64, f64)>| Sums {
            work: 1000.0,
            elapsed_s: 1.0,
            wall_s: 1.0,
            run_s: 0.5,
            clocks_hz: vec![1e9, 3e9, 3e9],
            core: core.map(|(instructions, cycles)| Core { instructions, cycles, counted_s: 0.5 }),
            ..Sums::default()
        };
        let ids = |split: &Split| split.parts.iter().map(|part| part.id).collect::<Vec<_>>();
        let both = split(&[run(Some((1e9, 1e9)))], &[run(Some((2e9, 1e9)))], 0.0, 1.0).unwrap();
        assert_eq!(ids(&both), ["busy", "clock", "ipc", "instructions"]);
        assert!((both.parts[2].ln - 2f64.ln()).abs() < 1e-12 && (both.parts[3].ln + 2f64.ln()).abs() < 1e-12);
        let figures = |at: usize| (both.parts[at].from, both.parts[at].to);
        assert_eq!(figures(1), (2e9, 2e9), "all cycles over all of the run");
        assert_eq!(figures(3), (1e6, 2e6), "the instructions that were counted, of each request");
        let one = split(&[run(None)], &[run(Some((2e9, 1e9)))], 0.0, 1.0).unwrap();
        assert_eq!(ids(&one), ["busy", "clock", "cost"]);
    }

    #[test]
    fn what_has_no_logarithm_is_not_applicable() {
        let good = [Sums { work: 1.0, elapsed_s: 1.0, wall_s: 1.0, run_s: 1.0, ..Sums::default() }];
        let [sums] = good.clone();
        for bad in [Sums { work: 0.0, ..sums.clone() }, Sums { run_s: 0.0, ..sums }, Sums::default()] {
            let bad = [bad];
            assert!(split(&good, &bad, 0.0, 1.0).is_err() && split(&bad, &good, 0.0, 1.0).is_err());
        }
        assert!(split(&[], &good, 0.0, 1.0).is_err() && split(&good, &good, 0.0, 1.0).is_ok());
    }
}
