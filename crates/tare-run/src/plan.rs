//! Judges a request before anything is started: what cannot be carried out is a usage error here. What is decided here is decided
//! once; nothing is started.

use crate::error::{LOAD_HELP, LabError, URL_EXAMPLE};
use crate::levels::Levels;
use crate::request::{LoadRequest, ServerRequest, SutRequest};
use std::time::Duration;
use tare_load::{Pacing, Target};
use tare_model::machine::MachineFacts;
use tare_stats::SERIES_MIN;

/// Stages that are explained one by one, at most.
const STAGES_MAX: usize = 100;

/// What a request to measure a server comes to.
pub(crate) struct Resolved {
    /// As it was asked for, with a load that goes where its URL says, and a warm-up that its budget has room for.
    pub request: ServerRequest,
    /// Whether the SUT is shown by the connections of somebody else's generator, whatever they speak: nobody sends it a request.
    pub by_connections: bool,
    /// What it is driven at.
    pub levels: Levels,
}

/// Judges a request.
pub(crate) fn resolve(mut request: ServerRequest, facts: &MachineFacts) -> Result<Resolved, LabError> {
    let target = target(&request)?;
    let by_connections = target.is_none() && !request.load.is_own();
    if let Some(target) = &target {
        request.traffic = request.traffic.aimed_at(target.clone());
    }
    check_stages(&request)?;
    let levels = Levels::of(&request, !by_connections);
    within_budget(&mut request, &levels)?;
    request.traffic.validate().map_err(|error| LabError::usage(error.to_string(), LOAD_HELP))?;
    check_threads(&request)?;
    check_route(&request)?;
    check_cpus("--sut-cpus", request.place.sut_cpus.as_deref(), facts)?;
    check_cpus("--load-cpus", request.place.load_cpus.as_deref(), facts)?;
    Ok(Resolved { request, by_connections, levels })
}

/// Where the load goes.
fn target(request: &ServerRequest) -> Result<Option<Target>, LabError> {
    let url = match (&request.url, &request.load) {
        (Some(url), _) => Some(url.clone()),
        (None, LoadRequest::Start(command)) => url_in(command),
        (None, LoadRequest::Pid(_)) => None,
        (None, LoadRequest::Own { .. }) if request.sut == SutRequest::Embedded => None,
        (None, LoadRequest::Own { .. }) => {
            return Err(LabError::usage(
                "no URL is given",
                "add the URL that the server answers at, or give a load generator that speaks to it (--load 'COMMAND')",
            ));
        }
    };
    url.map(|url| Target::parse(&url).map_err(|error| LabError::usage(error.to_string(), URL_EXAMPLE)))
        .transpose()
}

/// The last word of a command line that is a URL.
fn url_in(command: &str) -> Option<String> {
    let words = shell_words::split(command).ok()?;
    words.into_iter().rev().find(|word| word.starts_with("http://") || word.starts_with("https://"))
}

/// Each stage is a result of its own, with its own length, and there are not too many for one table.
fn check_stages(request: &ServerRequest) -> Result<(), LabError> {
    let Pacing::Stages { stages, .. } = &request.traffic.pacing else { return Ok(()) };
    let (what, hint) = match &request.trials {
        _ if stages.len() > STAGES_MAX => (
            "so many stages are not explained one by one",
            "give 100 at most, or make the load alone (tare load)",
        ),
        trials if trials.length.is_some() => (
            "each stage of --steps has its own length",
            "leave out --duration, and give each stage its time (1k:5s)",
        ),
        trials if trials.stopping.is_some() && stages.len() > 1 => (
            "--precision and --budget are for one figure, and each stage of --steps has its own",
            "say how often the stages are driven (--trials), or give one rate (--rate)",
        ),
        _ => return Ok(()),
    };
    Err(LabError::usage(what, hint))
}

/// Has the warm-up leave time in the budget for the fewest trials that tell an interval. An error where there is none,
/// or nothing to tell it of. How long somebody else's generator takes is not known before.
fn within_budget(request: &mut ServerRequest, levels: &Levels) -> Result<(), LabError> {
    let Some(stopping) = request.trials.stopping else { return Ok(()) };
    match request.load {
        LoadRequest::Own { .. } => {}
        LoadRequest::Start(_) => return Ok(()),
        LoadRequest::Pid(_) => {
            return Err(LabError::usage(
                "the requests of a generator that runs already cannot be counted, so its rate is never known any better",
                "leave out --precision and --budget (--trials says how many), or let tare start the generator (--load)",
            ));
        }
    }
    let (fewest_s, count) = levels.fewest_s(SERIES_MIN);
    let left = Duration::try_from_secs_f64(stopping.budget_s - fewest_s).unwrap_or_default();
    let asked = request.trials.warmup;
    request.trials.warmup = asked.within(left);
    if request.trials.warmup.at_least() > left || stopping.budget_s < fewest_s {
        let fewer = if count > 1 { ", or the asked level alone (--no-levels)" } else { "" };
        return Err(LabError::usage(
            format!(
                "{SERIES_MIN} trials, the fewest that tell an interval, take about {:.0} s with the load before them, more than the \
                 budget of {} s",
                (fewest_s + asked.at_least().as_secs_f64()).ceil(),
                stopping.budget_s
            ),
            format!("give a longer --budget, shorter trials (-d){fewer}"),
        ));
    }
    Ok(())
}

/// A thread without a connection has nothing to do.
fn check_threads(request: &ServerRequest) -> Result<(), LabError> {
    match request.load.own_threads() {
        Some(threads) if threads > request.traffic.connections => Err(LabError::usage(
            format!("{threads} generator threads for {} connections", request.traffic.connections),
            "a thread without a connection has nothing to do: give at least as many connections (-c) as threads (-t)",
        )),
        _ => Ok(()),
    }
}

/// The embedded server listens on a port that nobody knows before.
fn check_route(request: &ServerRequest) -> Result<(), LabError> {
    let route = &request.traffic.route;
    match request.sut {
        SutRequest::Embedded if route.unix_socket.is_some() => Err(LabError::usage(
            "--unix leads to no server: the built-in one listens on a port",
            "add a URL, whose path is then asked for on the socket, as http://localhost/",
        )),
        SutRequest::Embedded if route.connect_to.is_some() => Err(LabError::usage(
            "--connect-to leads past the built-in server, which listens on a port of its own",
            "add the URL that is to be asked for there",
        )),
        _ => Ok(()),
    }
}

/// CPUs that were named but are not there.
pub(crate) fn check_cpus(option: &str, given: Option<&[u32]>, facts: &MachineFacts) -> Result<(), LabError> {
    let online: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.cpu).collect();
    match given.unwrap_or(&[]).iter().find(|cpu| !online.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(LabError::usage(
            format!("{option}: there is no CPU {cpu} here"),
            format!(
                "{} are online; 'tare doctor --topology' draws them",
                tare_model::CpuSet::from(online.as_slice())
            ),
        )),
    }
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
