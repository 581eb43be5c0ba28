//! What a hand-over between threads looks like in the accounting: an acceptor that hands connections to two loops, against
//! loops that accept for themselves.

use crate::support::{Tare, alone, free_port, number};

const SUT_WAKEUPS: &str = "/requests/sut_wakeups_per_request/sut";

/// Measures an architecture with two loops and two connections, which leave the loops time to fall asleep. `None` where
/// this machine does not let us count, and then the reason is reported.
fn sut_wakeups(architecture: &str, more: &[&str]) -> Option<f64> {
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_tare");
    let start = format!("exec {program} serve --listen 127.0.0.1:{port} --arch {architecture} --threads 2");
    let url = format!("http://127.0.0.1:{port}/plaintext");
    let mut arguments = vec!["run", "-q", "--json", "--no-levels", "--stacks=0", "--trials", "2", "-d", "1s"];
    arguments.extend(["-w", "300ms", "-c", "2"]);
    arguments.extend(more);
    arguments.extend(["--sut", &start, &url]);
    let (result, _) = Tare::new().json(&arguments);
    assert!(number(&result, "/requests/count") > 100.0);
    if result.pointer(SUT_WAKEUPS).is_none() {
        let reason = &result["requests"]["sut_wakeups_per_request"];
        assert!(reason["missing"].as_str().is_some_and(|why| !why.contains("observed")), "{reason}");
        println!("not counted here: {reason}");
        return None;
    }
    let hz = number(&result, "/accounting/sut/sut_wakeups_hz");
    let count = number(&result, SUT_WAKEUPS);
    assert_eq!(hz > 0.0, count > 0.0);
    println!("{architecture} {more:?}: {count:.3} wake-ups of other threads a request");
    Some(count)
}

#[test]
fn a_hand_over_for_each_request_wakes_another_sut_thread() {
    let _alone = alone();
    let each = ["--no-keepalive"];
    assert!(sut_wakeups("dispatch", &each).is_none_or(|count| count > 0.3));
    assert!(sut_wakeups("shared-nothing", &each).is_none_or(|count| count < 0.01));
}

#[test]
fn a_connection_that_stays_is_handed_over_once() {
    let _alone = alone();
    assert!(sut_wakeups("dispatch", &[]).is_none_or(|count| count < 0.01));
    assert!(sut_wakeups("shared-nothing", &[]).is_none_or(|count| count < 0.01));
}
