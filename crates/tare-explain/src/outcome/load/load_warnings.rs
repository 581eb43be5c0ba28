//! What to know before quoting the figures of a load, each with the next thing to try.

use super::facts::Facts;
use crate::capacity::schedule::ERROR_SHARE_MAX;
use crate::outcome::failures::{self, Mostly, NO_REQUESTS_HINT, errors_text, no_requests_text};
use crate::outcome::redirects::OnlyRedirects;
use tare_model::load::SERVER_GONE;
use tare_model::outcome::Warning;
use tare_model::trial::{ErrorKind, Reasons};

/// Fewer answers than this say little about a tail.
const REQUESTS_MIN: u64 = 1000;
/// Two clocks of one kernel differ by the slewing of NTP, 500 ppm at most.
const CLOCK_DRIFT_MAX: f64 = 1e-3;
/// Steps of the kernel's clocks are distinguished from drift only over this.
const CLOCK_WINDOW_S_MIN: f64 = 0.5;
/// Rate × latency may miss the requests in flight by this much: what is on its way at both ends, and reconnects.
const LITTLES_MISS_MAX: f64 = 0.05;
/// Below this share of its time on a CPU a generator sleeps before most answers.
const SLEEPY: f64 = 0.5;
/// An open loop sleeps before sends as well, and seldom finds answers waiting: here 110 µs of 156 at 55 % of a CPU.
const SLEEPY_OPEN: f64 = 0.9;
/// A wake-up takes 20 to 100 µs; in latencies above this it is no large part.
const WAKE_UP_MATTERS_NS: f64 = 1e6;
/// A request that took so many times the 99th percentile, and this long, was met by a stall.
const STALL_TIMES_P99: f64 = 5.0;
const STALL_NS_MIN: f64 = 20e6;
/// Sends that are later than this, in a generator that has CPU left, waited for a free connection.
const LATE_NS_MAX: f64 = 1e6;

enum LoadWarning {
    Uncounted(String),
    ServerGone { silent_s: f64, elapsed_s: f64 },
    NoRequests { mostly: Option<Mostly> },
    OnlyRedirects(OnlyRedirects),
    Errors { share: f64, mostly: Option<Mostly> },
    ScheduleMissed { kept: f64, connections: u32, generator_is_full: bool, busiest: f64 },
    Clock { drift: f64 },
    GeneratorSaturated { busiest: f64 },
    Little { ratio: f64 },
    CoordinatedOmission { longest_ms: f64, unsent: f64, connections: u32 },
    WakeUp { busiest: f64 },
    SendsLate { p99_ms: f64 },
    PortsExhausted { count: u64 },
    FewStreams { allowed: u32, asked: u32 },
    FewRequests { count: u64 },
}

/// All warnings, those that make the result invalid first, and whether it is valid.
pub(super) fn judge(facts: &Facts) -> (Vec<Warning>, bool) {
    let invalid = invalidating(facts);
    let valid = invalid.is_empty();
    let all = invalid.into_iter().chain(others(facts));
    (
        all.map(|warning| Warning {
            id: warning.id().into(),
            text: warning.text(),
            hint: warning.hint().into(),
        })
        .collect(),
        valid,
    )
}

fn invalidating(facts: &Facts) -> Vec<LoadWarning> {
    let mut warnings = Vec::new();
    match facts.sample.requests.clone().ok() {
        Err(missing) => warnings.push(LoadWarning::Uncounted(missing.why)),
        Ok(0) => warnings.push(LoadWarning::NoRequests { mostly: mostly(facts) }),
        Ok(_) => {}
    }
    if let Some(silent_s) = facts.server_gone_s() {
        warnings.push(LoadWarning::ServerGone { silent_s, elapsed_s: facts.elapsed_s });
    }
    // An error of status is an answer too: it is in both counts.
    let status = facts.sample.errors.get(&ErrorKind::Status).copied().unwrap_or(0);
    let unexpected = facts.sample.errors.get(&ErrorKind::Unexpected).copied().unwrap_or(0);
    let attempts = facts.answers.unwrap_or(0) + facts.errors.saturating_sub(status + unexpected);
    let share = facts.errors as f64 / attempts.max(1) as f64;
    if share > ERROR_SHARE_MAX {
        warnings.push(LoadWarning::Errors { share, mostly: mostly(facts) });
    }
    // Of several stages each says it for itself.
    if let Some(kept) = facts.schedule_kept.filter(|_| facts.missed_schedule() && facts.run.stages.is_empty())
    {
        warnings.push(LoadWarning::ScheduleMissed {
            kept,
            connections: facts.run.asked.connections,
            generator_is_full: facts.saturated(),
            busiest: facts.busiest(),
        });
    }
    let long_enough = facts.elapsed_s >= CLOCK_WINDOW_S_MIN;
    if let Some(drift) = facts.clock_drift.filter(|drift| long_enough && *drift > CLOCK_DRIFT_MAX) {
        warnings.push(LoadWarning::Clock { drift });
    }
    warnings
}

