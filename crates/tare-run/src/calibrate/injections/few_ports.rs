//! A generator whose host has too few ports.

use super::{Ground, Injection, LabError, Need, Scene, reported};

pub(super) static INJECTION: Injection = Injection {
    name: "few-ports",
    about: "more connections at a time than the generator's host has ports",
    needs: &[Need::Cpus(2), Need::Hosts],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let hosts = scene.two_hosts(ground, &["-c", "64", "--no-keepalive"])?;
    reported(&hosts.at_client(&["sh", "-c", "echo 40000 40015 > /proc/sys/net/ipv4/ip_local_port_range"]))
}
