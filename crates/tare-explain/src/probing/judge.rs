//! Which of a service, what it calls and the network between is why the service got slower.
//!
//! The service takes D longer than in the first state. A probe of what it calls takes d longer; the service calls it n times for an
//! answer, so that n·d of D is its. Where n is not known it is at least 1, and at most as often as its time fits into the service's in
//! the first state. Something is the cause if the least that it explains is half of D or more, and cleared if the most that it
//! can explain is less than half. The service is the cause once all others are cleared. Intervals hold together, so that both are
//! decided by their unfavourable ends.

use super::measured::{Est, Measured};
use std::net::SocketAddr;
use tare_model::probing::ProbeKind;

/// What takes longer by less than this share is not called slower.
pub(super) const SLOWER_SHARE: f64 = 0.10;
/// Whoever explains this share of the added time is the cause.
const CAUSE_SHARE: f64 = 0.5;
/// Round trips of an answer, at most: the request's own, a connection's, and those between the service and what it calls.
const ROUND_TRIPS_MAX: f64 = 4.0;
/// What a service does beside its calls counts from this share of its time on.
const REST_SHARE: f64 = 0.1;
/// Fewer rounds have no verdict.
pub(super) const ROUNDS_MIN: usize = 3;

/// What came out, by the probes' indices.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Judged {
    /// Too few rounds with a median of this probe.
    NoFigure(usize),
    /// The service is not slower.
    NotSlower(Est),
    /// The network, as this probe sees it.
    Network(usize),
    /// What the service calls.
    Downstream(usize, Way),
    /// The service itself.
    Service(Way),
    /// Nothing that it calls was named or probed.
    CallsUnknown,
    /// All that it calls got slower by about the same ratio.
    AllAlike(Vec<usize>),
    /// These can explain half of it or more, and none must.
    Open(Vec<usize>),
}

/// Whether the way from here to a server was seen to be as fast as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// There is none, or a probe shows that it is not slower by what matters.
    Clear,
    /// No probe goes there that the server itself does not answer.
    Unseen,
}

/// What a probe may explain of the service's added time, seconds.
struct Candidate {
    probe: usize,
    least: f64,
    most: f64,
    ratio: Est,
    is_network: bool,
}

/// Judges a service in a state.
pub(super) fn judge(measured: &Measured<'_>, service: usize, state: usize) -> Judged {
    let case = Case { measured, service, state };
    let figures = measured.ratio(service, state).zip(measured.added_within(service, state));
    let Some((ratio, added)) = figures.filter(|_| measured.rounds_of(service, state) >= ROUNDS_MIN) else {
        return Judged::NoFigure(service);
    };
    if !is_slower(&ratio, &added) {
        return Judged::NotSlower(ratio);
    }
    let calls = case.calls();
    let mut candidates = Vec::new();
    for (probe, times) in calls.iter().flatten() {
        match case.downstream(*probe, *times) {
            Some(candidate) => candidates.push(candidate),
            None => return Judged::NoFigure(*probe),
        }
    }
    let networks = case.networks(calls.as_deref().unwrap_or_default());
    for probe in networks {
        match case.network(probe) {
            Some(candidate) => candidates.push(candidate),
            // What was not seen is not cleared.
            None => return Judged::NoFigure(probe),
        }
    }
    let half = CAUSE_SHARE * added.hi;
    let causes: Vec<&Candidate> = candidates.iter().filter(|one| one.least >= half).collect();
    match causes[..] {
        [cause] if cause.is_network => return Judged::Network(cause.probe),
        [cause] => {
            let called = calls.iter().flatten().find(|(probe, _)| *probe == cause.probe);
            let alike = case.slower_alike(cause, called.and_then(|(_, times)| *times));
            return match alike.is_empty() {
                true => Judged::Downstream(cause.probe, case.way_to(cause.probe, &added)),
                false => Judged::AllAlike(alike),
            };
        }
        _ => {}
    }
    if let Some(probe) = case.shown_by_paths(&candidates, &ratio) {
        return Judged::Downstream(probe, case.way_to(probe, &added));
    }
    let most: f64 = candidates.iter().map(|candidate| candidate.most).sum();
    if most >= CAUSE_SHARE * added.lo {
        let may_be = candidates.iter().filter(|one| one.most >= CAUSE_SHARE * added.lo);
        let may_be: Vec<usize> = may_be.map(|candidate| candidate.probe).collect();
        return Judged::Open(match may_be.is_empty() {
            true => candidates.iter().map(|candidate| candidate.probe).collect(),
            false => may_be,
        });
    }
    if calls.is_none() {
        return Judged::CallsUnknown;
    }
    let downstream: Vec<&Candidate> = candidates.iter().filter(|candidate| !candidate.is_network).collect();
    let is_alike = |one: &&Candidate| is_as_slow(&one.ratio, &ratio) && one.ratio.lo > 1.0 + SLOWER_SHARE;
    match !downstream.is_empty() && downstream.iter().all(is_alike) {
        true => Judged::AllAlike(downstream.iter().map(|candidate| candidate.probe).collect()),
        false => Judged::Service(case.way_to(service, &added)),
    }
}

