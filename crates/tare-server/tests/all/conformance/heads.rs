//! Request line, target, fields: RFC 9112 sections 2, 3 and 5; RFC 9110 sections 2, 4 and 5.

use super::row::{Row, closes, stays};

pub fn rows() -> Vec<Row> {
    [message(), request_line(), target(), host(), fields(), limits()].into_iter().flatten().collect()
}

fn message() -> Vec<Row> {
    vec![
        stays(
            "9112 2.1",
            "a request is a start line, fields, an empty line",
            "GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 A"],
        ),
        stays(
            "9112 2.2",
            "an empty line before the request line is ignored",
            "⏎GET /a HTTP/1.1⏎Host: h⏎⏎",
            &["200 A"],
        ),
        stays("9112 2.2", "so are several", "⏎⏎⏎GET /a HTTP/1.1⏎Host: h⏎⏎", &["200 A"]),
        closes(
            "9112 2.2",
            "a bare LF after the request line is refused",
            "GET /a HTTP/1.1\nHost: h⏎⏎",
            &["400"],
        ),
        closes("9112 2.2", "a bare LF after a field is refused", "GET /a HTTP/1.1⏎Host: h\nX: y⏎⏎", &["400"]),
        closes("9112 2.2", "a bare LF as the empty line is refused", "GET /a HTTP/1.1⏎Host: h⏎\n", &["400"]),
        closes("9112 2.2", "a head of bare LFs is refused", "GET /a HTTP/1.1\nHost: h\n\n", &["400"]),
        closes(
            "9112 2.2",
            "a bare CR in the request line is invalid",
            "GET /a\r HTTP/1.1⏎Host: h⏎⏎",
            &["400"],
        ),
        closes(
            "9112 2.2",
            "a bare CR in a field value is invalid",
            "GET /a HTTP/1.1⏎Host: h⏎X: a\rb⏎⏎",
            &["400"],
        ),
        closes(
            "9112 2.2",
            "a bare CR in a field name is invalid",
            "GET /a HTTP/1.1⏎Host: h⏎X\rY: b⏎⏎",
            &["400"],
        ),
        closes("9112 2.2", "a bare CR before the request line", "\rGET /a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.2", "two CRs end no request line", "GET /a HTTP/1.1\r⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.2", "two CRs end no field", "GET /a HTTP/1.1⏎Host: h\r⏎⏎", &["400"]),
        closes("9112 2.2", "two CRs are no empty line", "GET /a HTTP/1.1⏎Host: h⏎\r⏎", &["400"]),
        closes("9112 2.2", "a CR alone ends no line", "GET /a HTTP/1.1\rHost: h⏎⏎", &["400"]),
        closes(
            "9112 2.2",
            "a bare CR in an otherwise empty value",
            "GET /a HTTP/1.1⏎Host: h⏎X: \r\r⏎⏎",
            &["400"],
        ),
        closes("9112 2.2", "a bare CR after the method", "GET\r/a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.2", "a bare CR in the version", "GET /a HTTP/\r1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.2", "a bare CR behind the version", "GET /a HTTP/1.1\rx⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.2", "a bare CR before a colon", "GET /a HTTP/1.1⏎Host\r: h⏎⏎", &["400"]),
        closes("9112 2.2", "a bare CR in Host", "GET /a HTTP/1.1⏎Host: h\ri⏎⏎", &["400"]),
        closes("9112 2.2", "a bare CR before a field", "GET /a HTTP/1.1⏎\rHost: h⏎⏎", &["400"]),
        closes("9112 2.2", "a bare CR as the empty line", "GET /a HTTP/1.1⏎Host: h⏎\rx⏎", &["400"]),
        closes(
            "9112 2.2",
            "a bare CR hides no length",
            "POST /echo HTTP/1.1⏎Host: h⏎X: \rContent-Length: 1⏎⏎",
            &["400"],
        ),
        closes("9112 2.2", "a bare LF before the request line", "\nGET /a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.2", "a bare LF in a field value", "GET /a HTTP/1.1⏎Host: h⏎X: a\nb⏎⏎", &["400"]),
        closes(
            "9112 2.2",
            "white space between start line and first field is refused",
            "GET /a HTTP/1.1⏎ Host: h⏎⏎",
            &["400"],
        ),
        closes("9112 2.2", "so is a tab there", "GET /a HTTP/1.1⏎\tHost: h⏎⏎", &["400"]),
        closes("9112 2.2", "what does not match the grammar is a 400", "\u{16}\u{3}\u{1}⏎⏎", &["400"]),
        closes("9112 2.2", "NUL in the request line is refused", "GET /\0a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        stays("9112 2.3", "a higher minor version is read as 1.1", "GET /a HTTP/1.2⏎Host: h⏎⏎", &["200 A"]),
        stays("9110 2.5", "HTTP/1.9 is read as 1.1", "GET /a HTTP/1.9⏎Host: h⏎⏎", &["200 A"]),
        closes("9112 2.3", "HTTP-name is case-sensitive", "GET /a http/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.3", "the version has one digit on each side", "GET /a HTTP/1.10⏎Host: h⏎⏎", &["400"]),
        closes("9112 2.3", "the version's digits are digits", "GET /a HTTP/1.x⏎Host: h⏎⏎", &["400"]),
        closes("9110 15.6.6", "HTTP/2.0 in text is not supported", "GET /a HTTP/2.0⏎Host: h⏎⏎", &["505"]),
        closes("9110 15.6.6", "HTTP/0.9 with a version is not supported", "GET /a HTTP/0.9⏎⏎", &["505"]),
        closes("9112 9.2", "the HTTP/2 preface is no request", "PRI * HTTP/2.0⏎⏎SM⏎⏎", &["505"]),
    ]
}

