//! Made-up launches, judged.

use super::{is_valid, judge};
use crate::treatment::{Given, Treatment};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tare_model::comparison::SCHEMA;
use tare_model::comparison::{
    Arm, Change, Comparison, Disturbance, Effect, Ended, Figure, Interference, Launch, Modes, Program,
    Verdict,
};
use tare_model::condition::Condition;
use tare_model::treatment::{TreatmentScope, TreatmentVerdict};
use tare_stats::LAUNCHES_MIN;

/// Even numbers, summed to something normal.
struct Noise(tare_stats::SplitMix64);

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise(tare_stats::SplitMix64::new(seed))
    }

    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// A server that takes `cost_s` of CPU for a request, in its own turns of a launch.
fn arm(cost_s: f64, errors: u64) -> Arm {
    let answers = (0.2 / cost_s) as u64;
    let figures = [
        (Figure::Throughput, 1.0 / cost_s),
        (Figure::Net, 1.0 / cost_s),
        (Figure::CpuPerRequest, cost_s),
        (Figure::P50, 64.0 * cost_s),
        (Figure::P90, 80.0 * cost_s),
        (Figure::P99, 100.0 * cost_s),
    ];
    Arm {
        waited_ns: None,
        throttled_ns: None,
        quota_cpus: None,
        modes: None,
        own_ns: 200_000_000,
        answers,
        errors,
        cpu_ns: Some(200_000_000),
        figures: BTreeMap::from(figures),
        windows_s: Vec::new(),
        alone_s: None,
        benchmarks: Vec::new(),
    }
}

/// So many launches, with what layout (a deviation of a hundredth) and interference (a third at times) make of them.
fn comparison(launches: usize, costlier: f64, noise: &mut Noise) -> Comparison {
    let launch = |at: usize, noise: &mut Noise| {
        let interference: f64 = if noise.unit() < 0.2 { 1.3 } else { 1.0 };
        let mut cost = |times: f64| 5e-6 * interference * times * (0.01 * noise.normal()).exp();
        let arms = vec![arm(cost(1.0), 0), arm(cost(1.0), 0), arm(cost(costlier), 0)];
        let interference = Interference { steal_share: Some(0.0), ..Interference::default() };
        Launch {
            begin_s: at as f64,
            took_s: 1.0,
            turn_ns: 5_000_000,
            arms,
            interference,
            disturbed: Vec::new(),
            warm_up: None,
        }
    };
    let program =
        |name: &str| Program { name: name.to_owned(), command: "x {port}".into(), url: Some("/".into()) };
    Comparison {
        schema: SCHEMA,
        argv: Vec::new(),
        programs: vec![program("A"), program("B")],
        seed: 1,
        budget_s: launches as f64 + 100.0,
        precision: 0.001,
        margin: 0.02,
        planned: Some(launches.max(LAUNCHES_MIN)),
        turn_ns: 5_000_000,
        sut_cpus: vec![0],
        load_cpus: vec![1],
        ended: None,
        elapsed_s: launches as f64,
        launches: (0..launches).map(|at| launch(at, noise)).collect(),
        effects: Vec::new(),
        not_known: Vec::new(),
        interleaving: Vec::new(),
        treatments: Vec::new(),
        benchmarks: Vec::new(),
        warnings: Vec::new(),
        parts: Vec::new(),
    }
}

fn effect(comparison: &Comparison, figure: Figure) -> &Effect {
    comparison.effects.iter().find(|effect| effect.figure == figure).unwrap()
}

#[test]
fn more_cpu_per_request_is_found_and_the_same_is_not() {
    let mut noise = Noise::new(3);
    let mut costlier = comparison(40, 1.03, &mut noise);
    judge(&mut costlier);
    let cost = effect(&costlier, Figure::CpuPerRequest);
    assert_eq!(cost.verdict, Verdict::Slower, "{cost:?}");
    assert!((cost.change.unwrap().value - 0.03).abs() < 0.012, "{cost:?}");
    assert_eq!(effect(&costlier, Figure::Throughput).verdict, Verdict::Slower);
    assert_eq!(costlier.ended, Some(Ended::Budget));
    assert!(cost.detectable.unwrap() > 0.0 && cost.one_percent_s.unwrap() > 0.0);
    let mut same = comparison(60, 1.0, &mut noise);
    judge(&mut same);
    assert!(same.effects.iter().all(|effect| effect.verdict == Verdict::NoDifference), "{:?}", same.effects);
    let fails = |text: &str, of: &Comparison| !text.parse::<Condition>().unwrap().proven(of).is_empty();
    assert!(fails("cpu_per_request > 1%", &costlier) && !fails("cpu_per_request > 1%", &same));
    assert!(!fails("cpu_per_request > 5%", &costlier) && !fails("throughput > 0%", &costlier));
}

