//! What is asked for, as it is written, and whether it can be done.

use super::state::words;
use crate::error::LabError;
use tare_load::probe::ProbeTarget;
use tare_model::probing::{Call, LoadState, Probe, ProbeKind, ProbingPlan};

/// Probes and states, at most.
const PROBES_MAX: usize = 32;
const STATES_MAX: usize = 32;
const ROUNDS_MAX: u32 = 1000;
/// Rates and times that make sense: a probe is no load.
const RATE_HZ: [f64; 2] = [0.1, 1000.0];
const WINDOW_S: [f64; 2] = [0.1, 3600.0];
const SETTLE_S: [f64; 2] = [0.0, 600.0];
const TIMEOUT_S: [f64; 2] = [0.001, 60.0];
/// Response times that are kept, at most: 80 MB.
const REQUESTS_MAX: f64 = 1e7;
const NAME_CHARS_MAX: usize = 32;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// The probes; their addresses are not known yet.
    pub probes: Vec<Probe>,
    /// Where each goes.
    pub targets: Vec<ProbeTarget>,
    /// The states, the first of which others are held against.
    pub states: Vec<LoadState>,
    /// How it is measured.
    pub plan: ProbingPlan,
}

/// `NAME=TARGET`; passwords may stand in the environment.
///
/// # Errors
/// What is wrong with it, with a hint.
pub fn parse_probe(text: &str) -> Result<(Probe, ProbeTarget), String> {
    let (name, target) = text.split_once('=').filter(|(name, _)| is_name(name)).ok_or_else(|| {
        "it does not begin with a name and '=' (hint: write NAME=URL, as db=postgres://user@127.0.0.1/db; a name has letters, digits, '-' \
         and '_')"
            .to_owned()
    })?;
    let target = ProbeTarget::parse(target, |variable| std::env::var(variable).ok())
        .map_err(|error| error.to_string())?;
    let kind = target.kind();
    let fresh = matches!(kind, ProbeKind::Tcp | ProbeKind::Command);
    let probe = Probe {
        name: name.to_owned(),
        kind,
        target: target.to_string(),
        address: None,
        fresh,
        calls: None,
        calls_assumed: false,
    };
    Ok((probe, target))
}

/// `NAME=COMMAND`, or `NAME=` where there is no load.
///
/// # Errors
/// What is wrong with it, with a hint.
pub fn parse_state(text: &str) -> Result<LoadState, String> {
    let (name, command) = text.split_once('=').filter(|(name, _)| is_name(name)).ok_or_else(|| {
        "it does not begin with a name and '=' (hint: write NAME=COMMAND, as full='wrk -c64 -d{seconds}s http://127.0.0.1:8080/', or idle=)"
            .to_owned()
    })?;
    let command = Some(command.trim()).filter(|command| !command.is_empty()).map(str::to_owned);
    Ok(LoadState { name: name.to_owned(), command, failed: None })
}

/// `SERVICE:PROBE,PROBE*N`: what a service calls, and how often for an answer; nothing behind the colon: nothing.
///
/// # Errors
/// What is wrong with it, with a hint.
pub fn parse_via(text: &str) -> Result<(String, Vec<Call>), String> {
    const HINT: &str = "hint: write SERVICE:PROBE,PROBE with the names of probes, SERVICE:PROBE*3 where an answer takes three calls, \
                        or SERVICE: where it calls nothing";
    let (service, calls) = text
        .split_once(':')
        .filter(|(name, _)| is_name(name))
        .ok_or_else(|| format!("it has no service ({HINT})"))?;
    let call = |call: &str| {
        let (probe, times) = match call.split_once('*') {
            Some((probe, times)) => {
                let times = times.trim().parse().ok().filter(|times| (1..=10_000).contains(times));
                (probe, Some(times.ok_or_else(|| format!("'{call}' has no count from 1 to 10000 ({HINT})"))?))
            }
            None => (call, None),
        };
        let probe = probe.trim();
        match is_name(probe) {
            true => Ok(Call { probe: probe.to_owned(), times }),
            false => Err(format!("'{probe}' is no name ({HINT})")),
        }
    };
    let calls = calls.split(',').filter(|call| !call.trim().is_empty());
    Ok((service.to_owned(), calls.map(call).collect::<Result<_, _>>()?))
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_plain)
}

