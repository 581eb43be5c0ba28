//! What a process of tare's own is asked to do for one instance, and how it does it.

use super::super::factor::{NUMBER, PORT, fill_in};
use super::super::sweep::Sweep;
use crate::error::LabError;
use crate::progress::Silent;
use crate::request::{LoadRequest, Request};
use crate::running::Session;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tare_machine::{Root, placement, topology};

/// Stands for how many instances run at once.
const COUNT: &str = "{n}";

/// One instance in one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which, from 1.
    pub i: u32,
    /// How many run at once.
    pub n: u32,
    /// CPUs that it is held on.
    pub cpus: Vec<u32>,
    /// CPUs of its load generator; empty: as it chooses.
    pub load_cpus: Vec<u32>,
    /// A port that nobody has.
    pub port: u16,
    /// Runs of a program.
    pub runs: u32,
    /// Length of the trial of a server, milliseconds.
    pub trial_ms: u64,
    /// Where its record goes.
    pub record: PathBuf,
}

impl Part {
    /// As one word of a command line.
    pub(super) fn word(&self) -> String {
        json!({
            "i": self.i, "n": self.n, "cpus": self.cpus, "load_cpus": self.load_cpus, "port": self.port, "runs": self.runs,
            "trial_ms": self.trial_ms, "record": self.record.to_string_lossy(),
        })
        .to_string()
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let number = |name: &str| value[name].as_u64().ok_or_else(|| format!("{name} is missing"));
        let small = |name: &str| -> Result<u32, String> {
            u32::try_from(number(name)?).map_err(|_| format!("{name} is too large"))
        };
        let cpus = |name: &str| -> Result<Vec<u32>, String> {
            let list = value[name].as_array().ok_or_else(|| format!("{name} is missing"))?;
            let each = |cpu: &Value| cpu.as_u64().and_then(|cpu| u32::try_from(cpu).ok());
            list.iter().map(each).collect::<Option<_>>().ok_or_else(|| format!("{name} holds no CPU"))
        };
        Ok(Part {
            i: small("i")?,
            n: small("n")?,
            cpus: cpus("cpus")?,
            load_cpus: cpus("load_cpus")?,
            port: u16::try_from(number("port")?).map_err(|_| "port is too large")?,
            runs: small("runs")?,
            trial_ms: number("trial_ms")?,
            record: value["record"].as_str().map(PathBuf::from).ok_or("record is missing")?,
        })
    }
}

/// Measures one instance in step with the others of its launch; the record is in its file then.
///
/// # Errors
/// As those of a session.
pub fn measure(sweep: &Sweep, part: &Part, session: &Session) -> Result<(), LabError> {
    let cpus = placement::growing(&topology::read(&Root::live(), None));
    let mut request = sweep.prepared(&cpus)?;
    asked(&mut request, part);
    let session = Session { record: Some(part.record.clone()), ..session.clone() };
    crate::session::measure(request, &session, &mut Silent).end
}

/// The request of this instance.
fn asked(request: &mut Request, part: &Part) {
    let values = [(NUMBER, part.i.to_string()), (COUNT, part.n.to_string()), (PORT, part.port.to_string())];
    fill_in(request, &values);
    match request {
        Request::Server(server) => {
            server.place.sut_cpus = Some(part.cpus.clone());
            if !part.load_cpus.is_empty() && server.place.load_cpus.is_none() {
                server.place.load_cpus = Some(part.load_cpus.clone());
            }
            if let LoadRequest::Own { threads: threads @ None } = &mut server.load {
                let cpus = server.place.load_cpus.as_ref().map_or(0, Vec::len);
                let most = cpus.clamp(1, server.traffic.connections.max(1) as usize);
                *threads = Some(most as u32);
            }
            if !matches!(server.load, LoadRequest::Start(_)) {
                server.trials.length = Some(Duration::from_millis(part.trial_ms));
            }
        }
        Request::Program(program) => {
            program.place.sut_cpus = Some(part.cpus.clone());
            program.runs.count = Some(part.runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::CommandRequest;

    fn part() -> Part {
        Part {
            i: 2,
            n: 4,
            cpus: vec![1, 3],
            load_cpus: Vec::new(),
            port: 4711,
            runs: 3,
            trial_ms: 400,
            record: "a b/é.tare".into(),
        }
    }

    #[test]
    fn a_part_is_one_word_and_back() {
        assert_eq!(part().word().parse::<Part>(), Ok(part()));
        for bad in ["", "{}", "[]", "{\"i\":-1}", "7"] {
            assert!(bad.parse::<Part>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_instance_has_its_number_port_cpus_and_runs() {
        let command = vec!["serve --port {port} --name {i}-of-{n}".to_owned()];
        let mut request = Request::Program(Box::new(CommandRequest { command, ..CommandRequest::default() }));
        asked(&mut request, &part());
        let Request::Program(program) = request else { panic!("a program") };
        assert_eq!(program.command, ["serve --port 4711 --name 2-of-4"]);
        assert_eq!((program.place.sut_cpus, program.runs.count), (Some(vec![1, 3]), Some(3)));
    }
}
