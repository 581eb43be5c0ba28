//! Trials that go on until enough is known, or time is up.

use crate::support::{Tare, alone, number};
use serde_json::Value;

/// What is asked for is soon known, or never.
#[test]
fn trials_end_once_enough_is_known_or_time_is_up() {
    let _alone = alone();
    let tare = Tare::new();
    let record = tare.state.path().join("p.tare").to_str().unwrap().to_string();
    let trials = |result: &Value| result["trials"].as_array().unwrap().len();
    let short = ["run", "-q", "--json", "--no-levels", "-c4", "-d", "300ms", "-w", "300ms", "-o", &record];
    // A rate that is given is there in any interference.
    let given = ["--rate", "2000", "--precision", "20%", "--budget", "12s"];
    let (easy, _) = tare.json(&[&short[..], &given].concat());
    let (stopping, reached) = (&easy["stopping"], number(&easy, "/stopping/reached"));
    assert_eq!(stopping["ended"], "precise", "{stopping:#}");
    let planned = number(&easy, "/stopping/planned");
    assert!(reached <= 0.2 && (8.0..planned).contains(&(trials(&easy) as f64)), "{stopping:#}");
    // The interval of gross is the one that holds for all checks.
    let [low, value, high] = ["/gross/ci95/0", "/gross/value", "/gross/ci95/1"].map(|of| number(&easy, of));
    assert!(((high - low) / 2.0 / value - reached).abs() < 1e-9 && low < value, "{:#}", easy["gross"]);
    assert!(number(&easy, "/stopping/detectable") > 0.0 && number(&easy, "/stopping/one_percent_s") > 0.0);
    // The file alone tells the same.
    let (shown, _) = tare.json(&["show", "--json", &record]);
    assert_eq!(shown["stopping"], easy["stopping"]);
    let text = String::from_utf8(tare.run(&["show", &record]).stdout).unwrap();
    assert!(text.contains("Precision") && text.contains("20 % was asked"), "{text}");

    let begun = std::time::Instant::now();
    let (never, _) = tare.json(&[&short[..], &["--precision", "0.001%", "--budget", "8s"]].concat());
    let took_s = begun.elapsed().as_secs_f64();
    assert_eq!(never["stopping"]["ended"], "budget", "{:#}", never["stopping"]);
    assert!(number(&never, "/stopping/reached") > 1e-5 && trials(&never) >= 8, "{:#}", never["stopping"]);
    // Starting and ending are beside it; a host may hold up the last trial.
    assert!((6.0..16.0).contains(&number(&never, "/stopping/elapsed_s")) && took_s < 60.0, "{took_s}");
}

#[test]
fn runs_of_a_program_end_once_enough_is_known_or_time_is_up() {
    let _alone = alone();
    let tare = Tare::new();
    let asked = |how: &[&str]| {
        tare.json(&[&["run", "-q", "--json"], how, &["-L", "t", "0.05,0.051", "--", "sleep", "{t}"]].concat())
            .0
    };
    let easy = asked(&["--precision", "100%", "--budget", "6s"]);
    let never = asked(&["--budget", "3s"]);
    for at in 0..2 {
        let [easy, never] = [&easy, &never].map(|result| &result["commands"][at]["stopping"]);
        assert_eq!(
            (&easy["ended"], &never["ended"]),
            (&"precise".into(), &"budget".into()),
            "{easy} {never}"
        );
        assert!(easy["trials"].as_u64() < never["trials"].as_u64(), "{easy} {never}");
        let elapsed_s = never["elapsed_s"].as_f64().unwrap();
        // They are interleaved in all of it, and a run is no longer begun that would end after it.
        assert!((1.2..6.0).contains(&elapsed_s) && never["budget_s"] == 3.0, "{never}");
    }
}
