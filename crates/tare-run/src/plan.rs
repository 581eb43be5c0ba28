//! Judges a request before anything is started: what cannot be carried out is a usage error here.

use crate::error::LabError;
use crate::loads::drive;
use crate::request::{HttpRequest, LoadRequest, SutRequest};
use std::time::Duration;
use tare_load::{Pacing, Protocol, Target};
use tare_model::machine::MachineFacts;
use tare_model::plan::{Level, Purpose};
use tare_stats::{PLANNED_MAX, SERIES_MIN};

/// Connections that saturate any server when each waits for its answer: several requests are always due.
pub const SATURATING_CONNECTIONS: u32 = 64;
/// Length of a trial unless told otherwise, or a course of rates has its own.
const TRIAL_NS: u64 = 2_000_000_000;
/// The same where they end by what is known: it is their number that tells, and shorter ones read the kernel's ticks in their accounting.
const LOOKED_AT_TRIAL_NS: u64 = 1_000_000_000;
/// Where trials end by what is known, other levels have one in so many blocks.
const BLOCKS_EACH_OTHER: u32 = 2;
/// A saturating level alone is short: only the cost per request is taken from it, and pooled over its trials. Of schedstat's
/// tick-wise steps half a per cent is left in one, and less in all.
const SATURATING_TRIAL_NS: u64 = 600_000_000;
/// In turns with the reference server each of the two has half of it.
const INTERLEAVED_TRIAL_NS: u64 = 2_000_000_000;
/// Shorter than this, steps and edges are more than they are worth.
const OTHER_TRIAL_NS_MIN: u64 = 300_000_000;
const OTHER_TRIALS_MAX: u32 = 10;
const OTHER_WARMUP_NS: u64 = 150_000_000;
/// With more connections than these, opening them for every trial takes longer than the trial.
const BLOCK_CONNECTIONS_MAX: u32 = 1024;

/// Where the load goes; the embedded server's port is known only when it is up.
pub fn target(request: &HttpRequest) -> Result<Option<Target>, LabError> {
    let url = match (&request.url, &request.load) {
        (Some(url), _) => Some(url.clone()),
        (None, LoadRequest::Start(command)) => Some(url_in(command).ok_or_else(|| {
            LabError::usage(
                "no URL is given and none stands in the --load command",
                "add the URL that the load goes to, so that the server can be found",
            )
        })?),
        (None, _) if request.sut == SutRequest::Embedded => None,
        (None, _) => {
            return Err(LabError::usage("no URL is given", "add the URL that the server answers at"));
        }
    };
    url.map(|url| Target::parse(&url).map_err(|error| LabError::usage(error.to_string(), ""))).transpose()
}

/// The last word of a command line that is a URL.
fn url_in(command: &str) -> Option<String> {
    let words = shell_words::split(command).ok()?;
    words.into_iter().rev().find(|word| word.starts_with("http://") || word.starts_with("https://"))
}

/// The levels to drive. A level below saturation has a saturating one beside it, because only there can the
/// program's cost per request be measured. In turns with it the reference server is loaded, which tells the machine's interference: then
/// there is one beside a saturating level too. Never against another host unasked.
/// `oversubscribed`: the generator that was asked for has more threads than CPUs.
pub fn levels(request: &HttpRequest, transport_is_local: bool, oversubscribed: bool) -> Vec<Level> {
    let (usual_ns, trials, trials_of_others) = match request.stopping {
        Some(_) => (LOOKED_AT_TRIAL_NS, PLANNED_MAX as u32, PLANNED_MAX as u32 / BLOCKS_EACH_OTHER),
        None => (TRIAL_NS, request.trials, request.trials.min(OTHER_TRIALS_MAX)),
    };
    let asked = Level {
        purpose: Purpose::Asked,
        connections: request.traffic.connections,
        rate_hz: request.traffic.pacing.rate_hz(),
        pipeline: request.traffic.pipeline,
        trial_ns: request.trial.map_or(request.traffic.pacing.course_ns().unwrap_or(usual_ns), nanoseconds),
        warmup_ns: nanoseconds(request.warmup.at_least()),
        trials,
        arms: 1,
    };
    let other = |purpose, trial_ns: u64, arms: u32| Level {
        purpose,
        connections: request.traffic.connections.max(SATURATING_CONNECTIONS),
        rate_hz: None,
        pipeline: request.traffic.pipeline,
        trial_ns: (asked.trial_ns.saturating_mul(u64::from(arms))).clamp(OTHER_TRIAL_NS_MIN, trial_ns),
        warmup_ns: OTHER_WARMUP_NS,
        trials: trials_of_others,
        arms,
    };
    // Nobody's generator that runs already would stop for another level.
    let may = transport_is_local && !request.no_levels && !matches!(request.load, LoadRequest::Pid(_));
    let below_saturation = oversubscribed
        || !matches!(request.load, LoadRequest::Own { .. })
        || request.traffic.pacing != Pacing::Closed
        || request.traffic.connections < SATURATING_CONNECTIONS;
    let others = if may && !request.no_reference && reference_would_tell(request) {
        [Purpose::Saturating, Purpose::Reference]
            .map(|purpose| other(purpose, INTERLEAVED_TRIAL_NS, 2))
            .to_vec()
    } else if may && below_saturation {
        vec![other(Purpose::Saturating, SATURATING_TRIAL_NS, 1)]
    } else {
        Vec::new()
    };
    std::iter::once(asked).chain(others).collect()
}

