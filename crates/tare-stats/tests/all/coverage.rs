//! Whether intervals hold the truth as often as they say, on simulated sessions with more interference than any machine that one would
//! choose.
//!
//! The noise is the same in every run, so that no luck decides. `cargo test -p tare-stats --test all coverage -- --nocapture` prints the table.

use crate::noise::Noise;
use tare_stats::{
    Contrasts, Estimate, Interval, Sequence, contrasts, mean_interval, trimmed_mean_interval, widened,
};

/// Sessions of each kind.
const RUNS: usize = 2000;

/// A, A once more, and B.
const PROGRAMS: usize = 3;

/// How a session measures: launches of all programs, interleaved.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    launches: usize,
    /// Of each launch; in a round each of the programs has one turn, and every other has the reverse order of the one before.
    rounds: usize,
    turn_s: f64,
    /// Deviation of a turn from the rate of its time.
    turn_noise: f64,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "compare",
        launches: 40,
        // Real turns are a twentieth as long: here less of the interference cancels.
        rounds: 16,
        turn_s: 0.02,
        turn_noise: 0.05,
    },
    Shape { name: "compare, few launches", launches: 12, rounds: 16, turn_s: 0.02, turn_noise: 0.05 },
];

/// What happens in a session; logarithms of rates.
#[derive(Clone, Copy)]
struct Interference {
    name: &'static str,
    /// The machine gets so much faster or slower over the session, and half as much back and forth with a period of seven seconds.
    drift: f64,
    /// Half-minutes that are 30 % slower, and twice as noisy.
    bad_half_minutes: bool,
    /// Deviation of what affects all programs, with a memory of a second.
    common: f64,
    /// Deviation of what affects each program of a launch by itself, with a memory of a second.
    own: f64,
    /// A program is slower by this in some of its launches.
    slower: f64,
    /// In this share of them.
    slow_share: f64,
}

const QUIET: Interference = Interference {
    name: "quiet",
    drift: 0.0,
    bad_half_minutes: false,
    common: 0.0,
    own: 0.0,
    slower: 0.0,
    slow_share: 0.5,
};

const INTERFERENCES: [Interference; 8] = [
    QUIET,
    Interference { name: "drift", drift: 0.1, ..QUIET },
    Interference { name: "bad half-minutes", bad_half_minutes: true, ..QUIET },
    Interference { name: "autocorrelated, all alike", common: 0.05, ..QUIET },
    Interference { name: "autocorrelated, each its own", own: 0.02, ..QUIET },
    Interference { name: "two modes", slower: 0.04, ..QUIET },
    Interference { name: "a mode of one launch in five", slower: 0.04, slow_share: 0.2, ..QUIET },
    Interference {
        name: "all together",
        drift: 0.1,
        bad_half_minutes: true,
        common: 0.05,
        own: 0.01,
        slower: 0.02,
        ..QUIET
    },
];

/// B over A, in logarithms: without an effect every stop for a difference is wrong.
const PLANTED: [f64; 2] = [0.0, 0.02];

/// Interference affects each program of a launch a little more or less: deviation of its share from 1.
const APART: f64 = 0.1;

/// An autoregression with a memory of a second.
struct Slow {
    deviation: f64,
    /// What is left of a value a turn later.
    kept: f64,
    now: f64,
}

impl Slow {
    fn new(deviation: f64, turn_s: f64, noise: &mut Noise) -> Slow {
        Slow { deviation, kept: (-turn_s).exp(), now: deviation * noise.normal() }
    }

    fn step(&mut self, noise: &mut Noise) -> f64 {
        if self.deviation > 0.0 {
            let fresh = (1.0 - self.kept * self.kept).sqrt() * self.deviation;
            self.now = self.kept * self.now + fresh * noise.normal();
        }
        self.now
    }
}

