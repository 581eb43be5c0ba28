//! One of several loops has all the work.

use super::table;
use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "hot-thread",
    about: "two loops, one of which gets all requests that are dear",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let server = &mut scene.server;
    server.threads(2, &[ground.place.sut_cpu, ground.place.load_cpu]);
    // Connections are dealt out in turn, and each has one request: so every second request is of the same loop.
    server.option("--arch", "dispatch");
    let (path, table) = table("ns", [1_000_000, 1000])?;
    let traffic = &mut server.traffic;
    (traffic.keep_alive, traffic.connections) = (false, 8);
    (traffic.content.templates, traffic.content.csv_file) = (true, Some(path));
    server.path = "/spin?ns={{csv:ns}}".into();
    scene.hold(table);
    Ok(())
}
