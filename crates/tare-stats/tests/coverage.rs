//! Whether intervals of paired blocks hold the truth as often as they say, on simulated sittings: three programs loaded in turns of
//! 20 ms (the product has 5 ms), in weather that is worse than that of any machine one would choose.
//!
//! The noise is the same in every run, so that no luck decides. `cargo test -p tare-stats --test coverage -- --nocapture` prints the table.
#![allow(clippy::print_stdout)] // the table, for who asks for it

#[path = "../src/noise.rs"]
mod noise;

use noise::Noise;
use tare_stats::{Interval, Sequence, SplitMix64, contrasts, series_mean, widened};

/// Sittings of each kind.
const RUNS: usize = 2000;
/// Blocks of a sitting, a second each.
const BLOCKS: usize = 60;
/// In a round each of the programs has one turn; rounds come in pairs, the second in the reverse order.
const ROUNDS: usize = 16;
const PROGRAMS: usize = 3;
const TURN_S: f64 = 0.02;

/// What happens in a sitting; logarithms of rates.
#[derive(Clone, Copy)]
struct Weather {
    name: &'static str,
    /// The machine gets so much faster or slower over the sitting, and half as much to and fro with a period of seven seconds.
    drift: f64,
    /// Half-minutes that are 30 % slower, and twice as noisy.
    bad_half_minutes: bool,
    /// Deviation of what meets all programs, with a memory of a second.
    common: f64,
    /// Deviation of what meets each program by itself, with a memory of a second.
    own: f64,
    /// Each program by itself is so much slower in every other of its modes, which last for two seconds on average.
    modes: f64,
}

const QUIET: Weather =
    Weather { name: "quiet", drift: 0.0, bad_half_minutes: false, common: 0.0, own: 0.0, modes: 0.0 };

/// B over A, in logarithms: without an effect every stop for a difference is wrong.
const PLANTED: [f64; 2] = [0.0, 0.02];

const WEATHERS: [Weather; 7] = [
    QUIET,
    Weather { name: "drift", drift: 0.1, ..QUIET },
    Weather { name: "bad half-minutes", bad_half_minutes: true, ..QUIET },
    Weather { name: "autocorrelated, all alike", common: 0.05, ..QUIET },
    Weather { name: "autocorrelated, each its own", own: 0.02, ..QUIET },
    Weather { name: "two modes", modes: 0.04, ..QUIET },
    Weather {
        name: "all together",
        drift: 0.1,
        bad_half_minutes: true,
        common: 0.05,
        own: 0.01,
        modes: 0.02,
    },
];

/// Deviation of a turn from the rate of its time.
const TURN_NOISE: f64 = 0.05;

/// An autoregression with a memory of a second.
struct Slow {
    deviation: f64,
    now: f64,
}

impl Slow {
    fn new(deviation: f64, noise: &mut Noise) -> Slow {
        Slow { deviation, now: deviation * noise.normal() }
    }

    fn step(&mut self, noise: &mut Noise) -> f64 {
        if self.deviation > 0.0 {
            let kept = (-TURN_S).exp();
            self.now = kept * self.now + (1.0 - kept * kept).sqrt() * self.deviation * noise.normal();
        }
        self.now
    }
}

/// When the machine is slow: for 10 to 30 s, with 20 to 60 s between.
fn bad_turns(turns: usize, noise: &mut Noise) -> Vec<bool> {
    let mut bad = vec![false; turns];
    let seconds =
        |from: f64, to: f64, noise: &mut Noise| ((from + (to - from) * noise.uniform()) / TURN_S) as usize;
    let mut from = seconds(0.0, 60.0, noise);
    while from < turns {
        let to = (from + seconds(10.0, 30.0, noise)).min(turns);
        bad[from..to].fill(true);
        from = to + seconds(20.0, 60.0, noise);
    }
    bad
}

