//! What programs that the SUT calls have to do with its figure: for how many of the requests in flight callers wait for them, and what they
//! have no more of.

use crate::accounting::{Asleep, Closed, Program, Thread, ratio};
use std::collections::BTreeSet;
use tare_model::downstream::DownstreamLimit;
use tare_model::observation::Role;

/// Fuller than this is full.
const FULL: f64 = 0.9;
/// Other threads of a program have so much left on average where one is its limit.
const OTHERS_MAX: f64 = 0.5;
/// Who does one thing at a time keeps so many CPUs busy.
const ONE_CPU: [f64; 2] = [0.93, 1.03];
/// A quota counts where it held a program back for so much of the window.
const THROTTLED_MIN: f64 = 0.05;
/// Of the requests in flight, those for which somebody waits at the program that is the bottleneck, at least.
pub(crate) const MOST: f64 = 0.5;
/// Of what a caller waits for, what a program called in turn accounts for where that one is the reason.
const PASSED_ON: f64 = 0.6;
/// A pool of which more is in use is full.
const POOL_FULL: f64 = 0.9;
/// Samples of connections that are enough to say so.
const SAMPLES_MIN: f64 = 4.0;
/// Who is asked less often for each request is not asked for the answers.
const CALLS_MIN: f64 = 0.05;
/// So many connections that wait are no accident, and so often does a request send that asks once.
const MANY: f64 = 2.0;
const ONCE: [f64; 2] = [0.5, 1.5];

/// A program that is called, with what follows from the accounting.
#[derive(Debug, Clone)]
pub(crate) struct Called<'c> {
    pub program: &'c Program,
    pub busy_cpus: f64,
    pub busy_on_sut_cpus: f64,
    /// Of the requests in flight, those for which its caller waits for it, at least and at most.
    pub waited: Option<[f64; 2]>,
    pub wait_s_per_request: Option<f64>,
    pub calls_per_request: Option<f64>,
    pub limit: DownstreamLimit,
    pub fullness: f64,
    /// Of the connections to it, those on which its caller waits; `None` where they were not sampled.
    pub in_use: Option<f64>,
    /// Whether its caller has fewer connections to it than requests, keeps them, and all of them are in use.
    pub has_full_pool: bool,
}

impl Called<'_> {
    /// Of the requests in flight, those that wait for it, at least. Where all connections to it are in use, the others wait for one of them:
    /// a resource that is busy all the time is what holds the rate (utilization law).
    pub fn waits(&self) -> f64 {
        if self.has_full_pool { 1.0 } else { self.least() }
    }

    fn least(&self) -> f64 {
        self.waited.map_or(0.0, |[least, _]| least)
    }
}

/// All of them, in the order of the accounting.
pub(crate) fn all(window: &Closed) -> Vec<Called<'_>> {
    window.downstream.programs.iter().map(|program| called(window, program)).collect()
}

fn called<'c>(window: &'c Closed, program: &'c Program) -> Called<'c> {
    let threads: Vec<&Thread> =
        window.threads_of(Role::Downstream).filter(|thread| program.pids.contains(&thread.id.pid)).collect();
    let busy_cpus = ratio(threads.iter().map(|thread| thread.run_s).sum(), window.span.wall_s);
    let usable = window.sut.as_ref().map(|sut| sut.usable.clone()).unwrap_or_default();
    let there = |thread: &&Thread| -> f64 {
        thread.cpu_run_s.iter().filter(|(cpu, _)| usable.contains(cpu)).map(|(_, run_s)| run_s).sum()
    };
    let on_sut_s: f64 = threads.iter().map(there).sum();
    let (limit, fullness) = limit(window, program, &threads, busy_cpus);
    let rate_hz = window.rate_hz().filter(|rate_hz| *rate_hz > 0.0);
    let sampled = (program.samples >= SAMPLES_MIN).then_some(program.samples);
    let waiting = sampled.map(|samples| program.waiting / samples);
    let in_flight = window.answered.in_flight();
    let waited = sampled.zip(in_flight).map(|(samples, in_flight)| {
        let share = |waiting: f64| ratio(waiting / samples, in_flight).min(1.0);
        [share(program.waiting), share(program.waiting + program.unsure)]
    });
    let in_use = sampled.filter(|_| program.open > 0.0).map(|_| ratio(program.waiting, program.open));
    let calls_per_request = program.sends_hz().zip(rate_hz).map(|(sends_hz, rate_hz)| sends_hz / rate_hz);
    // A connection for each call is there only while it is in use; workers with a connection each are what requests wait for.
    let is_pool =
        calls_per_request.is_some() && program.caller.is_none() && !each_has_its_own(window, program);
    let few = waited.is_some_and(|[least, _]| least < MOST);
    Called {
        program,
        has_full_pool: is_pool && few && in_use.is_some_and(|in_use| in_use >= POOL_FULL),
        in_use,
        busy_cpus,
        busy_on_sut_cpus: ratio(on_sut_s, window.span.wall_s),
        waited,
        wait_s_per_request: waiting.zip(rate_hz).map(|(waiting, rate_hz)| waiting / rate_hz),
        calls_per_request,
        limit,
        fullness,
    }
}