fn request_line() -> Vec<Row> {
    vec![
        closes("9112 3", "one space parts method and target", "GET  /a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "one space parts target and version", "GET /a  HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "a tab is no space", "GET\t/a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "nothing follows the version", "GET /a HTTP/1.1 ⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "nothing precedes the method", " GET /a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "the version is not left out", "GET /a⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "the target is not left out", "GET HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3", "the method is not left out", "/a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.1", "the method is a token", "G(ET /a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.1", "the method is case-sensitive", "get /a HTTP/1.1⏎Host: h⏎⏎", &["501"]),
        closes("9110 9.1", "an unknown method is not implemented", "BREW /a HTTP/1.1⏎Host: h⏎⏎", &["501"]),
        closes(
            "9110 9.3.6",
            "an origin server need not have CONNECT",
            "CONNECT h:80 HTTP/1.1⏎Host: h:80⏎⏎",
            &["501"],
        ),
    ]
}

fn target() -> Vec<Row> {
    vec![
        stays(
            "9112 3.2.1",
            "origin-form: path and query",
            "GET /target/x?y=1 HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target/x y=1 -"],
        ),
        stays(
            "9112 3.2.1",
            "an empty query is a query",
            "GET /target? HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target  -"],
        ),
        stays(
            "9112 3.2.1",
            "a second question mark belongs to the query",
            "GET /target?a?b HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target a?b -"],
        ),
        stays(
            "9112 3.2.1",
            "percent-encoding is passed on as it is",
            "GET /target/%2e%2E HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target/%2e%2E - -"],
        ),
        stays("9112 3.2.1", "a path may begin with two slashes", "GET //target HTTP/1.1⏎Host: h⏎⏎", &["404"]),
        closes(
            "9112 3.2.1",
            "an origin-form path begins with a slash",
            "GET target HTTP/1.1⏎Host: h⏎⏎",
            &["400"],
        ),
        closes("9112 3.2", "a fragment is never sent", "GET /a#b HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2", "no white space in a target", "GET /a b HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2", "no quote in a target", "GET /a\"b HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2", "no angle bracket in a target", "GET /a<b HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2", "a target is ASCII", "GET /é HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2", "no DEL in a target", "GET /\u{7f} HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        stays(
            "9112 3.2.2",
            "absolute-form is accepted",
            "GET http://o/target/x?y HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target/x y o"],
        ),
        stays(
            "9112 3.2.2",
            "the host of an absolute-form target counts",
            "GET http://o:81/target HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target - o:81"],
        ),
        stays(
            "9110 4.2.1",
            "the scheme is case-insensitive",
            "GET HTTP://o/target HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target - o"],
        ),
        stays(
            "9110 4.2.2",
            "https is a scheme of ours too",
            "GET https://o/target HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target - o"],
        ),
        stays("9110 4.2.3", "an empty path is the root", "GET http://o HTTP/1.1⏎Host: h⏎⏎", &["404"]),
        stays("9110 4.2.3", "also before a query", "GET http://o?q HTTP/1.1⏎Host: h⏎⏎", &["404"]),
        closes("9110 4.2.1", "an empty host is invalid", "GET http:///a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes(
            "9110 4.2.1",
            "a port without a host is invalid",
            "GET http://:80/a HTTP/1.1⏎Host: h⏎⏎",
            &["400"],
        ),
        closes(
            "9110 4.2.4",
            "user information in the authority is an error",
            "GET http://u:p@o/a HTTP/1.1⏎Host: h⏎⏎",
            &["400"],
        ),
        closes("9110 7.4", "another scheme is not for us", "GET ftp://o/a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2.2", "absolute-form needs Host as well", "GET http://o/target HTTP/1.1⏎⏎", &["400"]),
        closes("9112 3.2.3", "authority-form is for CONNECT alone", "GET h:80 HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        stays("9112 3.2.4", "asterisk-form is for OPTIONS", "OPTIONS * HTTP/1.1⏎Host: h⏎⏎", &["204 "]),
        stays(
            "9112 3.2.4",
            "OPTIONS with an absolute URI and no path is asterisk-form",
            "OPTIONS http://o HTTP/1.1⏎Host: h⏎⏎",
            &["204 "],
        ),
        closes("9112 3.2.4", "and for nothing else", "GET * HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2.4", "an asterisk is alone", "OPTIONS *x HTTP/1.1⏎Host: h⏎⏎", &["400"]),
    ]
}

