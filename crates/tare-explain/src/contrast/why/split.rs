//! The iron law between two runs: X = b · f / C, so that ln(X₂/X₁) = Δln b + Δln f − Δln C exactly; with a PMU in both
//! C = I / IPC, and −Δln C = Δln IPC − Δln I.
//!
//! b is what was left of the CPU entitlement, b = A − Σ Lᵢ, so that with Λ the logarithmic mean of b₁ and b₂ its part is
//! Δln b = (A₂ − A₁)/Λ − Σ (Lᵢ₂ − Lᵢ₁)/Λ (log-mean Divisia index: Ang, Energy Policy 32, 2004). What the accounting does not
//! explain of A − b is a loss by the name of `unexplained`.
//!
//! Where both runs were loaded interleaved with the reference server, C falls apart once more: C = S · R, with S the service demand at
//! saturation in requests of the reference in the same windows, which is the program's own, and R what was left, which is
//! what the machine did to every program. Where the asked load is another one than in those windows C = S · R · U: R is then the reference's
//! service demand itself, and U what a request takes more at that load.
//!
//! No part is known better than the accounting closes that it is taken from: what that of both runs leaves open, as a share of their busy
//! time, widens the interval of every such part. Nor do the trials of a run show all that two runs differ by: their errors
//! are widened to what a machine's interference leaves between runs that lie so far apart ([`Jackknife::between_runs`]). S has none of
//! it but what a strong interference does to two programs unlike (`net::unlike_ln`).

use super::beside::Beside;
use super::sums::{Sums, Terms};
use super::terms::{Term, terms};
use crate::capacity::net::unlike_ln;
use tare_model::Missing;
use tare_stats::{Interval, Jackknife, jackknife, simultaneous_intervals};

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

/// A difference without what the machine did to every program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Corrected {
    pub ln: f64,
    pub ci95: Option<Interval>,
}

/// The difference between two runs.
#[derive(Debug, Clone)]
pub(super) struct Split {
    pub ln: f64,
    pub ci95: Option<Interval>,
    pub from_hz: f64,
    pub to_hz: f64,
    /// CPUs that the program was busy on, in A and in B.
    pub busy: [f64; 2],
    pub parts: Vec<Share>,
    /// All parts but those of the machine together; `None` unless both had no time to spare, and were loaded beside the reference.
    pub corrected: Option<Corrected>,
    /// A run has no clock, so that cost is in seconds.
    pub clockless: bool,
}

impl Split {
    /// Service demand in requests of the reference, where both were loaded interleaved with it.
    pub fn beside_reference(&self) -> Option<&Share> {
        self.parts.iter().find(|part| part.id == "cost" && part.unit == "×")
    }
}

/// What is known of two runs besides their trials.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// How far the accounting of both is from closing, as shares of their busy time, together.
    pub open_ln: f64,
    /// How many lengths of a run the one began before the other.
    pub apart: f64,
    /// Of both runs; `None` unless both were loaded interleaved with the reference.
    pub beside: Option<[Beside; 2]>,
}

impl Evidence {
    fn of(&self, side: usize) -> Option<&Beside> {
        self.beside.as_ref().and_then(|both| both.get(side))
    }

    /// Whether the asked load of both is that of the windows beside the reference; `None` where there are none.
    fn is_same_load(&self) -> Option<bool> {
        self.beside.as_ref().map(|both| both.iter().all(|one| one.is_same_load))
    }

    /// Whether both rates follow the service demand.
    fn is_full(&self) -> bool {
        self.beside.as_ref().is_some_and(|both| both.iter().all(|one| one.is_full))
    }

    /// How far the machine's interference of the two runs may have met program and reference unlike.
    fn unlike_ln(&self) -> f64 {
        let between = |[a, b]: [Beside; 2]| unlike_ln((b.reference_ln.value - a.reference_ln.value).abs());
        self.beside.map_or(0.0, between)
    }

