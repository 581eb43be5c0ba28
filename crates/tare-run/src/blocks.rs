//! Blocks of trials: one trial of each level, in an order drawn at random. Interleaved levels are driven at once.

use tare_model::plan::Level;
use tare_stats::SplitMix64;

/// Trials that are driven at once: (index of the level, which of its trials). More than one where levels are interleaved.
pub type Stint = Vec<(usize, u32)>;

/// The blocks, each of stints in the order to drive them in. A level with fewer trials than another is in every so many of the
/// blocks, spread evenly. The stages of a load follow each other in their order. The same seed gives the same order.
pub fn blocks(seed: u64, levels: &[Level]) -> Vec<Vec<Stint>> {
    let count = levels.iter().map(|level| level.trials).max().unwrap_or(0);
    let mut random = SplitMix64::new(seed);
    let block = |block: u32| {
        // How many of its trials a level has had when so many blocks are over.
        let had = |level: &Level, over: u32| u64::from(over) * u64::from(level.trials) / u64::from(count);
        let trials = levels
            .iter()
            .enumerate()
            .filter(|(_, level)| had(level, block + 1) > had(level, block))
            .map(|(index, level)| (level, (index, had(level, block) as u32)));
        let (together, alone): (Vec<_>, Vec<_>) = trials.partition(|(level, _)| level.arms > 1);
        let together: Stint = together.into_iter().map(|(_, trial)| trial).collect();
        let (stages, alone): (Vec<_>, Vec<_>) =
            alone.into_iter().partition(|(level, _)| level.stage.is_some());
        let each = |trials: Vec<(&Level, (usize, u32))>| -> Vec<Stint> {
            trials.into_iter().map(|(_, trial)| vec![trial]).collect()
        };
        let mut groups: Vec<Vec<Stint>> = each(alone).into_iter().map(|stint| vec![stint]).collect();
        groups.extend([each(stages), vec![together]].into_iter().filter(|group| !group.concat().is_empty()));
        shuffle(&mut groups, &mut random);
        groups.concat()
    };
    (0..count).map(block).collect()
}

/// Fisher and Yates. The bias of a remainder is below count / 2⁶⁴.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        let other = random.next_u64() % (last as u64 + 1);
        items.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::plan::{PlannedStage, Purpose};

    fn level(trials: u32) -> Level {
        Level {
            purpose: Purpose::Asked,
            connections: 1,
            rate_hz: None,
            pipeline: 1,
            trial_ns: 1,
            warmup_ns: 0,
            trials,
            arms: 1,
            stage: None,
        }
    }

    proptest! {
        #[test]
        fn every_trial_is_driven_once_and_in_its_order(
            trials in prop::collection::vec(0u32..40, 0..4),
            seed: u64,
        ) {
            let levels: Vec<Level> = trials.iter().map(|count| level(*count)).collect();
            let drawn = blocks(seed, &levels);
            prop_assert_eq!(&drawn, &blocks(seed, &levels));
            for (index, count) in trials.iter().enumerate() {
                let of_level: Vec<u32> =
                    drawn.iter().flatten().flatten().filter(|(of, _)| *of == index).map(|(_, trial)| *trial).collect();
                prop_assert_eq!(of_level, (0..*count).collect::<Vec<_>>());
                let most = drawn.iter().map(|block| block.iter().flatten().filter(|(of, _)| *of == index).count()).max();
                prop_assert!(most.unwrap_or(0) <= 1);
            }
        }
    }

    #[test]
    fn interleaved_levels_are_one_stint() {
        let interleaved = Level { arms: 2, ..level(3) };
        for block in blocks(1, &[level(3), interleaved.clone(), interleaved]) {
            let mut lengths: Vec<usize> = block.iter().map(Vec::len).collect();
            lengths.sort_unstable();
            assert_eq!(lengths, [1, 2], "{block:?}");
        }
    }

    #[test]
    fn stages_follow_each_other_in_their_order() {
        let stage = Level { stage: Some(PlannedStage { from_hz: 1.0, to_hz: 1.0 }), ..level(9) };
        let drawn = blocks(1, &[stage.clone(), stage.clone(), stage, level(9)]);
        let orders: Vec<Vec<usize>> =
            drawn.iter().map(|block| block.iter().flatten().map(|(index, _)| *index).collect()).collect();
        assert!(
            orders.iter().all(|order| [[0, 1, 2, 3], [3, 0, 1, 2]].contains(&order[..].try_into().unwrap()))
        );
        assert!(orders.contains(&vec![3, 0, 1, 2]) && orders.contains(&vec![0, 1, 2, 3]), "{orders:?}");
    }

    #[test]
    fn every_order_comes_up() {
        let drawn = blocks(7, &[level(600), level(600), level(600)]);
        let mut orders: Vec<Vec<usize>> = drawn
            .into_iter()
            .map(|block| block.into_iter().flatten().map(|(index, _)| index).collect())
            .collect();
        orders.sort();
        let counts: Vec<usize> = orders.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        assert_eq!(counts.len(), 6);
        // 100 each, give or take four standard deviations.
        assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
    }
}
