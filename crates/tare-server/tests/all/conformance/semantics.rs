//! Methods, statuses, connections: RFC 9112 section 9; RFC 9110 sections 6, 7.6, 9 and 15.

use super::row::{Row, closes, stays};
use super::served::run;

pub fn rows() -> Vec<Row> {
    [methods(), connections(), pipelining()].into_iter().flatten().collect()
}

fn methods() -> Vec<Row> {
    vec![
        stays("9110 9.3.1", "GET", "GET /method HTTP/1.1⏎Host: h⏎⏎", &["200 GET"]),
        stays(
            "9110 9.3.2",
            "HEAD: the length of the body and not the body",
            "HEAD /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 -"],
        ),
        stays(
            "9110 9.3.2",
            "HEAD of what is not there has no body either",
            "HEAD /no HTTP/1.1⏎Host: h⏎⏎",
            &["404 -"],
        ),
        stays("9110 9.3.3", "POST", "POST /method HTTP/1.1⏎Host: h⏎⏎", &["200 POST"]),
        stays("9110 9.3.4", "PUT", "PUT /method HTTP/1.1⏎Host: h⏎⏎", &["200 PUT"]),
        stays("9110 9.3.5", "DELETE", "DELETE /method HTTP/1.1⏎Host: h⏎⏎", &["200 DELETE"]),
        stays(
            "9110 9.3.7",
            "OPTIONS of a route without it says what is allowed",
            "OPTIONS /a HTTP/1.1⏎Host: h⏎⏎",
            &["204 "],
        ),
        stays(
            "9110 9.3.7",
            "OPTIONS of a route that has it",
            "OPTIONS /method HTTP/1.1⏎Host: h⏎⏎",
            &["200 OPTIONS"],
        ),
        stays("9110 9.3.8", "TRACE is not allowed", "TRACE /a HTTP/1.1⏎Host: h⏎⏎", &["405 "]),
        stays(
            "9110 15.5.6",
            "a method that the route does not have",
            "POST /a HTTP/1.1⏎Host: h⏎⏎",
            &["405 "],
        ),
        stays("9110 15.5.5", "a path that is not there", "GET /no HTTP/1.1⏎Host: h⏎⏎", &["404 Not Found"]),
        stays("9110 15.3.5", "204 has no body", "GET /empty HTTP/1.1⏎Host: h⏎⏎", &["204 "]),
        stays("9110 15.4.5", "304 has no body", "GET /same HTTP/1.1⏎Host: h⏎⏎", &["304 "]),
        closes("9110 15.6.1", "a handler that fails is a 500", "GET /panic HTTP/1.1⏎Host: h⏎⏎", &["500"]),
    ]
}

