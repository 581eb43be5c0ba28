//! A link that lets few bytes through.

use super::{Ground, Injection, LINK, LabError, Need, Scene, reported};

pub(super) static INJECTION: Injection = Injection {
    name: "bandwidth",
    about: "a link of 50 Mbit/s between two hosts",
    needs: &[Need::Cpus(2), Need::Hosts, Need::Program("tc")],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let hosts = scene.two_hosts(ground, &["-c", "16"])?;
    let limit = ["rate", "50mbit", "burst", "32kb", "latency", "300ms"];
    let shaper = [["tc", "qdisc", "add", "dev", LINK, "root", "tbf"].as_slice(), &limit].concat();
    reported(&hosts.at_server(&shaper))?;
    scene.server.path = "/bytes/20000".into();
    Ok(())
}