impl ProbeRequest {
    /// Says what services call. Where nothing is said of an HTTP probe, it calls each database and cache that has a probe.
    ///
    /// # Errors
    /// [`LabError::Usage`] for a name that no probe has.
    pub fn call(&mut self, via: &[(String, Vec<Call>)]) -> Result<(), LabError> {
        let names: Vec<String> = self.probes.iter().map(|probe| probe.name.clone()).collect();
        let known = |name: &str| match names.iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(LabError::usage(
                format!("--via names '{name}', and no probe has that name"),
                format!("the probes are {}", names.join(", ")),
            )),
        };
        for (service, calls) in via {
            calls.iter().map(|call| &call.probe).chain([service]).try_for_each(|name| known(name))?;
            if calls.iter().any(|call| call.probe == *service) {
                return Err(LabError::usage(format!("--via has '{service}' call itself"), "leave it out"));
            }
            for probe in self.probes.iter_mut().filter(|probe| probe.name == *service) {
                probe.calls.get_or_insert_default().extend(calls.iter().cloned());
            }
        }
        let is_called_by_default =
            |probe: &&Probe| matches!(probe.kind, ProbeKind::Redis | ProbeKind::Mysql | ProbeKind::Postgres);
        let called = self.probes.iter().filter(is_called_by_default);
        let called: Vec<Call> = called.map(|probe| Call { probe: probe.name.clone(), times: None }).collect();
        let is_open = |probe: &&mut Probe| probe.kind == ProbeKind::Http && probe.calls.is_none();
        for probe in self.probes.iter_mut().filter(is_open).filter(|_| !called.is_empty()) {
            (probe.calls, probe.calls_assumed) = (Some(called.clone()), true);
        }
        Ok(())
    }

    /// Has these probes open a new connection for each request.
    ///
    /// # Errors
    /// [`LabError::Usage`] for a name that no probe has.
    pub fn open_anew(&mut self, names: &[String]) -> Result<(), LabError> {
        for name in names {
            let Some(probe) = self.probes.iter_mut().find(|probe| probe.name == *name) else {
                let what = format!("--fresh names '{name}', and no probe has that name");
                return Err(LabError::usage(what, "give the name of a --probe"));
            };
            probe.fresh = true;
        }
        Ok(())
    }

    /// Whether it can be carried out.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let plan = &self.plan;
        let within = |what: &str, value: f64, [least, most]: [f64; 2], unit: &str| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(LabError::usage(
                format!("{what} of {value} {unit}"),
                format!("from {least} to {most} {unit}"),
            )),
        };
        within("--rate", plan.rate_hz, RATE_HZ, "requests a second")?;
        within("--window", plan.window_s, WINDOW_S, "s")?;
        within("--settle", plan.settle_s, SETTLE_S, "s")?;
        within("--timeout", plan.timeout_s, TIMEOUT_S, "s")?;
        within("--rounds", f64::from(plan.rounds), [1.0, f64::from(ROUNDS_MAX)], "rounds")?;
        within("probes: a number", self.probes.len() as f64, [1.0, PROBES_MAX as f64], "probes")?;
        within("states: a number", self.states.len() as f64, [1.0, STATES_MAX as f64], "states")?;
        let windows = self.probes.len() as f64 * self.states.len() as f64 * f64::from(plan.rounds);
        let requests = windows * plan.rate_hz * plan.window_s;
        if requests > REQUESTS_MAX {
            let what = format!("{requests:.0} requests in all, more than {REQUESTS_MAX:.0}");
            return Err(LabError::usage(what, "a lower --rate, a shorter --window or fewer --rounds"));
        }
        unique("probe", self.probes.iter().map(|probe| &probe.name))?;
        unique("state", self.states.iter().map(|state| &state.name))?;
        for command in self.states.iter().filter_map(|state| state.command.as_deref()) {
            words(command, plan)?;
        }
        Ok(())
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), LabError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(LabError::usage(format!("two {what}s have the name '{name}'"), "give each its own"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_apart() {
        let call = |probe: &str, times| Call { probe: probe.into(), times };
        assert_eq!(
            parse_via("svc:db*3, cache").unwrap(),
            ("svc".into(), vec![call("db", Some(3)), call("cache", None)])
        );
        assert_eq!(parse_via("svc:").unwrap(), ("svc".into(), vec![]));
        for wrong in ["", "svc", ":db", "svc:db*", "svc:db*0", "svc:a b"] {
            assert!(parse_via(wrong).unwrap_err().contains("hint: "), "{wrong}");
        }
        for wrong in ["", "http://x", "=x", "a b=http://x", "a=ftp://x"] {
            assert!(parse_probe(wrong).unwrap_err().contains("hint: "), "{wrong}");
        }
        assert_eq!(parse_state("idle=").unwrap().command, None);
        assert_eq!(
            parse_state("full=wrk -d{seconds}s x=y").unwrap().command.as_deref(),
            Some("wrk -d{seconds}s x=y")
        );
    }

    #[test]
    fn databases_are_called_unless_somebody_says_otherwise() {
        let probes = ["svc=http://h/", "still=http://h/still", "db=mysql://h", "cmd=command:true"];
        let (probes, targets) = probes.iter().map(|text| parse_probe(text).unwrap()).unzip();
        let plan =
            ProbingPlan { rate_hz: 20.0, window_s: 3.0, settle_s: 0.5, timeout_s: 2.0, rounds: 5, seed: 1 };
        let mut request = ProbeRequest { probes, targets, states: vec![parse_state("idle=").unwrap()], plan };
        request.call(&[parse_via("still:").unwrap()]).unwrap();
        let calls = |at: usize| request.probes[at].calls.as_ref().map(Vec::len);
        assert_eq!((calls(0), calls(1), calls(2), calls(3)), (Some(1), Some(0), None, None));
        assert!(request.probes[0].calls_assumed && !request.probes[1].calls_assumed);
        request.check().unwrap();
        assert!(request.call(&[parse_via("svc:nobody").unwrap()]).is_err());
        request.plan.rounds = 0;
        assert!(request.check().unwrap_err().to_string().contains("--rounds"));
    }
}
