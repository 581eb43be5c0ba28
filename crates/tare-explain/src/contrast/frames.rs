//! Which code took a different share of the CPU in one set of trials than in another, beyond noise.
//!
//! Shares are of the samples of a role: a frame's *own* share is where it was the innermost, its *inclusive* share
//! where it was anywhere on the stack. Samples of one trial are not independent draws (a trial has its own interference),
//! so the binomial variance is multiplied by how much trials of the same set differ more than drawing would make them:
//! Pearson's χ² over its degrees of freedom, of all frames together or of the frame itself, whichever is larger, and
//! never below 1 (Wedderburn's quasi-likelihood, 1974; McCullagh and Nelder, Generalized Linear Models, 4.5). The
//! intervals are simultaneous: Bonferroni over every share that was compared, with Agresti and Caffo's (2000) added
//! observations, so that a frame that is in one set only has an interval, too.

use std::collections::{BTreeMap, HashSet};
use tare_model::observation::Role;
use tare_model::stacks::{FrameKind, Method, NamedBy, Stacks};
use tare_model::{Missing, Reading};
use tare_stats::t_quantile;

/// Share of all samples of both sets below which a frame is not compared.
const SHARE_MIN: f64 = 0.001;
/// Samples of both sets below which a frame is not compared.
const SAMPLES_MIN: u64 = 10;
/// Degrees of freedom at which Student's distribution is the normal one.
const NORMAL_DF: f64 = 1e7;

/// Which share of a frame is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// The frame itself ran.
    Own,
    /// The frame, or what it called, ran.
    Inclusive,
}

/// A frame's share in two sets of trials.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameChange {
    /// The function.
    pub symbol: String,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Which share.
    pub share: Share,
    /// Share of the samples in the first set, 0..1.
    pub before: f64,
    /// Share in the second.
    pub after: f64,
    /// Ends of the simultaneous 95 % interval of `after − before`.
    pub difference_ci95: [f64; 2],
}

impl FrameChange {
    /// By how much the share grew, −1..1.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// Whether it changed beyond noise: 0 is not in the interval.
    pub fn is_clear(&self) -> bool {
        self.difference_ci95[0] > 0.0 || self.difference_ci95[1] < 0.0
    }
}

/// What came out of comparing two sets of trials.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameChanges {
    /// What changed beyond noise, the largest difference first.
    pub changes: Vec<FrameChange>,
    /// What did not, in no order.
    pub others: Vec<FrameChange>,
    /// How many shares were compared: what the intervals are corrected for.
    pub compared: usize,
    /// Samples of each set.
    pub samples: [u64; 2],
    /// Whether both sets have the two trials that it takes to see how much trials differ; else only the noise of
    /// sampling is in the intervals, and they are too narrow.
    pub replicated: bool,
}

/// Compares the on-CPU stacks of a role between two sets of trials.
///
/// Missing where either set has no stacks, with the reason that they give, and where the two were not sampled in the same way: then another
/// share may be the other way's.
pub fn changed(before: &[&Stacks], after: &[&Stacks], role: Role) -> Reading<FrameChanges> {
    let sets = counted(before, role).and_then(|before| Ok([before, counted(after, role)?]));
    sets.and_then(|sets| alike(before, after).map(|()| compare(&sets))).into()
}

/// Whether all were sampled in one way.
fn alike(before: &[&Stacks], after: &[&Stacks]) -> Result<(), Missing> {
    const AGAIN: &str = "measure both again, in the same way (the same tare, rights and options of --stacks)";
    let of = |all: &[&Stacks]| -> Result<Option<Method>, Missing> {
        let mut methods: Vec<Option<Method>> =
            all.iter().filter_map(|stacks| Some(stacks.on_cpu.value()?.method)).collect();
        methods.dedup();
        match methods[..] {
            [one] => Ok(one),
            _ => Err(Missing::with_remedy("the windows of one run were not sampled in one way", AGAIN)),
        }
    };
    let (a, b) = (of(before)?, of(after)?);
    if [a, b].iter().flatten().any(|method| method.named_by == NamedBy::OutOfTime) {
        return Err(Missing::with_remedy(
            "the functions of the two runs are not compared: the time for names was over before all had one",
            "measure again while the machine is quiet",
        ));
    }
    if a == b {
        return Ok(());
    }
    let words = |method: Option<Method>| {
        method.map_or_else(|| "in a way that was not recorded".to_owned(), |method| method.words())
    };
    let why = format!(
        "the functions of the two runs are not compared: A's were sampled {}; B's {}",
        words(a),
        words(b)
    );
    Err(Missing::with_remedy(why, AGAIN))
}

