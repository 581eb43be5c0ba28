//! What was found, in words.

use super::judge::{Judged, ROUNDS_MIN, SLOWER_SHARE, Way, judge};
use super::measured::{Est, Measured};
use super::rows::failures;
use tare_model::probing::{ProbeFinding, ProbeKind, ProbeVerdict};
use tare_model::{Missing, Reading};

/// A service whose time may have grown by more than this is not called unchanged.
const UNCHANGED_SHARE: f64 = 0.25;
const MORE: &str = "more --rounds or a longer --window narrow the intervals";

/// A verdict for each service in each state but the first, and the cause in the state in which it is slowest.
pub(super) fn all(measured: &Measured<'_>) -> (Vec<ProbeVerdict>, Reading<String>) {
    let services = services(measured);
    let states = 1..measured.run.states.len();
    if services.is_empty() || states.is_empty() {
        let why = match states.is_empty() {
            true => "there is one state of load only",
            false => "no probe is of a service that others can be held against",
        };
        let remedy = "give two states (--state) and a probe of a service (http://)";
        return (Vec::new(), Reading::Missing(Missing::with_remedy(why, remedy)));
    }
    let cases = services.iter().flat_map(|service| states.clone().map(move |state| (*service, state)));
    let found: Vec<(f64, ProbeVerdict)> = cases
        .map(|(service, state)| {
            let ratio = measured.ratio(service, state).map_or(0.0, |ratio| ratio.value);
            (ratio, verdict(measured, service, state))
        })
        .collect();
    let worst = found.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let culprit =
        worst.map_or_else(|| Reading::missing("nothing was judged"), |(_, worst)| worst.culprit.clone());
    (found.into_iter().map(|(_, verdict)| verdict).collect(), culprit)
}

/// The probes that may be slow for another's sake: those that call something, or else every HTTP probe and command that nobody calls.
fn services(measured: &Measured<'_>) -> Vec<usize> {
    let probes = &measured.run.probes;
    let is_called = |name: &str| {
        probes.iter().flat_map(|probe| probe.calls.iter().flatten()).any(|call| call.probe == name)
    };
    let calls = |at: &usize| probes[*at].calls.as_ref().is_some_and(|calls| !calls.is_empty());
    let free = |at: &usize| !is_called(&probes[*at].name);
    let calling: Vec<usize> = (0..probes.len()).filter(|at| calls(at) && free(at)).collect();
    if !calling.is_empty() {
        return calling;
    }
    let may_be = |at: &usize| probes[*at].kind == ProbeKind::Http || probes[*at].calls.is_some();
    (0..probes.len()).filter(|at| may_be(at) && free(at)).collect()
}

fn verdict(measured: &Measured<'_>, service: usize, state: usize) -> ProbeVerdict {
    let words = Words { measured, service, state };
    let judged = judge(measured, service, state);
    let (finding, culprit, conclusion, hint) = words.conclude(&judged);
    let text = format!("{}: {conclusion}", words.facts());
    let name = |at: usize| measured.run.probes[at].name.clone();
    let culprit = match culprit {
        Some(at) => Reading::Measured(name(at)),
        None => Reading::Missing(Missing { why: conclusion, remedy: hint.clone() }),
    };
    let state = measured.run.states[state].name.clone();
    ProbeVerdict { state, service: name(service), finding, culprit, text, hint }
}

struct Words<'a> {
    measured: &'a Measured<'a>,
    service: usize,
    state: usize,
}