/// When the machine is slow: for 10 to 30 s, with 20 to 60 s between.
fn bad_turns(turns: usize, turn_s: f64, noise: &mut Noise) -> Vec<bool> {
    let mut bad = vec![false; turns];
    let seconds =
        |from: f64, to: f64, noise: &mut Noise| ((from + (to - from) * noise.uniform()) / turn_s) as usize;
    let mut from = seconds(0.0, 60.0, noise);
    while from < turns {
        let to = (from + seconds(10.0, 30.0, noise)).min(turns);
        bad[from..to].fill(true);
        from = to + seconds(20.0, 60.0, noise);
    }
    bad
}

/// What is the launch's own of a program.
struct Launched {
    /// Its share of what the machine does.
    share: f64,
    own: Slow,
    mode: f64,
}

impl Launched {
    fn new(interference: &Interference, shape: &Shape, noise: &mut Noise) -> Launched {
        Launched {
            share: 1.0 + APART * noise.normal(),
            own: Slow::new(interference.own, shape.turn_s, noise),
            mode: if noise.uniform() < interference.slow_share { -interference.slower } else { 0.0 },
        }
    }
}

/// What each program answers in each launch: A, its A/A control, B.
fn session(
    interference: &Interference,
    shape: &Shape,
    planted: f64,
    noise: &mut Noise,
) -> [Vec<f64>; PROGRAMS] {
    let turns = shape.launches * shape.rounds * PROGRAMS;
    let bad = match interference.bad_half_minutes {
        true => bad_turns(turns, shape.turn_s, noise),
        false => vec![false; turns],
    };
    let (trend, phase) = (interference.drift * (2.0 * noise.uniform() - 1.0), noise.uniform());
    let mut common = Slow::new(interference.common, shape.turn_s, noise);
    let launched = |noise: &mut Noise| -> [Launched; PROGRAMS] {
        std::array::from_fn(|_| Launched::new(interference, shape, noise))
    };
    let mut programs = launched(noise);
    let mut answered: [Vec<f64>; PROGRAMS] = std::array::from_fn(|_| vec![0.0; shape.launches]);
    let mut order: [usize; PROGRAMS] = std::array::from_fn(|program| program);
    for (turn, is_bad) in bad.into_iter().enumerate() {
        let (round, place) = (turn / PROGRAMS, turn % PROGRAMS);
        if round.is_multiple_of(2) && place == 0 {
            for last in (1..PROGRAMS).rev() {
                order.swap(last, (noise.uniform() * (last + 1) as f64) as usize);
            }
        }
        if round.is_multiple_of(shape.rounds) && place == 0 {
            programs = launched(noise);
        }
        let program = if round.is_multiple_of(2) { order[place] } else { order[PROGRAMS - 1 - place] };
        for Launched { own, .. } in &mut programs {
            own.step(noise);
        }
        let swing = 0.5
            * interference.drift
            * (std::f64::consts::TAU * (turn as f64 * shape.turn_s / 7.0 + phase)).sin();
        let (half_minute, spread) = if is_bad { (0.7f64.ln(), 2.0) } else { (0.0, 1.0) };
        let machine = common.step(noise) + trend * turn as f64 / turns as f64 + swing + half_minute;
        let Launched { share, own, mode } = &programs[program];
        let effect = if program == PROGRAMS - 1 { planted } else { 0.0 };
        let rate = effect + share * machine + own.now + mode + spread * shape.turn_noise * noise.normal();
        answered[program][round / shape.rounds] += rate.exp();
    }
    answered
}

/// Counts of the runs.
#[derive(Default)]
struct Found {
    /// The mean's interval of all launches holds the effect.
    mean: usize,
    /// The trimmed mean's.
    trimmed: usize,
    /// The one at which it was stopped.
    stopped: usize,
    /// That, widened by the A/A control's.
    widened: usize,
    /// Every one that there was until the end.
    always: usize,
    /// The A/A control's interval does not hold zero then.
    aa_control_moved: usize,
    /// Stopped because zero was outside.
    decided: usize,
    /// Launches until then.
    launches: usize,
}

