//! Where a load goes: to another address than its URL's, or where redirects lead.

use super::support::{Reply, Server, hello, requests, sample, spec, whole};
use std::time::Duration;
use tare_load::{LoadError, LoadSpec, Target, preflight};

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn it_connects_to_another_address_and_asks_for_the_url() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let server = Server::start_at(address.parse().unwrap(), |_, request| {
            let request = String::from_utf8_lossy(request);
            assert!(request.starts_with("GET /x HTTP/1.1\r\nHost: shop.test:81\r\n"), "{request}");
            hello()
        });
        let mut spec = spec("http://shop.test:81/x");
        spec.route.connect_to = Some(server.address.to_string().parse().unwrap());
        assert_eq!(preflight(&spec, PATIENCE).unwrap().peer_addr, Some(server.address));
        assert_eq!(sample(&spec, 50, 0).errors.len(), 0);
    }
}

/// Answers `/N` with a redirect to what the script says, and all else with hello.
fn redirecting(script: fn(u64) -> (u16, String)) -> Server {
    Server::start(move |_, request| {
        let path = String::from_utf8_lossy(request).split(' ').nth(1).unwrap_or_default().to_owned();
        match path.strip_prefix('/').and_then(|number| number.parse().ok()) {
            None => hello(),
            Some(number) => {
                let (status, location) = script(number);
                let head = format!("HTTP/1.1 {status} Over There\r\nContent-Length: 0\r\n{location}\r\n\r\n");
                // Either way another connection can be needed for the next one.
                if number % 2 == 0 { Reply::Keep(head.into()) } else { Reply::Close(head.into()) }
            }
        }
    })
}

fn following(server: &Server, path: &str) -> LoadSpec {
    let mut spec = spec(&format!("http://{}{path}", server.address));
    spec.route.follow = true;
    spec
}

#[test]
fn redirects_on_the_same_host_are_followed_before_the_load() {
    let server = redirecting(|number| match number {
        0 => (302, "Location: /end?x=1#part".to_owned()),
        n => (301, format!("location: ./{}", n - 1)),
    });
    for (path, redirects) in [("/end?x=1", 0), ("/0", 1), ("/9", 10)] {
        let found = preflight(&following(&server, path), PATIENCE).unwrap();
        let end = Target::parse(&format!("http://{}/end?x=1", server.address)).unwrap();
        assert_eq!((found.redirects, found.status, &found.target), (redirects, 200, &end), "{path}");
        let before = server.requests();
        let load = LoadSpec { requests_max: Some(20), ..spec(&found.target.to_string()) };
        assert_eq!((requests(&whole(&load)), server.requests() - before), (20, 20), "the load has none");
    }
    let mut unfollowed = following(&server, "/3");
    unfollowed.route.follow = false;
    assert_eq!(preflight(&unfollowed, PATIENCE).unwrap().status, 301);
    let error = preflight(&following(&server, "/10"), PATIENCE).unwrap_err();
    assert!(error.to_string().contains("more than 10 redirects"), "{error}");
}

#[test]
fn what_leads_elsewhere_is_not_followed() {
    let server = redirecting(|number| match number {
        0 => (302, "Location: http://other.test/x".to_owned()),
        1 => (307, "Location: //127.0.0.2/".to_owned()),
        2 => (301, "Location: ftp://h/".to_owned()),
        3 => (303, "Location: /end".to_owned()),
        4 => (304, "Location: /end".to_owned()),
        5 => (302, "X: y".to_owned()),
        _ => (308, "Location: http://127.0.0.1:1/".to_owned()),
    });
    let ask = |number: u32, change: fn(&mut LoadSpec)| {
        let mut spec = following(&server, &format!("/{number}"));
        change(&mut spec);
        preflight(&spec, PATIENCE)
    };
    for (number, change, words) in [
        (0, (|_| {}) as fn(&mut LoadSpec), "to http://other.test/x: redirect to another server"),
        (1, |_| {}, "to //127.0.0.2/: redirect to another server"),
        (2, |_| {}, "unknown scheme"),
        (3, |spec| spec.content.method = "POST".to_owned(), "after 303 a POST goes on as GET"),
        (6, |spec| spec.route.connect_to = Some(spec.route.target.at().clone()), "another port"),
    ] {
        let error = ask(number, change).unwrap_err();
        assert!(matches!(error, LoadError::Redirect { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(ask(4, |_| {}).unwrap().status, 304, "no redirect");
    assert_eq!(ask(5, |_| {}).unwrap().status, 302, "it leads nowhere");
    assert!(matches!(ask(6, |_| {}), Err(LoadError::NoConnection { .. })), "followed");
}
