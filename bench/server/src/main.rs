//! Weighs HTTP servers against the floor: server CPU time per request, interleaved in random order.
//!
//! `bench-server [--rounds N] [--seconds S] [--depth D] [--connections C] [NAME…]`; without names all that are
//! there. The servers run on CPU 0, the load on CPU 1.

mod servers;
mod statistics;

use std::time::Duration;

use servers::Running;
use statistics::{Interval, median_interval};
use tare_load::{Generator, LoadSpec, Target};

struct Options {
    rounds: usize,
    round: Duration,
    depth: u32,
    connections: u32,
    names: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        rounds: 30,
        round: Duration::from_millis(400),
        depth: 1,
        connections: 64,
        names: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().and_then(|w| w.parse::<f64>().ok()).ok_or(format!("{word} needs a number"));
        match word.as_str() {
            "--rounds" => options.rounds = value()? as usize,
            "--seconds" => options.round = Duration::from_secs_f64(value()?),
            "--depth" => options.depth = value()? as u32,
            "--connections" => options.connections = value()? as u32,
            name if name.starts_with('-') => return Err(format!("unknown option {name}")),
            name => options.names.push(name.to_owned()),
        }
    }
    Ok(options)
}

/// What one round of one server showed.
struct Round {
    cpu_ns_per_request: f64,
    requests_per_s: f64,
    p50_ns: f64,
    p99_ns: f64,
}

fn weigh(server: &Running, options: &Options) -> Result<Round, String> {
    let url = format!("http://127.0.0.1:{}/plaintext", server.port);
    let mut spec = LoadSpec::new(Target::parse(&url).map_err(|e| e.to_string())?);
    spec.connections = options.connections;
    spec.pipeline = options.depth;
    spec.cpus = vec![1];
    let mut generator = Generator::start(&spec).map_err(|e| e.to_string())?;
    std::thread::sleep(Duration::from_millis(100));
    let cpu_before = server.cpu_ns();
    generator.cut();
    std::thread::sleep(options.round);
    let cpu_after = server.cpu_ns();
    let sample = generator.cut();
    generator.stop().map_err(|e| e.to_string())?;
    let requests = sample.requests.value().copied().unwrap_or(0) as f64;
    if requests == 0.0 || !sample.errors.is_empty() {
        return Err(format!("{}: {requests} requests, errors {:?}", server.name, sample.errors));
    }
    let quantile = |q| sample.latency.value().and_then(|l| l.quantile_ns(q)).unwrap_or(0) as f64;
    Ok(Round {
        cpu_ns_per_request: (cpu_after - cpu_before) / requests,
        requests_per_s: requests / (sample.elapsed_ns as f64 / 1e9),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
    })
}

fn main() -> Result<(), String> {
    let options = options()?;
    let running = servers::start(&options.names)?;
    let mut rounds: Vec<Vec<Round>> = running.iter().map(|_| Vec::new()).collect();
    let mut random = statistics::Random::new();
    for _ in 0..options.rounds {
        for i in random.order(running.len()) {
            rounds[i].push(weigh(&running[i], &options)?);
        }
    }
    println!(
        "depth {}, {} connections, {} rounds of {:?}; server CPU µs per request",
        options.depth, options.connections, options.rounds, options.round
    );
    println!(
        "| server | µs | 95 % | / floor | 95 % | req/s | p50 µs | p99 µs | 95 % |\n|---|---|---|---|---|---|---|---|---|"
    );
    let floor = running.iter().position(|r| r.name == "floor-epoll");
    for (server, of) in running.iter().zip(&rounds) {
        let cost = interval(of, |r| r.cpu_ns_per_request / 1e3);
        let ratio = floor.map(|f| {
            let pairs: Vec<f64> =
                of.iter().zip(&rounds[f]).map(|(a, b)| a.cpu_ns_per_request / b.cpu_ns_per_request).collect();
            median_interval(pairs)
        });
        let ratio = ratio.map_or(("-".into(), "-".into()), |r| {
            (format!("{:.3}", r.median), format!("{:.3}–{:.3}", r.low, r.high))
        });
        let p99 = interval(of, |r| r.p99_ns / 1e3);
        println!(
            "| {} | {:.3} | {:.3}–{:.3} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0}–{:.0} |",
            server.name,
            cost.median,
            cost.low,
            cost.high,
            ratio.0,
            ratio.1,
            interval(of, |r| r.requests_per_s).median,
            interval(of, |r| r.p50_ns / 1e3).median,
            p99.median,
            p99.low,
            p99.high,
        );
    }
    Ok(())
}

fn interval(rounds: &[Round], of: impl Fn(&Round) -> f64) -> Interval {
    median_interval(rounds.iter().map(of).collect())
}