fn connections() -> Vec<Row> {
    vec![
        stays("9112 9.3", "HTTP/1.1 stays by itself", "GET /a HTTP/1.1⏎Host: h⏎⏎", &["200 A"]),
        stays(
            "9112 9.3",
            "keep-alive in HTTP/1.1 changes nothing",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: keep-alive⏎⏎",
            &["200 A"],
        ),
        closes("9112 9.3", "HTTP/1.0 closes by itself", "GET /a HTTP/1.0⏎Host: h⏎⏎", &["200 A"]),
        stays(
            "9112 9.3",
            "HTTP/1.0 stays with keep-alive",
            "GET /a HTTP/1.0⏎Connection: keep-alive⏎⏎",
            &["200 A"],
        ),
        closes("9112 9.6", "close closes", "GET /a HTTP/1.1⏎Host: h⏎Connection: close⏎⏎", &["200 A"]),
        closes(
            "9110 7.6.1",
            "connection options are case-insensitive",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: CLOSE⏎⏎",
            &["200 A"],
        ),
        closes(
            "9110 7.6.1",
            "close in a list",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: x, close ,y⏎⏎",
            &["200 A"],
        ),
        closes(
            "9110 7.6.1",
            "close in a second field",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: x⏎Connection: close⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.3",
            "close outweighs keep-alive",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: keep-alive, close⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.3",
            "also where it comes first",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: close, keep-alive⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.3",
            "also in fields of their own",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: close⏎Connection: keep-alive⏎⏎",
            &["200 A"],
        ),
        closes("9112 9.3", "close closes in HTTP/1.0", "GET /a HTTP/1.0⏎Connection: close⏎⏎", &["200 A"]),
        closes(
            "9112 9.3",
            "and outweighs keep-alive there",
            "GET /a HTTP/1.0⏎Connection: Keep-Alive, Close⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.3",
            "there in fields of their own as well",
            "GET /a HTTP/1.0⏎connection: keep-alive⏎CONNECTION: close⏎⏎",
            &["200 A"],
        ),
        stays(
            "9112 9.3",
            "keep-alive of HTTP/1.0 in a list",
            "GET /a HTTP/1.0⏎Connection: x ,KEEP-ALIVE⏎⏎",
            &["200 A"],
        ),
        stays(
            "9112 9.3",
            "keep-alive of HTTP/1.0 in a second field",
            "GET /a HTTP/1.0⏎Connection: x⏎Connection: keep-alive⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.3",
            "an option that only looks like keep-alive",
            "GET /a HTTP/1.0⏎Connection: keep-alived, \"keep-alive\"⏎⏎",
            &["200 A"],
        ),
        closes(
            "9110 5.6.1",
            "empty elements among connection options",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: ,\t, close,⏎⏎",
            &["200 A"],
        ),
        stays(
            "9110 7.6.1",
            "an unknown option is ignored",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: closed⏎⏎",
            &["200 A"],
        ),
        stays(
            "9110 7.8",
            "Upgrade may be ignored",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: upgrade⏎Upgrade: h2c⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.6",
            "nothing is read after close",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: close⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 A"],
        ),
        closes(
            "9112 9.6",
            "nothing is read after a refusal",
            "GET /a HTTP/1.1⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["400"],
        ),
        closes(
            "9112 9.6",
            "close after a body",
            "POST /echo HTTP/1.1⏎Host: h⏎Connection: close⏎Content-Length: 1⏎⏎a",
            &["200 a"],
        ),
    ]
}

fn pipelining() -> Vec<Row> {
    const TWO: &str = "GET /a HTTP/1.1⏎Host: h⏎⏎GET /method HTTP/1.1⏎Host: h⏎⏎";
    vec![
        stays("9112 9.3.2", "pipelined requests are answered in order", TWO, &["200 A", "200 GET"]),
        stays(
            "9112 9.3.2",
            "also after a body",
            "POST /echo HTTP/1.1⏎Host: h⏎Content-Length: 1⏎⏎xGET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 x", "200 A"],
        ),
        stays(
            "9112 9.3.2",
            "also after chunks",
            "POST /echo HTTP/1.1⏎Host: h⏎Transfer-Encoding: chunked⏎⏎1⏎x⏎0⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 x", "200 A"],
        ),
        stays(
            "9112 9.3.2",
            "also after HEAD",
            "HEAD /a HTTP/1.1⏎Host: h⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 -", "200 A"],
        ),
        stays(
            "9112 9.3.2",
            "also after an error of the route",
            "GET /no HTTP/1.1⏎Host: h⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["404", "200 A"],
        ),
        stays(
            "9112 2.2",
            "an empty line between requests is ignored",
            "GET /a HTTP/1.1⏎Host: h⏎⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 A", "200 A"],
        ),
        closes(
            "9112 11.2",
            "a smuggled request after a refused one is not run",
            "POST /echo HTTP/1.1⏎Host: h⏎Content-Length: 4⏎Transfer-Encoding: chunked⏎⏎0⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["400"],
        ),
    ]
}

fn text_of(request: &str) -> String {
    run(&[request.replace('⏎', "\r\n").as_bytes()]).2
}

