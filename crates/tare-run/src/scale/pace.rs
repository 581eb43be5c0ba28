//! How long each launch is measured, and how many blocks there are, within a budget.

use super::sweep::WARMUP;
use std::time::Duration;

/// Fewest blocks: of two nobody could say which is right.
pub(super) const BLOCKS_MIN: u32 = 3;
/// Blocks that the length of a trial leaves room for.
const BLOCKS_MEANT: u32 = 4;
/// And no more than these, however short a program is.
const BLOCKS_MAX: u32 = 60;
/// About what starting, settling and stopping takes of a launch.
const AROUND_S: f64 = 0.8;
const TRIAL_MIN_S: f64 = 0.4;
const TRIAL_MAX_S: f64 = 3.0;
/// Runs of a program in a launch.
const RUNS_MAX: u32 = 1000;

/// The budget, and what was asked for of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub budget: Duration,
    pub blocks: Option<u32>,
    /// The length of a trial of a server, where it was given.
    pub trial: Option<Duration>,
}

impl Pace {
    fn launch_s(&self, levels: usize) -> f64 {
        let blocks = self.blocks.unwrap_or(BLOCKS_MEANT).max(1);
        self.budget.as_secs_f64() / (f64::from(blocks) * levels.max(1) as f64)
    }

    /// How long a trial of a server is, with so many levels at first.
    pub fn trial(&self, levels: usize) -> Duration {
        let room_s = self.launch_s(levels) - AROUND_S - WARMUP.as_secs_f64();
        self.trial.unwrap_or_else(|| Duration::from_secs_f64(room_s.clamp(TRIAL_MIN_S, TRIAL_MAX_S)))
    }

    /// How often a program that takes so long is run in a launch.
    pub fn runs(&self, levels: usize, run_s: f64) -> u32 {
        let room_s = (self.launch_s(levels) - AROUND_S).min(TRIAL_MAX_S);
        let runs = room_s / run_s.max(1e-4);
        if runs >= 1.0 { (runs as u32).min(RUNS_MAX) } else { 1 }
    }

    /// Whether there is another block after so many, when so much time has passed and the next takes so long.
    pub fn goes_on(&self, blocks: u32, elapsed: Duration, block: Duration) -> bool {
        match self.blocks {
            Some(asked) => blocks < asked,
            None => blocks < BLOCKS_MIN || (blocks < BLOCKS_MAX && elapsed + block <= self.budget),
        }
    }

    /// How long all takes, by what is known after the first block.
    pub fn expected(&self, elapsed: Duration, block: Duration) -> Duration {
        let least = self.blocks.unwrap_or(BLOCKS_MIN).saturating_sub(1);
        let least = elapsed + block * least;
        if self.blocks.is_some() { least } else { least.max(self.budget) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(budget_s: u64, blocks: Option<u32>) -> Pace {
        Pace { budget: Duration::from_secs(budget_s), blocks, trial: None }
    }

    #[test]
    fn trials_fit_into_the_budget_and_have_bounds() {
        let trial_s = |budget_s, levels| pace(budget_s, None).trial(levels).as_secs_f64();
        assert!((trial_s(60, 7) - (60.0 / 28.0 - 1.1)).abs() < 1e-9);
        assert_eq!((trial_s(1, 7), trial_s(10_000, 7)), (TRIAL_MIN_S, TRIAL_MAX_S));
        let given = Pace { trial: Some(Duration::from_secs(9)), ..pace(60, None) };
        assert_eq!(given.trial(7), Duration::from_secs(9));
    }

    #[test]
    fn a_short_program_runs_more_often() {
        assert_eq!(pace(60, None).runs(4, 2.0), 1);
        assert_eq!(pace(60, None).runs(4, 100.0), 1);
        assert_eq!(pace(60, None).runs(4, 0.1), 29);
        assert_eq!(pace(60, None).runs(4, 0.0), RUNS_MAX);
    }

    #[test]
    fn blocks_end_with_the_budget_but_there_are_three() {
        let seconds = Duration::from_secs;
        let goes_on = |budget_s, blocks, elapsed_s| {
            pace(budget_s, None).goes_on(blocks, seconds(elapsed_s), seconds(10))
        };
        assert!(goes_on(60, 2, 300) && !goes_on(60, 3, 300) && !goes_on(60, 5, 55) && goes_on(60, 5, 50));
        assert!(!goes_on(u64::from(u32::MAX), BLOCKS_MAX, 1));
        assert!(
            pace(1, Some(5)).goes_on(4, seconds(99), seconds(9))
                && !pace(600, Some(5)).goes_on(5, seconds(1), seconds(1))
        );
        assert_eq!(pace(60, None).expected(seconds(40), seconds(40)), seconds(120));
        assert_eq!(pace(60, None).expected(seconds(5), seconds(5)), seconds(60));
    }
}
