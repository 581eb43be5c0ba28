//! Whether every worker of a server is kept by something while requests wait.

use crate::accounting::{Asleep, Closed, Thread, ratio};
use crate::bottlenecks::signs::sides::server;
use crate::capacity::levels::Accounting;
use crate::capacity::{downstream, generator};
use tare_model::observation::Role;

/// A worker that is kept sleeps in calls for this share of its time, at least.
const KEPT_MIN: f64 = 0.5;
/// Workers that are idle for more of their time have nothing to do.
const IDLE_MAX: f64 = 0.1;
/// Requests in flight for each worker: with fewer it may be they that are too few.
const IN_FLIGHT_MIN: f64 = 1.5;

/// Of what the serving threads ran, by the kept ones at least: a thread that only wakes up by the clock serves nobody.
const RUN_MIN: f64 = 0.25;
/// Of the CPUs that it may use, taken by the load and its own side at most: with more there is no room for other workers.
const OWN_MAX: f64 = 0.85;

/// In so many trials connections waited: in one it can be luck.
const TRIALS_MIN: usize = 3;
/// And so many of the requests in flight where the workers were seen asleep: one that was just made is no queue.
const QUEUE_MIN: f64 = 0.05;
/// What sleeps of a known kind take of the places' time, at least, where they are the reason.
const KNOWN_MIN: f64 = 0.25;

/// What keeps most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Timer,
    Disk,
    Downstream,
    /// Connections wait to be accepted, so all are kept; by what has no name.
    Unseen,
}

impl Kept {
    fn why(self) -> Asleep {
        match self {
            Kept::Timer => Asleep::Timer,
            Kept::Disk => Asleep::Disk,
            Kept::Downstream => Asleep::Downstream,
            Kept::Unseen => Asleep::Other,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Kept::Timer => "in a timer (sleep and its like)",
            Kept::Disk => "on a disk",
            Kept::Downstream => "on another server",
            Kept::Unseen => "or idle",
        }
    }
}

/// Workers of which none was free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool {
    pub workers: usize,
    pub kept: Kept,
    /// Shares of their time.
    pub blocked: f64,
    pub idle: f64,
    pub in_flight: Option<f64>,
    /// Seconds that a request keeps a worker.
    pub each_s: Option<f64>,
    /// Connections that waited to be accepted, where that is what shows it.
    pub waiting: Option<f64>,
}

impl Pool {
    /// `None` where some were idle, where no more requests were in flight than there are workers, or where no CPU is left
    /// for more of them.
    pub fn exhausted(accounting: &Accounting) -> Option<Pool> {
        server(accounting)?;
        if own_share(accounting).is_some_and(|share| share > OWN_MAX) {
            return None;
        }
        Pool::in_known_calls(accounting).or_else(|| Pool::behind_accept_queue(accounting))
    }

    /// Where nearly all of the workers' time is sleep in a timer, on a disk or on another server.
    fn in_known_calls(accounting: &Accounting) -> Option<Pool> {
        let pool = &accounting.asked.pool;
        let workers = kept_of(pool);
        let all_run_s: f64 = serving(pool).map(|thread| thread.run_s).sum();
        let sum = |of: &dyn Fn(&Thread) -> f64| workers.iter().map(|thread| of(thread)).sum::<f64>();
        let wall_s = sum(&|thread| thread.wall_s);
        let idle_s = sum(&|thread| Asleep::NO_WORK.into_iter().map(|why| thread.asleep(why)).sum());
        let of = |kept: Kept| sum(&|thread| thread.asleep(kept.why()));
        let kept = [Kept::Timer, Kept::Disk, Kept::Downstream];
        let kept = kept.into_iter().max_by(|a, b| of(*a).total_cmp(&of(*b)))?;
        if kept == Kept::Timer && sum(&|thread| thread.run_s) < RUN_MIN * all_run_s {
            return None;
        }
        let requests =
            pool.rate_hz().map(|rate_hz| rate_hz * pool.span.wall_s).filter(|requests| *requests > 0.0);
        let at_once = at_once(accounting);
        let found = Pool {
            workers: at_once as usize,
            kept,
            blocked: ratio(sum(&|thread| kept_s(thread)), wall_s),
            idle: ratio(idle_s, wall_s),
            in_flight: in_flight(accounting),
            each_s: requests.map(|requests| at_once * pool.span.wall_s / requests),
            waiting: None,
        };
        let queue = found.in_flight.is_some_and(|in_flight| in_flight >= IN_FLIGHT_MIN * at_once);
        (!workers.is_empty() && found.idle <= IDLE_MAX && queue).then_some(found)
    }