#[test]
fn refusals_say_which_rule_was_broken() {
    let chunks = |body: &str| format!("POST /echo HTTP/1.1⏎Host: h⏎Transfer-Encoding: chunked⏎⏎{body}");
    for (request, why) in [
        ("GET /a HTTP/1.1⏎⏎".to_owned(), "Bad Request: bad Host: missing"),
        ("GET /a HTTP/1.1⏎Host: h%4⏎⏎".to_owned(), "Bad Request: bad Host: not a host and port"),
        ("GET /a HTTP/1.1⏎Host: h⏎X: a\rb⏎⏎".to_owned(), "Bad Request: malformed request head: field value"),
        ("GET /a HTTP/1.1\nHost: h⏎⏎".to_owned(), "Bad Request: line ended with a bare LF"),
        ("POST /echo HTTP/1.1⏎Host: h⏎Content-Length: x⏎⏎".to_owned(), "Bad Request: bad Content-Length"),
        (chunks("x⏎"), "Bad Request: malformed chunked body: chunk size is not a number"),
        (chunks("1;⏎a⏎"), "Bad Request: malformed chunked body: chunk extension breaks the grammar"),
        (chunks("1⏎ab⏎"), "Bad Request: malformed chunked body: chunk does not end where its size says"),
        (chunks("0⏎A⏎"), "Bad Request: malformed chunked body: trailer field breaks the grammar"),
        (chunks("41⏎"), "Content Too Large: body too large"),
        ("BREW /a HTTP/1.1⏎Host: h⏎⏎".to_owned(), "Not Implemented: method not implemented"),
    ] {
        let text = text_of(&request);
        assert!(text.ends_with(&format!("⏎⏎{why}").replace('⏎', "\r\n")), "{request}: {text}");
    }
}

#[test]
fn the_fields_of_answers_follow_the_rules() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let cases = [
        ("9110 6.6.1: Date", "GET /a HTTP/1.1⏎Host: h⏎⏎", date, true),
        ("9110 6.6.1: Date in errors", "GET /a HTTP/1.1⏎⏎", date, true),
        ("9110 8.6: Content-Length of HEAD", "HEAD /a HTTP/1.1⏎Host: h⏎⏎", "Content-Length: 1\r\n", true),
        ("9110 8.6: none in 204", "GET /empty HTTP/1.1⏎Host: h⏎⏎", "Content-Length", false),
        ("9110 15.3.6: no content in 205", "GET /reset HTTP/1.1⏎Host: h⏎⏎", "Content-Length: 0\r\n", true),
        ("9110 15.3.6: nor after it", "GET /reset HTTP/1.1⏎Host: h⏎⏎", "not to be sent", false),
        ("9110 8.6: none of our own in 304", "GET /same HTTP/1.1⏎Host: h⏎⏎", "Content-Length", false),
        ("9112 6.1: no Transfer-Encoding to HTTP/1.0", "GET /a HTTP/1.0⏎⏎", "Transfer-Encoding", false),
        ("9110 10.2.1: Allow in 405", "POST /a HTTP/1.1⏎Host: h⏎⏎", "Allow: GET, HEAD, OPTIONS\r\n", true),
        ("9110 9.3.7: Allow for OPTIONS", "OPTIONS * HTTP/1.1⏎Host: h⏎⏎", "Allow: GET, HEAD", true),
        (
            "9112 9.6: close is announced",
            "GET /a HTTP/1.1⏎Host: h⏎Connection: close⏎⏎",
            "Connection: close\r\n",
            true,
        ),
        ("9112 9.6: and in refusals", "GET /a HTTP/1.1⏎⏎", "Connection: close\r\n", true),
        (
            "9112 9.3: staying is announced to 1.0",
            "GET /a HTTP/1.0⏎Connection: keep-alive⏎⏎",
            "Connection: keep-alive",
            true,
        ),
        ("9112 9.3: and not to 1.1", "GET /a HTTP/1.1⏎Host: h⏎⏎", "Connection", false),
        ("9112 2.3: the answer's version is ours", "GET /a HTTP/1.0⏎⏎", "HTTP/1.1 200 OK\r\n", true),
        (
            "9110 15.2.1: 100 to who waits",
            "POST /echo HTTP/1.1⏎Host: h⏎Expect: 100-continue⏎Content-Length: 1⏎⏎",
            "HTTP/1.1 100 Continue\r\n\r\n",
            true,
        ),
        (
            "9110 10.1.1: none once the body came",
            "POST /echo HTTP/1.1⏎Host: h⏎Expect: 100-continue⏎Content-Length: 1⏎⏎a",
            "100 Continue",
            false,
        ),
        (
            "9110 15.2: none to HTTP/1.0",
            "POST /echo HTTP/1.0⏎Expect: 100-continue⏎Content-Length: 1⏎⏎",
            "100 Continue",
            false,
        ),
    ];
    for (rule, request, part, is_there) in cases {
        let text = text_of(request);
        assert_eq!(text.contains(part), is_there, "{rule}: {text}");
    }
}