/// The request with a warm-up that leaves time in the budget for the fewest trials that tell an interval. An error where there is none,
/// or nothing to tell it of. How long somebody else's generator takes is not known before.
pub fn within_budget(request: &HttpRequest) -> Result<HttpRequest, LabError> {
    let Some(stopping) = request.stopping else { return Ok(request.clone()) };
    match request.load {
        LoadRequest::Own { .. } => {}
        LoadRequest::Start(_) => return Ok(request.clone()),
        LoadRequest::Pid(_) => {
            return Err(LabError::usage(
                "the requests of a generator that runs already cannot be counted, so its rate is never known any better",
                "leave out --precision and --budget (--trials says how many), or let tare start the generator (--load)",
            ));
        }
    }
    let levels = levels(request, true, false);
    let each_s = levels.iter().map(|level| {
        let blocks = if level.purpose == Purpose::Asked { 1 } else { BLOCKS_EACH_OTHER };
        drive::trial_s(level, levels.len() > 1) / f64::from(blocks * level.arms.max(1))
    });
    let fewest_s = each_s.sum::<f64>() * SERIES_MIN as f64;
    let left = Duration::try_from_secs_f64(stopping.budget_s - fewest_s).unwrap_or_default();
    let warmup = request.warmup.within(left);
    if warmup.at_least() > left || stopping.budget_s < fewest_s {
        let fewer = if levels.len() > 1 { ", or the asked level alone (--no-levels)" } else { "" };
        return Err(LabError::usage(
            format!(
                "{SERIES_MIN} trials, the fewest that tell an interval, take about {:.0} s with the load before them, more than the \
                 budget of {} s",
                (fewest_s + request.warmup.at_least().as_secs_f64()).ceil(),
                stopping.budget_s
            ),
            format!("give a longer --budget, shorter trials (-d){fewer}"),
        ));
    }
    Ok(HttpRequest { warmup, ..request.clone() })
}

/// Whether the reference server can be measured as the SUT is: over the same transport, on connections that are kept. Beside itself
/// it tells nothing.
fn reference_would_tell(request: &HttpRequest) -> bool {
    let traffic = &request.traffic;
    let same_transport = !traffic.route.target.is_tls()
        && traffic.route.unix_socket.is_none()
        && traffic.protocol == Protocol::Http1;
    same_transport
        && traffic.keep_alive
        && request.sut != SutRequest::Embedded
        && traffic.connections <= BLOCK_CONNECTIONS_MAX
}

/// A thread without a connection has nothing to do.
pub fn check_threads(request: &HttpRequest) -> Result<(), LabError> {
    match request.load {
        LoadRequest::Own { threads: Some(threads) } if threads > request.traffic.connections => {
            Err(LabError::usage(
                format!("{threads} generator threads for {} connections", request.traffic.connections),
                "give at least as many connections (-c) as threads (-t)",
            ))
        }
        _ => Ok(()),
    }
}

/// The embedded server listens on a port.
pub fn check_unix_socket(request: &HttpRequest) -> Result<(), LabError> {
    match (&request.sut, &request.traffic.route.unix_socket) {
        (SutRequest::Embedded, Some(_)) => Err(LabError::usage(
            "--unix leads to no server: the built-in one listens on a port",
            "add a URL, whose path is then asked for on the socket, as http://localhost/",
        )),
        _ => Ok(()),
    }
}

/// CPUs that were named but are not there.
pub fn check_cpus(option: &str, given: Option<&[u32]>, facts: &MachineFacts) -> Result<(), LabError> {
    let online: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.cpu).collect();
    match given.unwrap_or(&[]).iter().find(|cpu| !online.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(LabError::usage(
            format!("{option}: there is no CPU {cpu} here"),
            format!("online are {}", tare_model::CpuSet::from(online.as_slice())),
        )),
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_url_in_a_command() {
        assert_eq!(
            url_in("wrk -t4 'http://127.0.0.1:8080/a b'").as_deref(),
            Some("http://127.0.0.1:8080/a b")
        );
        assert_eq!(url_in("wrk -t4"), None);
        assert_eq!(url_in("wrk 'unclosed"), None);
    }
}