#[test]
fn a_difference_of_rates_is_made_of_parts() {
    let part = |of: &Comparison, id: &str| {
        let rate_ln = effect(of, Figure::Throughput).change.unwrap().value.ln_1p();
        let whole = of.parts.iter().filter(|part| part.within.is_none());
        let sum: f64 = whole.clone().map(|part| part.ln).sum();
        assert!((sum - rate_ln).abs() < 1e-9 && whole.count() == 2, "{:?}", of.parts);
        of.parts.iter().find(|part| part.id == id).unwrap_or_else(|| panic!("{:?}", of.parts)).ln / rate_ln
    };
    let mut noise = Noise::new(5);
    let mut costlier = comparison(40, 1.05, &mut noise);
    judge(&mut costlier);
    assert!(part(&costlier, "cost") > 0.9, "{:?}", costlier.parts);
    let [low, high] = costlier.parts[0].ci95.unwrap();
    assert!(low < -(1.05f64.ln()) && high < 0.0, "{:?}", costlier.parts);
    assert_eq!(costlier.parts.len(), 2, "nobody knows what the kernel took: {:?}", costlier.parts);
    // Its own code takes the tenth more, and the kernel the same half of the first one's.
    let mut in_user = comparison(40, 1.1, &mut noise);
    for launch in &mut in_user.launches {
        for (arm, share) in launch.arms.iter_mut().zip([0.5, 0.5, 0.5 / 1.1]) {
            let all_ns = arm.cpu_ns.unwrap() as f64;
            let kernel_ns = all_ns * share * (0.05 * noise.normal()).exp();
            arm.modes = Some(Modes { user_ns: (all_ns - kernel_ns) as u64, kernel_ns: kernel_ns as u64 });
        }
    }
    judge(&mut in_user);
    let [user, kernel] = ["user", "kernel"].map(|id| part(&in_user, id));
    assert!(user > 0.85 && kernel.abs() < 0.15, "{user} {kernel} {:?}", in_user.parts);
    assert!((user + kernel - part(&in_user, "cost")).abs() < 1e-9, "{:?}", in_user.parts);
    let is_shown = |id: &str| {
        let shown = in_user.parts.iter().find(|part| part.id == id).unwrap();
        shown.within.as_deref() == Some("cost")
            && shown.ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    };
    assert!(is_shown("user") && !is_shown("kernel"), "{:?}", in_user.parts);
    // A quota of a half for the other one alone.
    let mut held = comparison(40, 1.0, &mut noise);
    for launch in &mut held.launches {
        let arm = &mut launch.arms[2];
        let half = (0.5 + 0.01 * noise.normal()) * arm.own_ns as f64;
        (arm.cpu_ns, arm.throttled_ns) = (Some(half as u64), Some(arm.own_ns - half as u64));
        *arm.figures.get_mut(&Figure::Throughput).unwrap() *= half / arm.own_ns as f64;
        launch.arms[..2].iter_mut().for_each(|arm| arm.throttled_ns = Some(0));
    }
    judge(&mut held);
    let warned = |of: &Comparison| of.warnings.iter().any(|warning| warning.id == "other-quota");
    assert!(!warned(&held), "nobody has a quota: {:?}", held.warnings);
    held.launches.iter_mut().for_each(|launch| launch.arms[2].quota_cpus = Some(1.0));
    judge(&mut held);
    assert!(!warned(&held), "all of the one CPU: {:?}", held.warnings);
    held.launches.iter_mut().for_each(|launch| launch.arms[2].quota_cpus = Some(0.5));
    judge(&mut held);
    assert!(warned(&held), "{:?}", held.warnings);
    assert!(part(&held, "throttled") > 0.9, "{:?}", held.parts);
    let throttled = held.parts.iter().find(|part| part.id == "throttled").unwrap();
    assert!(throttled.ci95.is_some_and(|[low, high]| low < throttled.ln && high < -0.6), "{throttled:?}");
    assert!((throttled.to.unwrap() - 0.5).abs() < 0.01, "{throttled:?}");
}

