//! Call stacks under the load that was asked for, after all trials: what sampling costs is then in no figure.

use super::drive::{Stand, live_rate, observe, start};
use super::open::Open;
use crate::error::LabError;
use crate::generate::load_failed;
use crate::levels::SETTLE_NEW;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::Duration;
use tare_load::Generator;
use tare_model::Missing;
use tare_model::stacks::Stacks;
use tare_observe::{LoadWatch, Names, StackWatch, Unwind, Watch};

/// Samples a second of CPU time; not a divisor of any timer's rate, so that they do not always fall on its ticks.
const HZ: u32 = 999;

/// How callers are found: from copies, which is right for code without frame pointers too, else by the kernel alone. Copies need x86-64, and more
/// locked memory than some users may have.
const HOW: [Unwind; 2] = [Unwind::Dwarf, Unwind::FramePointers];

/// The windows, on the connections of the last trial where these are still open. Where stacks cannot be sampled there is one, which says why:
/// all that was to be measured is, and whatever fails here is no failure of that.
pub(super) fn profile(
    stand: &Stand<'_>,
    open: Option<&Open>,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Stacks>, LabError> {
    match sampled(stand, open, sut, running) {
        Err(LabError::Interrupted) => Err(LabError::Interrupted),
        Err(error) => Ok(vec![Stacks::missing(Missing::new(format!("sampling them failed: {error}")))]),
        windows => windows,
    }
}

fn sampled(
    stand: &Stand<'_>,
    open: Option<&Open>,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Stacks>, LabError> {
    if let Some(open) = open {
        return with_callers(stand, &open.generator, sut, running);
    }
    let pacing = stand.drive.request.traffic.pacing.clone();
    let generator = start(&stand.spec(pacing, sut), sut, running.interrupt)?;
    running.wait(SETTLE_NEW, "load before call stacks", |_| None)?;
    let windows = with_callers(stand, &generator, sut, running);
    // The windows are there, however the load ends.
    let ended = generator.stop().map_err(load_failed);
    windows.and_then(|windows| if windows.is_empty() { ended.map(|_| windows) } else { Ok(windows) })
}

fn with_callers(
    stand: &Stand<'_>,
    generator: &Generator,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Stacks>, LabError> {
    let mut seen = Vec::new();
    for unwind in HOW {
        seen = windows(stand, unwind, generator, sut, running)?;
        if seen.iter().any(|window| window.on_cpu.value().is_some()) {
            break;
        }
    }
    Ok(seen)
}

fn windows(
    stand: &Stand<'_>,
    unwind: Unwind,
    generator: &Generator,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Stacks>, LabError> {
    let stacks = StackWatch { hz: HZ, unwind, off_cpu: false, names: Names::Tables };
    let watch = stand.watch(sut, LoadWatch::Threads(generator.thread_ids()));
    let observers = observe(Watch { stacks: Some(stacks), stacks_alone: true, ..watch })?;
    let mut windows = Vec::with_capacity(stand.level.trials as usize);
    for window in 0..stand.level.trials {
        let phase = stand.phase(window, "in no figure", running);
        let mut answered = generator.live().answers;
        observers.begin();
        running.wait(Duration::from_nanos(stand.level.trial_ns), &phase, |seconds| {
            Some(live_rate(generator, seconds, &mut answered))
        })?;
        let seen = observers.end().stacks;
        sut.check_alive()?;
        let Some(seen) = seen else { break };
        let is_there = seen.on_cpu.value().is_some();
        windows.push(*seen);
        if !is_there {
            break;
        }
    }
    observers.stop();
    Ok(windows)
}
