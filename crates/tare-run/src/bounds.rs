//! What is known, as a session begins, of what bounds its figure: the ceilings that `tare ceiling` kept for this boot, and the
//! network card that leads to a server on another host.

use crate::own_program;
use crate::running::Running;
use crate::subjects::sut::Sut;
use std::path::{Path, PathBuf};
use tare_machine::{Root, cgroup, route};
use tare_model::ceiling::{KnownBounds, KnownCeilings, Link};
use tare_model::machine::MachineFacts;
use tare_model::plan::Transport;
use tare_model::survey::Survey;
use tare_model::{CpuSet, Missing, Reading};

/// The file of ceilings in the state directory.
const FILE: &str = "ceilings.json";

/// Of a session with this server.
pub(crate) fn of_server(sut: &Sut, running: &Running<'_>) -> KnownBounds {
    let link = match sut.transport {
        Transport::Remote => link(sut, running.survey()).into(),
        Transport::Loopback | Transport::Namespace => {
            Reading::NotApplicable { not_applicable: "the server is on this machine".to_owned() }
        }
    };
    KnownBounds { ceilings: kept(running).into(), link }
}

/// Of a session with a program.
pub(crate) fn of_program(running: &Running<'_>) -> KnownBounds {
    let link = Reading::NotApplicable { not_applicable: "a program runs on this machine".to_owned() };
    KnownBounds { ceilings: kept(running).into(), link }
}

fn kept(running: &Running<'_>) -> Result<KnownCeilings, Missing> {
    // A file that cannot be read is as none.
    let found = tare_store::ceiling::read(&path(running.state_dir()), &key(&running.facts)?);
    found.ok().flatten().ok_or_else(KnownBounds::no_ceilings)
}

/// Where ceilings are kept.
pub(crate) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE)
}

/// What ceilings hold for: a boot of a machine, this build, and the CPUs that this process may use.
///
/// # Errors
/// The boot has no id.
pub(crate) fn key(facts: &MachineFacts) -> Result<String, Missing> {
    let boot = facts.boot_id.clone().ok()?;
    let allowed = tare_sys::affinity::get(0).unwrap_or_default();
    let quota = cgroup::quota_cpus(&Root::live(), std::process::id());
    Ok(format!(
        "boot {boot}, {}, {} of {} CPUs ({}), quota {quota:?}, {}",
        facts.cpu_model.value().map_or("unknown processor", String::as_str),
        allowed.len(),
        facts.cpus.len(),
        CpuSet::from(allowed.as_slice()),
        own_program::build(Path::new("/proc/self/exe")),
    ))
}

/// Drivers of cards that only a guest has.
const OF_GUESTS: [&str; 4] = ["virtio_net", "vmxnet3", "hv_netvsc", "vif"];

/// The physical network card that packets to the server leave by, and its speed.
fn link(sut: &Sut, survey: &Survey) -> Result<Link, Missing> {
    // Of the connection that was answered: a name that is resolved again may lead elsewhere.
    let address = sut.address.ok_or_else(|| Missing::new("its address is not known"))?;
    let name = route::interface_to(&Root::live(), address)?;
    let interfaces = survey.network.interfaces.clone().ok()?;
    let found = interfaces.into_iter().find(|interface| interface.name == name);
    let found = found.ok_or_else(|| Missing::new(format!("{name} is not among the network interfaces")))?;
    // Virtual interfaces say speeds that bound nothing, and so do those that a hypervisor gives a guest.
    if found.driver.value().is_none_or(|driver| OF_GUESTS.contains(&driver.as_str())) {
        return Err(Missing::new(format!("{name} is no physical network card")));
    }
    found.speed_bits_per_s.ok().map(|bits_per_s| Link { interface: name, bits_per_s })
}