    /// The error of a term by the trials of a side, with what the reference's windows add to it.
    fn error(&self, term: Term, side: usize, by_trials: Jackknife) -> Jackknife {
        let Some(beside) = self.of(side) else { return by_trials };
        let reference = beside.reference_ln.between_runs(self.apart);
        match term {
            Term::CostBesideReference => beside.demand_ln.added_to(Jackknife { se: 0.0, ..by_trials }),
            Term::Interference { is_same_load: true, .. } => beside.demand_ln.added_to(by_trials),
            Term::Interference { is_same_load: false, .. } => reference.added_to(by_trials),
            Term::Underload => reference.added_to(beside.demand_ln.added_to(by_trials)),
            _ => by_trials,
        }
    }

    /// The same of all parts but those of the machine: what is taken out was measured in the reference's windows, or by the demand in them.
    fn error_of_corrected(&self, side: usize, by_trials: Jackknife) -> Jackknife {
        match (self.of(side), self.is_same_load()) {
            (Some(beside), Some(true)) => beside.demand_ln.added_to(by_trials),
            (Some(beside), _) => beside.reference_ln.between_runs(self.apart).added_to(by_trials),
            (None, _) => by_trials,
        }
    }

    /// By how much more an interval of a term reaches.
    fn slack_ln(&self, term: Term) -> f64 {
        match term {
            Term::CostBesideReference => self.unlike_ln(),
            term if term.is_of_accounting() => self.open_ln,
            _ => 0.0,
        }
    }
}

/// Splits the difference between the rates of two runs of at least one trial each.
///
/// # Errors
/// Which term is zero or less, so that it has no logarithm.
pub(super) fn split(a: &[Sums], b: &[Sums], evidence: &Evidence) -> Result<Split, Missing> {
    let pool = |trials: &[Sums], side: usize, skip: Option<usize>| {
        Some(Sums::pool(trials, skip)?.with_reference(evidence.of(side)))
    };
    let none = || Missing::new("a run has no trial");
    let (from, to) = (pool(a, 0, None).ok_or_else(none)?, pool(b, 1, None).ok_or_else(none)?);
    check(&from, "A")?;
    check(&to, "B")?;
    let terms = terms(&from, &to, evidence.is_same_load());
    let is_corrected = terms.contains(&Term::CostBesideReference) && evidence.is_full();
    // The rate, all but the machine's parts, then each part.
    let shares = |from: &Terms, to: &Terms| -> Option<Vec<f64>> {
        let whole = Some((to.rate_hz / from.rate_hz).ln()).filter(|ln| ln.is_finite())?;
        let parts: Vec<f64> = terms.iter().map(|term| term.ln(from, to)).collect::<Option<_>>()?;
        let of_machine = terms.iter().zip(&parts).filter(|(term, _)| term.is_of_machine());
        let corrected = whole - of_machine.map(|(_, ln)| ln).sum::<f64>();
        Some([whole, corrected].into_iter().chain(parts).collect())
    };
    let all = shares(&from, &to).unwrap_or_default();
    let [ln, corrected_ln, parts_ln @ ..] = all.as_slice() else {
        return Err(Missing::new("a term of the law is not a number"));
    };
    let by_trials = |trials: &[Sums], side: usize, of: &dyn Fn(&Terms) -> Option<Vec<f64>>, whole: &Terms| {
        let without = |skip| of(&pool(trials, side, skip)?.with_clock_of(whole));
        let known = jackknife(trials.len(), without)?.into_iter().map(|one| one.between_runs(evidence.apart));
        let known: Vec<Jackknife> = known.collect();
        let [rate, corrected, parts @ ..] = known.as_slice() else { return None };
        let parts = terms.iter().zip(parts).map(|(term, part)| evidence.error(*term, side, *part));
        let corrected = evidence.error_of_corrected(side, *corrected);
        Some([*rate, corrected].into_iter().chain(parts).collect::<Vec<_>>())
    };
    let first = by_trials(a, 0, &|left| shares(left, &to), &from);
    let second = by_trials(b, 1, &|left| shares(&from, left), &to);
    let intervals = first.zip(second).and_then(|(first, second)| simultaneous_intervals(&first, &second));
    let interval = |place: usize, slack_ln: f64| {
        let known = intervals.as_ref().and_then(|all| all.get(place)).copied()?;
        Interval::new(known.lo - slack_ln, known.hi + slack_ln)
    };
    let part = |(place, (term, ln)): (usize, (&Term, &f64))| Share {
        id: term.id(),
        unit: term.unit(),
        ln: *ln,
        ci95: interval(place + 2, evidence.slack_ln(*term)),
        from: term.figure(&from),
        to: term.figure(&to),
    };
    let corrected =
        Corrected { ln: *corrected_ln, ci95: interval(1, evidence.open_ln + evidence.unlike_ln()) };
    Ok(Split {
        ln: *ln,
        ci95: interval(0, 0.0),
        from_hz: from.rate_hz,
        to_hz: to.rate_hz,
        busy: [from.busy, to.busy],
        parts: terms.iter().zip(parts_ln).enumerate().map(part).collect(),
        corrected: is_corrected.then_some(corrected),
        clockless: !terms.iter().any(|term| matches!(term, Term::Clock { .. })),
    })
}