/// A core that somebody else computes on makes one program cost more, by more than the other.
#[test]
fn the_interference_corrected_change_stands_beside_the_measured_one() {
    let mut noise = Noise::new(8);
    let mut leaning = comparison(40, 1.02, &mut noise);
    for launch in &mut leaning.launches {
        let oversubscription = noise.unit();
        launch.interference.compute_s = Some(3e-9 * oversubscription.exp());
        let cost_s = launch.arms[2].figures[&Figure::CpuPerRequest] * (0.3 * oversubscription).exp();
        launch.arms[2] = arm(cost_s, 0);
    }
    judge(&mut leaning);
    let cost = effect(&leaning, Figure::CpuPerRequest);
    let width = |change: Change| change.interval[1] - change.interval[0];
    let (raw, adjusted) = (cost.change.unwrap(), cost.adjusted.unwrap());
    assert!(width(adjusted) < 0.5 * width(raw), "{cost:?}");
    // At the median of what others took.
    assert!((adjusted.value - (1.02 * 0.15f64.exp() - 1.0)).abs() < 0.03, "{cost:?}");
    leaning.launches[7].interference.compute_s = None;
    judge(&mut leaning);
    assert_eq!(
        effect(&leaning, Figure::CpuPerRequest).adjusted,
        None,
        "interference that was not seen throughout"
    );
}

/// Net is the cost turned round, and no chance more to be wrong: no interval is wider for it.
#[test]
fn net_says_what_the_cost_says() {
    let mut with = comparison(20, 1.03, &mut Noise::new(9));
    judge(&mut with);
    let (net, cost) = (effect(&with, Figure::Net), effect(&with, Figure::CpuPerRequest));
    assert_eq!((net.verdict, cost.verdict), (Verdict::Slower, Verdict::Slower));
    let turned = |share: f64| (1.0 + share).recip() - 1.0;
    let (one, other) = (net.change.unwrap(), cost.change.unwrap());
    assert!((one.interval[0] - turned(other.interval[1])).abs() < 1e-9, "{net:?} {cost:?}");
    assert!((one.interval[1] - turned(other.interval[0])).abs() < 1e-9, "{net:?} {cost:?}");
    let mut without = with.clone();
    without
        .launches
        .iter_mut()
        .flat_map(|launch| &mut launch.arms)
        .for_each(|arm| _ = arm.figures.remove(&Figure::Net));
    judge(&mut without);
    assert_eq!(effect(&without, Figure::CpuPerRequest).change, cost.change);
}

/// Analysed after each launch and stopped as people stop, a server differs from itself in 5 of 100 comparisons at most.
#[test]
fn a_server_seldom_differs_from_itself() {
    let mut noise = Noise::new(4);
    let runs = 300;
    let reported = (0..runs)
        .filter(|_| {
            let whole = comparison(24, 1.0, &mut noise);
            (LAUNCHES_MIN..=24).any(|launches| {
                let mut part = Comparison { launches: whole.launches[..launches].to_vec(), ..whole.clone() };
                judge(&mut part);
                let differs = |effect: &Effect| matches!(effect.verdict, Verdict::Faster | Verdict::Slower);
                part.effects.iter().any(differs)
            })
        })
        .count();
    // 5 % and three standard deviations.
    assert!(reported as f64 <= 0.09 * f64::from(runs), "{reported} of {runs}");
}

#[test]
fn it_ends_when_it_is_precise() {
    let mut precise = Comparison { precision: 0.05, ..comparison(20, 1.0, &mut Noise::new(5)) };
    precise.planned = Some(60);
    judge(&mut precise);
    assert_eq!(precise.ended, Some(Ended::Precise));
    precise.precision = 0.0001;
    judge(&mut precise);
    assert_eq!(precise.ended, None);
    precise.planned = None;
    judge(&mut precise);
    assert!(precise.ended.is_none() && precise.effects.iter().all(|effect| effect.change.is_none()));
    precise.launches.truncate(2);
    precise.budget_s = precise.elapsed_s;
    judge(&mut precise);
    assert_eq!((precise.ended, precise.warnings[0].id.as_str()), (Some(Ended::Budget), "too-few-launches"));
}

#[test]
fn what_disturbs_is_marked_and_counts() {
    let mut disturbed = comparison(10, 1.0, &mut Noise::new(6));
    disturbed.launches[1].interference.steal_share = Some(0.2);
    disturbed.launches[2].interference.throttled_share = Some(0.2);
    disturbed.launches[3].arms = vec![arm(1e-5, 0), arm(1e-5, 0), arm(1e-5, 0)];
    judge(&mut disturbed);
    assert!(disturbed.launches[1].disturbed.contains(&Disturbance::Steal));
    assert!(disturbed.launches[2].disturbed.contains(&Disturbance::Throttled));
    assert_eq!(disturbed.launches[3].disturbed, [Disturbance::Slow]);
    assert_eq!(effect(&disturbed, Figure::CpuPerRequest).launches, 10);
}

#[test]
fn errors_and_idle_servers_are_reported() {
    let mut failing = comparison(10, 1.0, &mut Noise::new(7));
    judge(&mut failing);
    assert!(is_valid(&failing), "{:?}", failing.warnings);
    for launch in &mut failing.launches {
        launch.arms[2] = arm(5e-6, 39_000);
        launch.arms[0].cpu_ns = Some(50_000_000);
    }
    judge(&mut failing);
    assert!(!is_valid(&failing));
    let ids: Vec<&str> = failing.warnings.iter().map(|warning| warning.id.as_str()).collect();
    assert_eq!(ids, ["errors", "not-saturated"]);
    assert!(failing.warnings[0].text.starts_with("B:"), "{:?}", failing.warnings);
}

