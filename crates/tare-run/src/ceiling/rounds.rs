//! Rounds of samples: each ceiling once in each, in an order drawn at random.

use super::ground::Ground;
use super::kind::{Kind, Opened};
use crate::blocks::shuffle;
use crate::error::LabError;
use crate::progress::Event;
use crate::running::Running;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tare_model::Missing;
use tare_model::better::Better;
use tare_stats::SplitMix64;

/// Rounds that the budget is cut into, those that are measured at least, whatever the budget, and at most.
const ROUNDS: u32 = 10;
const ROUNDS_MIN: u32 = 3;
const ROUNDS_MAX: u32 = 40;
/// Length of a sample.
const SAMPLE_MIN: Duration = Duration::from_millis(10);
const SAMPLE_MAX: Duration = Duration::from_millis(250);
/// Of the time of a round the samples themselves take this part; the rest is for threads, connections and files.
const SAMPLES_PART: f64 = 0.7;
/// Once so many times the budget have passed no further round is begun, and none is finished.
const LATE: f64 = 1.25;

/// What came of one ceiling.
pub(super) struct Sampled {
    pub name: String,
    pub about: String,
    pub unit: &'static str,
    pub better: Better,
    pub samples: Vec<f64>,
    pub note: String,
    /// Why there is no further sample; of use where there is none at all.
    pub missing: Missing,
}

/// All ceilings, opened.
pub(super) struct Rounds {
    entries: Vec<(Sampled, Option<Opened>)>,
    /// Rounds that are complete.
    pub done: u32,
}

impl Rounds {
    /// Makes what the samples need. What cannot be made is missing.
    pub fn open(kinds: Vec<Kind>, ground: &Rc<Ground>) -> Rounds {
        let open = |kind: Kind| {
            let better = kind.better();
            let interrupted = ground.interrupt.load(Ordering::Relaxed);
            let opened = if interrupted { Err(Missing::new("interrupted")) } else { (kind.open)(ground) };
            let note = opened.as_ref().map_or(String::new(), |opened| opened.note.clone());
            let missing = opened.as_ref().err().cloned();
            let sampled = Sampled {
                name: kind.name,
                about: kind.about,
                unit: kind.unit,
                better,
                samples: Vec::new(),
                note,
                missing: missing.unwrap_or_else(|| Missing::new("interrupted before its first sample")),
            };
            (sampled, opened.ok())
        };
        Rounds { entries: kinds.into_iter().map(open).collect(), done: 0 }
    }

    /// Takes samples until the budget is used up, which counts from `begun` on: once all is open.
    pub fn measure(
        &mut self,
        budget: Duration,
        begun: Instant,
        seed: u64,
        running: &mut Running<'_>,
    ) -> Result<(), LabError> {
        let mut random = SplitMix64::new(seed);
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        let left_s = budget.saturating_sub(begun.elapsed()).as_secs_f64();
        let each_s = SAMPLES_PART * left_s / f64::from(ROUNDS) / order.len().max(1) as f64;
        let sample_ns = Duration::from_secs_f64(each_s).clamp(SAMPLE_MIN, SAMPLE_MAX).as_nanos() as u64;
        let mut longest = Duration::ZERO;
        for round in 1..=ROUNDS_MAX {
            if self.done >= ROUNDS_MIN && begun.elapsed() + longest > budget {
                break;
            }
            let round_begun = Instant::now();
            shuffle(&mut order, &mut random);
            for &at in &order {
                if running.interrupt.load(Ordering::Relaxed) {
                    return Err(LabError::Interrupted);
                }
                if begun.elapsed() > budget.mul_f64(LATE) {
                    return Ok(());
                }
                self.sample(at, round, sample_ns, begun, running);
            }
            self.done = round;
            longest = longest.max(round_begun.elapsed());
        }
        Ok(())
    }

    fn sample(&mut self, at: usize, round: u32, sample_ns: u64, begun: Instant, running: &mut Running<'_>) {
        let Some((sampled, Some(opened))) = self.entries.get_mut(at) else { return };
        running.progress.show(Event::Live {
            elapsed_s: begun.elapsed().as_secs_f64(),
            rate_hz: None,
            phase: format!("round {round}: {}", sampled.name),
        });
        match (opened.sample)(sample_ns) {
            Ok(value) if value.is_finite() && value > 0.0 => sampled.samples.push(value),
            Ok(_) => sampled.missing = Missing::new("nothing was done in the time given"),
            Err(missing) => sampled.missing = missing,
        }
    }

    /// What came of each, in the order of the list. Everything that was made for the samples goes.
    pub fn into_sampled(self) -> Vec<Sampled> {
        let rounds = self.done as usize;
        let half = |(mut sampled, _): (Sampled, _)| {
            // Where more than half of the rounds failed, the others are no fair choice.
            if 2 * sampled.samples.len() < rounds {
                sampled.samples.clear();
            }
            sampled
        };
        self.entries.into_iter().map(half).collect()
    }
}
