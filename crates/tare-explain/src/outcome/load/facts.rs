//! What the generator knows of a load and of itself.

use tare_model::load::LoadRun;
use tare_model::trial::{ErrorKind, HttpDetail, HttpSample};

/// What the judgements are made from.
pub(super) struct Facts<'a> {
    pub run: &'a LoadRun,
    pub sample: &'a HttpSample,
    pub detail: Option<&'a HttpDetail>,
    pub elapsed_s: f64,
    pub answers: Option<u64>,
    pub errors: u64,
    pub rate_hz: Option<f64>,
    /// Of each thread, its share of time on a CPU.
    pub busy: Vec<f64>,
    pub littles_ratio: Option<f64>,
    pub schedule_kept: Option<f64>,
    pub clock_drift: Option<f64>,
}

/// A schedule is kept when this share of what fell due was answered, failed or is still on its way.
const SCHEDULE_KEPT_MIN: f64 = 0.99;

/// A server that answers nothing and takes no connection for so long, of the whole, is gone; it may have come back.
const GONE_S_MIN: f64 = 0.5;
const GONE_SHARE_MIN: f64 = 0.1;
/// As many answers would have come meanwhile, at least: at a slow rate seconds may pass between two.
const GONE_ANSWERS_MIN: f64 = 10.0;

/// A thread that runs for more than this has nothing left to give.
const SATURATED: f64 = 0.95;

impl<'a> Facts<'a> {
    pub fn of(run: &'a LoadRun) -> Self {
        let sample = &run.sample;
        let detail = sample.detail.as_deref();
        let elapsed_s = sample.elapsed_ns as f64 / 1e9;
        let answers = sample.requests.value().copied();
        let rate_hz = answers.filter(|_| elapsed_s > 0.0).map(|count| count as f64 / elapsed_s);
        let threads = detail.map(|detail| detail.threads.as_slice()).unwrap_or_default();
        let in_flight = sample.in_flight.value().copied().unwrap_or(0);
        let errors = sample.errors.values().sum();
        let mean_s = sample.latency.value().and_then(|latency| latency.mean_ns()).map(|ns| ns / 1e9);
        let held = detail.and_then(|detail| detail.held_in_flight).filter(|held| *held > 0);
        // A window that holds few rounds says nothing: requests are cut off at both ends.
        let rounds = |held: u64| answers.is_some_and(|answers| answers >= 100 * held);
        // What is due and has no connection is not on its way.
        let carried = u64::from(run.asked.connections) * u64::from(run.asked.pipeline);
        let kept = |scheduled: u64| {
            let accounted: u64 = answers? + in_flight.min(carried) + errors;
            (scheduled > 0).then(|| accounted.min(scheduled) as f64 / scheduled as f64)
        };
        Facts {
            run,
            sample,
            detail,
            elapsed_s,
            answers,
            errors,
            rate_hz,
            busy: threads.iter().map(|thread| thread.cpu_ns as f64 / thread.wall_ns.max(1) as f64).collect(),
            littles_ratio: held
                .filter(|held| rounds(*held))
                .and_then(|held| Some(rate_hz? * mean_s? / held as f64)),
            schedule_kept: sample.scheduled.and_then(kept),
            clock_drift: detail
                .map(|detail| detail.clock)
                .filter(|clock| clock.raw_ns > 0)
                .map(|clock| (clock.monotonic_ns as f64 - clock.raw_ns as f64).abs() / clock.raw_ns as f64),
        }
    }

    /// Whether the generator gave out first. Threads that spin are always busy: for those only a missed schedule shows it.
    pub fn saturated(&self) -> bool {
        !self.run.asked.busy_poll && self.busy.iter().any(|busy| *busy > SATURATED)
    }

    /// Whether an open loop did not get what it was to send.
    pub fn missed_schedule(&self) -> bool {
        self.schedule_kept.is_some_and(|kept| kept < SCHEDULE_KEPT_MIN)
    }

    /// The longest time in which nothing was answered, where no connection could be opened again; `None` where that is not
    /// so, or too short to be distinguished from a pause of the server, which breaks no connection.
    pub fn server_gone_s(&self) -> Option<f64> {
        let refused = self.sample.errors.get(&ErrorKind::Connect).copied().unwrap_or(0);
        let all_refused = refused >= u64::from(self.run.asked.connections.max(1));
        let series = &self.detail.filter(|_| all_refused)?.series;
        let answered_at = series.iter().filter(|slice| slice.requests > 0).map(|slice| slice.end_ns);
        let end_ns = self.run.begin_ns.saturating_add(self.sample.elapsed_ns);
        let mut from_ns = self.run.begin_ns;
        let mut longest_ns = 0;
        for at_ns in answered_at.chain([end_ns]) {
            longest_ns = longest_ns.max(at_ns.saturating_sub(from_ns));
            from_ns = at_ns.max(from_ns);
        }
        let silent_s = longest_ns as f64 / 1e9;
        let missing = self.rate_hz? * silent_s;
        let is_long = silent_s >= GONE_S_MIN.max(GONE_SHARE_MIN * self.elapsed_s);
        (is_long && missing >= GONE_ANSWERS_MIN).then_some(silent_s)
    }

    /// Requests that were due at the end, and that no connection was free for.
    pub fn unsent(&self) -> u64 {
        let asked = &self.run.asked;
        let carried = u64::from(asked.connections) * u64::from(asked.pipeline);
        self.sample.in_flight.value().map_or(0, |in_flight| in_flight.saturating_sub(carried))
    }

    pub fn busiest(&self) -> f64 {
        self.busy.iter().copied().fold(0.0, f64::max)
    }
}