fn host() -> Vec<Row> {
    vec![
        closes("9112 3.2", "HTTP/1.1 needs Host", "GET /a HTTP/1.1⏎⏎", &["400"]),
        closes("9112 3.2", "so does a higher minor version", "GET /a HTTP/1.3⏎⏎", &["400"]),
        closes("9112 3.2", "HTTP/1.0 does not", "GET /a HTTP/1.0⏎⏎", &["200 A"]),
        closes("9112 3.2", "two Hosts are refused", "GET /a HTTP/1.1⏎Host: h⏎Host: i⏎⏎", &["400"]),
        closes("9112 3.2", "also the same one twice", "GET /a HTTP/1.1⏎Host: h⏎Host: h⏎⏎", &["400"]),
        closes("9112 3.2", "in HTTP/1.0 as well", "GET /a HTTP/1.0⏎Host: h⏎hOST: h⏎⏎", &["400"]),
        closes("9112 3.2", "a Host with a space is invalid", "GET /a HTTP/1.1⏎Host: h i⏎⏎", &["400"]),
        closes("9112 3.2", "a Host with a path is invalid", "GET /a HTTP/1.1⏎Host: h/a⏎⏎", &["400"]),
        closes("9112 3.2", "a Host with a user is invalid", "GET /a HTTP/1.1⏎Host: u@h⏎⏎", &["400"]),
        closes(
            "9112 3.2",
            "a list of Hosts is invalid in its port",
            "GET /a HTTP/1.1⏎Host: h:1,i:2⏎⏎",
            &["400"],
        ),
        stays(
            "9110 7.2",
            "a byte of a Host may be encoded",
            "GET /a HTTP/1.1⏎Host: h%41%7e:80⏎⏎",
            &["200 A"],
        ),
        closes("9110 7.2", "with two hexadecimal digits", "GET /a HTTP/1.1⏎Host: h%4⏎⏎", &["400"]),
        closes("9110 7.2", "that are such digits", "GET /a HTTP/1.1⏎Host: h%zz⏎⏎", &["400"]),
        closes("9110 7.2", "a percent sign alone is invalid", "GET /a HTTP/1.1⏎Host: %⏎⏎", &["400"]),
        closes(
            "9110 7.2",
            "both digits are there before the port",
            "GET /a HTTP/1.1⏎Host: h%4:80⏎⏎",
            &["400"],
        ),
        closes("9110 7.2", "every one of several is encoded", "GET /a HTTP/1.1⏎Host: %41%4g⏎⏎", &["400"]),
        stays(
            "9110 7.2",
            "a Host may be encoded as a whole",
            "GET /a HTTP/1.1⏎Host: %68%C3%a9⏎⏎",
            &["200 A"],
        ),
        closes("9110 7.2", "an encoded port is none", "GET /a HTTP/1.1⏎Host: h:%380⏎⏎", &["400"]),
        closes("9110 7.2", "an address has no zone", "GET /a HTTP/1.1⏎Host: [fe80::1%25eth0]⏎⏎", &["400"]),
        closes("9110 7.2", "nor one in plain text", "GET /a HTTP/1.1⏎Host: [fe80::1%eth0]:80⏎⏎", &["400"]),
        closes("9110 7.2", "nothing in brackets is encoded", "GET /a HTTP/1.1⏎Host: [%3A:1]⏎⏎", &["400"]),
        closes("9110 7.2", "also in HTTP/1.0", "GET /a HTTP/1.0⏎Host: h%4⏎⏎", &["400"]),
        stays(
            "9110 7.2",
            "also in an absolute target",
            "GET http://h%41:80/target HTTP/1.1⏎Host: h⏎⏎",
            &["200 /target - h%41:80"],
        ),
        closes("9110 7.2", "there with digits too", "GET http://h%4/a HTTP/1.1⏎Host: h⏎⏎", &["400"]),
        closes("9110 7.2", "the port is a number", "GET /a HTTP/1.1⏎Host: h:x⏎⏎", &["400"]),
        closes("9110 7.2", "there is one port", "GET /a HTTP/1.1⏎Host: h:1:2⏎⏎", &["400"]),
        stays("9110 7.2", "a port may be given", "GET /a HTTP/1.1⏎Host: h:8080⏎⏎", &["200 A"]),
        stays("9110 7.2", "or be left empty", "GET /a HTTP/1.1⏎Host: h:⏎⏎", &["200 A"]),
        stays(
            "9110 7.2",
            "Host may be empty where the URI has no authority",
            "GET /a HTTP/1.1⏎Host:⏎⏎",
            &["200 A"],
        ),
        stays("9110 7.2", "IPv6 literals stand in brackets", "GET /a HTTP/1.1⏎Host: [::1]:80⏎⏎", &["200 A"]),
        closes("9110 7.2", "brackets are closed", "GET /a HTTP/1.1⏎Host: [::1⏎⏎", &["400"]),
        closes("9110 7.2", "and hold an address", "GET /a HTTP/1.1⏎Host: []⏎⏎", &["400"]),
        stays("9110 7.2", "or of a version to come", "GET /a HTTP/1.1⏎Host: [v1.a:b]:80⏎⏎", &["200 A"]),
        closes("9110 7.2", "which has an address too", "GET /a HTTP/1.1⏎Host: [v1.]⏎⏎", &["400"]),
        closes("9110 7.2", "and a number", "GET /a HTTP/1.1⏎Host: [vx.a]⏎⏎", &["400"]),
        closes("9110 7.2", "IPv6 has one gap at most", "GET /a HTTP/1.1⏎Host: [1::2::3]⏎⏎", &["400"]),
        closes("9110 7.2", "brackets hold no IPv4", "GET /a HTTP/1.1⏎Host: [127.0.0.1]⏎⏎", &["400"]),
        stays("9110 7.2", "the highest port", "GET /a HTTP/1.1⏎Host: h:65535⏎⏎", &["200 A"]),
        closes("9110 7.2", "there is none above it", "GET /a HTTP/1.1⏎Host: h:65536⏎⏎", &["400"]),
        closes("9110 7.2", "nothing but a port follows them", "GET /a HTTP/1.1⏎Host: [::1]x⏎⏎", &["400"]),
    ]
}

