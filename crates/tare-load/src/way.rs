//! The way to the server: where connections go, and what TLS handshakes with it begin with.

use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::spec::LoadSpec;
use crate::tls::Handshakes;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How soon the user who has had enough is heard.
const SLICE: Duration = Duration::from_millis(20);

/// The way to a server.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) endpoint: Endpoint,
    /// `None`: without TLS.
    pub(crate) tls: Option<Handshakes>,
}

impl Way {
    /// The one that `spec` names; asks the resolver for names and reads certificates.
    pub(crate) fn find(spec: &LoadSpec) -> Result<Way, LoadError> {
        let endpoint = Endpoint::resolve(spec)?;
        let handshakes = || Handshakes::of(spec, endpoint.is_this_host());
        let tls = spec.route.target.is_tls().then(handshakes).transpose()?;
        Ok(Way { endpoint, tls })
    }

    /// The same, unless the user has had enough: what still waits for the resolver then ends by the resolver's limit, or with this process.
    pub(crate) fn find_unless(spec: &LoadSpec, interrupt: &AtomicBool) -> Result<Way, LoadError> {
        if spec.route.unix_socket.is_some() || !spec.route.goes_to().is_name() {
            return Way::find(spec);
        }
        let failed = |why| LoadError::Thread { why };
        let (sender, receiver) = mpsc::sync_channel(1);
        let asked = spec.clone();
        // Nobody is there to receive it if the user had enough meanwhile.
        let find = move || drop(sender.send(Way::find(&asked)));
        std::thread::Builder::new().name("tare-way".into()).spawn(find).map_err(failed)?;
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Err(LoadError::Interrupted);
            }
            match receiver.recv_timeout(SLICE) {
                Ok(way) => return way,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed(io::Error::other("it ended at once")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn whoever_has_had_enough_does_not_wait_for_the_resolver() {
        let spec = |url: &str| LoadSpec::new(Target::parse(url).unwrap());
        let enough = AtomicBool::new(true);
        let ended = Way::find_unless(&spec("http://nowhere.invalid/"), &enough);
        assert!(matches!(ended, Err(LoadError::Interrupted)), "{ended:?}");
        let way = Way::find_unless(&spec("http://localhost:9/"), &AtomicBool::new(false)).unwrap();
        assert!(way.endpoint.is_this_host());
    }
}
