//! Why rates differ: X = b / C of each server in its own turns, so that ln(X₂/X₁) = Δln b − Δln C, with b the share of its turns in which
//! its CPUs were busy and C the CPU time of a request, which its own code took or the kernel. The clock is the same for both: they are loaded in the same milliseconds.

use tare_model::comparison::{Arm, Comparison, Effect, Figure, Launch, Part};
use tare_stats::{Contrasts, Interval, Sequence, contrasts, log_mean, median, pseudo_values, widened};

/// What explains so much of the time in which it was not busy names that part.
const NAMED_SHARE: f64 = 0.5;
/// Less of its turns is not worth a name.
const LOST_MIN: f64 = 0.01;

/// The parts of each program's rate against the first one's; none where rate or service demand came to nothing.
pub(super) fn parts(comparison: &Comparison, sequence: Option<&Sequence>) -> Vec<Part> {
    let others = comparison.programs.iter().skip(1).enumerate();
    others.flat_map(|(at, program)| of(comparison, at, &program.name, sequence).unwrap_or_default()).collect()
}

/// What a program is held against the first one by.
struct Pair<'c> {
    launches: &'c [Launch],
    sequence: Option<&'c Sequence>,
    /// Its index among the others.
    other: usize,
    program: &'c str,
}

/// ln of a ratio, with its interval.
#[derive(Clone, Copy)]
struct Ratio {
    ln: f64,
    ci95: Option<[f64; 2]>,
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
    let cost_ln = -cost.change?.value.ln_1p();
    let pair = Pair { launches: &comparison.launches, sequence, other, program };
    let sides = [cost.baseline, cost.value].map(Some);
    let whole = pair.part("cost", Ratio { ln: cost_ln, ci95: cost_ci95(cost) }, sides, "s");
    let busy_ln = rate.change?.value.ln_1p() - cost_ln;
    let busy = Ratio { ln: busy_ln, ci95: pair.ratio(busy_of).and_then(|busy| busy.moved_to(busy_ln)) };
    let mut parts = vec![whole];
    parts.extend(pair.within_cost(cost, cost_ln).unwrap_or_default());
    parts.push(pair.part(name(&comparison.launches, other), busy, pair.sides(busy_of), "share"));
    Some(parts)
}

impl Pair<'_> {
    fn part(&self, id: &str, Ratio { ln, ci95 }: Ratio, [from, to]: [Option<f64>; 2], unit: &str) -> Part {
        Part {
            program: self.program.to_owned(),
            id: id.to_owned(),
            within: None,
            ln,
            ci95,
            from,
            to,
            unit: unit.to_owned(),
        }
    }

    /// What the service demand grew by in the program's own code and in the kernel, whose shares are of all launches together: ticks of one
    /// are few.
    fn within_cost(&self, cost: &Effect, cost_ln: f64) -> Option<Vec<Part>> {
        let kernel = self.analysed(&self.grown_in_kernel()?)?.turned();
        // The rest of the whole is the user's: what is uncertain is where a tick belongs.
        let user_ln = cost_ln - kernel.ln;
        let user =
            Ratio { ln: user_ln, ci95: self.analysed(&self.grown_in_user()?)?.turned().moved_to(user_ln) };
        let first = Demand::of(self.launches.iter().flat_map(|launch| launch.arms.iter().take(2)))?;
        let other = Demand::of(self.arms(self.other + 2)?.into_iter())?;
        let in_kernel = [first.kernel_share * cost.baseline, other.kernel_share * cost.value];
        let in_user = [cost.baseline - in_kernel[0], cost.value - in_kernel[1]];
        let within = |id: &str, ratio: Ratio, sides: [f64; 2]| Part {
            within: Some("cost".to_owned()),
            ..self.part(id, ratio, sides.map(Some), "s")
        };
        Some(vec![within("user", user, in_user), within("kernel", kernel, in_kernel)])
    }

    fn grown_in_kernel(&self) -> Option<Contrasts> {
        self.grown(|demand| demand.kernel_share * demand.cost_s)
    }

    fn grown_in_user(&self) -> Option<Contrasts> {
        self.grown(|demand| (1.0 - demand.kernel_share) * demand.cost_s)
    }

    /// What a part of the service demand adds to its logarithm: with Λ the logarithmic mean of both demands (K₂ − K₁)/Λ, of which all parts
    /// sum up to it (Ang, Energy Policy 32, 2004). A value for each launch: the jackknife's pseudo-values of what all together say.
    fn grown(&self, part: impl Fn(Demand) -> f64) -> Option<Contrasts> {
        let [first, aa_control, other] = [self.arms(0)?, self.arms(1)?, self.arms(self.other + 2)?];
        let between = |one: &[&Arm], other: &[&Arm]| {
            let grown = |skip: Option<usize>| {
                let but = |arms: &[&Arm]| {
                    let kept = arms.iter().enumerate().filter(|(at, _)| Some(*at) != skip);
                    Demand::of(kept.map(|(_, arm)| *arm))
                };
                let (from, to) = (but(one)?, but(other)?);
                Some((part(to) - part(from)) / log_mean(from.cost_s, to.cost_s)?)
            };
            pseudo_values(one.len(), grown)
        };
        Some(Contrasts {
            effect: [between(&first, &other)?, between(&aa_control, &other)?],
            aa_control: between(&first, &aa_control)?,
        })
    }

    /// An arm in each launch; `None` where one lacks it.
    fn arms(&self, arm: usize) -> Option<Vec<&Arm>> {
        self.launches.iter().map(|launch| launch.arms.get(arm)).collect()
    }

    /// Medians over launches of the first program and of the other.
    fn sides(&self, of: impl Fn(&Arm) -> Option<f64>) -> [Option<f64>; 2] {
        [0, self.other + 2].map(|arm| shares(self.launches, arm, &of))
    }

    /// What the other has over what the first has, as the figures are analysed.
    fn ratio(&self, of: impl Fn(&Arm) -> Option<f64>) -> Option<Ratio> {
        let values = |arm: usize| self.arms(arm)?.into_iter().map(&of).collect();
        let [first, aa_control, other]: [Option<Vec<f64>>; 3] =
            [values(0), values(1), values(self.other + 2)];
        self.analysed(&contrasts(&first?, &aa_control?, &other?)?)
    }

    /// With the interval widened by what the A/A control proves.
    fn analysed(&self, contrasts: &Contrasts) -> Option<Ratio> {
        let sequence = self.sequence?;
        let [one, again] = &contrasts.effect;
        let analysis = sequence.analyse(&[one, again])?;
        let aa_control = sequence.analyse_aa_control(contrasts)?;
        let Interval { lo, hi } = widened(analysis.interval, aa_control.interval);
        Some(Ratio { ln: analysis.mean.value, ci95: Some([lo, hi]) })
    }
}

