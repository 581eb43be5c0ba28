//! Locks of a Java virtual machine, whose threads sleep as those of an idle pool do.

use crate::support::{Server, Tare, alone, free_port};
use std::process::Command;

#[test]
fn a_monitor_that_requests_pass_one_by_one_is_named() {
    let _alone = alone();
    let port = free_port();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/Monitor.java");
    let mut command = Command::new("java");
    command.args(["-Dsun.net.httpserver.nodelay=true", source, &port.to_string()]);
    let server = Server::of(command, port);
    let measured = |path: &str| {
        let url = server.url(path);
        let arguments =
            ["run", "--json", "-c16", "-w1s", "-d1s", "--trials", "3", "--no-levels", "--no-reference", &url];
        let (result, code) = Tare::new().json(&arguments);
        assert_eq!(code, 0, "{result:#}");
        result
    };
    let locked = measured("/");
    assert_eq!(locked["bottleneck"], "lock-contended", "{:#}", locked["findings"]);
    // Two milliseconds each, one after the other: 500 a second at most, however fast the machine is.
    assert!(locked["gross"]["value"].as_f64().unwrap() < 510.0, "{:#}", locked["gross"]);
    let free = measured("/free");
    let findings = free["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["cause"] != "lock-contended"), "{findings:#?}");
}
