//! Load without a session: no observers, no record; what the generator counts is all there is.

use crate::ask::{is_asked_wrongly, preflight};
use crate::error::{LOAD_HELP, LabError};
use crate::progress::{Event, Part, Progress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tare_load::{
    CapacitySearch, Gaps, Generator, LoadError, LoadSpec, Objective, Pacing, Protocol, RATE_HZ_MAX, Stage,
};
use tare_model::latency::Packed;
use tare_model::load::{AskedLoad, Capacity, FollowedRedirects, LoadInterval, LoadRun, LoadStage};
use tare_model::trial::HttpSample;

/// How often the live rate is shown and the interrupt flag looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A run that ends after a number of requests is looked at more often.
const LOOK_FOR_END_EVERY: Duration = Duration::from_millis(5);

/// How long load is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Of it, this much at its beginning is not counted.
    pub warmup: Duration,
    /// From the first request to the end, warm-up included; with [`LoadSpec::requests_max`] the longest that it may take.
    pub whole: Duration,
    /// The latencies of each such part of it are kept too ([`LoadRun::intervals`]).
    pub every: Option<Duration>,
}

/// Stages that are counted each for itself, at most.
const STAGES_APART_MAX: usize = 100;

/// Makes load and counts. When interrupted, what was counted until then is given, and [`LabError::Interrupted`] beside it.
///
/// # Errors
/// [`LabError::Usage`] for a load that cannot be made as asked, [`LabError::Load`] when the generator fails.
pub fn load(
    spec: &LoadSpec,
    length: Length,
    interrupt: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(LoadRun, Result<(), LabError>), LabError> {
    let mut generator = Generator::start_unless(spec, interrupt).map_err(load_failed)?;
    let tls_certificate = generator.tls_certificate();
    progress.show(Event::Expected { total_s: length.whole.as_secs_f64() });
    let mut watch =
        Watch { begun: Instant::now(), interrupt, progress, answered: 0, ends: spec.requests_max.is_some() };
    let warmed_up = watch.wait(&generator, length.warmup, "warm-up");
    if !length.warmup.is_zero() && warmed_up.is_ok() {
        generator.cut();
    }
    let begin_ns = tare_sys::time::monotonic_ns();
    let started_unix_s =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let mut counted = Counted::of(&spec.pacing);
    let end = warmed_up.and_then(|()| watch.count(&mut generator, length, &mut counted));
    let until = watch.begun.elapsed().min(length.whole);
    let (sample, intervals, stages) = counted.end(generator.cut(), until, length);
    generator.stop().map_err(load_failed)?;
    let run = LoadRun {
        url: spec.route.target.to_string(),
        asked: asked(spec),
        tls_certificate,
        redirects: None,
        started_unix_s,
        begin_ns,
        sample,
        intervals,
        capacity: None,
        stages,
    };
    Ok((run, end))
}

/// Goes where the redirects of the load's URL lead, if it is to follow them: the load to the last one.
///
/// # Errors
/// [`LabError::Usage`] where a redirect is not followed, [`LabError::Load`] where nobody answers.
pub fn follow(
    spec: LoadSpec,
    interrupt: &AtomicBool,
) -> Result<(LoadSpec, Option<FollowedRedirects>), LabError> {
    if !spec.route.follow {
        return Ok((spec, None));
    }
    spec.validate().map_err(|error| load_failed(error.into()))?;
    let found = preflight(&spec, interrupt)?.map_err(load_failed)?;
    let followed = FollowedRedirects { from: spec.route.target.to_string(), count: found.redirects };
    let spec = if found.redirects > 0 { spec.aimed_at(found.target.clone()) } else { spec };
    Ok((spec, Some(followed).filter(|followed| followed.count > 0)))
}

/// Of a search's whole time, one run at one rate takes this part, within bounds.
const RUNS_OF_A_SEARCH: u32 = 12;
const RUN_MIN: Duration = Duration::from_millis(500);
const RUN_MAX: Duration = Duration::from_secs(5);
/// How well a capacity is to be known.
const PRECISION: f64 = 0.02;

/// Looks for the highest rate that holds an objective, whose words are `words`, within the whole length: a closed loop shows
/// where to begin, then open loops. Gives the run at the highest rate that held; where none did, the last one.
///
/// # Errors
/// As [`load`].
pub fn find(
    spec: &LoadSpec,
    (objective, words): (Objective, &str),
    Length { whole, every, .. }: Length,
    interrupt: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<(LoadRun, Result<(), LabError>), LabError> {
    let step = (whole / RUNS_OF_A_SEARCH).clamp(RUN_MIN, RUN_MAX);
    let length = Length { warmup: step / 5, whole: step, every };
    let begun = Instant::now();
    progress.show(Event::Expected { total_s: whole.as_secs_f64() });
    let progress: &mut dyn Progress = &mut Part { within: progress, begun };
    let (mut best, mut end) = load(spec, length, interrupt, progress)?;
    let answers = best.sample.requests.value().copied().unwrap_or(0) as f64;
    let begin_hz = 0.5 * answers * 1e9 / best.sample.elapsed_ns.max(1) as f64;
    let mut search = CapacitySearch::new(1.0, RATE_HZ_MAX, begin_hz, PRECISION);
    while end.is_ok()
        && begun.elapsed() + step <= whole
        && let Some(rate_hz) = search.next_hz()
    {
        let at = LoadSpec { pacing: Pacing::Open { rate_hz, gaps: Gaps::Fixed }, ..spec.clone() };
        let run;
        (run, end) = match load(&at, length, interrupt, progress) {
            // While connections opened: what was found before is kept.
            Err(LabError::Interrupted) => {
                end = Err(LabError::Interrupted);
                break;
            }
            loaded => loaded?,
        };
        let judged = objective.held_by(&run.sample);
        let said = judged.map_or_else(|missed| missed.to_string(), |()| "held".to_owned());
        progress.show(Event::Step(format!("{rate_hz:.0} req/s: {said}")));
        search.report(rate_hz, judged.is_ok());
        if search.held_hz().is_none_or(|held| judged.is_ok() && held <= rate_hz) {
            best = run;
        }
    }
    let (held_hz, missed_hz) = (search.held_hz(), search.missed_hz());
    best.capacity = Some(Capacity { objective: words.to_owned(), held_hz, missed_hz });
    Ok((best, end))
}

fn asked(spec: &LoadSpec) -> AskedLoad {
    AskedLoad {
        connections: spec.connections,
        threads: spec.workers.threads,
        pipeline: spec.pipeline,
        http2: spec.protocol == Protocol::Http2,
        open_loop: matches!(spec.pacing, Pacing::Open { .. } | Pacing::Stages { .. }),
        busy_poll: spec.workers.busy_poll,
    }
}

/// What was counted so far.
struct Counted {
    sample: Option<HttpSample>,
    intervals: Vec<LoadInterval>,
    /// The stages of the load, each with its end after the beginning, and what was counted in it.
    stages: Vec<(Stage, Duration, Option<HttpSample>)>,
}

impl Counted {
    fn of(pacing: &Pacing) -> Counted {
        let stages: &[Stage] = match pacing {
            Pacing::Stages { stages, .. } if stages.len() <= STAGES_APART_MAX => stages,
            _ => &[],
        };
        let ends = stages.iter().scan(Duration::ZERO, |end, stage| {
            *end += Duration::from_nanos(stage.for_ns);
            Some(*end)
        });
        let stages = stages.iter().zip(ends).map(|(stage, end)| (*stage, end, None)).collect();
        Counted { sample: None, intervals: Vec::new(), stages }
    }

    /// The next end of a stage after this time.
    fn next_end(&self, after: Duration) -> Option<Duration> {
        self.stages.iter().map(|(_, end, _)| *end).find(|end| *end > after)
    }

    /// A part that ended so long after the beginning.
    fn add(&mut self, part: HttpSample, until: Duration, length: Length) {
        self.note(&part, until, length);
        self.sample = Some(self.joined(part));
    }

    fn note(&mut self, part: &HttpSample, until: Duration, length: Length) {
        if length.every.is_some() {
            self.keep(part);
        }
        if let Some((_, _, counted)) = self.stages.iter_mut().find(|(_, end, _)| *end >= until) {
            *counted = Some(match counted.take() {
                Some(before) => before.followed_by(part.clone()),
                None => part.clone(),
            });
        }
    }

    /// With the last part, which ended so long after the beginning.
    fn end(
        mut self,
        last: HttpSample,
        until: Duration,
        length: Length,
    ) -> (HttpSample, Vec<LoadInterval>, Vec<LoadStage>) {
        self.note(&last, until, length);
        let sample = self.joined(last);
        let stage = |(stage, _, sample): (Stage, Duration, Option<HttpSample>)| {
            Some(LoadStage { from_hz: stage.from_hz, to_hz: stage.to_hz, sample: sample? })
        };
        (sample, self.intervals, self.stages.into_iter().filter_map(stage).collect())
    }

    fn keep(&mut self, part: &HttpSample) {
        if let Some(latency) = part.latency.value() {
            let begin_ns = self.sample.as_ref().map_or(0, |sample| sample.elapsed_ns);
            let (elapsed_ns, latency) = (part.elapsed_ns, Packed::new(latency));
            self.intervals.push(LoadInterval { begin_ns, elapsed_ns, latency });
        }
    }

    fn joined(&mut self, part: HttpSample) -> HttpSample {
        match self.sample.take() {
            Some(before) => before.followed_by(part),
            None => part,
        }
    }
}

/// Waits while load is being made.
struct Watch<'a> {
    begun: Instant,
    interrupt: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    answered: u64,
    /// Whether the generator ends by itself.
    ends: bool,
}

impl Watch<'_> {
    /// Waits until the end, and cuts as often as the length says, but for the last time.
    fn count(
        &mut self,
        generator: &mut Generator,
        length: Length,
        counted: &mut Counted,
    ) -> Result<(), LabError> {
        let (mut until, mut due) = (length.warmup, length.warmup);
        loop {
            if due <= until {
                due = length.every.map_or(length.whole, |every| due + every);
            }
            let stage_end = counted.next_end(until).unwrap_or(length.whole);
            until = due.min(stage_end).min(length.whole);
            self.wait(generator, until, "load")?;
            if until >= length.whole || generator.finished() {
                return Ok(());
            }
            counted.add(generator.cut(), until, length);
        }
    }

    /// Waits until so long after the beginning, or until the generator has done all that it was asked for.
    fn wait(&mut self, generator: &Generator, until: Duration, phase: &str) -> Result<(), LabError> {
        let mut shown = Instant::now();
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let left = until.saturating_sub(self.begun.elapsed());
            if left.is_zero() || generator.finished() {
                return Ok(());
            }
            let step = if self.ends { LOOK_FOR_END_EVERY } else { LOOK_EVERY };
            std::thread::sleep(left.min(step));
            let passed = shown.elapsed();
            if passed >= LOOK_EVERY {
                shown = Instant::now();
                self.show(generator, passed.as_secs_f64(), phase);
            }
        }
    }

    fn show(&mut self, generator: &Generator, passed_s: f64, phase: &str) {
        let before = std::mem::replace(&mut self.answered, generator.live().answers);
        let rate_hz = Some(self.answered.saturating_sub(before) as f64 / passed_s);
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        self.progress.show(Event::Live { elapsed_s, rate_hz, phase: phase.to_owned() });
    }
}

/// What was asked for wrongly is the user's to change; anything else is the generator's failure.
pub(crate) fn load_failed(error: LoadError) -> LabError {
    match error {
        LoadError::Interrupted => LabError::Interrupted,
        error if is_asked_wrongly(&error) => LabError::usage(error.to_string(), LOAD_HELP),
        _ => LabError::Load { what: format!("failed: {error}"), last_output: String::new() },
    }
}
