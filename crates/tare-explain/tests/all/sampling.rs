//! Call stacks whose clock did not fire as often as it was to.

use crate::support::{Scene, asked};
use tare_explain::explain;
use tare_model::Reading;
use tare_model::observation::Role;
use tare_model::stacks::{Folded, Folder, Frame};

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