/// Whether as many serving threads wait for others most of the time as there are connections to a program.
fn each_has_its_own(window: &Closed, program: &Program) -> bool {
    let serving = window.threads_of(Role::Sut).filter(|thread| thread.is_one() && thread.serves());
    let waits = |thread: &&Thread| thread.asleep(Asleep::Downstream) >= 0.5 * thread.wall_s;
    serving.filter(waits).count() as f64 >= POOL_FULL * ratio(program.open, program.samples)
}

/// What it has no more of, and how full that is.
fn limit(window: &Closed, program: &Program, threads: &[&Thread], busy: f64) -> (DownstreamLimit, f64) {
    let wall_s = window.span.wall_s;
    let throttled = ratio(program.throttled_s.unwrap_or(0.0), wall_s);
    if let Some(quota) = program.quota_cpus.filter(|quota| throttled >= THROTTLED_MIN && busy >= 0.8 * quota)
    {
        return (DownstreamLimit::Quota, ratio(busy, quota).min(1.0));
    }
    let serving: Vec<&Thread> =
        threads.iter().copied().filter(|thread| thread.is_one() && thread.serves()).collect();
    let mut shares: Vec<f64> = serving.iter().map(|thread| ratio(thread.run_s, wall_s)).collect();
    shares.sort_by(f64::total_cmp);
    let fullest = shares.last().copied().unwrap_or(0.0);
    let others = shares.split_last().and_then(|(_, others)| tare_stats::mean(others));
    if fullest >= FULL && others.is_none_or(|others| others < OTHERS_MAX) {
        return (DownstreamLimit::OneThread, fullest.min(1.0));
    }
    let usable: BTreeSet<u32> = serving.iter().flat_map(|thread| thread.id.allowed.iter().copied()).collect();
    let free = free_share(window, &usable);
    if let Some(free) = free.filter(|free| *free < 1.0 - FULL && busy >= 0.2 * usable.len() as f64) {
        return (DownstreamLimit::Cpus, 1.0 - free);
    }
    let mean = tare_stats::mean(&shares).unwrap_or(0.0);
    if mean >= FULL {
        return (DownstreamLimit::AllThreads, mean.min(1.0));
    }
    let one = usable.len() > 1 && free.is_some_and(|free| free * usable.len() as f64 >= 0.2);
    if one && serving.len() > 1 && (ONE_CPU[0]..=ONE_CPU[1]).contains(&busy) {
        return (DownstreamLimit::OneAtATime, busy.min(1.0));
    }
    let cpus = usable.len().min(serving.len()).max(1) as f64;
    (DownstreamLimit::None, fullest.max(busy / cpus).min(1.0))
}

/// Of these CPUs' time, what nobody used; `None` where that is not known.
fn free_share(window: &Closed, cpus: &BTreeSet<u32>) -> Option<f64> {
    let (mut free_s, mut wall_s) = (0.0, 0.0);
    for cpu in cpus {
        let cpu = window.cpus.get(cpu)?;
        free_s += cpu.free_s()?;
        wall_s += cpu.times.wall_s;
    }
    (wall_s > 0.0).then(|| free_s / wall_s)
}

/// The programs that most requests in flight wait for, from the one that the SUT calls down to the one that is the reason: empty where
/// there is none.
pub(crate) fn blamed(window: &Closed) -> Vec<Called<'_>> {
    let all = all(window);
    let mut chain: Vec<Called> = Vec::new();
    let mut caller = None;
    while chain.len() < all.len() {
        let here =
            all.iter().enumerate().filter(|(_, called)| called.program.caller == caller && is_asked(called));
        // Who has most requests itself is what they wait for; only where nobody has, a full pool is.
        let rank = |called: &Called| (called.least() >= MOST, called.has_full_pool);
        let more = |a: &Called, b: &Called| rank(a).cmp(&rank(b)).then(a.least().total_cmp(&b.least()));
        let Some((at, most)) = here.max_by(|a, b| more(a.1, b.1)) else { break };
        let bound = chain.last().map_or(MOST, |before| PASSED_ON * before.least());
        // A full program is the reason itself, whatever it calls.
        let ends = chain.last().is_some_and(|before| before.limit != DownstreamLimit::None);
        if most.waits() < bound || ends {
            break;
        }
        chain.push(most.clone());
        caller = Some(at);
    }
    chain
}

/// Whether it is asked for what requests are answered with. Some protocols send after an answer, too (acknowledgements, credit), and some
/// clients ask long before they need it: a few such connections are not the wait of requests, unless each request sends once.
fn is_asked(called: &Called) -> bool {
    let many = ratio(called.program.waiting, called.program.samples) >= MANY;
    match called.calls_per_request {
        Some(calls) if many => calls >= CALLS_MIN,
        Some(calls) => (ONCE[0]..=ONCE[1]).contains(&calls),
        None => many,
    }
}

/// How full the program is that most requests wait for, where it is full.
pub(crate) fn full(window: &Closed) -> Option<f64> {
    let chain = blamed(window);
    let last = chain.last().filter(|last| last.limit != DownstreamLimit::None)?;
    Some(last.fullness)
}
