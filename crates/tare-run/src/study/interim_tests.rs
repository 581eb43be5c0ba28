//! Whether the intervals of a plan hold what cells differ by, on simulated sessions with much interference.

#[path = "../../../tare-stats/src/noise.rs"]
mod noise;

use super::super::order::orders;
use super::*;
use noise::Noise;
use tare_stats::SplitMix64;

const RUNS: usize = 2000;
/// Seconds that a cell takes.
const CELL_S: usize = 10;

/// What happens meanwhile; logarithms of rates.
#[derive(Clone, Copy, Default)]
struct Interference {
    /// From the first block to the last.
    drift: f64,
    /// 30 % less for 10 to 30 s, with 20 to 60 s between.
    bad_half_minutes: bool,
    /// Deviation of what lasts for half a minute or so.
    slow: f64,
}

const QUIET: Interference = Interference { drift: 0.0, bad_half_minutes: false, slow: 0.0 };
const INTERFERENCES: [(&str, Interference); 5] = [
    ("quiet", QUIET),
    ("drift", Interference { drift: 0.2, ..QUIET }),
    ("bad half-minutes", Interference { bad_half_minutes: true, ..QUIET }),
    ("autocorrelated", Interference { slow: 0.05, ..QUIET }),
    ("all together", Interference { drift: 0.2, bad_half_minutes: true, slow: 0.05 }),
];

/// How fast the machine is in each second.
fn machine(interference: Interference, seconds: usize, noise: &mut Noise) -> Vec<f64> {
    let between = |from: f64, to: f64, noise: &mut Noise| (from + (to - from) * noise.uniform()) as usize;
    let (mut slow, mut is_bad, mut until) =
        (interference.slow * noise.normal(), false, between(0.0, 60.0, noise));
    let trend = interference.drift * (2.0 * noise.uniform() - 1.0);
    let kept = (-1.0f64 / 30.0).exp();
    (0..seconds)
        .map(|second| {
            if interference.bad_half_minutes && second >= until {
                is_bad = !is_bad;
                let [from, to] = if is_bad { [10.0, 30.0] } else { [20.0, 60.0] };
                until = second + between(from, to, noise);
            }
            slow = kept * slow + (1.0 - kept * kept).sqrt() * interference.slow * noise.normal();
            let half_minute = if is_bad { 0.7f64.ln() } else { 0.0 };
            slow + half_minute + trend * second as f64 / seconds as f64
        })
        .collect()
}

/// What the second cell has over the first in each block.
fn differences(
    interference: Interference,
    cells: usize,
    blocks: usize,
    noise: &mut Noise,
    seed: u64,
) -> Vec<(usize, f64)> {
    let machine = machine(interference, blocks * cells * CELL_S, noise);
    let mut seconds = machine.chunks(CELL_S);
    let block = |(block, order): (usize, Vec<usize>)| {
        let mut rates = vec![0.0; cells];
        for cell in order {
            let mean =
                seconds.next().map_or(0.0, |all| all.iter().map(|ln| ln.exp()).sum::<f64>() / CELL_S as f64);
            rates[cell] = mean.ln() + 0.01 * noise.normal();
        }
        (block, rates[1] - rates[0])
    };
    orders(seed, cells, blocks).into_iter().enumerate().map(block).collect()
}

/// How often the interval holds that there is no difference.
fn held(intervals: &Intervals, interference: Interference, cells: usize, blocks: usize) -> f64 {
    let mut noise = Noise::new(5);
    let holds = (0..RUNS).filter(|run| {
        let differences = differences(interference, cells, blocks, &mut noise, *run as u64);
        let (_, interval) = intervals.of_differences(&differences).unwrap();
        interval.lo <= 0.0 && 0.0 <= interval.hi
    });
    holds.count() as f64 / RUNS as f64
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut wrong = Vec::new();
    for (cells, blocks) in [(2, 8), (2, 20), (3, 12), (3, 24), (4, 16), (4, 32)] {
        for (name, interference) in INTERFERENCES {
            let share = held(&Intervals::once(cells), interference, cells, blocks);
            if !(0.93..=0.97).contains(&share) {
                wrong.push((cells, blocks, name, share));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn blocks_of_two_cells_each_by_itself_would_not() {
    let (_, bad) = INTERFERENCES[2];
    let by_block = held(&Intervals::Once { square: 1 }, bad, 2, 20);
    assert!(by_block < 0.92, "{by_block}");
}

#[test]
fn a_square_that_lost_a_block_has_what_is_left_of_it() {
    let intervals = Intervals::Once { square: 2 };
    let differences = [(0, 1.0), (1, 3.0), (2, 2.0), (4, 1.0), (5, 3.0), (6, 2.0), (7, 2.0)];
    let (value, interval) = intervals.of_differences(&differences).unwrap();
    assert_eq!((value, interval.lo, interval.hi), (2.0, 2.0, 2.0));
    assert!(intervals.of_differences(&differences[..5]).unwrap().1.lo < 1.0, "three squares: by blocks");
}
