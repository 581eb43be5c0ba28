//! Spikes of a real server's latency, made by bursts of a quota and of a neighbour: what made them is named.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test that cannot go on says so

mod support;

use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{Busy, Quota, Server, Tare, alone, number};

/// Weighs a server while something is switched on for a quarter of a second in every one and a half.
fn weigh_with_bursts(server: &Server, mut switch: impl FnMut(bool) + Send) -> Value {
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
        let (result, _) =
            Tare::new().json(&["run", "--json", "-q", "--no-levels", "--trials", "2", "-d", "8s", &url]);
        over.store(true, Ordering::Relaxed);
        println!("{:#}", result["spikes"]["moved"]);
        result
    })
}

/// The metrics that moved with the spikes, best first, and the first one's name.
fn moved(result: &Value) -> (Vec<String>, String) {
    let spikes = &result["spikes"];
    assert!(number(spikes, "/spikes") >= 3.0, "{spikes:#}");
    let moved = spikes["moved"].as_array().unwrap_or_else(|| panic!("{spikes:#}"));
    let metrics = moved.iter().map(|one| one["metric"].as_str().unwrap().to_owned()).collect();
    let first = moved.first().unwrap_or_else(|| panic!("nothing moved: {spikes:#}"));
    (metrics, first["series"].as_str().unwrap().to_owned())
}

#[test]
fn a_quota_in_bursts_is_named() {
    let _alone = alone();
    let server = Server::nginx();
    let quota = Quota::of_30_percent();
    quota.set(None);
    quota.hold(&server.pids, false);
    let result = weigh_with_bursts(&server, |on| quota.set(on.then_some(0.05)));
    let (metrics, _) = moved(&result);
    assert!(metrics[0].starts_with("groups.throttled"), "{metrics:?}");
    let bursts = &result["spikes"]["throttle_bursts"];
    assert!(number(bursts, "/with_spike") >= 3.0, "{bursts:#}");
}

#[test]
fn a_neighbour_in_bursts_is_named() {
    let _alone = alone();
    let server = Server::nginx();
    let neighbour = Busy::on(0).first_of_all();
    neighbour.pause(true);
    let result = weigh_with_bursts(&server, |on| neighbour.pause(!on));
    let (_, first) = moved(&result);
    assert_eq!(first, "others on the server's CPUs: on a CPU");
}
