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
use tare_observe::{LoadWatch, Names, StackWatch, Unwind, Watch, can_sample};

/// Samples a second of CPU time; not a divisor of any timer's rate, so that they do not always fall on its ticks.
const HZ: u32 = 999;

/// How callers are found: from copies, which is right for code without frame pointers too, else by the kernel alone. Copies need x86-64, and more
/// locked memory than some users may have.
const HOW: [Unwind; 2] = [Unwind::Dwarf, Unwind::FramePointers];

/// The windows, on the connections of the last trial where these are still open. Where stacks cannot be sampled there is one, which says why:
/// all that was to be measured is, and whatever fails here, or a user who waits no longer, is no failure of that.
pub(super) fn profile(
    stand: &Stand<'_>,
    open: Option<&Open>,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Vec<Stacks> {
    let ways = ways(can_sample);
    let windows = match &ways {
        Ok(ways) => sampled(stand, ways, open, sut, running),
        // Neither a load nor a window is needed to find that out.
        Err(reason) => return vec![Stacks::missing(reason.clone())],
    };
    windows.unwrap_or_else(|error| vec![Stacks::missing(why_none(&error))])
}

/// The ways that are open here, in their order.
///
/// # Errors
/// Why the last of them is not.
fn ways(can: impl Fn(Unwind) -> Result<(), Missing>) -> Result<Vec<Unwind>, Missing> {
    let mut refused = None;
    let mut open = Vec::new();
    for how in HOW {
        match can(how) {
            Ok(()) => open.push(how),
            Err(reason) => refused = Some(reason),
        }
    }
    match refused {
        Some(reason) if open.is_empty() => Err(reason),
        _ => Ok(open),
    }
}

fn why_none(error: &LabError) -> Missing {
    match error {
        LabError::Interrupted => {
            Missing::with_remedy("it was interrupted while they were sampled", "let it run to its end")
        }
        error => Missing::new(format!("sampling them failed: {error}")),
    }
}

fn sampled(
    stand: &Stand<'_>,
    ways: &[Unwind],
    open: Option<&Open>,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Stacks>, LabError> {
    if let Some(open) = open {
        return with_callers(stand, ways, &open.generator, sut, running);
    }
    let pacing = stand.drive.request.traffic.pacing.clone();
    let generator = start(&stand.spec(pacing, sut), sut, running.interrupt)?;
    running.wait(SETTLE_NEW, "load before call stacks", |_| None)?;
    let windows = with_callers(stand, ways, &generator, sut, running);
    // The windows are there, however the load ends.
    let ended = generator.stop().map_err(load_failed);
    windows.and_then(|windows| if windows.is_empty() { ended.map(|_| windows) } else { Ok(windows) })
}

fn with_callers(
    stand: &Stand<'_>,
    ways: &[Unwind],
    generator: &Generator,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Vec<Stacks>, LabError> {
    let mut seen = Vec::new();
    for unwind in ways {
        seen = windows(stand, *unwind, generator, sut, running)?;
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
        let waited = running.wait(Duration::from_nanos(stand.level.trial_ns), &phase, |seconds| {
            Some(live_rate(generator, seconds, &mut answered))
        });
        match waited {
            // The windows before are whole.
            Err(LabError::Interrupted) if !windows.is_empty() => break,
            waited => waited?,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_sample_in_no_way_is_said_so_before_there_is_a_load() {
        let not_at_all = |_| Err(Missing::new("not permitted"));
        assert_eq!(ways(not_at_all), Err(Missing::new("not permitted")));
        let no_copies = |how| match how {
            Unwind::Dwarf => Err(Missing::new("locks too much memory")),
            Unwind::FramePointers => Ok(()),
        };
        assert_eq!(ways(no_copies), Ok(vec![Unwind::FramePointers]));
        assert_eq!(ways(|_| Ok(())), Ok(HOW.to_vec()));
    }

    #[test]
    fn who_interrupts_it_reads_that_and_no_failure() {
        let why = why_none(&LabError::Interrupted).why;
        assert!(why.contains("interrupted") && !why.contains("failed"), "{why}");
        assert!(why_none(&LabError::Observe("no thread".into())).why.contains("failed: cannot observe"));
    }
}