/// A function, wherever its module lies: another build of it is at another place.
type Key = (String, FrameKind);

/// Samples of one trial.
struct Counts {
    total: u64,
    /// Own and inclusive.
    frames: BTreeMap<Key, [u64; 2]>,
}

fn counted(trials: &[&Stacks], role: Role) -> Result<Vec<Counts>, Missing> {
    let mut sets = Vec::new();
    let mut reason = Missing::with_remedy("no stacks were sampled", "measure with --stacks");
    for stacks in trials {
        match stacks.on_cpu.clone().ok() {
            Ok(_) => sets.push(count(stacks, role)),
            Err(missing) => reason = missing,
        }
    }
    sets.retain(|counts| counts.total > 0);
    if sets.is_empty() { Err(reason) } else { Ok(sets) }
}

fn count(stacks: &Stacks, role: Role) -> Counts {
    let mut counts = Counts { total: 0, frames: BTreeMap::new() };
    let profile = stacks.on_cpu.value();
    for stack in profile.into_iter().flat_map(|profile| &profile.stacks).filter(|stack| stack.role == role) {
        counts.total = counts.total.saturating_add(stack.value);
        let mut seen: HashSet<Key> = HashSet::new();
        for (depth, index) in stack.frames.iter().rev().enumerate() {
            let Some(frame) = stacks.frame(*index) else { continue };
            let key = (frame.symbol.clone(), frame.kind);
            let [own, inclusive] = counts.frames.entry(key.clone()).or_default();
            if depth == 0 {
                *own = own.saturating_add(stack.value);
            }
            // A function that calls itself is on the stack more than once.
            if seen.insert(key) {
                *inclusive = inclusive.saturating_add(stack.value);
            }
        }
    }
    counts
}

/// One share that is compared: its samples in each trial of both sets.
struct Compared<'a> {
    key: &'a Key,
    share: Share,
    /// Samples and the samples of the whole trial.
    trials: [Vec<(f64, f64)>; 2],
}

fn compare(sets: &[Vec<Counts>; 2]) -> FrameChanges {
    let samples = [0, 1].map(|set: usize| sets[set].iter().map(|counts| counts.total).sum::<u64>());
    let keys: std::collections::BTreeSet<&Key> =
        sets.iter().flatten().flat_map(|counts| counts.frames.keys()).collect();
    let least = (SHARE_MIN * (samples[0] + samples[1]) as f64).max(SAMPLES_MIN as f64);
    let all: Vec<Compared> = keys
        .into_iter()
        .flat_map(|key| [Share::Own, Share::Inclusive].map(|share| gather(sets, key, share)))
        .filter(|one| one.trials.iter().flatten().map(|(count, _)| count).sum::<f64>() >= least)
        .collect();
    let common = [Share::Own, Share::Inclusive].map(|share| {
        let of = all.iter().filter(|one| one.share == share).map(pearson);
        let (chi2, df) = of.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        dispersion(chi2, df)
    });
    let beyond = t_quantile(1.0 - 0.025 / all.len().max(1) as f64, NORMAL_DF).unwrap_or(f64::INFINITY);
    let compared = all.iter().map(|one| {
        let (chi2, df) = pearson(one);
        change(one, common[one.share as usize].max(dispersion(chi2, df)), beyond)
    });
    let (mut changes, others): (Vec<FrameChange>, Vec<FrameChange>) =
        compared.partition(FrameChange::is_clear);
    changes.sort_by(|one, other| other.difference().abs().total_cmp(&one.difference().abs()));
    let replicated = sets.iter().all(|set| set.len() > 1);
    FrameChanges { compared: all.len(), changes, others, samples, replicated }
}

fn gather<'a>(sets: &[Vec<Counts>; 2], key: &'a Key, share: Share) -> Compared<'a> {
    let trials = [0, 1].map(|set: usize| {
        let count = |counts: &Counts| counts.frames.get(key).map_or(0, |both| both[share as usize]) as f64;
        sets[set].iter().map(|counts| (count(counts), counts.total as f64)).collect()
    });
    Compared { key, share, trials }
}