/// What a server took of a CPU for a request, in some launches together.
#[derive(Clone, Copy)]
struct Demand {
    cost_s: f64,
    /// Of its ticks, those in the kernel.
    kernel_share: f64,
}

impl Demand {
    /// `None` where a launch does not tell, or nothing was counted.
    fn of<'a>(arms: impl Iterator<Item = &'a Arm>) -> Option<Demand> {
        let (mut cpu_ns, mut answers, mut user_ns, mut kernel_ns) = (0, 0, 0, 0);
        for arm in arms {
            let modes = arm.modes?;
            cpu_ns += arm.cpu_ns?;
            answers += arm.answers;
            user_ns += modes.user_ns;
            kernel_ns += modes.kernel_ns;
        }
        let ticks_ns = user_ns + kernel_ns;
        (cpu_ns > 0 && answers > 0 && ticks_ns > 0).then(|| Demand {
            cost_s: cpu_ns as f64 / 1e9 / answers as f64,
            kernel_share: kernel_ns as f64 / ticks_ns as f64,
        })
    }
}

impl Ratio {
    /// Its interval around another estimate.
    fn moved_to(self, ln: f64) -> Option<[f64; 2]> {
        self.ci95.map(|ends| ends.map(|end| end - self.ln + ln))
    }

    /// What takes more makes slower.
    fn turned(self) -> Ratio {
        Ratio { ln: -self.ln, ci95: self.ci95.map(|[low, high]| [-high, -low]) }
    }
}

/// Of −ln of the service demand.
fn cost_ci95(cost: &Effect) -> Option<[f64; 2]> {
    let [low, high] = cost.change?.interval.map(f64::ln_1p);
    (low.is_finite() && high.is_finite()).then_some([-high, -low])
}

fn busy_of(arm: &Arm) -> Option<f64> {
    share_of(arm, arm.cpu_ns)
}

fn share_of(arm: &Arm, ns: Option<u64>) -> Option<f64> {
    Some(ns? as f64 / arm.own_ns.max(1) as f64)
}

/// The median over launches.
fn shares(launches: &[Launch], arm: usize, of: impl Fn(&Arm) -> Option<f64>) -> Option<f64> {
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
            modes: None,
            waited_ns: of_a_second(waited),
            figures: Default::default(),
            windows_s: Vec::new(),
            alone_s: None,
            benchmarks: Vec::new(),
        }
    }

    fn launches(other: &Arm) -> Vec<Launch> {
        let first = arm(0.97, 0.0, 0.01);
        let launch = Launch {
            turn_ns: 0,
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