#[test]
fn a_percentile_that_a_launch_has_too_few_answers_for_is_missing_with_what_would_bring_it() {
    let mut few = comparison(10, 1.0, &mut Noise::new(9));
    for arm in few.launches.iter_mut().flat_map(|launch| &mut launch.arms) {
        arm.figures.insert(Figure::P999, 1e-3);
    }
    judge(&mut few);
    assert!(few.not_known.is_empty() && effect(&few, Figure::P999).launches == 10, "{:?}", few.not_known);
    // All others have 40,000 in a fifth of a second.
    let stalled = &mut few.launches[3].arms[2];
    stalled.answers = 8_000;
    stalled.figures.remove(&Figure::P999);
    judge(&mut few);
    let [missing] = few.not_known.as_slice() else { panic!("{:?}", few.not_known) };
    assert_eq!((missing.program.as_str(), missing.figure), ("B", Figure::P999));
    assert_eq!(
        missing.why.why,
        "1 of 10 launches had fewer than 10000 answers of a server (the fewest: 8000)"
    );
    assert!(missing.why.remedy.starts_with("give --window 0.3s or longer"), "{missing:?}");
    assert!(few.effects.iter().all(|effect| effect.figure != Figure::P999));
    // Whose processes come and go has no cost, whatever time it is given.
    for launch in &mut few.launches {
        launch.arms[1].figures.remove(&Figure::CpuPerRequest);
    }
    judge(&mut few);
    assert!(few.not_known[0].figure == Figure::CpuPerRequest && few.not_known[0].why.remedy.is_empty());
}

proptest! {
    /// Whatever came of launches, something is said of them, and all of it is a number.
    #[test]
    fn any_launches_can_be_judged(
        costs in prop::collection::vec((1e-9..1.0f64, 1e-9..1.0f64, 1e-9..1.0f64, prop::bool::ANY), 0..30),
        planned in prop::option::of(0usize..40),
    ) {
        let mut odd = comparison(0, 1.0, &mut Noise::new(1));
        odd.planned = planned;
        odd.launches = costs.iter().map(|(a, again, b, whole)| {
            let mut arms = vec![arm(*a, 0), arm(*again, 0), arm(*b, 3)];
            if !whole {
                arms[2].figures.remove(&Figure::P99);
                arms[1].cpu_ns = None;
            }
            Launch { begin_s: 0.0, took_s: 1.0, turn_ns: 5_000_000, arms, interference: Interference::default(), disturbed: Vec::new(), warm_up: None }
        }).collect();
        judge(&mut odd);
        prop_assert!(costs.is_empty() || odd.effects.len() + odd.not_known.len() == Figure::of_servers().count());
        for effect in &odd.effects {
            prop_assert!(effect.baseline.is_finite() && effect.launches <= costs.len());
            if let Some(change) = effect.change {
                prop_assert!(change.interval[0] <= change.value && change.value <= change.interval[1]);
            }
        }
        let text = serde_json::to_string(&odd).unwrap();
        prop_assert!(serde_json::from_str::<Comparison>(&text).is_ok());
    }
}

#[test]
fn a_setting_is_judged_by_the_throughput_of_servers() {
    let mut noise = Noise::new(24);
    let given = || Given { name: "thp".into(), value: "never".into(), scope: TreatmentScope::Machine };
    let treatments = [Treatment::default(), Treatment { given: vec![given()], ..Treatment::default() }];
    let mut slower = comparison(40, 1.05, &mut noise);
    slower.treatments = crate::treatment::begun(&treatments);
    judge(&mut slower);
    assert_eq!(slower.treatments.len(), 1, "A has no settings");
    let result = slower.treatments[0].result.value().unwrap();
    assert_eq!((result.verdict, result.figure), (TreatmentVerdict::Hurt, Figure::Throughput), "{result:?}");
    assert!(result.words.starts_with("hurt 4.") || result.words.starts_with("hurt 5."), "{result:?}");
    assert!(is_valid(&slower));
    // What could not be applied has no result, whatever the launches say.
    slower.treatments[0].settings[0].applied = tare_model::Reading::missing("memory is fragmented");
    judge(&mut slower);
    let tare_model::Reading::Missing(missing) = &slower.treatments[0].result else { panic!("{slower:?}") };
    assert_eq!(missing.why, "could not be applied: memory is fragmented");
    assert!(!is_valid(&slower));
}
