//! Bodies and their framing: RFC 9112 sections 6 and 7; RFC 9110 section 8.6 and 10.1.1.

use super::row::{Row, closes, stays};

pub fn rows() -> Vec<Row> {
    [content_length(), transfer_encoding(), chunks(), trailers(), expect()].into_iter().flatten().collect()
}

fn post(fields: &str, body: &str) -> String {
    format!("POST /echo HTTP/1.1⏎Host: h⏎{fields}⏎{body}")
}

fn content_length() -> Vec<Row> {
    let length = |section, rule, value: &str, body: &str, answers| {
        stays(section, rule, &post(&format!("Content-Length: {value}⏎"), body), answers)
    };
    let refused = |section, rule, value: &str| {
        closes(section, rule, &post(&format!("Content-Length: {value}⏎"), "x"), &["400"])
    };
    vec![
        length("9112 6.2", "Content-Length is the body's length", "3", "abc", &["200 abc"]),
        length("9112 6.2", "zero is a length", "0", "", &["200 "]),
        length("9110 8.6", "leading zeroes are digits", "0003", "abc", &["200 abc"]),
        stays("9112 6.3", "no length and no coding: no body", &post("", ""), &["200 "]),
        stays(
            "9112 6.3",
            "a body that looks like a request is a body",
            &post("Content-Length: 16⏎", "GET / HTTP/1.1⏎"),
            &["200 GET / HTTP/1.1\r\n"],
        ),
        stays(
            "9110 9.3.1",
            "GET with a body: the body is read",
            "GET /echo HTTP/1.1⏎Host: h⏎Content-Length: 2⏎⏎hi",
            &["200 hi"],
        ),
        stays(
            "9110 9.3.5",
            "DELETE with a body: the body is read",
            "DELETE /echo HTTP/1.1⏎Host: h⏎Content-Length: 2⏎⏎hi",
            &["200 hi"],
        ),
        stays(
            "9112 6.3",
            "a body for a route that is not there is read over",
            "POST /no HTTP/1.1⏎Host: h⏎Content-Length: 2⏎⏎hi",
            &["404"],
        ),
        refused("9112 6.3", "a length that is no number", "x"),
        refused("9112 6.3", "a sign is no digit", "+1"),
        refused("9112 6.3", "a negative length", "-1"),
        refused("9112 6.3", "a hexadecimal length", "0x1"),
        refused("9112 6.3", "an empty length", ""),
        refused("9112 6.3", "a length with a fraction", "1.0"),
        refused("9112 6.3", "two numbers with a space", "1 1"),
        refused("9112 6.3", "a list of different lengths", "1, 2"),
        refused("9110 8.6", "a list of equal lengths may be refused", "1, 1"),
        refused("9110 8.6", "a length that overflows", "18446744073709551616"),
        refused("9110 8.6", "a length of too many digits", "000000000000000000001"),
        closes(
            "9112 6.3",
            "two different lengths",
            &post("Content-Length: 1⏎Content-Length: 2⏎", "xy"),
            &["400"],
        ),
        closes(
            "9110 8.6",
            "two equal lengths may be refused",
            &post("Content-Length: 1⏎Content-Length: 1⏎", "x"),
            &["400"],
        ),
        closes("9112 6.3", "a bad length in HTTP/1.0", "POST /echo HTTP/1.0⏎Content-Length: x⏎⏎x", &["400"]),
        closes("9112 6.3", "a bad length in a GET", "GET /a HTTP/1.1⏎Host: h⏎Content-Length: x⏎⏎", &["400"]),
        closes(
            "9110 15.5.14",
            "a body beyond the bound is refused before it comes",
            &post("Content-Length: 65⏎", ""),
            &["413"],
        ),
        closes(
            "9110 15.5.14",
            "a length near the end of the numbers",
            &post("Content-Length: 18446744073709551615⏎", ""),
            &["413"],
        ),
        stays("9110 15.5.14", "a body at the limit", &post("Content-Length: 64⏎", &"b".repeat(64)), &["200"]),
        closes(
            "9112 6.2",
            "HTTP/1.0 has bodies too",
            "POST /echo HTTP/1.0⏎Content-Length: 2⏎⏎hi",
            &["200 hi"],
        ),
    ]
}