/// What each program answers in each block: A, its placebo, B.
fn sitting(weather: &Weather, planted: f64, blocks: usize, noise: &mut Noise) -> [Vec<f64>; PROGRAMS] {
    let turns = blocks * ROUNDS * PROGRAMS;
    let bad = if weather.bad_half_minutes { bad_turns(turns, noise) } else { vec![false; turns] };
    let (trend, phase) = (weather.drift * (2.0 * noise.uniform() - 1.0), noise.uniform());
    let mut common = Slow::new(weather.common, noise);
    let mut own: [Slow; PROGRAMS] = std::array::from_fn(|_| Slow::new(weather.own, noise));
    let mut slow: [bool; PROGRAMS] = std::array::from_fn(|_| noise.uniform() < 0.5);
    let mut answered: [Vec<f64>; PROGRAMS] = std::array::from_fn(|_| vec![0.0; blocks]);
    let mut order: [usize; PROGRAMS] = std::array::from_fn(|program| program);
    for turn in 0..turns {
        let (round, place) = (turn / PROGRAMS, turn % PROGRAMS);
        if round % 2 == 0 && place == 0 {
            for last in (1..PROGRAMS).rev() {
                order.swap(last, (noise.uniform() * (last + 1) as f64) as usize);
            }
        }
        let program = if round % 2 == 0 { order[place] } else { order[PROGRAMS - 1 - place] };
        for (own, slow) in own.iter_mut().zip(&mut slow) {
            own.step(noise);
            *slow ^= weather.modes > 0.0 && noise.uniform() < TURN_S / 2.0;
        }
        let seconds = turn as f64 * TURN_S;
        let swing = 0.5 * weather.drift * (std::f64::consts::TAU * (seconds / 7.0 + phase)).sin();
        let machine = common.step(noise) + trend * turn as f64 / turns as f64 + swing;
        let (half_minute, spread) =
            if bad[turn] { (0.7f64.ln(), 2.0 * TURN_NOISE) } else { (0.0, TURN_NOISE) };
        let mode = if slow[program] { -weather.modes } else { 0.0 };
        let effect = if program == 2 { planted } else { 0.0 };
        let rate = effect + machine + half_minute + own[program].now + mode + spread * noise.normal();
        answered[program][turn / (PROGRAMS * ROUNDS)] += rate.exp();
    }
    answered
}

/// Shares of the runs.
#[derive(Default)]
struct Found {
    /// The interval of the whole sitting holds the effect.
    fixed: usize,
    /// So does the one at which it was stopped.
    stopped: usize,
    /// The same, widened by the placebo's.
    widened: usize,
    /// The placebo's interval does not hold zero.
    placebo_moved: usize,
    /// Stopped since zero was out.
    decided: usize,
    /// Blocks until then.
    blocks: usize,
}

/// Stops at the first look that shows a difference or is as narrow as ±0.75 %: the worst that a user can do.
fn stopped(effect: &[f64], sequence: &Sequence) -> Option<(usize, Interval)> {
    let mut last = None;
    for blocks in 1..=effect.len() {
        let Some(look) = sequence.look(&effect[..blocks]) else { continue };
        let Interval { lo, hi } = look.interval;
        last = Some((blocks, look.interval));
        if lo > 0.0 || hi < 0.0 || hi - lo < 0.015 {
            break;
        }
    }
    last
}

fn simulate(weather: &Weather, planted: f64, seed: u64) -> Option<Found> {
    let mut noise = Noise::new(seed);
    let sequence = Sequence::new(BLOCKS, 0.95)?;
    let holds = |interval: Interval, truth: f64| interval.lo <= truth && truth <= interval.hi;
    let mut found = Found::default();
    for _ in 0..RUNS {
        let [a, placebo, b] = sitting(weather, planted, BLOCKS, &mut noise);
        let contrasts = contrasts(&a, &placebo, &b)?;
        let whole = series_mean(&contrasts.effect)?.interval(0.95)?;
        found.fixed += usize::from(holds(whole, planted));
        let (looks, interval) = stopped(&contrasts.effect, &sequence)?;
        let beside = sequence.look(&contrasts.placebo[..looks])?.interval;
        found.stopped += usize::from(holds(interval, planted));
        found.widened += usize::from(holds(widened(interval, beside), planted));
        found.placebo_moved += usize::from(!holds(beside, 0.0));
        found.decided += usize::from(!holds(interval, 0.0));
        found.blocks += looks;
    }
    Some(found)
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    println!(
        "{:34}fixed  stopped  widened  placebo≠0  decided  blocks",
        format!("{BLOCKS} blocks, {RUNS} runs")
    );
    let mut wrong = Vec::new();
    let sittings = WEATHERS.iter().flat_map(|weather| PLANTED.map(|planted| (weather, planted)));
    // Each has a seed of its own, so that they can be simulated at once.
    let all: Vec<_> = std::thread::scope(|scope| {
        let simulated: Vec<_> = (1..)
            .zip(sittings)
            .map(|(seed, (weather, planted))| {
                (weather, planted, scope.spawn(move || simulate(weather, planted, seed)))
            })
            .collect();
        simulated.into_iter().map(|(weather, planted, found)| (weather, planted, found.join())).collect()
    });
    for (weather, planted, found) in all {
        let found = found.unwrap().unwrap();
        let share = |count: usize| count as f64 / RUNS as f64;
        println!(
            "{:28}{:2.0} %{:7.3}{:9.3}{:9.3}{:11.3}{:9.3}{:8.1}",
            weather.name,
            planted * 100.0,
            share(found.fixed),
            share(found.stopped),
            share(found.widened),
            share(found.placebo_moved),
            share(found.decided),
            share(found.blocks)
        );
        let holds = (0.93..=0.97).contains(&share(found.fixed))
            && share(found.stopped) >= 0.93
            && share(found.widened) >= share(found.stopped)
            && share(found.placebo_moved) <= 0.07;
        if !holds {
            wrong.push((weather.name, planted));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
