//! Server and generator in each other's way: the generator goes to CPUs that are not the server's.

use super::{Change, Ground, Intervention, Lever};
use std::collections::BTreeSet;
use tare_model::Missing;

/// The two had one CPU where they now have two, and waking each other across them costs what it did not before.
pub(super) static INTERVENTION: Intervention =
    Intervention { name: "generator-placement", floor: 0.1, prepare };

fn prepare<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let placement = ground.placement;
    let of_server: BTreeSet<u32> = placement.sut_cpus.iter().copied().collect();
    let all = ground.topology.cpus.iter().map(|place| place.cpu);
    let free: Vec<u32> =
        all.filter(|cpu| !of_server.contains(cpu)).take(placement.load_cpus.len().max(1)).collect();
    if of_server.is_empty() || free.is_empty() {
        return Err(Missing::with_remedy(
            "there is no CPU that is not the server's",
            "hold the server on fewer CPUs (--sut-cpus)",
        ));
    }
    let together =
        |load: &[u32]| load.iter().copied().chain(of_server.iter().copied()).collect::<BTreeSet<_>>().len();
    let mut spec = ground.spec.clone();
    spec.workers.cpus.clone_from(&free);
    Ok(Change {
        what: format!(
            "CPUs of server and generator together (the generator on {})",
            tare_model::CpuSet::from(free.as_slice())
        ),
        unit: "CPUs",
        before: together(&placement.load_cpus) as f64,
        changed: together(&free) as f64,
        by: Lever::Load(Box::new(spec)),
    })
}