fn is_slower(ratio: &Est, added: &Est) -> bool {
    ratio.lo > 1.0 + SLOWER_SHARE && added.lo > 0.0
}

/// Whether one may have got slower by half as much as the other, or more.
fn is_as_slow(one: &Est, other: &Est) -> bool {
    one.hi - 1.0 >= CAUSE_SHARE * (other.lo - 1.0)
}

struct Case<'a> {
    measured: &'a Measured<'a>,
    service: usize,
    state: usize,
}

impl Case<'_> {
    /// What the service calls, by index and how often; `None`: not known.
    fn calls(&self) -> Option<Vec<(usize, Option<u32>)>> {
        let probes = &self.measured.run.probes;
        let calls = probes[self.service].calls.as_ref()?;
        let of = |name: &str| probes.iter().position(|probe| probe.name == name);
        Some(calls.iter().filter_map(|call| Some((of(&call.probe)?, call.times))).collect())
    }

    /// What one that it calls explains, without what the network to that takes longer.
    fn downstream(&self, probe: usize, times: Option<u32>) -> Option<Candidate> {
        let (measured, state) = (self.measured, self.state);
        if measured.rounds_of(probe, state) < ROUNDS_MIN {
            return None;
        }
        let (ratio, added) = (measured.ratio(probe, state)?, measured.added_within(probe, state)?);
        let own = match self.network_to(probe) {
            Some(network) => measured.added_beyond(probe, (network, self.round_trips(probe)), state)?,
            None => added,
        };
        let fits = measured.base_s(self.service)? / measured.base_s(probe)?;
        let (least, most) = times.map_or((1.0, fits.max(1.0)), |times| (f64::from(times), f64::from(times)));
        let least = if is_slower(&ratio, &added) { least * own.lo } else { 0.0 };
        Some(Candidate { probe, least, most: most * own.hi.max(0.0), ratio, is_network: false })
    }

    fn network(&self, probe: usize) -> Option<Candidate> {
        let (ratio, added) =
            (self.measured.ratio(probe, self.state)?, self.measured.added_within(probe, self.state)?);
        let least = if is_slower(&ratio, &added) { self.round_trips(self.service) * added.lo } else { 0.0 };
        let most = ROUND_TRIPS_MAX * added.hi.max(0.0);
        Some(Candidate { probe, least, most, ratio, is_network: true })
    }

    /// Round trips of a request: one, and one more for a new connection.
    fn round_trips(&self, probe: usize) -> f64 {
        if self.measured.run.probes[probe].fresh { 2.0 } else { 1.0 }
    }

    fn host(&self, probe: usize) -> Option<&str> {
        let address = self.measured.run.probes[probe].address.as_deref()?;
        address.rsplit_once(':').map(|(host, _)| host)
    }

    /// The connection probe to the host of a probe. One to a host that no other probe goes to stands for the network to the service.
    fn network_to(&self, probe: usize) -> Option<usize> {
        let probes = &self.measured.run.probes;
        let is_tcp = |at: &usize| probes[*at].kind == ProbeKind::Tcp;
        let tcp: Vec<usize> = (0..probes.len()).filter(is_tcp).collect();
        let same = tcp.iter().copied().find(|at| self.host(*at) == self.host(probe));
        let serves_nobody = |at: &usize| {
            (0..probes.len()).filter(|other| !is_tcp(other)).all(|other| self.host(other) != self.host(*at))
        };
        same.or_else(|| tcp.into_iter().find(|at| probe == self.service && serves_nobody(at)))
    }

    /// Whether the way to a probe's server explains none of what matters: of the time that the service takes longer. A connection probe that
    /// goes there has been judged by now. Another request to the same host that is hardly slower went the same way.
    fn way_to(&self, probe: usize, added: &Est) -> Way {
        let probes = &self.measured.run.probes;
        let address = probes[probe].address.as_deref();
        let is_here = address
            .and_then(|address| address.parse::<SocketAddr>().ok())
            .is_some_and(|address| address.ip().is_loopback());
        let is_quick = |at: &usize| {
            let other = self.measured.added_within(*at, self.state);
            let most = other.map_or(f64::INFINITY, |other| ROUND_TRIPS_MAX * other.hi.max(0.0));
            *at != probe && self.host(*at) == self.host(probe) && most < CAUSE_SHARE * added.lo
        };
        let is_shown = || self.host(probe).is_some() && (0..probes.len()).any(|at| is_quick(&at));
        let is_probed = self.network_to(probe).is_some_and(|at| self.host(at) == self.host(probe));
        if is_here || is_probed || is_shown() { Way::Clear } else { Way::Unseen }
    }

    /// Those to the service and to what it calls, each once.
    fn networks(&self, calls: &[(usize, Option<u32>)]) -> Vec<usize> {
        let probes = [self.service].into_iter().chain(calls.iter().map(|(probe, _)| *probe));
        let mut found: Vec<usize> = probes.filter_map(|probe| self.network_to(probe)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Other requests to the same server that do not lead to this probe's.
    fn paths_without(&self, probe: usize) -> Vec<usize> {
        let probes = &self.measured.run.probes;
        let name = &probes[probe].name;
        let other = |at: &usize| {
            let other = &probes[*at];
            let leads = other.calls.as_ref().is_none_or(|calls| calls.iter().any(|call| call.probe == *name));
            *at != self.service
                && other.kind == ProbeKind::Http
                && other.address == probes[self.service].address
                && !leads
        };
        (0..probes.len()).filter(other).collect()
    }

    /// A cause from paths: what leads there is slower, and what does not is not.
    fn shown_by_paths(&self, candidates: &[Candidate], service: &Est) -> Option<usize> {
        let slower = |one: &&Candidate| one.ratio.lo > 1.0 + SLOWER_SHARE;
        let slower: Vec<&Candidate> = candidates.iter().filter(slower).collect();
        let [one] = slower[..] else { return None };
        let clear = |path: &usize| {
            self.measured.ratio(*path, self.state).is_some_and(|ratio| !is_as_slow(&ratio, service))
        };
        let paths = self.paths_without(one.probe);
        let is_shown = !one.is_network && !paths.is_empty() && paths.iter().all(clear);
        (is_shown && is_as_slow(&one.ratio, service)).then_some(one.probe)
    }

    /// Who got slower alike: a cause together with what may share its host. Empty where that is excluded: by a path of the service that does
    /// not lead to the cause and did not get slower by half its ratio, or else by the rest of the service's own time.
    fn slower_alike(&self, cause: &Candidate, times: Option<u32>) -> Vec<usize> {
        let paths = self.paths_without(cause.probe);
        let is_clear = |path: &usize| {
            self.measured.ratio(*path, self.state).is_some_and(|ratio| !is_as_slow(&ratio, &cause.ratio))
        };
        let is_clear = match paths.is_empty() {
            true => self.rest_is_clear(cause, times.map_or(1.0, f64::from)),
            false => paths.iter().any(is_clear),
        };
        if is_clear { Vec::new() } else { [cause.probe].into_iter().chain(paths).collect() }
    }

    /// Whether the service's time without its calls of a cause grew by less than half of what it would by the same ratio; so little of it that
    /// it cannot matter counts too.
    fn rest_is_clear(&self, cause: &Candidate, times: f64) -> bool {
        let bases = self.measured.base_s(self.service).zip(self.measured.base_s(cause.probe));
        let added = self.measured.added_beyond(self.service, (cause.probe, times), self.state);
        let Some(((whole, call), added)) = bases.zip(added) else { return false };
        let rest = whole - times * call;
        rest < REST_SHARE * whole || added.hi < CAUSE_SHARE * rest * (cause.ratio.lo - 1.0)
    }
}
