//! Why rates differ: X = b / C of each server in its own turns, so that ln(X₂/X₁) = Δln b − Δln C, with b the share of its turns in which
//! its CPUs were busy and C the CPU time of a request. The clock is the same for both: they are loaded in the same milliseconds.

use tare_model::comparison::{Arm, Comparison, Effect, Figure, Launch, Part};
use tare_stats::{Interval, Sequence, contrasts, median};

/// What explains so much of the time in which it was not busy names that part.
const NAMED_SHARE: f64 = 0.5;
/// Less of its turns is not worth a name.
const LOST_MIN: f64 = 0.01;

/// The parts of each program's rate against the first one's; none where rate or service demand came to nothing.
pub(super) fn parts(comparison: &Comparison, sequence: Option<&Sequence>) -> Vec<Part> {
    let others = comparison.programs.iter().skip(1).enumerate();
    others.flat_map(|(at, program)| of(comparison, at, &program.name, sequence).unwrap_or_default()).collect()
}

fn of(
    comparison: &Comparison,
    other: usize,
    program: &str,
    sequence: Option<&Sequence>,
) -> Option<Vec<Part>> {
    let effect = |figure: Figure| {
        comparison.effects.iter().find(|effect| effect.program == program && effect.figure == figure)
    };
    let (rate, cost) = (effect(Figure::Throughput)?, effect(Figure::CpuPerRequest)?);
    let (rate_ln, cost_ln) = (rate.change?.value.ln_1p(), -cost.change?.value.ln_1p());
    let busy = busy(comparison, other, sequence);
    let busy_ln = rate_ln - cost_ln;
    let [from, to] = [0, other + 2].map(|arm| shares(&comparison.launches, arm, busy_of));
    let part = |id: &str, ln: f64, ci95: Option<[f64; 2]>, [from, to]: [Option<f64>; 2], unit: &str| Part {
        program: program.to_owned(),
        id: id.to_owned(),
        ln,
        ci95,
        from,
        to,
        unit: unit.to_owned(),
    };
    let around =
        |interval: Interval, middle: f64| [busy_ln + interval.lo - middle, busy_ln + interval.hi - middle];
    Some(vec![
        part("cost", cost_ln, cost_ci95(cost), [Some(cost.baseline), Some(cost.value)], "s"),
        part(
            name(&comparison.launches, other),
            busy_ln,
            busy.map(|(middle, interval)| around(interval, middle)),
            [from, to],
            "share",
        ),
    ])
}

/// Of −ln of the service demand.
fn cost_ci95(cost: &Effect) -> Option<[f64; 2]> {
    let [low, high] = cost.change?.interval.map(f64::ln_1p);
    (low.is_finite() && high.is_finite()).then_some([-high, -low])
}

/// What the busy shares differ by, as the figures are analysed.
fn busy(comparison: &Comparison, other: usize, sequence: Option<&Sequence>) -> Option<(f64, Interval)> {
    let values =
        |arm: usize| comparison.launches.iter().map(|launch| busy_of(launch.arms.get(arm)?)).collect();
    let [first, aa_control, other]: [Option<Vec<f64>>; 3] = [values(0), values(1), values(other + 2)];
    let contrasts = contrasts(&first?, &aa_control?, &other?)?;
    let [one, again] = &contrasts.effect;
    let analysis = sequence?.analyse(&[one, again])?;
    Some((analysis.mean.value, analysis.interval))
}

fn busy_of(arm: &Arm) -> Option<f64> {
    share_of(arm, arm.cpu_ns)
}

fn share_of(arm: &Arm, ns: Option<u64>) -> Option<f64> {
    Some(ns? as f64 / arm.own_ns.max(1) as f64)
}

/// The median over launches.
fn shares(launches: &[Launch], arm: usize, of: fn(&Arm) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = launches.iter().map(|launch| of(launch.arms.get(arm)?)).collect();
    median(&all?)
}

/// What most of the time went to in which the one was less busy than the other.
fn name(launches: &[Launch], other: usize) -> &'static str {
    let sides =
        |of: fn(&Arm) -> Option<f64>| Some([shares(launches, 0, of)?, shares(launches, other + 2, of)?]);
    let apart = |[first, other]: [f64; 2]| other - first;
    let Some(busier) = sides(busy_of).map(apart).filter(|busier| busier.abs() >= LOST_MIN) else {
        return "busy";
    };
    let throttled = sides(|arm| share_of(arm, arm.throttled_ns)).map(apart);
    let waited = sides(|arm| share_of(arm, arm.waited_ns)).map(apart);
    // What the less busy one lost more of.
    let explains = |lost: &Option<f64>| lost.is_some_and(|lost| lost / -busier >= NAMED_SHARE);
    match () {
        () if explains(&throttled) => "throttled",
        () if explains(&waited) => "waited-for-cpu",
        () => "busy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(busy: f64, throttled: f64, waited: f64) -> Arm {
        let of_a_second = |share: f64| Some((share * 1e9) as u64);
        Arm {
            own_ns: 1_000_000_000,
            answers: 1000,
            errors: 0,
            cpu_ns: of_a_second(busy),
            throttled_ns: of_a_second(throttled),
            quota_cpus: None,
            waited_ns: of_a_second(waited),
            figures: Default::default(),
            windows_s: Vec::new(),
            alone_s: None,
        }
    }

    fn launches(other: &Arm) -> Vec<Launch> {
        let first = arm(0.97, 0.0, 0.01);
        let launch = Launch {
            begin_s: 0.0,
            took_s: 1.0,
            arms: vec![first.clone(), first, other.clone()],
            interference: Default::default(),
            disturbed: Vec::new(),
            warm_up: None,
        };
        vec![launch; 8]
    }

    #[test]
    fn a_part_is_named_by_what_took_most_of_it() {
        for (other, wanted) in [
            (arm(0.47, 0.5, 0.52), "throttled"),
            (arm(0.47, 0.0, 0.51), "waited-for-cpu"),
            (arm(0.47, 0.0, 0.02), "busy"),
            (arm(0.968, 0.3, 0.3), "busy"),
            (Arm { throttled_ns: None, waited_ns: None, ..arm(0.3, 0.0, 0.0) }, "busy"),
        ] {
            assert_eq!(name(&launches(&other), 0), wanted, "{other:?}");
        }
    }
}
