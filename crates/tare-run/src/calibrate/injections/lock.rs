//! Threads that hold each other up by a mutex.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "lock",
    about: "four threads on two CPUs, each request 5 ms under one mutex",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let server = &mut scene.server;
    server.threads(4, &[ground.place.sut_cpu, ground.place.load_cpu]);
    server.traffic.connections = 32;
    server.path = "/lock?us=5000".into();
    Ok(())
}
