//! `tare compare --set-b`: what is applied is put back, also after kill -9, and what cannot be is refused before anything is changed. Whether
//! a setting helps takes luck, and is not asserted (`bench/settings`).

use crate::support::{Tare, alone, eventually};
use std::process::Stdio;

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

fn now(file: &str) -> String {
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

#[test]
fn a_setting_is_put_back_and_what_cannot_be_is_refused() {
    let _alone = alone();
    let before = [SOMAXCONN, HUGE_PAGES].map(now);
    let other = (before[0].parse::<u64>().unwrap() + 1).to_string();
    let set = format!("somaxconn={other}");
    let tare = Tare::new();

    // More huge pages than there is memory; a setting that stands so; one that no machine has; several programs.
    let stands = format!("somaxconn={}", before[0]);
    for (set, wanted) in [
        ("hugepages=100000000", "available"),
        (stands.as_str(), "already: A and B would be the same"),
        ("somaxcon=1", "there is no setting 'somaxcon'"),
    ] {
        let output = tare.run(&["compare", "--set-b", set, "--", "true"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{set}: {said}");
        assert!(said.contains(wanted) && said.contains("hint"), "{set}: {said}");
        assert_eq!([SOMAXCONN, HUGE_PAGES].map(now), before, "{set}");
    }

    // Killed while it is applied: it stands, until the next start.
    let mut killed = tare
        .command()
        .args(["compare", "-q", "--budget", "60s", "--set-b", &set, "--", "sleep", "0.3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it is applied", || now(SOMAXCONN) == other);
    let refused = tare.run(&["compare", "--set-b", "somaxconn=7", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("are held by"), "{said}");
    eventually("it is applied again", || now(SOMAXCONN) == other);
    killed.kill().unwrap();
    killed.wait().unwrap();
    tare.run(&["recover"]);
    assert_eq!(now(SOMAXCONN), before[0]);

    let (result, code) = tare.json(&[
        "compare", "-q", "--json", "--budget", "1s", "--window", "100ms", "--set-b", &set, "--", "sleep",
        "0.02",
    ]);
    assert_eq!(code, 0, "{result:#}");
    let treated = &result["treatments"][0];
    assert_eq!((&treated["program"], &treated["settings"][0]["name"]), (&"B".into(), &"somaxconn".into()));
    assert_eq!(treated["settings"][0]["verified"]["in_use"], true, "{treated:#}");
    let words = treated["result"]["words"].as_str().unwrap_or("too few launches");
    assert!(
        ["helped", "hurt", "no difference above", "too few", "not known"]
            .iter()
            .any(|start| words.starts_with(start)),
        "{words}"
    );
    assert_eq!([SOMAXCONN, HUGE_PAGES].map(now), before);
}
