//! Load before the first trial, until the rate is at one level.
//!
//! Where the rate is given, latencies tell what the rate cannot: they must not have fallen lately.
//!
//! No fixed time suits both a server that is compiled ahead and one whose runtime compiles what has run often enough, or whose files
//! must come from a disk first. So the rate is looked at in slices, and the warm-up ends where that is at one level (`WarmUp::is_over`); where
//! that does not come, it ends all the same, and the result says so. Of a runtime that compiles, the CPU time of a request is at one level
//! instead, and its compilers are done: others on the host move the rate, and a rate that stands still may be one step of several.

use super::drive::{Drive, live_rate, start};
use crate::error::LabError;
use crate::generate::load_failed;
use crate::request::Warmup;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::time::{Duration, Instant};
use tare_load::{Generator, Pacing};
use tare_machine::Root;
use tare_machine::runtime::{self, Runtime};
use tare_model::plan::Purpose;
use tare_model::trial::WarmUp;
use tare_sys::time::process_cpu_ns;

/// Length of a slice.
const SLICE: Duration = Duration::from_millis(50);
/// Code that a runtime made is there after so many.
const SEEN_AFTER: usize = 20;
/// CPU time of more processes is not read so often.
const PIDS_MAX: usize = 64;
/// The rate is judged anew after so many slices.
const JUDGED_EVERY: usize = 5;

/// Loads the SUT before anything is counted; `None` where the rate is meant to change: that warms up in its own way.
pub(super) fn warm_up(
    drive: &Drive<'_>,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<Option<WarmUp>, LabError> {
    let mut levels = drive.levels.iter().zip(0u32..);
    let Some((level, index)) = levels.find(|(level, _)| level.purpose == Purpose::Asked) else {
        return Ok(None);
    };
    let pacing = &drive.request.traffic.pacing;
    let asked = &drive.request.trials.warmup;
    if !drive.request.load.is_own() || matches!(pacing, Pacing::Stages { .. }) || asked.at_most().is_zero() {
        return Ok(None);
    }
    let spec = drive.stand(index, level).spec(pacing.clone(), sut);
    let generator = start(&spec, sut, running.interrupt)?;
    let is_given = matches!(pacing, Pacing::Open { .. } | Pacing::Thinking { .. });
    let warm_up = load_until_steady(asked, is_given, &generator, sut, running)?;
    generator.stop().map_err(load_failed)?;
    Ok(Some(warm_up))
}

fn load_until_steady(
    asked: &Warmup,
    rate_is_given: bool,
    generator: &Generator,
    sut: &mut Sut,
    running: &mut Running<'_>,
) -> Result<WarmUp, LabError> {
    let mut runtime = Runtime::of_any(&Root::live(), &sut.pids);
    let begun = Instant::now();
    let mut live = generator.live();
    let mut warm_up = WarmUp { slice_ns: SLICE.as_nanos() as u64, ..WarmUp::default() };
    let mut taken = Taken::read(&sut.pids, runtime);
    loop {
        // From the beginning on, so that slices do not drift.
        let end = SLICE * (warm_up.answers.len() as u32 + 1);
        let before = live;
        running.wait(end.saturating_sub(begun.elapsed()), "warm-up", |seconds| {
            let mut shown = before.answers;
            Some(live_rate(generator, seconds, &mut shown))
        })?;
        live = generator.live();
        warm_up.answers.push(live.answers.saturating_sub(before.answers));
        if rate_is_given {
            warm_up.waited_ns.push(live.waited_ns.wrapping_sub(before.waited_ns));
        }
        let now = Taken::read(&sut.pids, runtime);
        let passed = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?));
        warm_up.cpu_ns.extend(passed(taken.cpu_ns, now.cpu_ns));
        warm_up.compiling_ns.extend(passed(taken.compiling_ns, now.compiling_ns));
        taken = now;
        if runtime.is_none() && warm_up.answers.len() == SEEN_AFTER {
            runtime = Runtime::of_any(&Root::live(), &sut.pids);
        }
        warm_up.runtime = runtime.map(|runtime| runtime.name().to_owned());
        let elapsed = begun.elapsed();
        let [least, at_most] = bounds(asked, runtime);
        let judged = warm_up.answers.len().is_multiple_of(JUDGED_EVERY) && elapsed >= least;
        if elapsed >= at_most || judged && warm_up.is_over() {
            sut.check_alive()?;
            return Ok(warm_up);
        }
    }
}

/// How long it is at least and at most: where it may be longer, a runtime that compiles has its own least time.
fn bounds(asked: &Warmup, runtime: Option<Runtime>) -> [Duration; 2] {
    let (at_least, at_most) = (asked.at_least(), asked.at_most());
    match (asked, runtime) {
        (Warmup::Fixed(_), _) | (Warmup::UntilSteady { .. }, None) => [at_least, at_most],
        (Warmup::UntilCompiled { .. }, None) => [at_least, at_least],
        (_, Some(runtime)) => [runtime.least_load().max(at_least).min(at_most), at_most],
    }
}

/// CPU time so far.
struct Taken {
    cpu_ns: Option<u64>,
    compiling_ns: Option<u64>,
}

impl Taken {
    fn read(pids: &[u32], runtime: Option<Runtime>) -> Taken {
        let cpu_ns = || pids.iter().map(|pid| process_cpu_ns(*pid)).sum::<Result<u64, _>>().ok();
        let shows = runtime.is_some_and(Runtime::shows_compiling);
        Taken {
            cpu_ns: (!pids.is_empty() && pids.len() <= PIDS_MAX).then(cpu_ns).flatten(),
            compiling_ns: shows.then(|| runtime::compiling_ns(&Root::live(), pids)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_runtime_that_compiles_pays_for_its_compilers() {
        let ms = Duration::from_millis;
        let steady = Warmup::UntilSteady { at_least: ms(1500), at_most: ms(20_000) };
        assert_eq!(bounds(&steady, None), [ms(1500), ms(20_000)]);
        assert_eq!(bounds(&steady, Some(Runtime::Jvm)), [ms(3000), ms(20_000)]);
        let many = Warmup::UntilCompiled { at_least: ms(500), at_most: ms(2000) };
        assert_eq!(bounds(&many, None), [ms(500), ms(500)]);
        assert_eq!(bounds(&many, Some(Runtime::V8)), [ms(2000), ms(2000)]);
        assert_eq!(bounds(&Warmup::Fixed(ms(100)), Some(Runtime::V8)), [ms(100), ms(100)]);
    }
}