/// Whether all that has a logarithm taken of it has one.
fn check(side: &Terms, name: &str) -> Result<(), Missing> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(side.rate_hz) {
        return Err(Missing::new(format!("nothing was finished in {name}, and 0 has no logarithm")));
    }
    if !positive(side.busy) {
        return Err(Missing::new(format!("in {name} the program did not run, and 0 has no logarithm")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Core;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn alone(open_ln: f64, apart: f64) -> Evidence {
        Evidence { open_ln, apart, beside: None }
    }

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
            let split = split(&a, &b, &alone(0.0, 1.0)).unwrap();
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
            let (there, back) = (split(&a, &b, &alone(0.0, 1.0)).unwrap(), split(&b, &a, &alone(0.0, 1.0)).unwrap());
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
        let (closed, open) =
            (split(&a, &b, &alone(0.0, 1.0)).unwrap(), split(&a, &b, &alone(0.01, 1.0)).unwrap());
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
            let ci = split(&a, &b, &alone(0.0, apart)).unwrap().ci95.unwrap();
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
        let both = split(&[run(Some((1e9, 1e9)))], &[run(Some((2e9, 1e9)))], &alone(0.0, 1.0)).unwrap();
        assert_eq!(ids(&both), ["busy", "clock", "ipc", "instructions"]);
        assert!((both.parts[2].ln - 2f64.ln()).abs() < 1e-12 && (both.parts[3].ln + 2f64.ln()).abs() < 1e-12);
        let figures = |at: usize| (both.parts[at].from, both.parts[at].to);
        assert_eq!(figures(1), (2e9, 2e9), "all cycles over all of the run");
        assert_eq!(figures(3), (1e6, 2e6), "the instructions that were counted, of each request");
        let one = split(&[run(None)], &[run(Some((2e9, 1e9)))], &alone(0.0, 1.0)).unwrap();
        assert_eq!(ids(&one), ["busy", "clock", "cost"]);
    }

    #[test]
    fn what_has_no_logarithm_is_not_applicable() {
        let good = [Sums { work: 1.0, elapsed_s: 1.0, wall_s: 1.0, run_s: 1.0, ..Sums::default() }];
        let [sums] = good.clone();
        for bad in [Sums { work: 0.0, ..sums.clone() }, Sums { run_s: 0.0, ..sums }, Sums::default()] {
            let bad = [bad];
            assert!(
                split(&good, &bad, &alone(0.0, 1.0)).is_err()
                    && split(&bad, &good, &alone(0.0, 1.0)).is_err()
            );
        }
        assert!(
            split(&[], &good, &alone(0.0, 1.0)).is_err() && split(&good, &good, &alone(0.0, 1.0)).is_ok()
        );
    }
}
