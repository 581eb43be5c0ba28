//! From a target to a client that asks: the address found once, the client opened as often as needed.

use super::client::Client;
use super::command::{Program, Runner};
use super::fault::ProbeFault;
use super::http::{self, Http};
use super::login::Login;
use super::mysql::Mysql;
use super::postgres::Postgres;
use super::redis::Redis;
use super::target::{ProbeTarget, Way};
use super::tcp::Tcp;
use crate::error::LoadError;
use crate::spec::LoadSpec;
use crate::tls::Handshakes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tare_model::probing::ProbeKind;
use thiserror::Error;

/// Why a probe cannot begin.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The name is not known, or certificates cannot be read.
    #[error("{0}")]
    Place(String),
    /// The first request failed.
    #[error("{fault} (hint: {hint})")]
    First {
        /// How.
        fault: ProbeFault,
        /// What to do.
        hint: String,
    },
}

/// What opens clients of one probe.
#[derive(Clone)]
pub struct Opener {
    address: Option<SocketAddr>,
    how: How,
}

#[derive(Clone)]
enum How {
    Http(Arc<[u8]>, Option<Arc<Handshakes>>),
    Tcp,
    Database(ProbeKind, Login),
    Command(Arc<Program>),
}

impl Opener {
    /// Finds the addresses of the target and asks each once, in the resolver's order: the first that answers is the one that is probed. Gives
    /// how many there are. `environment`: variables for a command. Asks the resolver, which has its own time limit.
    ///
    /// # Errors
    /// [`OpenError`], of the first address.
    pub fn find(
        target: &ProbeTarget,
        environment: &[(String, String)],
        timeout: Duration,
    ) -> Result<(Opener, usize), OpenError> {
        let Some(at) = target.at() else {
            let opener = Opener { address: None, how: how(target, false, environment)? };
            return opener.answers(target, timeout).map(|()| (opener, 0));
        };
        let addresses = at.resolve().map_err(|error| OpenError::Place(error.to_string()))?;
        let mut first_fault = None;
        for address in addresses.iter().take(ADDRESSES_MAX) {
            let opener = Opener {
                address: Some(*address),
                how: how(target, address.ip().is_loopback(), environment)?,
            };
            match opener.answers(target, timeout) {
                Ok(()) => return Ok((opener, addresses.len())),
                Err(fault) => first_fault = first_fault.or(Some(fault)),
            }
        }
        Err(first_fault.unwrap_or_else(|| OpenError::Place("it has no address".into())))
    }

    /// The address that is probed; `None`: a command.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether each request has a new connection anyhow.
    pub(super) fn is_always_fresh(&self) -> bool {
        matches!(self.how, How::Tcp | How::Command(_))
    }

    fn answers(&self, target: &ProbeTarget, timeout: Duration) -> Result<(), OpenError> {
        let deadline = Instant::now() + timeout;
        let asked = self.open(deadline).and_then(|mut client| client.ask(deadline));
        asked.map_err(|fault| OpenError::First { hint: target.hint(&fault), fault })
    }

    /// Connects and logs in.
    pub(super) fn open(&self, deadline: Instant) -> Result<Box<dyn Client>, ProbeFault> {
        let address = || self.address.ok_or_else(|| ProbeFault::Connect("there is no address".into()));
        Ok(match &self.how {
            How::Http(request, tls) => {
                Box::new(Http::open(address()?, request.clone(), tls.as_deref(), deadline)?)
            }
            How::Tcp => Box::new(Tcp(address()?)),
            How::Database(ProbeKind::Redis, login) => Box::new(Redis::open(address()?, login, deadline)?),
            How::Database(ProbeKind::Mysql, login) => Box::new(Mysql::open(address()?, login, deadline)?),
            How::Database(_, login) => Box::new(Postgres::open(address()?, login, deadline)?),
            How::Command(program) => Box::new(Runner(program.clone())),
        })
    }
}

/// Addresses of a name that are tried, at most.
const ADDRESSES_MAX: usize = 8;

fn how(target: &ProbeTarget, is_this_host: bool, environment: &[(String, String)]) -> Result<How, OpenError> {
    Ok(match &target.way {
        Way::Http(url) => {
            let of = |error: LoadError| OpenError::Place(error.to_string());
            let handshakes =
                || Handshakes::of(&LoadSpec::new(url.clone()), is_this_host).map(Arc::new).map_err(of);
            How::Http(http::request(url), url.is_tls().then(handshakes).transpose()?)
        }
        Way::Tcp(_) => How::Tcp,
        Way::Database { kind, login, .. } => How::Database(*kind, login.clone()),
        Way::Command(words) => {
            How::Command(Arc::new(Program { words: words.clone(), environment: environment.to_vec() }))
        }
    })
}
