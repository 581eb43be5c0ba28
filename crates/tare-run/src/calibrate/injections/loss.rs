//! A link that loses packets.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "loss",
    about: "one packet in a hundred lost between two hosts",
    needs: &[Need::Cpus(2), Need::Hosts, Need::Program("nft")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let hosts = scene.two_hosts(ground, &["-c", "16"])?;
    hosts.drop_before_client("tcp flags & syn == 0 numgen random mod 100 == 0")
}
