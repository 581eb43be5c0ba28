//! Judges a request before anything is started: what cannot be carried out is a usage error here.

use crate::error::LabError;
use crate::request::{HttpRequest, LoadRequest, SutRequest};
use tare_load::{Pacing, Target};
use tare_record::machine::MachineFacts;
use tare_record::plan::{Level, Purpose};

/// Connections that saturate any server when each waits for its answer: several requests are always due.
pub const SATURATING_CONNECTIONS: u32 = 64;
/// Length of a trial unless told otherwise, or a course of rates has its own.
const TRIAL_NS: u64 = 2_000_000_000;
/// A saturating level is short: only the cost per request is taken from it. At least a second, so that
/// schedstat's tick-wise steps stay below half a per cent.
const SATURATING_TRIAL_NS: u64 = 1_200_000_000;
const SATURATING_TRIALS: u32 = 3;
const SATURATING_WARMUP_NS: u64 = 500_000_000;

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

/// The levels to drive. A level below saturation is followed by a saturating one, because only there can the
/// program's cost per request be weighed; never against another host unasked.
pub fn levels(request: &HttpRequest, transport_is_local: bool) -> Vec<Level> {
    let asked = Level {
        purpose: Purpose::Asked,
        connections: request.traffic.connections,
        rate_hz: request.traffic.pacing.rate_hz(),
        pipeline: request.traffic.pipeline,
        trial_ns: request.trial.map_or(request.traffic.pacing.course_ns().unwrap_or(TRIAL_NS), nanoseconds),
        warmup_ns: nanoseconds(request.warmup),
        trials: request.trials,
    };
    let foreign = !matches!(request.load, LoadRequest::Own { .. });
    let below_saturation = foreign
        || request.traffic.pacing != Pacing::Closed
        || request.traffic.connections < SATURATING_CONNECTIONS;
    let mut levels = vec![asked];
    if below_saturation
        && transport_is_local
        && !request.no_levels
        && !matches!(request.load, LoadRequest::Pid(_))
    {
        levels.push(Level {
            purpose: Purpose::Saturating,
            connections: request.traffic.connections.max(SATURATING_CONNECTIONS),
            rate_hz: None,
            pipeline: request.traffic.pipeline,
            trial_ns: SATURATING_TRIAL_NS,
            warmup_ns: SATURATING_WARMUP_NS,
            trials: SATURATING_TRIALS,
        });
    }
    levels
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
    match (&request.sut, &request.traffic.unix_socket) {
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
            format!("online are {}", tare_sys::affinity::format_list(&online)),
        )),
    }
}

pub(crate) fn nanoseconds(duration: std::time::Duration) -> u64 {
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
