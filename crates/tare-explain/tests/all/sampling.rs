//! Call stacks: whose clock did not fire as often as it was to, and those of a profile, which are in no figure.

use crate::support::{Scene, asked, in_blocks};
use tare_explain::explain;
use tare_explain::why::why;
use tare_model::observation::Role;
use tare_model::stacks::{Folded, Folder, Frame, FrameKind, Stacks};
use tare_model::{Missing, Reading, Record};

/// Warnings of a server that was sampled so many times in each trial, at 999 Hz, and of which there was no room for so many samples more.
fn warnings(samples: u64, lost: u64) -> Vec<(String, String)> {
    let mut record = asked(&Scene::default());
    for trial in &mut record.trials {
        let (mut folder, mut folded) = (Folder::default(), Folded::new(Some(999.0)));
        let frame = folder.frame(Frame::mark("serve"));
        folded.add(Role::Sut, frame, vec![frame], samples);
        folded.lost = lost;
        let stacks = folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new());
        trial.observation.stacks = Some(Box::new(stacks));
    }
    let of = explain(&record).verdict.warnings.into_iter().filter(|warning| warning.id == "few-samples");
    of.map(|warning| (warning.text, warning.hint)).collect()
}

#[test]
fn fewer_samples_than_half_of_the_cpu_time_gives_are_said() {
    // A thread that runs for two seconds: a clock that fires four times in five is as it is on virtual machines.
    assert_eq!(warnings(1600, 0), []);
    assert_eq!(warnings(400, 1000), []);
    let [(text, hint)] = &warnings(400, 0)[..] else { panic!("no warning") };
    assert!(text.contains("at 999 Hz") && hint.contains("--stacks="), "{text} {hint}");
}

/// A window of a profile: each function below `main`, so often.
fn window(counts: &[(&str, u64)]) -> Stacks {
    let (mut folder, mut folded) = (Folder::default(), Folded::new(Some(999.0)));
    let thread = folder.frame(Frame::mark("server"));
    let mut frame =
        |symbol: &str| folder.frame(Frame { symbol: symbol.into(), module: None, kind: FrameKind::User });
    for (symbol, count) in counts {
        folded.add(Role::Sut, thread, vec![frame("main"), frame(symbol)], *count);
    }
    folder.close(Reading::Measured(folded), Reading::missing("not asked for"), Vec::new())
}

/// The asked load in blocks with a saturating one and the reference, with this profile after them.
fn profiled(scene: &Scene, counts: &[(&str, u64)]) -> Record {
    let block = |factor: f64| {
        [scene.clone().scaled(factor), scene.clone().scaled(factor), Scene::default().scaled(factor)]
    };
    let blocks: Vec<_> = [1.0, 1.004, 0.997, 1.002, 0.999].map(block).to_vec();
    Record { profile: vec![window(counts); 4], ..in_blocks(64, &blocks) }
}

#[test]
fn a_profile_is_in_no_figure() {
    let with = profiled(&Scene::default(), &[("spin", 200), ("parse", 200)]);
    let refused = Stacks::missing(Missing::with_remedy("sampling is not allowed", "run tare as root"));
    let without = Record { profile: Vec::new(), ..with.clone() };
    let text = |record: &Record| serde_json::to_string(&explain(record)).unwrap();
    assert_eq!(text(&with), text(&without));
    let refused = Record { profile: vec![refused], ..with.clone() };
    assert_eq!(text(&refused), text(&without));
    // The account of two runs has the same figures and parts, and why it has no functions.
    let other = profiled(&Scene::default(), &[("spin", 190), ("parse", 210)]);
    let of = |a: &Record, b: &Record| why(("a", a), ("b", b)).unwrap();
    let (seen, blind) = (of(&with, &other), of(&refused, &Record { profile: Vec::new(), ..other.clone() }));
    assert_eq!((&seen.rate, &seen.parts, &seen.net), (&blind.rate, &blind.parts, &blind.net));
    assert_eq!(seen.frames, Reading::Measured(Vec::new()));
    let Reading::Missing(missing) = of(&with, &without).frames else { panic!("no stacks in one of them") };
    assert_eq!(missing.why, "no stacks were sampled");
    assert_eq!(
        blind.frames,
        Reading::Missing(Missing::with_remedy("sampling is not allowed", "run tare as root"))
    );
}

/// Half of each request spins, then twice as long: a request takes half as long again, and a third less of them are answered.
#[test]
fn the_function_that_takes_more_of_a_request_is_named() {
    let scene = Scene::default();
    let slower = Scene { rate_hz: scene.rate_hz / 1.5, ..scene.clone() };
    let before = profiled(&scene, &[("spin", 200), ("parse", 100), ("write", 100)]);
    let after = profiled(&slower, &[("spin", 266), ("parse", 67), ("write", 67)]);
    let found = why(("a", &before), ("b", &after)).unwrap();
    let frames = found.frames.value().unwrap();
    assert!(!frames.is_empty() && frames.iter().all(|frame| frame.function == "spin"), "{frames:#?}");
    let time = frames[0].per_request.unwrap();
    assert!((time.after_ns / time.before_ns / 2.0 - 1.0).abs() < 0.05, "{time:?}");
    // The way back: it takes less.
    let back = why(("b", &after), ("a", &before)).unwrap();
    let frames = back.frames.value().unwrap();
    assert!(!frames.is_empty() && frames.iter().all(|frame| frame.function == "spin"), "{frames:#?}");
    assert!(frames[0].per_request.unwrap().difference_ci95_ns[1] < 0.0);
}