fn transfer_encoding() -> Vec<Row> {
    let refused = |section, rule, fields: &str, answers| closes(section, rule, &post(fields, "0⏎⏎"), answers);
    const CHUNKED: &str = "Transfer-Encoding: chunked⏎";
    vec![
        stays("9112 6.1", "chunked is understood", &post(CHUNKED, "0⏎⏎"), &["200 "]),
        stays(
            "9110 10.1.4",
            "coding names are case-insensitive",
            &post("Transfer-Encoding: cHunKED⏎", "0⏎⏎"),
            &["200 "],
        ),
        stays(
            "9110 5.6.1",
            "empty elements in the list of codings",
            &post("Transfer-Encoding: ,chunked,⏎", "0⏎⏎"),
            &["200 "],
        ),
        refused(
            "9112 6.1",
            "an unknown coding is not implemented",
            "Transfer-Encoding: zip, chunked⏎",
            &["501"],
        ),
        refused(
            "9112 6.1",
            "in two fields as well",
            "Transfer-Encoding: zip⏎Transfer-Encoding: chunked⏎",
            &["501"],
        ),
        refused("9112 6.1", "gzip is not implemented", "Transfer-Encoding: gzip, chunked⏎", &["501"]),
        refused(
            "9112 6.3",
            "chunked is the last coding of a request",
            "Transfer-Encoding: chunked, gzip⏎",
            &["400"],
        ),
        refused("9112 6.3", "a request without chunked has no end", "Transfer-Encoding: gzip⏎", &["400"]),
        refused("9112 7", "identity is no coding any more", "Transfer-Encoding: identity⏎", &["400"]),
        refused("9112 6.1", "chunked is not applied twice", "Transfer-Encoding: chunked, chunked⏎", &["400"]),
        refused(
            "9112 6.1",
            "nor in two fields",
            "Transfer-Encoding: chunked⏎Transfer-Encoding: chunked⏎",
            &["400"],
        ),
        refused("9112 6.3", "an empty Transfer-Encoding", "Transfer-Encoding:⏎", &["400"]),
        refused(
            "9112 6.3",
            "a coding that only looks like chunked",
            "Transfer-Encoding: xchunked⏎",
            &["400"],
        ),
        refused("9112 7.1", "chunked has no parameters", "Transfer-Encoding: chunked;q=1⏎", &["400"]),
        refused("9112 6.3", "a quoted coding", "Transfer-Encoding: \"chunked\"⏎", &["400"]),
        refused("9112 6.3", "chunked with a vertical tab", "Transfer-Encoding: \u{b}chunked⏎", &["400"]),
        refused(
            "9112 6.1",
            "both Transfer-Encoding and Content-Length",
            "Content-Length: 5⏎Transfer-Encoding: chunked⏎",
            &["400"],
        ),
        refused(
            "9112 6.3",
            "in the other order too",
            "Transfer-Encoding: chunked⏎Content-Length: 5⏎",
            &["400"],
        ),
        refused(
            "9112 6.3",
            "even with a length of zero",
            "Transfer-Encoding: chunked⏎Content-Length: 0⏎",
            &["400"],
        ),
        closes(
            "9112 6.1",
            "Transfer-Encoding in HTTP/1.0 is faulty",
            "POST /echo HTTP/1.0⏎Transfer-Encoding: chunked⏎⏎0⏎⏎",
            &["400"],
        ),
    ]
}

