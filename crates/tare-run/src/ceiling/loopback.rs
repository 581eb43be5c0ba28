//! Requests and bytes over loopback, without a protocol on top.

use super::kind::Kind;
use tare_machine::probes::echo::{self, Setting};
use tare_machine::probes::stream;
use tare_model::Missing;

/// Connections at once.
const FLOWS: [u32; 3] = [1, 64, 1024];

pub(super) fn kinds(_: usize) -> Vec<Kind> {
    let flows = FLOWS.map(|flows| {
        let about =
            format!("requests and answers of 128 bytes over loopback, {flows} at a time (TCP, epoll)");
        Kind::new(format!("loopback-flows-{flows}"), "req/s", about, move |ground, ns| {
            tare_sys::process::raise_open_files_limit()
                .map_err(|error| Missing::new(format!("the limit on open files: {error}")))?;
            echo::run(&Setting { pairs: ground.pairs(), flows, polls: ground.may_poll }, ns)
        })
    });
    let bytes = Kind::new(
        "loopback-bytes",
        "B/s",
        "bytes over loopback, one TCP connection for each pair of CPUs, 128 KiB a write",
        |ground, ns| stream::run(&ground.pairs(), ns),
    );
    flows.into_iter().chain([bytes]).collect()
}
