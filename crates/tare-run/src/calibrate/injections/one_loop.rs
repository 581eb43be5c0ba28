//! A single loop behind an acceptor that deals connections out.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "one-loop",
    about: "one loop behind an acceptor, two CPUs, a handler of 1 ms",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let server = &mut scene.server;
    server.threads(1, &[ground.place.sut_cpu, ground.place.load_cpu]);
    server.option("--arch", "dispatch");
    (server.traffic.keep_alive, server.traffic.connections) = (false, 64);
    // Long enough that the generator needs a few per cent of a CPU only.
    server.path = "/spin?ns=1000000".into();
    Ok(())
}
