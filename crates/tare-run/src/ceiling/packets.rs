//! Packets over loopback by size.

use super::kind::Kind;
use tare_machine::probes::packets::{self, Protocol};

/// Bytes of data in a packet.
const SIZES: [usize; 3] = [64, 1024, 8192];

pub(super) fn kinds(_: usize) -> Vec<Kind> {
    let of = |protocol: Protocol, name: &'static str, what: &'static str| {
        SIZES.map(move |bytes| {
            let about =
                format!("{what} of {bytes} bytes over loopback, each CPU sends to itself, all CPUs together");
            Kind::new(format!("{name}-packets-{bytes}"), "packets/s", about, move |ground, ns| {
                packets::run(protocol, bytes, &ground.cpus, ns)
            })
        })
    };
    let udp = of(Protocol::Udp, "udp", "datagrams");
    udp.into_iter()
        .chain(of(Protocol::Tcp, "tcp", "TCP segments with their acknowledgements, data"))
        .collect()
}
