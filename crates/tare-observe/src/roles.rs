//! Which processes and threads are watched, and as what.

use crate::scene::Scene;
use crate::watch::LoadWatch;
use std::collections::BTreeSet;
use tare_model::observation::Role;

/// Every process whose threads are watched, and as what. Tare's own generator threads are distinguished later.
pub(crate) fn processes(scene: &Scene) -> Vec<(u32, Role)> {
    let family = |pids: &[u32]| scene.family(pids);
    let sut = family(&scene.watch.sut_pids);
    let mut found: Vec<(u32, Role)> = sut.iter().map(|&pid| (pid, Role::Sut)).collect();
    if let LoadWatch::Process(pids) = &scene.watch.load {
        let load = family(pids).into_iter().filter(|pid| !sut.contains(pid));
        found.extend(load.map(|pid| (pid, Role::Load)));
    }
    let known: BTreeSet<u32> =
        found.iter().map(|(pid, _)| *pid).chain(scene.watch.beside_pids.iter().copied()).collect();
    let called = scene.called.borrow();
    let downstream: BTreeSet<u32> = called.all().iter().flat_map(|program| &program.pids).copied().collect();
    found.extend(downstream.difference(&known).map(|pid| (*pid, Role::Downstream)));
    found.extend(scene.watch.beside_pids.iter().map(|&pid| (pid, Role::Other)));
    found.push((scene.own_pid, Role::Tare));
    found
}

/// Processes of the SUT, and those of whom else is never a program that it calls: the generator, a server that is loaded beside it, tare.
pub(crate) fn not_called(scene: &Scene) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let family = |pids: &[u32]| scene.family(pids);
    let mut others: BTreeSet<u32> = scene.watch.beside_pids.iter().copied().collect();
    if let LoadWatch::Process(pids) = &scene.watch.load {
        others.extend(family(pids));
    }
    others.insert(scene.own_pid);
    (family(&scene.watch.sut_pids).into_iter().collect(), others)
}

/// Threads of this process are tare's, but for those that make the load.
pub(crate) fn role_of_thread(scene: &Scene, tid: u32, role: Role) -> Role {
    match (&scene.watch.load, role) {
        (LoadWatch::Threads(tids), Role::Tare) if tids.contains(&tid) => Role::Load,
        _ => role,
    }
}
