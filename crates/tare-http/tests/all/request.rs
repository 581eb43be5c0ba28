//! The request parser: what it reads, what it refuses, and that nothing makes it panic.

use proptest::prelude::*;
use tare_http::chunked::{Bounds, Decoder};
use tare_http::date::{parse_date, write_date};
use tare_http::limits::Limits;
use tare_http::memo::Memo;
use tare_http::refusal::Refusal;
use tare_http::request::{Framing, Method, Version, higher_minor_version_at, parse_head};
use tare_http::status::Status;
use tare_http::write;

fn refusal(bytes: &[u8]) -> Refusal {
    parse_head(bytes, &Limits::default()).expect_err("should be refused")
}

#[test]
fn a_head_is_read_into_its_parts() {
    let bytes = b"\r\nPOST /a/b?x=1&y HTTP/1.1\r\nHost: h:80\r\nContent-Length: 12\r\nAccept: a, b\r\naccept: ,c\r\n\r\nrest";
    let head = parse_head(bytes, &Limits::default()).unwrap().unwrap();
    assert_eq!((head.method, head.version), (Method::Post, Version::Http11));
    assert_eq!((head.target.path, head.target.query), ("/a/b", Some("x=1&y")));
    assert_eq!((head.target.query_value("x"), head.target.query_value("y")), (Some("1"), Some("")));
    assert_eq!((head.target.query_value("z"), head.framing), (None, Framing::Length(12)));
    assert_eq!(head.field("HOST"), Some(&b"h:80"[..]));
    assert_eq!(head.list("accept").collect::<Vec<_>>(), [b"a", b"b", b"c"]);
    assert!(head.persistent && !head.expect_continue);
    assert_eq!(&bytes[head.len..], b"rest");
}

#[test]
fn limits_have_their_statuses() {
    let limits = Limits { target_bytes: 20, head_bytes: 200, fields: 3, ..Limits::default() };
    let status = |bytes: &[u8]| parse_head(bytes, &limits).unwrap_err().status();
    assert_eq!(status(format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20)).as_bytes()), Status::URI_TOO_LONG);
    assert_eq!(status(format!("GET /{}", "a".repeat(100)).as_bytes()), Status::URI_TOO_LONG);
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}", "a".repeat(200));
    assert_eq!(status(long.as_bytes()), Status::HEADER_FIELDS_TOO_LARGE);
    assert_eq!(status(format!("{long}\r\n\r\n").as_bytes()), Status::HEADER_FIELDS_TOO_LARGE);
    assert_eq!(
        status(b"GET / HTTP/1.1\r\nHost: h\r\na:\r\nb:\r\nc:\r\n\r\n"),
        Status::HEADER_FIELDS_TOO_LARGE
    );
}

#[test]
fn a_higher_minor_version_is_found_for_patching() {
    let bytes = b"\r\nGET / HTTP/1.7\r\nHost: h\r\n\r\n";
    assert_eq!(refusal(bytes), Refusal::Version);
    let at = higher_minor_version_at(bytes).unwrap();
    assert_eq!(bytes[at], b'7');
    for other in [&b"GET / HTTP/2.0\r\n\r\n"[..], b"GET / HTTP/1.x\r\n\r\n", b"GET\r\n", b""] {
        assert_eq!(higher_minor_version_at(other), None);
    }
}

#[test]
fn the_same_head_again_is_recalled_and_any_other_is_not() {
    let limits = Limits::default();
    let bytes = b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\nGET /";
    let head = parse_head(bytes, &limits).unwrap().unwrap();
    let mut memo = Memo::default();
    assert_eq!(memo.recall(bytes), None);
    memo.learn(&head, bytes);
    assert_eq!(memo.recall(bytes), Some(head));
    for at in 0..head.len {
        let mut other = *bytes;
        other[at] ^= 1;
        assert_eq!(memo.recall(&other), None);
    }
    // Not a plain one: what was learnt before stays.
    let body = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n";
    memo.learn(&parse_head(body, &limits).unwrap().unwrap(), body);
    assert_eq!((memo.recall(body), memo.recall(bytes)), (None, Some(head)));
}

#[test]
fn no_value_can_begin_another_field() {
    let mut out = Vec::new();
    write::field(&mut out, "X", b"a\r\nSet-Cookie: b\0");
    assert_eq!(out, b"X: a  Set-Cookie: b \r\n");
}

#[test]
fn answers_start_with_status_and_date() {
    let stamp = write::Stamp::new(784_111_777);
    let mut out = Vec::new();
    write::start(&mut out, &stamp, Status::OK);
    write::start(&mut out, &stamp, Status::NOT_FOUND);
    write::content_length(&mut out, u64::MAX);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(
        text,
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nHTTP/1.1 404 Not Found\r\n\
         Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 18446744073709551615\r\n"
    );
}

