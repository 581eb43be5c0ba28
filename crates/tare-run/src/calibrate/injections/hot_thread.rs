//! One of several loops has all the work.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::table;

pub(super) static INJECTION: Injection = Injection {
    name: "hot-thread",
    about: "two loops, one of which gets all requests that cost much",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let server = &mut scene.server;
    server.threads(2, &[ground.place.sut_cpu, ground.place.load_cpu]);
    // Connections go to the loops alternately, and each has one request: so every second request is of the same loop.
    server.option("--arch", "dispatch");
    let (path, table) = table("ns", [1_000_000, 1000])?;
    let traffic = &mut server.traffic;
    (traffic.keep_alive, traffic.connections) = (false, 8);
    (traffic.content.templates, traffic.content.csv_file) = (true, Some(path));
    server.path = "/spin?ns={{csv:ns}}".into();
    scene.hold(table);
    Ok(())
}
