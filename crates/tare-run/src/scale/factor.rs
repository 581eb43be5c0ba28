//! What is varied, and how a request is changed for it.

use crate::error::LabError;
use crate::request::{CommandRequest, LoadRequest, Request, ServerRequest, SutRequest};
use tare_load::{Gaps, Pacing};
use tare_model::scaling::OrderedCpu;

/// Stands for the value in a command, a URL or an input.
const PLACE: &str = "{n}";
/// Stands for the port of an instance, and for which instance it is.
pub(super) use crate::ports::PORT;
pub(super) const NUMBER: &str = "{i}";
/// Most connections, and most threads of a generator, as of `tare run`.
const CONNECTIONS_MAX: f64 = 1e6;
const THREADS_MAX: f64 = 1024.0;
/// Each is measured by a process of tare's own.
const INSTANCES_MAX: f64 = 64.0;

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Open connections of tare's generator.
    Connections,
    /// Requests per second.
    Rate,
    /// Threads of tare's generator.
    LoadThreads,
    /// CPUs of the SUT.
    Cpus,
    /// The value of `{n}`.
    N,
    /// Copies of a service that run at once.
    Instances,
}

/// A factor at a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// What is set.
    pub factor: Factor,
    /// To what.
    pub value: f64,
}

impl Factor {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Factor::Connections => "connections",
            Factor::Rate => "rate",
            Factor::LoadThreads => "load-threads",
            Factor::Cpus => "cpus",
            Factor::N => "{n}",
            Factor::Instances => "instances",
        }
    }

    /// Its option.
    pub fn option(self) -> &'static str {
        match self {
            Factor::Connections => "--connections",
            Factor::Rate => "--rate",
            Factor::LoadThreads => "--load-threads",
            Factor::Cpus => "--cpus",
            Factor::N => "--n",
            Factor::Instances => "--instances",
        }
    }

    /// Whether only whole numbers make sense.
    pub fn is_whole(self) -> bool {
        self != Factor::Rate
    }

    /// Whether it is a matter of tare's own generator, which programs have none of.
    fn is_of_own_load(self) -> bool {
        matches!(self, Factor::Connections | Factor::Rate | Factor::LoadThreads)
    }

    fn max(self, cpus: &[OrderedCpu]) -> f64 {
        match self {
            Factor::Connections => CONNECTIONS_MAX,
            Factor::LoadThreads => THREADS_MAX,
            Factor::Cpus => cpus.len() as f64,
            Factor::Instances => INSTANCES_MAX,
            Factor::Rate | Factor::N => 1e12,
        }
    }

    /// Judges the values before anything is started.
    pub(super) fn check(
        self,
        values: &[f64],
        request: &Request,
        cpus: &[OrderedCpu],
    ) -> Result<(), LabError> {
        let option = self.option();
        let is_whole = |value: &f64| !self.is_whole() || value.fract() == 0.0;
        if let Some(value) = values.iter().find(|value| !is_whole(value) || **value <= 0.0) {
            return Err(LabError::usage(
                format!("{option}: {value} is not a whole number above 0"),
                format!("as {option} 1,2,4,8 or {option} 1..64"),
            ));
        }
        if let Some(value) = values.iter().find(|value| **value > self.max(cpus)) {
            let (max, hint) = match self {
                Factor::Cpus => (cpus.len(), "'tare doctor --topology' draws them"),
                Factor::Instances => {
                    (INSTANCES_MAX as usize, "measure a part of them: each takes a process of tare's own")
                }
                _ => (self.max(cpus) as usize, "'tare help load' has the range of each option"),
            };
            return Err(LabError::usage(format!("{option}: {value} is more than {max}"), hint));
        }
        match request {
            _ if self == Factor::Instances => can_be_copied(request, values),
            _ if self == Factor::N && !takes_n(request) => Err(LabError::usage(
                "--n: nothing contains {n}",
                "write {n} where its value belongs: in the command, the URL, --sut or --load",
            )),
            Request::Program(_) if self.is_of_own_load() => Err(LabError::usage(
                format!("{option} is for servers: a program that ends gets no load from tare"),
                "vary --n, the value of {n} in its command, or --cpus",
            )),
            Request::Server(server) if self.is_of_own_load() && !server.load.is_own() => {
                Err(LabError::usage(
                    format!("{option} is for tare's own generator"),
                    "write {n} in the command of --load, and vary --n",
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Setting {
    /// The request at this value.
    pub(super) fn of(self, request: &Request, cpus: &[OrderedCpu]) -> Request {
        let mut request = request.clone();
        let count = self.value as u32;
        let held = || cpus.iter().take(count as usize).map(|next| next.cpu).collect::<Vec<u32>>();
        match (&mut request, self.factor) {
            (Request::Server(server), Factor::Connections) => server.traffic.connections = count,
            (Request::Server(server), Factor::Rate) => {
                let gaps = match server.traffic.pacing {
                    Pacing::Open { gaps, .. } => gaps,
                    _ => Gaps::Fixed,
                };
                server.traffic.pacing = Pacing::Open { rate_hz: self.value, gaps };
            }
            (Request::Server(server), Factor::LoadThreads) => {
                server.load = LoadRequest::Own { threads: Some(count) };
            }
            (Request::Server(server), Factor::Cpus) => server.place.sut_cpus = Some(sorted(held())),
            (Request::Program(program), Factor::Cpus) => program.place.sut_cpus = Some(sorted(held())),
            (Request::Server(server), Factor::N) => texts(server).for_each(|text| fill(text, self.value)),
            (Request::Program(program), Factor::N) => words(program).for_each(|text| fill(text, self.value)),
            (_, Factor::Instances) | (Request::Program(_), _) => {}
        }
        request
    }
}

/// Whether `{n}` stands anywhere.
pub fn takes_n(request: &Request) -> bool {
    contains(request, PLACE)
}

/// Whether a text stands anywhere where a value may stand.
fn contains(request: &Request, place: &str) -> bool {
    let has = |text: &mut String| text.contains(place);
    match &mut request.clone() {
        Request::Server(server) => texts(server).any(has),
        Request::Program(program) => words(program).any(has),
    }
}

/// Puts values where their places stand.
pub(super) fn fill_in(request: &mut Request, values: &[(&str, String)]) {
    let each = |text: &mut String| {
        for (place, value) in values {
            *text = text.replace(place, value);
        }
    };
    match request {
        Request::Server(server) => texts(server).for_each(each),
        Request::Program(program) => words(program).for_each(each),
    }
}

/// Whether copies of it can run at once: tare must start them, and each must have its own port.
fn can_be_copied(request: &Request, values: &[f64]) -> Result<(), LabError> {
    let Request::Server(server) = request else { return Ok(()) };
    let several = values.iter().any(|value| *value > 1.0);
    match (&server.sut, &server.load) {
        (SutRequest::Embedded, _) => Ok(()),
        (SutRequest::Start(_), LoadRequest::Pid(_))
        | (SutRequest::Find | SutRequest::Pid(_) | SutRequest::Group(_), _) => Err(LabError::usage(
            "--instances starts copies of a service, and none is named that can be started",
            "give --sut './server --port {port}' and http://127.0.0.1:{port}/, or a program behind '--'",
        )),
        (SutRequest::Start(_), _) if several && !contains(request, PORT) && !contains(request, NUMBER) => {
            Err(LabError::usage(
                "--instances: all instances would listen on the same port",
                "write {port} where the port goes, in --sut and in the URL, as --sut './server --port {port}' http://127.0.0.1:{port}/",
            ))
        }
        (SutRequest::Start(_), _) => Ok(()),
    }
}

/// Where `{n}` may stand in what is asked of a server.
fn texts(server: &mut ServerRequest) -> impl Iterator<Item = &mut String> {
    let sut = match &mut server.sut {
        SutRequest::Start(command) => Some(command),
        _ => None,
    };
    let load = match &mut server.load {
        LoadRequest::Start(command) => Some(command),
        _ => None,
    };
    server.url.iter_mut().chain(sut).chain(load)
}

/// The same of a program.
fn words(program: &mut CommandRequest) -> impl Iterator<Item = &mut String> {
    let around = &mut program.around;
    let around = [&mut around.setup, &mut around.prepare, &mut around.cleanup].into_iter().flatten();
    program.command.iter_mut().chain(&mut program.input).chain(around)
}

fn fill(text: &mut String, value: f64) {
    *text = text.replace(PLACE, &value.to_string());
}

fn sorted(mut cpus: Vec<u32>) -> Vec<u32> {
    cpus.sort_unstable();
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &str) -> Request {
        Request::Program(Box::new(CommandRequest { command: vec![command.to_owned()], ..Default::default() }))
    }

    fn cpus(numbers: &[u32]) -> Vec<OrderedCpu> {
        numbers.iter().map(|cpu| OrderedCpu { cpu: *cpu, adds: "core".to_owned(), node: None }).collect()
    }

    #[test]
    fn fills_in_the_value_and_takes_the_first_cpus() {
        let at =
            |factor, value| Setting { factor, value }.of(&program("sort --parallel={n}"), &cpus(&[0, 2, 1]));
        let Request::Program(filled) = at(Factor::N, 3.0) else { panic!("a program") };
        assert_eq!(filled.command, ["sort --parallel=3"]);
        let Request::Program(held) = at(Factor::Cpus, 2.0) else { panic!("a program") };
        assert_eq!(held.place.sut_cpus, Some(vec![0, 2]));
    }

    #[test]
    fn says_what_cannot_be_varied_and_what_can() {
        let wrong = |factor: Factor, values: &[f64], command: &str| {
            factor.check(values, &program(command), &cpus(&[0, 1])).unwrap_err().to_string()
        };
        for (factor, values, command, says) in [
            (Factor::N, [1.0, 2.0], "sort", "nothing contains {n}"),
            (Factor::N, [1.0, 2.5], "sort {n}", "2.5 is not a whole number"),
            (Factor::Cpus, [1.0, 3.0], "sort", "3 is more than 2"),
            (Factor::Connections, [1.0, 2.0], "sort", "is for servers"),
        ] {
            let text = wrong(factor, &values, command);
            assert!(text.contains(says) && text.contains("hint: "), "{text}");
        }
        assert!(Factor::N.check(&[1.0], &program("sort {n}"), &cpus(&[0])).is_ok());
    }
}
