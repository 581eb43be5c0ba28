//! A link that lets few packets through.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "packet-rate",
    about: "5,000 packets a second between two hosts, the others dropped",
    needs: &[Need::Cpus(2), Need::Hosts, Need::Program("nft")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let hosts = scene.two_hosts(ground, &["-c", "16"])?;
    hosts.drop_before_client("tcp flags & syn == 0 limit rate over 5000/second")
}
