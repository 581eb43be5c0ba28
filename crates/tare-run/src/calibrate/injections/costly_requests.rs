//! A generator that has more to do for a request than the server.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "costly-requests",
    about: "requests that cost much to make",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let traffic = &mut scene.server.traffic;
    traffic.content.templates = true;
    traffic.content.headers = vec![("X-Digits".into(), "{{hex:1024}}".repeat(4))];
    Ok(())
}
