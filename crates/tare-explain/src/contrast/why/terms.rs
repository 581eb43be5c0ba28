//! The parts that the difference of two runs is split into.

use super::sums::Terms;
use std::collections::BTreeSet;
use tare_stats::log_mean;

/// A term of the split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
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
    /// At saturation, in requests of the reference in the same windows.
    CostBesideReference,
    /// What a request took at the asked load over what it takes at saturation.
    Underload,
    /// What the machine did to every program: what a request of the reference took.
    Interference {
        in_cycles: bool,
        /// By the program's own time at the asked load, which is that of the windows beside the reference; else by the reference's.
        is_same_load: bool,
    },
}

impl Term {
    pub fn id(self) -> &'static str {
        match self {
            Term::Busy => "busy",
            Term::Entitlement => "entitlement",
            Term::Lost(name) => name,
            Term::Unexplained => "unexplained",
            Term::Clock { .. } => "clock",
            Term::Ipc => "ipc",
            Term::Instructions => "instructions",
            Term::Cost { .. } | Term::CostBesideReference => "cost",
            Term::Underload => "underload",
            Term::Interference { .. } => "interference",
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Term::Clock { .. } => "Hz",
            Term::Ipc => "instructions per cycle",
            Term::Instructions => "instructions",
            Term::Cost { in_cycles: true } | Term::Interference { in_cycles: true, .. } => "cycles",
            Term::Cost { in_cycles: false } | Term::Interference { in_cycles: false, .. } => "s",
            Term::CostBesideReference | Term::Underload => "×",
            _ => "CPUs",
        }
    }

    pub fn figure(self, of: &Terms) -> f64 {
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
            Term::Cost { in_cycles } => of.cost_s() * of.cycles(in_cycles),
            Term::CostBesideReference => of.demand(),
            Term::Underload => of.cost_s() / of.demand() / of.reference_s(),
            Term::Interference { in_cycles, is_same_load } => {
                let cost_s = if is_same_load { of.cost_s() / of.demand() } else { of.reference_s() };
                cost_s * of.cycles(in_cycles)
            }
        }
    }

    /// Whether it stands in the time accounting; clocks and counters are instruments of their own.
    pub fn is_of_accounting(self) -> bool {
        !matches!(self, Term::Clock { .. } | Term::Ipc | Term::Instructions)
    }

    /// Whether it is what the machine did to every program.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Term::Clock { .. } | Term::Interference { .. })
    }

    /// Its part of ln(X₂/X₁).
    pub fn ln(self, from: &Terms, to: &Terms) -> Option<f64> {
        let (before, after) = (self.figure(from), self.figure(to));
        let ln = match self {
            Term::Busy | Term::Clock { .. } | Term::Ipc => (after / before).ln(),
            Term::Entitlement => (after - before) / log_mean(to.busy, from.busy)?,
            Term::Lost(_) | Term::Unexplained => -(after - before) / log_mean(to.busy, from.busy)?,
            Term::Cost { .. }
            | Term::CostBesideReference
            | Term::Underload
            | Term::Interference { .. }
            | Term::Instructions => -(after / before).ln(),
        };
        ln.is_finite().then_some(ln)
    }
}

/// The terms that both runs have; `beside`: both were loaded interleaved with the reference, and whether the asked load of both is the one
/// of those windows.
pub(super) fn terms(from: &Terms, to: &Terms, beside: Option<bool>) -> Vec<Term> {
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
        return terms;
    }
    terms.extend(in_cycles.then_some(Term::Clock { counted: false }));
    match beside {
        Some(is_same_load) => {
            terms.extend([Term::Interference { in_cycles, is_same_load }, Term::CostBesideReference]);
            terms.extend((!is_same_load).then_some(Term::Underload));
        }
        None => terms.push(Term::Cost { in_cycles }),
    }
    terms
}