impl Words<'_> {
    fn name(&self, probe: usize) -> &str {
        &self.measured.run.probes[probe].name
    }

    fn names(&self, probes: &[usize]) -> String {
        probes.iter().map(|probe| self.name(*probe)).collect::<Vec<&str>>().join(" and ")
    }

    /// How much longer each takes.
    fn facts(&self) -> String {
        let states = &self.measured.run.states;
        if self.measured.ratio(self.service, self.state).is_none() {
            return format!("in '{}'", states[self.state].name);
        }
        let others = (0..self.measured.run.probes.len()).filter(|probe| *probe != self.service);
        let ratio = |probe: usize| match self.measured.ratio(probe, self.state) {
            Some(ratio) => times(&ratio),
            None => "no figure".to_owned(),
        };
        let first = format!(
            "in '{}' {} takes {} as long as in '{}'",
            states[self.state].name,
            self.name(self.service),
            ratio(self.service),
            states[0].name
        );
        let rest = others.map(|probe| format!("{} {}", self.name(probe), ratio(probe)));
        std::iter::once(first).chain(rest).collect::<Vec<String>>().join(", ")
    }

    /// What was found, the probe of the cause, the conclusion in words, what to do next.
    fn conclude(&self, judged: &Judged) -> (ProbeFinding, Option<usize>, String, String) {
        use ProbeFinding::{Downstream, DownstreamOrNetwork, Network, Service, ServiceOrNetwork, Undecided};
        let service = self.name(self.service);
        match judged {
            Judged::NoFigure(probe) => {
                let (why, hint) = self.no_figure(*probe);
                (Undecided, None, format!("undecided, since {why}"), hint)
            }
            Judged::NotSlower(ratio) => self.not_slower(ratio),
            Judged::Network(probe) => {
                let cause =
                    format!("the network is the cause: {} needs no program to answer", self.name(*probe));
                (
                    Network,
                    Some(*probe),
                    cause,
                    "measure the way to that host: mtr, tc -s qdisc, ethtool -S".into(),
                )
            }
            Judged::Downstream(probe, Way::Unseen) => {
                let cause = format!("{0} or the way to {0} is the cause of most of it", self.name(*probe));
                (DownstreamOrNetwork, Some(*probe), cause, self.separated(*probe))
            }
            Judged::Service(Way::Unseen) => {
                let cause = format!(
                    "{service} itself, the hosts that it runs on, or the way to {service} is the cause, and no probe shows which"
                );
                (ServiceOrNetwork, Some(self.service), cause, self.separated(self.service))
            }
            Judged::Downstream(probe, Way::Clear) => {
                let name = self.name(*probe);
                let hint = format!("measure it under this load: tare run with the server of {name} as --pid");
                (Downstream, Some(*probe), format!("{name} is the cause of most of it"), hint)
            }
            Judged::Service(Way::Clear) => {
                let cause = format!("{service} itself or the hosts that it runs on are the cause");
                let hint = format!("measure it under this load: tare run names the bottleneck of {service}");
                (Service, Some(self.service), cause, hint)
            }
            Judged::CallsUnknown => {
                let why =
                    format!("undecided: it is {service} itself or what it calls, and nobody named that");
                (
                    Undecided,
                    None,
                    why,
                    format!("--via {service}:PROBE names what it calls, --via {service}: says nothing"),
                )
            }
            Judged::AllAlike(probes) => {
                let names = self.names(probes);
                let why = format!(
                    "undecided: {names} and what {service} does itself get slower alike, as on a host that carries all of them"
                );
                let hint =
                    "probe something that runs on another host, or a path of the service that calls nothing";
                (Undecided, None, why, hint.into())
            }
            Judged::Open(probes) => {
                let names = self.names(probes);
                let why = format!(
                    "undecided: {names} may explain half of what {service} takes longer, or little of it"
                );
                let hint = format!(
                    "say how often an answer calls it (--via '{service}:{}*N'), add a probe of a path that does not call it; {MORE}",
                    self.name(probes.first().copied().unwrap_or(self.service))
                );
                (Undecided, None, why, hint)
            }
        }
    }

    /// Which probe tells a server from the way to it.
    fn separated(&self, probe: usize) -> String {
        let address = self.measured.run.probes[probe].address.as_deref();
        let Some((host, _)) = address.and_then(|address| address.rsplit_once(':')) else {
            return "a command shows no address: probe its server by one, and add a connection probe to the same host \
                    (--probe net=tcp://HOST:PORT)"
                .to_owned();
        };
        format!(
            "a connection probe to the same host separates them: --probe net=tcp://{host}:PORT, with a port that somebody listens on \
             (ssh, say)"
        )
    }

    fn no_figure(&self, probe: usize) -> (String, String) {
        let run = self.measured.run;
        let name = self.name(probe);
        let rounds = self.measured.rounds_of(probe, self.state);
        if let Some(failed) = &run.states[self.state].failed {
            return (
                format!("the state could not be made: {}", failed.what),
                "run its command by hand".into(),
            );
        }
        let windows: Vec<_> = run.windows.iter().filter(|window| window.probe == probe).collect();
        match failures(&windows).first() {
            Some(most) if windows.len() >= ROUNDS_MIN => (
                format!("half of the requests of {name} or more failed: {}", most.why),
                format!("find out first why {name} fails; a longer --timeout waits for slow answers"),
            ),
            _ => (
                format!("{rounds} rounds have a figure of {name}, and it takes {ROUNDS_MIN}"),
                "more --rounds; 5 requests in a window are the least".into(),
            ),
        }
    }

    fn not_slower(&self, ratio: &Est) -> (ProbeFinding, Option<usize>, String, String) {
        let service = self.name(self.service);
        let most = percent(ratio.hi - 1.0);
        if ratio.hi <= 1.0 + UNCHANGED_SHARE {
            let why = match ratio.hi > 1.0 {
                true => format!("{service} is not slower, by {most} at most"),
                false => format!("{service} is not slower"),
            };
            return (ProbeFinding::NothingSlowed, None, why, String::new());
        }
        // What half of the interval hides, above what counts as slower.
        let shown = (1.0 + SLOWER_SHARE) * (ratio.hi / ratio.lo).sqrt() - 1.0;
        let why = match shown.is_finite() {
            true => {
                format!("undecided: a change of {service} by less than {} could not be shown", percent(shown))
            }
            false => format!("undecided: one round cannot show a change of {service}"),
        };
        (ProbeFinding::Undecided, None, why, MORE.into())
    }
}

/// `2.1 × (1.9 to 2.3)`.
fn times(ratio: &Est) -> String {
    let figure = |value: f64| match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    match ratio.ends() {
        Some([lo, hi]) => format!("{} × ({} to {})", figure(ratio.value), figure(lo), figure(hi)),
        None => format!("{} ×", figure(ratio.value)),
    }
}

fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", 100.0 * share) } else { format!("{:.0} %", 100.0 * share) }
}
