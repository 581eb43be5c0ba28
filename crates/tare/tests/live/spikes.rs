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
        let short =
            ["run", "--json", "-q", "--no-levels", "--stacks=0", "-w", "300ms", "--trials", "2", "-d", "8s"];
        let (result, _) = Tare::new().json(&[&short[..], &[&url]].concat());
        over.store(true, Ordering::Relaxed);
        println!("{:#}", result["spikes"]["moved"]);
        result
    })
}

/// Whoever else uses the machine makes spikes too, and may move more with them: which is named first is tested on records.
#[test]
fn a_quota_in_bursts_is_named() {
    let _alone = alone();
    let server = Server::nginx();
    let quota = Quota::of_30_percent();
    quota.set(None);
    quota.hold(&server.pids, false);
    let result = measure_with_bursts(&server, |on| quota.set(on.then_some(0.05)));
    let spikes = &result["spikes"];
    let moved = spikes["moved"].as_array().unwrap();
    let throttled = |series: &Value| series["metric"].as_str().unwrap().starts_with("groups.throttled");
    assert!(number(spikes, "/spikes") >= 3.0 && moved.iter().any(throttled), "{spikes:#}");
    assert!(number(spikes, "/throttle_bursts/with_spike") >= 3.0, "{spikes:#}");
}