#[test]
fn dates_are_read_in_all_three_forms() {
    for text in
        ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    {
        assert_eq!(parse_date(text.as_bytes()), Some(784_111_777), "{text}");
    }
    for text in ["", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 24:49:37 GMT", "yesterday", "\u{e9}"]
    {
        assert_eq!(parse_date(text.as_bytes()), None, "{text}");
    }
}

fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), Refusal> {
    let (mut decoder, mut body, mut done) = (Decoder::default(), Vec::new(), false);
    let bounds = Bounds::from(&Limits::default());
    for piece in pieces {
        done = decoder.read(piece, &bounds, |data| body.extend_from_slice(data))?.done;
    }
    Ok((body, done))
}

#[test]
fn a_body_beyond_the_limit_is_refused_when_its_size_is_known() {
    assert_eq!(decode(&[b"100001\r\n"]), Err(Refusal::BodyTooLarge));
    assert_eq!(decode(&[b"1\r\na\r\nfffffffffffffffe\r\n"]), Err(Refusal::BodyTooLarge));
    assert_eq!(decode(&[b"1\r\na\r\nffffffffffffffff\r\n"]), Err(Refusal::BodyTooLarge));
}

fn token() -> impl Strategy<Value = String> {
    "[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}"
}

/// Bytes near the grammar: pieces of requests in any order, and noise.
fn near_http() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"GET / HTTP/1.1\r\n".to_vec()),
        Just(b"Host: a\r\n".to_vec()),
        Just(b"Content-Length: 3\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Connection: close\r\n".to_vec()),
        Just(b"Expect: 100-continue\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"3\r\nabc\r\n0\r\n\r\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_input_panics_and_more_bytes_never_mend_a_refusal(bytes in near_http(), cut in 0usize..64) {
        let limits = Limits::default();
        let cut = cut.min(bytes.len());
        let early = parse_head(&bytes[..cut], &limits);
        let whole = parse_head(&bytes, &limits);
        if let Ok(Some(head)) = &whole {
            let mut memo = Memo::default();
            memo.learn(head, &bytes);
            if let Some(recalled) = memo.recall(&bytes) {
                prop_assert_eq!(&recalled, head);
            }
            prop_assert!(memo.recall(&bytes[..head.len - 1]).is_none());
        }
        match early {
            Err(_) => prop_assert!(whole.is_err()),
            Ok(Some(head)) => prop_assert_eq!(whole.unwrap().unwrap().len, head.len),
            Ok(None) => {}
        }
        higher_minor_version_at(&bytes);
        let _ = Decoder::default().read(&bytes, &Bounds::from(&limits), |_| {});
    }

    #[test]
    fn every_well_formed_head_is_read(
        path in "/[a-z0-9/%._~-]{0,30}",
        query in proptest::option::of("[a-z0-9=&+%]{0,20}"),
        names in proptest::collection::vec(token(), 0..10),
        value in "[!-~]([ -~]{0,20}[!-~])?",
    ) {
        let known = |n: &String| ["host", "expect", "connection", "content-length", "transfer-encoding"]
            .contains(&n.to_ascii_lowercase().as_str());
        let names: Vec<String> = names.into_iter().filter(|n| !known(n)).collect();
        let target = query.as_ref().map_or(path.clone(), |q| format!("{path}?{q}"));
        let mut text = format!("GET {target} HTTP/1.1\r\nHost: h\r\n");
        for name in &names {
            text += &format!("{name}: \t{value} \r\n");
        }
        text += "\r\n";
        let head = parse_head(text.as_bytes(), &Limits::default()).unwrap().unwrap();
        prop_assert_eq!((head.target.path, head.target.query), (path.as_str(), query.as_deref()));
        prop_assert_eq!(head.fields().count(), names.len() + 1);
        for name in &names {
            prop_assert_eq!(head.field(name), Some(value.as_bytes()));
        }
    }

    #[test]
    fn a_chunked_body_reads_the_same_however_it_is_cut(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..6),
        cuts in proptest::collection::vec(0usize..200, 0..6),
    ) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend(format!("{:X} ; name=\"q\\\"\"\r\n", chunk.len()).bytes());
            wire.extend(chunk);
            wire.extend(b"\r\n");
        }
        wire.extend(b"0\r\nTrailer: x\r\n\r\n");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(wire.len())).collect();
        cuts.extend([0, wire.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &wire[w[0]..w[1]]).collect();
        let pieces: Vec<&[u8]> = pieces.into_iter().filter(|p| !p.is_empty()).collect();
        prop_assert_eq!(decode(&pieces), Ok((chunks.concat(), true)));
    }

    #[test]
    fn a_written_date_is_read_back(unix_s in 0u64..253_402_300_800) {
        prop_assert_eq!(parse_date(&write_date(unix_s)), Some(unix_s));
    }
}