/// Stops at the first check that shows a difference or is as narrow as ±0.75 %: the worst that a user can do.
fn is_enough(Interval { lo, hi }: Interval) -> bool {
    lo > 0.0 || hi < 0.0 || hi - lo < 0.015
}

fn holds(interval: Interval, truth: f64) -> bool {
    interval.lo <= truth && truth <= interval.hi
}

fn simulate(interference: &Interference, shape: &Shape, planted: f64, seed: u64) -> Option<Found> {
    let mut noise = Noise::new(seed);
    let sequence = Sequence::of_launches(shape.launches, 0.95)?;
    let analyse = |columns: &[&[f64]], launches: usize| {
        let columns: Vec<&[f64]> = columns.iter().map(|column| &column[..launches]).collect();
        Some(sequence.analyse(&columns)?.interval)
    };
    let fixed = |estimate: Option<Estimate>| Some(usize::from(holds(estimate?.ci95?, planted)));
    let mut found = Found::default();
    for _ in 0..RUNS {
        let [a, aa_control, b] = session(interference, shape, planted, &mut noise);
        let Contrasts { effect: [effect, other], aa_control } = contrasts(&a, &aa_control, &b)?;
        found.mean += fixed(mean_interval(&effect))?;
        found.trimmed += fixed(trimmed_mean_interval(&effect))?;
        let analyses: Vec<(usize, Interval)> = (1..=shape.launches)
            .filter_map(|launches| Some((launches, analyse(&[&effect, &other], launches)?)))
            .collect();
        let (launches, interval) =
            *analyses.iter().find(|(_, interval)| is_enough(*interval)).or(analyses.last())?;
        let beside = analyse(&[&aa_control], launches)?;
        found.stopped += usize::from(holds(interval, planted));
        found.widened += usize::from(holds(widened(interval, beside), planted));
        found.always += usize::from(analyses.iter().all(|(_, interval)| holds(*interval, planted)));
        found.aa_control_moved += usize::from(!holds(beside, 0.0));
        found.decided += usize::from(!holds(interval, 0.0));
        found.launches += launches;
    }
    Some(found)
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let kinds: Vec<(&Shape, &Interference, f64)> = SHAPES
        .iter()
        .flat_map(|shape| INTERFERENCES.iter().map(move |interference| (shape, interference)))
        .flat_map(|(shape, interference)| PLANTED.map(|planted| (shape, interference, planted)))
        .collect();
    // Each has a seed of its own, so that they can be simulated at once.
    let all: Vec<_> = std::thread::scope(|scope| {
        let simulated: Vec<_> = (1..)
            .zip(&kinds)
            .map(|(seed, (shape, interference, planted))| {
                scope.spawn(move || simulate(interference, shape, *planted, seed))
            })
            .collect();
        simulated.into_iter().map(|found| found.join()).collect()
    });
    println!("{RUNS} runs{:48}mean trimmed stopped  always widened A/A control≠0 decided launches", "");
    let mut wrong = Vec::new();
    for ((shape, interference, planted), found) in kinds.into_iter().zip(all) {
        let found = found.unwrap().unwrap();
        let share = |count: usize| count as f64 / RUNS as f64;
        println!(
            "{:22}{:29}{:2.0} %{:8.3}{:8.3}{:8.3}{:8.3}{:8.3}{:10.3}{:8.3}{:9.1}",
            shape.name,
            interference.name,
            planted * 100.0,
            share(found.mean),
            share(found.trimmed),
            share(found.stopped),
            share(found.always),
            share(found.widened),
            share(found.aa_control_moved),
            share(found.decided),
            share(found.launches)
        );
        let promised = 0.93..=0.97;
        let holds = promised.contains(&share(found.mean))
            && promised.contains(&share(found.trimmed))
            && share(found.stopped) >= 0.93
            && share(found.always) >= 0.93
            && share(found.widened) >= share(found.stopped)
            && share(found.aa_control_moved) <= 0.07;
        if !holds {
            wrong.push((shape.name, interference.name, planted));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