    /// Where connections waited to be accepted whenever a trial ended, and the server slept: whatever its workers are (threads, processes,
    /// green threads, a limit of connections), each had a request. `None` where the queue was too short for them, where they hardly slept,
    /// and where a reason for it is known.
    fn behind_accept_queue(accounting: &Accounting) -> Option<Pool> {
        let level = &accounting.asked;
        let pool = &level.pool;
        let waiting = level.trials.iter().map(|trial| trial.around.waiting.filter(|count| *count >= 1.0));
        let waiting = tare_stats::median(&waiting.collect::<Option<Vec<f64>>>()?)?;
        if level.trials.len() < TRIALS_MIN || has_cause_of_its_own(pool) {
            return None;
        }
        // Of each connection; one that waits has no answer, and is in no latency.
        let in_flight = accounting.kept_in_flight()?;
        let places = (in_flight - waiting).round();
        let serving: Vec<&Thread> = pool.threads_of(Role::Sut).filter(|thread| thread.serves()).collect();
        let time_s = places * pool.span.wall_s;
        let sum = |of: &dyn Fn(&Thread) -> f64| serving.iter().map(|thread| of(thread)).sum::<f64>();
        let ready_s: f64 =
            serving.iter().map(|thread| Some(thread.run_s + thread.queue_s?)).sum::<Option<f64>>()?;
        // An event loop sleeps for as long as there is time, however many places it has.
        let life_s = sum(&|thread| thread.wall_s).min(time_s);
        let asleep = |why: Asleep| sum(&|thread| thread.asleep(why));
        let known = [Asleep::Lock, Asleep::Disk, Asleep::Downstream, Asleep::Unsplit];
        let in_timer = asleep(Asleep::Timer) >= KEPT_MIN * time_s;
        let queue_min = if in_timer { QUEUE_MIN * in_flight } else { in_flight - in_flight / IN_FLIGHT_MIN };
        let blocked = 1.0 - ratio(ready_s, time_s);
        let requests = pool.rate_hz()? * pool.span.wall_s;
        let generator_is_full = generator::fullness(pool).is_some_and(|full| full > OWN_MAX);
        let is_one = places >= 1.0
            && waiting >= queue_min
            && blocked >= KEPT_MIN
            && known.into_iter().all(|why| asleep(why) < KNOWN_MIN * life_s)
            && !generator_is_full
            && requests > 0.0;
        is_one.then_some(Pool {
            workers: places as usize,
            kept: if in_timer { Kept::Timer } else { Kept::Unseen },
            blocked,
            idle: 0.0,
            in_flight: Some(in_flight),
            each_s: Some(time_s / requests),
            waiting: Some(waiting),
        })
    }

    /// Workers with which the CPUs that the program may use would be busy.
    pub fn until_cpus_full(&self, accounting: &Accounting) -> Option<f64> {
        let sut = accounting.sut().filter(|sut| !sut.usable.is_empty())?;
        let cost_s = accounting.asked.pool.per_request(sut.run_s).filter(|cost_s| *cost_s > 0.0)?;
        Some((sut.usable.len() as f64 / cost_s * self.each_s?).ceil())
    }
}

/// Whether something else is known to leave connections in the accept queue: a queue that is full, a limit on open files, a program that
/// the server calls.
fn has_cause_of_its_own(pool: &Closed) -> bool {
    let around = &pool.around;
    around.listen_overflows.is_none_or(|count| count >= 1.0)
        || around.open_files.is_some_and(|files| files.open + 1.0 >= files.limit)
        || !downstream::blamed(pool).is_empty()
}

/// Of the CPUs that the server may use, what it, who it calls and the generator ran there; `None` where they were not read.
fn own_share(accounting: &Accounting) -> Option<f64> {
    let pool = &accounting.asked.pool;
    let usable = &accounting.sut()?.usable;
    let ran_s = |cpu: &u32| {
        let ran_s = &pool.cpus.get(cpu)?.ran_s;
        Some(ran_s.sut + ran_s.load + ran_s.downstream)
    };
    let all_s: f64 = usable.iter().map(ran_s).sum::<Option<f64>>()?;
    (!usable.is_empty()).then(|| ratio(all_s, usable.len() as f64 * pool.span.wall_s))
}

fn serving(window: &Closed) -> impl Iterator<Item = &Thread> {
    let all = window.threads_of(Role::Sut).filter(|thread| thread.is_one() && thread.serves());
    all.filter(|thread| thread.wall_s > 0.0)
}

/// Serving threads that sleep in calls of a known kind for most of their life.
fn kept_of(window: &Closed) -> Vec<&Thread> {
    serving(window).filter(|thread| kept_s(thread) >= KEPT_MIN * thread.wall_s).collect()
}

/// How many of them there are at once: one that ended has a successor, and not every trial sees all of those that hardly run.
fn at_once(accounting: &Accounting) -> f64 {
    let of_trial = |trial: &Closed| {
        let life_s = kept_of(trial).iter().map(|thread| thread.wall_s).sum();
        ratio(life_s, trial.span.wall_s).round()
    };
    accounting.asked.trials.iter().map(of_trial).fold(1.0, f64::max)
}

fn kept_s(thread: &Thread) -> f64 {
    [Kept::Timer, Kept::Disk, Kept::Downstream].into_iter().map(|kept| thread.asleep(kept.why())).sum()
}

/// By Little's law where latencies are known, else as planned.
fn in_flight(accounting: &Accounting) -> Option<f64> {
    let counted = accounting.asked.pool.rate_hz().zip(accounting.mean_latency_s());
    counted.map(|(rate_hz, latency_s)| rate_hz * latency_s).or_else(|| accounting.kept_in_flight())
}
