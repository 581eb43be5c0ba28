//! A handler that waits for another server.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "downstream",
    about: "a handler that waits 5 ms for another server",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let other = ground.server(ground.place.load_cpu)?;
    let server = &mut scene.server;
    server.option("--downstream", &other.answers_at()?.authority());
    server.traffic.connections = 4;
    server.path = "/downstream?us=5000".into();
    scene.hold(other);
    Ok(())
}
