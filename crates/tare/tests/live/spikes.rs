//! Spikes of a real server's latency, made by bursts of a quota: what made them is named.

use crate::support::{Quota, Server, Tare, alone, number};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Measures a server while something is switched on for a quarter of a second in every one and a half.
fn measure_with_bursts(server: &Server, mut switch: impl FnMut(bool) + Send) -> Value {
    let over = AtomicBool::new(false);
    let url = server.url(server.good_path);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                switch(true);
                std::thread::sleep(Duration::from_millis(250));
                switch(false);
                std::thread::sleep(Duration::from_millis(1250));
            }
        });
        // Spikes are those of the trials: what the rate was before them does not matter.
        let short = ["run", "--json", "-q", "--no-levels", "-w", "300ms", "--trials", "2", "-d", "8s"];
        let (result, _) = Tare::new().json(&[&short[..], &[&url]].concat());
        over.store(true, Ordering::Relaxed);
        println!("{:#}", result["spikes"]["moved"]);
        result
    })
}

/// Who else uses the machine makes spikes too: a round whose own are drowned is made again, three at most.
fn undisturbed(round: impl Fn() -> Result<(), String>) {
    let said: Vec<String> = (0..3).map_while(|_| round().err()).collect();
    assert!(said.len() < 3, "{}", said.join("\n"));
}

/// The series that moved most with the spikes, as `key` has it.
fn first(result: &Value, key: &str) -> Result<String, String> {
    let spikes = &result["spikes"];
    let first = spikes["moved"].as_array().and_then(|moved| moved.first());
    let name = first.filter(|_| number(spikes, "/spikes") >= 3.0).and_then(|first| first[key].as_str());
    name.map(str::to_owned).ok_or_else(|| format!("{spikes:#}"))
}

#[test]
fn a_quota_in_bursts_is_named() {
    let _alone = alone();
    undisturbed(|| {
        let server = Server::nginx();
        let quota = Quota::of_30_percent();
        quota.set(None);
        quota.hold(&server.pids, false);
        let result = measure_with_bursts(&server, |on| quota.set(on.then_some(0.05)));
        let metric = first(&result, "metric")?;
        let bursts = &result["spikes"]["throttle_bursts"];
        let named = metric.starts_with("groups.throttled") && number(bursts, "/with_spike") >= 3.0;
        if named { Ok(()) } else { Err(format!("{metric}, {bursts:#}")) }
    });
}
