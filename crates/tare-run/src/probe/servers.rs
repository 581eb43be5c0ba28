//! Each probe asks once before anything is measured: who does not answer then is the user's to see to.

use super::request::ProbeRequest;
use crate::error::LabError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tare_load::probe::{Asked, OpenError, Opener, ProbeTarget, Prober};
use tare_machine::journal::{Journal, RUN_VARIABLE};
use tare_model::probing::Probe;
use tare_model::warning::Warning;

const POLL: Duration = Duration::from_millis(20);
/// The first request may take so long at least: a server may just have started.
const FIRST_MIN: Duration = Duration::from_secs(2);

/// A server that answers.
pub(super) struct Server {
    pub probe: Probe,
    pub prober: Prober,
}

/// All of them, in their order.
pub(super) fn found(
    request: &ProbeRequest,
    journal: &Journal,
    interrupt: &AtomicBool,
) -> Result<(Vec<Server>, Vec<Warning>), LabError> {
    let (mut servers, mut warnings) = (Vec::new(), Vec::new());
    let timeout = Duration::from_secs_f64(request.plan.timeout_s);
    for (probe, target) in request.probes.iter().zip(&request.targets) {
        if target.at().is_none() {
            let state = |error: tare_machine::journal::JournalError| LabError::State(error.to_string());
            journal.will_start(&probe.target).map_err(state)?;
        }
        // What a killed run left is found by it.
        let environment = vec![(RUN_VARIABLE.to_owned(), journal.run_id().to_owned())];
        let (opener, addresses) = first(target.clone(), environment, timeout.max(FIRST_MIN), interrupt)?
            .map_err(|error| LabError::Sut {
                what: format!("({}) {}", probe.name, said(&error)),
                last_output: String::new(),
            })?;
        let address = opener.address().map(|address| address.to_string());
        if let (Some(address), 2..) = (&address, addresses) {
            warnings.push(Warning {
                id: "several-addresses".into(),
                text: format!(
                    "the host of {} has {addresses} addresses, of which {address} is probed",
                    probe.name
                ),
                hint: "name an address in its URL, or a probe for each".into(),
            });
        }
        let asked = Asked { rate_hz: request.plan.rate_hz, fresh: probe.fresh, timeout };
        servers
            .push(Server { probe: Probe { address, ..probe.clone() }, prober: Prober::new(opener, asked) });
    }
    Ok((servers, warnings))
}

fn said(error: &OpenError) -> String {
    format!("did not answer its probe: {error}")
}

type First = Result<(Opener, usize), OpenError>;

/// Asks once, without keeping a user waiting who has had enough: the resolver has a time limit of its own.
fn first(
    target: ProbeTarget,
    environment: Vec<(String, String)>,
    timeout: Duration,
    interrupt: &AtomicBool,
) -> Result<First, LabError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    // Nobody is there to receive it if the user had enough meanwhile.
    let ask = move || drop(sender.send(Opener::find(&target, &environment, timeout)));
    let thread = std::thread::Builder::new().name("tare-first".into()).spawn(ask);
    thread.map_err(|error| {
        LabError::Observe(format!("no thread could be started: {error} ({})", crate::error::THREADS_HINT))
    })?;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(first) => return Ok(first),
            Err(_) if interrupt.load(Ordering::Relaxed) => return Err(LabError::Interrupted),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LabError::Observe("the first request was not finished".to_owned()));
            }
        }
    }
}