/// What most attempts failed by.
fn mostly(facts: &Facts) -> Option<Mostly> {
    let none = Reasons::new();
    failures::mostly(&facts.sample.errors, facts.detail.map_or(&none, |detail| &detail.said.reasons))
}

fn others(facts: &Facts) -> Vec<LoadWarning> {
    let mut warnings = Vec::new();
    warnings.extend(OnlyRedirects::of(std::iter::once(facts.detail)).map(LoadWarning::OnlyRedirects));
    let busiest = facts.busiest();
    if facts.saturated() {
        warnings.push(LoadWarning::GeneratorSaturated { busiest });
    }
    if let Some(ratio) = facts.littles_ratio.filter(|ratio| (ratio - 1.0).abs() > LITTLES_MISS_MAX) {
        warnings.push(LoadWarning::Little { ratio });
    }
    warnings.extend(omission(facts));
    let latency = facts.sample.latency.value();
    let p50 = latency.and_then(|latency| latency.quantile_ns(0.5)).map(|ns| ns as f64);
    let sleepy = if facts.run.asked.open_loop { SLEEPY_OPEN } else { SLEEPY };
    let sleeps = !facts.run.asked.busy_poll && !facts.busy.is_empty() && busiest < sleepy;
    if sleeps && p50.is_some_and(|p50| p50 < WAKE_UP_MATTERS_NS) {
        warnings.push(LoadWarning::WakeUp { busiest });
    }
    let late = facts.sample.lateness.as_ref().and_then(|lateness| lateness.quantile_ns(0.99));
    if let Some(p99) = late.map(|ns| ns as f64).filter(|p99| *p99 > LATE_NS_MAX) {
        warnings.push(LoadWarning::SendsLate { p99_ms: p99 / 1e6 });
    }
    if let Some(count) = facts.sample.errors.get(&ErrorKind::PortsExhausted) {
        warnings.push(LoadWarning::PortsExhausted { count: *count });
    }
    let asked = facts.run.asked.pipeline;
    let allowed = facts.detail.and_then(|detail| detail.streams_allowed);
    if let Some(allowed) = allowed.filter(|allowed| *allowed < asked) {
        warnings.push(LoadWarning::FewStreams { allowed, asked });
    }
    if let Some(count) = facts.answers.filter(|count| (1..REQUESTS_MIN).contains(count)) {
        warnings.push(LoadWarning::FewRequests { count });
    }
    warnings
}

/// A closed loop sends nothing while the server stalls, so that a stall is met by one request of each connection
/// instead of by all that users would have sent.
fn omission(facts: &Facts) -> Option<LoadWarning> {
    let latency = facts.sample.latency.value().filter(|_| !facts.run.asked.open_loop)?;
    let (longest, p99) = (latency.max_ns()? as f64, latency.quantile_ns(0.99)? as f64);
    let stalled = longest >= STALL_NS_MIN && longest >= STALL_TIMES_P99 * p99;
    stalled.then(|| LoadWarning::CoordinatedOmission {
        longest_ms: longest / 1e6,
        unsent: facts.rate_hz.unwrap_or(0.0) * longest / 1e9,
        connections: facts.run.asked.connections,
    })
}