fn chunks() -> Vec<Row> {
    let good = |section, rule, body: &str, answers| {
        stays(section, rule, &post("Transfer-Encoding: chunked⏎", body), answers)
    };
    let bad = |section, rule, body: &str, answers| {
        closes(section, rule, &post("Transfer-Encoding: chunked⏎", body), answers)
    };
    vec![
        good("9112 7.1", "chunks are put together", "3⏎abc⏎2⏎de⏎0⏎⏎", &["200 abcde"]),
        good(
            "9112 7.1",
            "sizes are hexadecimal in either case",
            "a⏎0123456789⏎B⏎0123456789x⏎0⏎⏎",
            &["200 01234567890123456789x"],
        ),
        good("9112 7.1", "leading zeroes of a size", "0003⏎abc⏎0⏎⏎", &["200 abc"]),
        good("9112 7.1", "the last chunk may have several zeroes", "1⏎a⏎000⏎⏎", &["200 a"]),
        good("9112 7.1", "line ends within a chunk are data", "4⏎⏎⏎⏎0⏎⏎", &["200 \r\n\r\n"]),
        good("9112 7.1.1", "an unknown extension is ignored", "1;x=y⏎a⏎0⏎⏎", &["200 a"]),
        good("9112 7.1.1", "also one without a value", "1;x⏎a⏎0;z⏎⏎", &["200 a"]),
        good("9112 7.1.1", "also a quoted one", "1;x=\"a;\\\"b\"⏎a⏎0⏎⏎", &["200 a"]),
        good("9112 7.1.1", "bad white space before an extension is read", "1 ; x = y⏎a⏎0⏎⏎", &["200 a"]),
        bad("9112 7.1", "a size is not empty", "⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "a size is hexadecimal", "g⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "a size has no prefix", "0x1⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "a size has no sign", "-1⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "no white space before a size", " 1⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "a size ends with CR LF, not with white space", "1 ⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "a size ends with CR LF, not with LF", "1\na⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "a CR after a size is followed by LF", "1\rxa⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "data end where the size says: too long", "1⏎ab⏎0⏎⏎", &["400"]),
        bad("9112 7.1", "data end with CR LF, not with LF", "1⏎a\n0⏎⏎", &["400"]),
        bad("9112 7.1", "CR after data is followed by LF", "1⏎a\rx0⏎⏎", &["400"]),
        bad("9112 7.1", "a size that overflows is refused", "10000000000000001⏎a⏎0⏎⏎", &["400"]),
        good(
            "9112 7.1.1",
            "names and values are tokens",
            "1;!#$%&'*+-.^_`|~09=!#$%&'*+-.^_`|~09⏎a⏎0⏎⏎",
            &["200 a"],
        ),
        good("9112 7.1.1", "the last chunk has them too", "1⏎a⏎0;a=\"b\" ;c⏎⏎", &["200 a"]),
        good("9112 7.1.1", "an empty quoted value", "1;a=\"\"⏎a⏎0⏎⏎", &["200 a"]),
        bad("9112 7.1.1", "white space follows no extension", "1;a=b ⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "nor a name", "1;a\t⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a name is not quoted", "1;\"a\"⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "an extension begins with a semicolon", "1 a=b⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a quoted value holds no line end", "1;a=\"⏎\"⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "not even an escaped one", "1;a=\"\\\n\"⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a bare CR in an extension", "1;x\ry⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a bare CR in a quoted value", "1;a=\"\rb\"⏎a⏎0⏎⏎", &["400"]),
        bad(
            "9112 7.1.1",
            "extensions of all chunks have one bound",
            &format!("{}0⏎⏎", "1;abcdefgh⏎x⏎".repeat(12)),
            &["400"],
        ),
        good(
            "9112 7.1",
            "zeroes of a size have a bound of their own",
            &format!("{}0⏎⏎", "0000000000001⏎x⏎".repeat(20)),
            &["200 xxxxxxxxxxxxxxxxxxxx"],
        ),
        bad("9112 7.1.1", "a bare LF in an extension", "1;x\n⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "an extension has a name", "1;⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "also behind another one", "1;a=b;⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "an extension's name is a token", "1;a(b⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a value follows its equals sign", "1;a=⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "an extension has one value", "1;a=b=c⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "two words are no value", "1;a=b c⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a quoted value ends with its quote", "1;a=\"b\"c⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "a quoted value is closed", "1;a=\"b⏎a⏎0⏎⏎", &["400"]),
        good(
            "9112 7.1.1",
            "white space may stand around its parts",
            "1 ; a = \"b;\\\"c\" ;d⏎a⏎0⏎⏎",
            &["200 a"],
        ),
        bad("9112 7.1.1", "a control in an extension", "1;\0⏎a⏎0⏎⏎", &["400"]),
        bad("9112 7.1.1", "extensions have a bound", &format!("1;{}⏎a⏎0⏎⏎", "x".repeat(101)), &["400"]),
        bad("9110 15.5.14", "a chunk beyond the limit", "41⏎", &["413"]),
        bad(
            "9110 15.5.14",
            "chunks beyond the limit together",
            &format!("40⏎{}⏎1⏎", "x".repeat(64)),
            &["413"],
        ),
    ]
}

fn trailers() -> Vec<Row> {
    let good = |rule, trailer: &str| {
        stays(
            "9112 7.1.2",
            rule,
            &post("Transfer-Encoding: chunked⏎", &format!("1⏎a⏎0⏎{trailer}⏎")),
            &["200 a"],
        )
    };
    let bad = |rule, trailer: &str, answers| {
        closes(
            "9112 7.1.2",
            rule,
            &post("Transfer-Encoding: chunked⏎", &format!("1⏎a⏎0⏎{trailer}⏎")),
            answers,
        )
    };
    vec![
        good("a trailer field is read over", "X: y⏎"),
        good("several are", "X: y⏎Z:⏎"),
        good("a framing field in a trailer means nothing", "Content-Length: 5⏎Transfer-Encoding: gzip⏎"),
        good("a Host in a trailer means nothing", "Host: i⏎"),
        bad("a trailer field has a colon", "X⏎", &["400"]),
        bad("a trailer field name is a token", "X Y: z⏎", &["400"]),
        bad("a trailer is not folded", "X: y⏎ z⏎", &["400"]),
        bad("a trailer line ends with CR LF", "X: y\n", &["400"]),
        bad("a bare CR ends no trailer line", "X: y\rZ: z⏎", &["400"]),
        bad("a bare CR in a trailer field name", "X\rY: z⏎", &["400"]),
        bad("a bare CR before a trailer field", "\rX: y⏎", &["400"]),
        bad("two CRs end no trailer line", "X: y\r⏎", &["400"]),
        bad("a bare LF is no end of a body", "\n", &["400"]),
        bad("no control in a trailer", "X: \0⏎", &["400"]),
        bad("trailers have a bound", &format!("X: {}⏎", "y".repeat(101)), &["431"]),
    ]
}

fn expect() -> Vec<Row> {
    vec![
        stays(
            "9110 10.1.1",
            "100-continue is understood",
            &post("Expect: 100-continue⏎Content-Length: 1⏎", "a"),
            &["200 a"],
        ),
        stays(
            "9110 10.1.1",
            "in any case",
            &post("Expect: 100-CONTINUE⏎Content-Length: 1⏎", "a"),
            &["200 a"],
        ),
        stays(
            "9110 10.1.1",
            "also before chunks",
            &post("Expect: 100-continue⏎Transfer-Encoding: chunked⏎", "1⏎a⏎0⏎⏎"),
            &["200 a"],
        ),
        stays(
            "9110 10.1.1",
            "without a body it asks for nothing",
            &post("Expect: 100-continue⏎", ""),
            &["200 "],
        ),
        closes(
            "9110 10.1.1",
            "another expectation fails",
            &post("Expect: 200-ok⏎Content-Length: 1⏎", "a"),
            &["417"],
        ),
        closes(
            "9110 10.1.1",
            "HTTP/1.0 cannot expect",
            "POST /echo HTTP/1.0⏎Expect: 100-continue⏎Content-Length: 1⏎⏎a",
            &["200 a"],
        ),
        closes(
            "9110 10.1.1",
            "a final status may come instead of 100",
            &post("Expect: 100-continue⏎Content-Length: 65⏎", ""),
            &["413"],
        ),
    ]
}
