//! The reference server under the built-in generator: as deep as `tare run` drives it, and with a connection for each request.

use super::kind::{Kind, Opened};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_load::{CONNECTIONS_DEFAULT, Generator, LoadError, LoadSpec, Workers};
use tare_model::Missing;

/// Load before anything is counted.
const SETTLE: Duration = Duration::from_millis(20);
/// A wait looks so often whether the user has had enough.
const POLL: Duration = Duration::from_millis(10);

pub(super) fn kinds(_: usize) -> Vec<Kind> {
    let of = |name: &'static str, about: String, pipeline: u32, keep_alive: bool| {
        Kind::opened(name, "req/s", about, move |ground| {
            let reference = ground.reference()?;
            let spec = LoadSpec {
                connections: CONNECTIONS_DEFAULT,
                pipeline,
                keep_alive,
                workers: Workers {
                    threads: ground.placement.load_cpus.len().max(1) as u32,
                    cpus: ground.placement.load_cpus.clone(),
                    busy_poll: ground.may_poll,
                    ..Workers::default()
                },
                ..LoadSpec::new(reference.target.clone())
            };
            let interrupt = Arc::clone(&ground.interrupt);
            let sample = move |ns: u64| {
                // The samples own a share of it: it runs for as long as there are any.
                reference.is_running()?;
                rate_hz(&spec, Duration::from_nanos(ns), &interrupt)
            };
            Ok(Opened { sample: Box::new(sample), note: String::new() })
        })
    };
    let deep = |name, depth: u32| {
        of(
            name,
            format!("the reference server, {CONNECTIONS_DEFAULT} connections, {depth} in flight on each"),
            depth,
            true,
        )
    };
    vec![
        of(
            "loopback-connect",
            format!("the reference server, a connection for each request, {CONNECTIONS_DEFAULT} at a time"),
            1,
            false,
        ),
        deep("reference-depth-1", 1),
        deep("reference-depth-16", 16),
    ]
}

fn rate_hz(spec: &LoadSpec, duration: Duration, interrupt: &AtomicBool) -> Result<f64, Missing> {
    let failed = |error: LoadError| Missing::new(format!("the load generator: {error}"));
    let mut generator = Generator::start_unless(spec, interrupt).map_err(failed)?;
    wait(SETTLE, interrupt);
    generator.cut();
    wait(duration, interrupt);
    let sample = generator.cut();
    generator.stop().map_err(failed)?;
    let answers = sample.requests.ok()?;
    match answers {
        0 => Err(Missing::new("the reference server answered nothing")),
        answers => Ok(answers as f64 * 1e9 / sample.elapsed_ns.max(1) as f64),
    }
}

fn wait(duration: Duration, interrupt: &AtomicBool) {
    let end = Instant::now() + duration;
    while !interrupt.load(Ordering::Relaxed) {
        match end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return,
            left => std::thread::sleep(left.min(POLL)),
        }
    }
}