fn fields() -> Vec<Row> {
    vec![
        stays("9110 5.1", "field names are case-insensitive", "GET /a HTTP/1.1⏎hOsT: h⏎⏎", &["200 A"]),
        closes("9110 5.1", "a field name is a token", "GET /a HTTP/1.1⏎Host: h⏎X Y: z⏎⏎", &["400"]),
        closes("9110 5.1", "a field name has no parenthesis", "GET /a HTTP/1.1⏎Host: h⏎X(: z⏎⏎", &["400"]),
        closes("9110 5.1", "a field name is ASCII", "GET /a HTTP/1.1⏎Host: h⏎é: z⏎⏎", &["400"]),
        closes("9110 5.1", "a field name is not empty", "GET /a HTTP/1.1⏎Host: h⏎: z⏎⏎", &["400"]),
        closes("9112 5", "a field line has a colon", "GET /a HTTP/1.1⏎Host: h⏎Xz⏎⏎", &["400"]),
        closes("9112 5.1", "no space between name and colon", "GET /a HTTP/1.1⏎Host: h⏎X : z⏎⏎", &["400"]),
        closes("9112 5.1", "no tab between name and colon", "GET /a HTTP/1.1⏎Host: h⏎X\t: z⏎⏎", &["400"]),
        closes("9112 5.1", "not after Host either", "GET /a HTTP/1.1⏎Host : h⏎⏎", &["400"]),
        closes(
            "9112 5.1",
            "nor after Content-Length",
            "POST /echo HTTP/1.1⏎Host: h⏎Content-Length : 1⏎⏎x",
            &["400"],
        ),
        stays(
            "9112 5.1",
            "white space around a value is no part of it",
            "GET /field HTTP/1.1⏎Host: h⏎X: \t z \t ⏎⏎",
            &["200 z"],
        ),
        stays("9112 5.1", "none is needed", "GET /field HTTP/1.1⏎Host:h⏎X:z⏎⏎", &["200 z"]),
        stays("9110 5.5", "a value may be empty", "GET /field HTTP/1.1⏎Host: h⏎X:⏎⏎", &["200 "]),
        stays(
            "9110 5.5",
            "a value may hold spaces and tabs within",
            "GET /field HTTP/1.1⏎Host: h⏎X: a\t b⏎⏎",
            &["200 a\t b"],
        ),
        stays(
            "9110 5.5",
            "bytes above ASCII are opaque data",
            "GET /field HTTP/1.1⏎Host: h⏎X: é⏎⏎",
            &["200 é"],
        ),
        closes("9110 5.5", "NUL in a value is refused", "GET /a HTTP/1.1⏎Host: h⏎X: a\0b⏎⏎", &["400"]),
        closes("9110 5.5", "so is any other control", "GET /a HTTP/1.1⏎Host: h⏎X: a\u{1}b⏎⏎", &["400"]),
        closes("9110 5.5", "DEL too", "GET /a HTTP/1.1⏎Host: h⏎X: a\u{7f}b⏎⏎", &["400"]),
        closes("9112 5.2", "a folded line is refused", "GET /a HTTP/1.1⏎Host: h⏎X: a⏎ b⏎⏎", &["400"]),
        closes("9112 5.2", "folded with a tab as well", "GET /a HTTP/1.1⏎Host: h⏎X: a⏎\tb⏎⏎", &["400"]),
        closes(
            "9112 5.2",
            "a folded Transfer-Encoding hides nothing",
            "POST /echo HTTP/1.1⏎Host: h⏎Transfer-Encoding:⏎ chunked⏎⏎",
            &["400"],
        ),
        stays(
            "9110 5.3",
            "fields of one name are one list",
            "GET /list HTTP/1.1⏎Host: h⏎X: a⏎X: b⏎⏎",
            &["200 a|b"],
        ),
        stays(
            "9110 5.6.1",
            "empty list elements are skipped",
            "GET /list HTTP/1.1⏎Host: h⏎X: ,a, ,b ,⏎⏎",
            &["200 a|b"],
        ),
        stays("9110 5.1", "unknown fields are ignored", "GET /a HTTP/1.1⏎Host: h⏎Xyzzy: plugh⏎⏎", &["200 A"]),
        stays(
            "9110 5.6.2",
            "every token character may stand in a name",
            "GET /a HTTP/1.1⏎Host: h⏎!#$%&'*+-.^_`|~09: z⏎⏎",
            &["200 A"],
        ),
    ]
}

