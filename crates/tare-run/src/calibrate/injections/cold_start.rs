//! A server that gets faster and faster, as with caches that fill.

use super::{Ground, Injection, LabError, Need, Scene};
use crate::calibrate::props::{many_short_trials, table};

pub(super) static INJECTION: Injection = Injection {
    name: "cold-start",
    about: "a server that gets faster all along",
    needs: &[Need::Cpus(2)],
    put_up,
};

/// What a request costs at first and in the end, over so many requests; then it stays.
const FROM_NS: u64 = 150_000;
const TO_NS: u64 = 20_000;
const REQUESTS: u64 = 50_000;
const AFTER: usize = 150_000;

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let falling = (0..REQUESTS).map(|request| FROM_NS - (FROM_NS - TO_NS) * request / REQUESTS);
    let (path, table) = table("ns", falling.chain(std::iter::repeat_n(TO_NS, AFTER)))?;
    let server = &mut scene.server;
    (server.traffic.content.templates, server.traffic.content.csv_file) = (true, Some(path));
    server.path = "/spin?ns={{csv:ns}}".into();
    many_short_trials(scene);
    scene.hold(table);
    Ok(())
}