impl LoadWarning {
    fn id(&self) -> &'static str {
        match self {
            LoadWarning::Uncounted(_) => "requests-unknown",
            LoadWarning::NoRequests { .. } => "no-requests",
            LoadWarning::ServerGone { .. } => SERVER_GONE,
            LoadWarning::OnlyRedirects(only) => only.id(),
            LoadWarning::Errors { .. } => "errors",
            LoadWarning::ScheduleMissed { .. } => "schedule-missed",
            LoadWarning::Clock { .. } => "clock-trouble",
            LoadWarning::GeneratorSaturated { .. } => "generator-saturated",
            LoadWarning::Little { .. } => "littles-law",
            LoadWarning::CoordinatedOmission { .. } => "coordinated-omission",
            LoadWarning::WakeUp { .. } => "wake-up",
            LoadWarning::SendsLate { .. } => "sends-late",
            LoadWarning::PortsExhausted { .. } => "ports-exhausted",
            LoadWarning::FewStreams { .. } => "few-streams",
            LoadWarning::FewRequests { .. } => "low-requests",
        }
    }

    fn text(&self) -> String {
        match self {
            LoadWarning::Uncounted(why) => format!("the requests could not be counted: {why}"),
            LoadWarning::NoRequests { mostly } => no_requests_text(mostly.as_ref()),
            LoadWarning::ServerGone { silent_s, elapsed_s } => format!(
                "nothing was answered for {silent_s:.1} s of {elapsed_s:.1} s, and connections could not be opened: the server ended, or \
                 took no more connections"
            ),
            LoadWarning::OnlyRedirects(redirects) => redirects.text(),
            LoadWarning::Errors { share, mostly } => errors_text(*share, mostly.as_ref()),
            LoadWarning::ScheduleMissed { kept, generator_is_full: true, .. } => format!(
                "only {:.1} % of the scheduled requests were sent in time to be answered: a thread of the generator had no time left",
                100.0 * kept
            ),
            LoadWarning::ScheduleMissed { kept, connections, busiest, .. } => format!(
                "only {:.1} % of the scheduled requests were sent in time to be answered: all {connections} connections waited for answers, \
                 and no thread of the generator was busy for more than {:.0} % of the time. The server could not follow, it needs more \
                 connections, or others kept the generator off its CPUs",
                100.0 * kept,
                100.0 * busiest
            ),
            LoadWarning::Clock { drift } => {
                format!(
                    "two of the kernel's clocks drifted apart by {:.2} %: no time here can be trusted",
                    100.0 * drift
                )
            }
            LoadWarning::GeneratorSaturated { busiest } => format!(
                "a thread of the generator ran {:.0} % of the time: the rate is a lower bound, and latencies hold waits for it",
                100.0 * busiest
            ),
            LoadWarning::Little { ratio } => format!(
                "rate x latency is {:.0} % of the requests held in flight; it should be all of them",
                100.0 * ratio
            ),
            LoadWarning::CoordinatedOmission { longest_ms, unsent, connections } => format!(
                "a stall of {longest_ms:.0} ms was met by at most {connections} requests; at this rate {unsent:.0} were not sent \
                 meanwhile and are in no percentile (coordinated omission)"
            ),
            LoadWarning::WakeUp { busiest } => format!(
                "the generator was off its CPU {:.0} % of the time: each latency includes its own wake-up (20 to 150 µs on a virtual machine)",
                100.0 * (1.0 - busiest)
            ),
            LoadWarning::SendsLate { p99_ms } => format!(
                "1 % of the requests left more than {p99_ms:.1} ms after they were due (latency counts from then): all connections \
                 were waiting, or the generator's thread was"
            ),
            LoadWarning::PortsExhausted { count } => {
                format!(
                    "{count} connections could not be opened: every local port towards the server is taken"
                )
            }
            LoadWarning::FewStreams { allowed, asked } => {
                format!(
                    "the server allows {allowed} streams at once on a connection, not the {asked} asked for"
                )
            }
            LoadWarning::FewRequests { count } => {
                format!("only {count} requests were answered: high percentiles mean little")
            }
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            LoadWarning::Uncounted(_) => "run again",
            LoadWarning::OnlyRedirects(redirects) => redirects.hint(),
            LoadWarning::NoRequests { mostly } => mostly.as_ref().map_or(NO_REQUESTS_HINT, Mostly::hint),
            LoadWarning::ServerGone { .. } => "see why (its log, dmesg), and quote no figure",
            LoadWarning::Errors { .. } => {
                "see which kinds failed; the figures are not those of the workload alone"
            }
            LoadWarning::ScheduleMissed { generator_is_full: true, .. } => {
                "more threads (-t) on more CPUs (--load-cpus), or a lower rate (-R)"
            }
            LoadWarning::ScheduleMissed { .. } => {
                "lower the rate, or give more connections (-c); tare run says what the server does"
            }
            LoadWarning::Clock { .. } => {
                "see whether the clock is being stepped (NTP, a resumed virtual machine)"
            }
            LoadWarning::GeneratorSaturated { .. } => {
                "more threads (-t) on more CPUs (--load-cpus), or a lower rate (-R)"
            }
            LoadWarning::Little { .. } => "look at errors and reconnects; take a longer run (-d)",
            LoadWarning::CoordinatedOmission { .. } => {
                "send at a rate of your own (-R), below what the server can do"
            }
            LoadWarning::WakeUp { .. } => "--busy-poll, with CPUs to spare for it",
            LoadWarning::SendsLate { .. } => "more connections (-c), or threads (-t) on CPUs of their own",
            LoadWarning::PortsExhausted { .. } => {
                "several local addresses (--local-addr), or connections that are kept alive"
            }
            LoadWarning::FewStreams { .. } => "more connections (-c), or let the server allow more",
            LoadWarning::FewRequests { .. } => "a longer run (-d) or a higher rate",
        }
    }
}