fn limits() -> Vec<Row> {
    let long_target = format!("GET /{} HTTP/1.1⏎Host: h⏎⏎", "a".repeat(100));
    let longest_target = format!("GET /{} HTTP/1.1⏎Host: h⏎⏎", "a".repeat(99));
    let long_query = format!("GET /a?{} HTTP/1.1⏎Host: h⏎⏎", "a".repeat(200));
    let long_value = format!("GET /a HTTP/1.1⏎Host: h⏎X: {}⏎⏎", "a".repeat(600));
    let many = format!("GET /a HTTP/1.1⏎Host: h⏎{}⏎", "X: y⏎".repeat(10));
    let most = format!("GET /a HTTP/1.1⏎Host: h⏎{}⏎", "X: y⏎".repeat(9));
    vec![
        closes("9110 15.5.15", "a target beyond the limit", &long_target, &["414"]),
        stays("9110 15.5.15", "a target at the limit", &longest_target, &["404"]),
        closes("9110 15.5.15", "the query counts", &long_query, &["414"]),
        closes("9110 5.4", "fields beyond the limit in bytes", &long_value, &["431"]),
        closes("9110 5.4", "fields beyond the limit in number", &many, &["431"]),
        stays("9110 5.4", "fields at the limit in number", &most, &["200 A"]),
    ]
}