/// Samples and whole of a set.
fn sums(trials: &[(f64, f64)]) -> (f64, f64) {
    trials.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Pearson's χ² of the trials about their set's share, and its degrees of freedom.
fn pearson(one: &Compared) -> (f64, f64) {
    one.trials.iter().fold((0.0, 0.0), |sum, trials| {
        let (count, whole) = sums(trials);
        let share = count / whole;
        // Nothing to scatter.
        if trials.len() < 2 || share <= 0.0 || share >= 1.0 {
            return sum;
        }
        let square =
            |(count, whole): &(f64, f64)| (count - share * whole).powi(2) / (whole * share * (1.0 - share));
        (sum.0 + trials.iter().map(square).sum::<f64>(), sum.1 + trials.len() as f64 - 1.0)
    })
}

fn dispersion(chi2: f64, df: f64) -> f64 {
    if df > 0.0 { (chi2 / df).max(1.0) } else { 1.0 }
}

/// The change, with an interval of so many standard errors.
fn change(one: &Compared, dispersion: f64, beyond: f64) -> FrameChange {
    let [before, after] = [0, 1].map(|set: usize| sums(&one.trials[set]));
    let padded = |(count, whole): (f64, f64)| {
        let share = (count + 1.0) / (whole + 2.0);
        (share, share * (1.0 - share) / (whole + 2.0))
    };
    let ((low, low_variance), (high, high_variance)) = (padded(before), padded(after));
    let error = (dispersion * (low_variance + high_variance)).sqrt();
    FrameChange {
        symbol: one.key.0.clone(),
        kind: one.key.1,
        share: one.share,
        before: before.0 / before.1,
        after: after.0 / after.1,
        difference_ci95: [high - low - beyond * error, high - low + beyond * error],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::stacks::{Folded, Folder, Frame};

    /// A trial in which `main` called each of these so often.
    fn trial(counts: &[(&str, u64)]) -> Stacks {
        let mut folder = Folder::default();
        let mut folded = Folded::new(Some(999.0));
        let thread = folder.frame(Frame::mark("thread"));
        let mut frame =
            |symbol: &str| folder.frame(Frame { symbol: symbol.into(), module: None, kind: FrameKind::User });
        for (symbol, count) in counts {
            // `main` twice: it called itself.
            let frames = vec![frame("main"), frame("main"), frame(symbol)];
            folded.add(Role::Sut, thread, frames.clone(), *count);
            folded.add(Role::Load, thread, frames, 7 * count);
        }
        folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new())
    }

    fn changes(before: &[Stacks], after: &[Stacks]) -> FrameChanges {
        let before: Vec<&Stacks> = before.iter().collect();
        let after: Vec<&Stacks> = after.iter().collect();
        changed(&before, &after, Role::Sut).ok().unwrap()
    }

    #[test]
    fn what_grew_is_found_and_what_is_everywhere_is_not() {
        let before = [trial(&[("a", 500), ("b", 500)]), trial(&[("a", 510), ("b", 490)])];
        let after =
            [trial(&[("a", 500), ("b", 500), ("c", 250)]), trial(&[("a", 505), ("b", 495), ("c", 260)])];
        let found = changes(&before, &after);
        assert_eq!((found.samples, found.replicated), ([2000, 2510], true));
        let grown: Vec<_> = found.changes.iter().filter(|change| change.difference() > 0.0).collect();
        assert_eq!(grown.len(), 2, "{grown:?}");
        assert!(grown.iter().all(|change| change.symbol == "c" && change.before == 0.0));
        assert!((grown[0].after - 510.0 / 2510.0).abs() < 1e-12);
        assert!(found.changes.iter().all(|change| change.symbol != "main"));
        // A few more of what is rare are chance.
        let rare = [trial(&[("a", 500), ("b", 500), ("c", 3)]), trial(&[("a", 510), ("b", 490), ("c", 4)])];
        let few = [trial(&[("a", 500), ("b", 500), ("c", 5)]), trial(&[("a", 510), ("b", 490), ("c", 6)])];
        assert_eq!(changes(&rare, &few).changes, []);
    }

    #[test]
    fn trials_that_differ_among_themselves_hide_small_changes() {
        let corrected = [trial(&[("a", 300), ("b", 700)]), trial(&[("a", 300), ("b", 700)])];
        let wild = [trial(&[("a", 200), ("b", 800)]), trial(&[("a", 520), ("b", 480)])];
        let steady = [trial(&[("a", 380), ("b", 620)]), trial(&[("a", 380), ("b", 620)])];
        assert!(!changes(&corrected, &steady).changes.is_empty());
        assert_eq!(changes(&corrected, &wild).changes, []);
    }

    #[test]
    fn what_was_sampled_in_two_ways_is_not_compared() {
        use tare_model::stacks::{CallersBy, SampledBy};
        let method = Method {
            sampled_by: SampledBy::CpuClock,
            callers_by: CallersBy::Copies,
            named_by: NamedBy::Tables,
            with_kernel: true,
            kernel_named: true,
        };
        let by = |method: Option<Method>, counts: &[(&str, u64)]| {
            let mut one = trial(counts);
            if let Reading::Measured(profile) = &mut one.on_cpu {
                profile.method = method;
            }
            one
        };
        let (few, many) = ([("a", 300), ("b", 700)], [("a", 700), ("b", 300)]);
        let found = |a: Option<Method>, b: Option<Method>| {
            let (a, b) = (by(a, &few), by(b, &many));
            changed(&[&a, &a], &[&b, &b], Role::Sut).ok()
        };
        assert!(!found(Some(method), Some(method)).unwrap().changes.is_empty());
        assert!(!found(None, None).unwrap().changes.is_empty());
        let others = [
            Method { callers_by: CallersBy::FramePointers, ..method },
            Method { sampled_by: SampledBy::Cycles, ..method },
            Method { named_by: NamedBy::DebugFiles, ..method },
            Method { with_kernel: false, ..method },
        ];
        for other in others {
            let why = found(Some(method), Some(other)).unwrap_err();
            assert!(why.why.contains("not compared") && !why.remedy.is_empty(), "{why:?}");
        }
        assert!(found(None, Some(method)).unwrap_err().why.contains("not recorded"));
        // Which functions had no names for lack of time is chance.
        let cut = Method { named_by: NamedBy::OutOfTime, ..method };
        assert!(found(Some(cut), Some(cut)).is_err());
        // And one run with two ways.
        let (one, other) = (by(Some(method), &few), by(Some(others[0]), &few));
        let mixed = changed(&[&one, &other], &[&one, &one], Role::Sut).ok().unwrap_err();
        assert!(mixed.why.contains("one run"), "{mixed:?}");
    }

    #[test]
    fn without_stacks_there_is_a_reason() {
        let gone = Stacks::missing(Missing::new("no right"));
        let there = trial(&[("a", 9)]);
        assert_eq!(changed(&[&gone], &[&there], Role::Sut), Reading::missing("no right"));
        assert!(changed(&[&there], &[], Role::Sut).value().is_none());
        let one = changed(&[&there], &[&there], Role::Sut).ok().unwrap();
        assert!(!one.replicated && one.changes.is_empty());
    }

    proptest! {
        #[test]
        fn shares_are_shares_and_order_does_not_matter(
            counts in prop::collection::vec((0u64..3000, 0u64..3000, 1u64..3000), 2..6),
            other in prop::collection::vec((0u64..3000, 0u64..3000, 1u64..3000), 2..6),
        ) {
            let set = |all: &[(u64, u64, u64)]| -> Vec<Stacks> {
                all.iter().map(|(a, b, c)| trial(&[("a", *a), ("b", *b), ("c", *c)])).collect()
            };
            let (there, back) = (changes(&set(&counts), &set(&other)), changes(&set(&other), &set(&counts)));
            prop_assert_eq!(there.changes.len(), back.changes.len());
            for change in &there.changes {
                prop_assert!((0.0..=1.0).contains(&change.before) && (0.0..=1.0).contains(&change.after));
                let [low, high] = change.difference_ci95;
                prop_assert!(low <= high && (low > 0.0 || high < 0.0));
            }
            prop_assert_eq!(changes(&set(&counts), &set(&counts)).changes, vec![]);
        }
    }
}
