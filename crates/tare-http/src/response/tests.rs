use super::*;
use proptest::prelude::*;

/// Reads a whole connection, given in pieces: the answers, then what its end meant.
fn read_all(pieces: &[&[u8]], to_head: bool) -> Result<(Vec<Answer>, End), Malformed> {
    let (mut heads, mut reader) = (Heads::new(to_head), AnswerReader::default());
    let (mut carry, mut answers) = (Vec::new(), Vec::new());
    for piece in pieces {
        carry.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match reader.read(&mut heads, &carry[at..])? {
                Step::Answer { used, answer } => {
                    at += used;
                    answers.push(answer);
                }
                Step::More { used } => {
                    at += used;
                    break;
                }
            }
        }
        carry.drain(..at);
        assert!(carry.len() < HEAD_BYTES_MAX, "only an unfinished head may be left over");
    }
    Ok((answers, reader.end(!carry.is_empty())))
}

fn whole(text: &str) -> Result<(Vec<Answer>, End), Malformed> {
    read_all(&[text.as_bytes()], false)
}

fn ok(keep_alive: bool) -> Answer {
    sized(keep_alive, 0)
}

fn sized(keep_alive: bool, body_bytes: u64) -> Answer {
    Answer { status: 200, keep_alive, body_bytes }
}

#[test]
fn framings() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(whole(length), Ok((vec![sized(true, 5)], End::Between)));
    assert_eq!(whole(&length.repeat(3)), Ok((vec![sized(true, 5); 3], End::Between)));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n\
                   5;why=not\r\nhello\r\nA \r\n0123456789\r\n0\r\nDigest: x\r\n\r\n";
    assert_eq!(whole(&chunked.repeat(2)), Ok((vec![sized(true, 15); 2], End::Between)));
    let close = "HTTP/1.1 200 OK\r\n\r\nuntil the end";
    assert_eq!(whole(close), Ok((vec![], End::Answer(sized(false, 13)))));
    let unknown_coding = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nuntil the end";
    assert_eq!(whole(unknown_coding), Ok((vec![], End::Answer(sized(false, 13)))));
}

#[test]
fn answers_without_a_body() {
    let claims_a_body = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".as_slice();
    assert_eq!(read_all(&[claims_a_body, claims_a_body], true), Ok((vec![ok(true); 2], End::Between)));
    assert_eq!(read_all(&[claims_a_body], false), Ok((vec![], End::Truncated)));
    for status in [204, 304] {
        let text = format!("HTTP/1.1 {status} x\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(
            whole(&text),
            Ok((vec![Answer { status, keep_alive: true, body_bytes: 0 }], End::Between))
        );
    }
    let hints = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    assert_eq!(whole(hints), Ok((vec![], End::Between)));
    let text = format!("{hints}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(whole(&text), Ok((vec![ok(true)], End::Between)));
}

#[test]
fn keeping_the_connection() {
    for (version, connection, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: Close\r\n", false),
        ("1.1", "Connection: x, close\r\n", false),
        ("1.1", "Connection: close, keep-alive\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Connection: close\r\nConnection: keep-alive\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: x, keep-alive ,y\r\n", true),
        ("1.0", "Connection: x\r\nconnection: KEEP-ALIVE\r\n", true),
        ("1.0", "Connection: close\r\n", false),
        ("1.0", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Connection: close, keep-alive\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: close\r\nConnection: keep-alive\r\n", false),
        ("1.1", "CONNECTION: ,\tcLoSe\t,\r\n", false),
        ("1.1", "Connection: closed, disclose\r\n", true),
        ("1.1", "Proxy-Connection: close\r\n", true),
    ] {
        let text = format!("HTTP/{version} 200 OK\r\n{connection}Content-Length: 0\r\n\r\n");
        assert_eq!(whole(&text), Ok((vec![ok(keep_alive)], End::Between)), "{text}");
    }
}

#[test]
fn contradictions_and_nonsense() {
    let head = |headers: &str| whole(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n")).unwrap_err();
    for bad in ["x", "-1", "5, 6", "", "+5", "0x10", "99999999999999999999999"] {
        assert_eq!(head(&format!("Content-Length: {bad}")), Malformed::ContentLength, "{bad}");
    }
    assert_eq!(head("Content-Length: 5\r\nContent-Length: 6"), Malformed::ContentLength);
    assert_eq!(head("Content-Length: 5\r\nTransfer-Encoding: chunked"), Malformed::TwoFramings);
    assert!(whole("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello").is_ok());
    assert_eq!(whole("HTTP/1.1 101 x\r\n\r\n"), Err(Malformed::SwitchedProtocols));
    assert_eq!(whole("HTTP/1.1 099 x\r\n\r\n"), Err(Malformed::Status(99)));
    assert!(matches!(whole("SSH-2.0-OpenSSH_9.2\r\n"), Err(Malformed::Head(_))));
    // A body longer than its Content-Length is read as the next head.
    assert!(whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello").is_err());
    let body = |body: &str| whole(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
    assert_eq!(body("x\r\n"), Err(Malformed::Chunk("chunk size is not a number")));
    assert_eq!(body("5\r\nhel"), Ok((vec![], End::Truncated)));
}

#[test]
fn endless_input_is_bounded() {
    let headers = "X-Long: 0123456789\r\n".repeat(100);
    let endless: Vec<String> = std::iter::once("HTTP/1.1 200 OK\r\n".to_owned())
        .chain(std::iter::repeat_n("y".repeat(400), 100))
        .collect();
    let endless: Vec<&[u8]> = endless.iter().map(|piece| piece.as_bytes()).collect();
    assert!(read_all(&endless, false).is_err(), "a header name without end");
    let long_value = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(HEAD_BYTES_MAX));
    assert_eq!(whole(&long_value), Err(Malformed::HeadTooLong));
    assert!(whole(&format!("HTTP/1.1 200 OK\r\n{headers}{headers}\r\n\r\n")).is_err(), "too many headers");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let extension = format!("{chunked}5;{}", "e".repeat(10_000));
    assert_eq!(whole(&extension), Err(Malformed::ChunkLineTooLong));
    assert_eq!(
        whole(&format!("{chunked}0\r\n{headers}{headers}{headers}")),
        Err(Malformed::ChunkLineTooLong)
    );
    assert_eq!(whole(&format!("{chunked}{}1\r\n", "0".repeat(10_000))), Err(Malformed::ChunkLineTooLong));
}

#[test]
fn a_head_is_known_only_if_every_byte_is_the_same() {
    let mut heads = Heads::new(false);
    let first = b"HTTP/1.1 200 OK\r\nDate: 1\r\nContent-Length: 5\r\n\r\n".as_slice();
    let head = heads.parse(first).unwrap().unwrap();
    assert_eq!(heads.known, first);
    for at in 0..first.len() {
        let mut other = first.to_vec();
        other[at] ^= 1;
        let mut fresh = Heads::new(false);
        assert_eq!(heads.parse(&other), fresh.parse(&other), "byte {at}");
        assert_eq!(heads.parse(first), Ok(Some(head)));
    }
}

#[test]
fn answers_alike_are_counted_as_long_as_they_are_whole() {
    let mut heads = Heads::new(false);
    assert_eq!(heads.repeated(b"HTTP/1.1 200 OK\r\n", 9), None, "nothing is known");
    let one = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    heads.parse(one).unwrap();
    let many =
        [one.repeat(3), b"HTTP/1.1 201 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec(), one.to_vec()].concat();
    let count = |bytes: &[u8], most| heads.repeated(bytes, most).map(|repeated| repeated.count);
    assert_eq!([9, 3, 2, 0].map(|most| count(&many, most)), [3, 3, 2, 0].map(Some));
    assert_eq!(count(&many[..3 * one.len() - 1], 9), Some(2));
    let repeated = heads.repeated(&many, 9).unwrap();
    assert_eq!((repeated.bytes_each, repeated.answer), (one.len(), sized(true, 2)));
    heads.parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert_eq!(heads.repeated(&many, 9), None, "its end is not known beforehand");
}

fn answer_text() -> impl Strategy<Value = String> {
    let body = "[a-z]{0,40}";
    prop_oneof![
        (200u16..600, body)
            .prop_map(|(s, b)| format!("HTTP/1.1 {s} x\r\nContent-Length: {}\r\n\r\n{b}", b.len()))
            .prop_filter("no body by status", |t| !t.contains(" 204 ") && !t.contains(" 304 ")),
        prop::collection::vec("[a-z]{1,20}", 0..4).prop_map(|chunks| {
            let chunks: String = chunks.iter().map(|c| format!("{:x}\r\n{c}\r\n", c.len())).collect();
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
        }),
        Just("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n".to_owned()),
    ]
}

proptest! {
    /// Where the network cuts the stream changes nothing.
    #[test]
    fn pieces_do_not_matter(
        answers in prop::collection::vec(answer_text(), 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = answers.concat().into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
        let whole = read_all(&[&stream], false);
        prop_assert_eq!(whole.as_ref().map(|(read, _)| read.len()), Ok(answers.len()));
        prop_assert_eq!(read_all(&pieces, false), whole);
    }

    /// Nothing a server sends makes the reader panic, loop or claim more than it was given.
    #[test]
    fn arbitrary_bytes_never_panic(
        mut stream in prop::collection::vec(any::<u8>(), 0..300),
        prefix in prop_oneof![
            Just(""),
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ],
        to_head: bool,
    ) {
        let mut bytes = prefix.as_bytes().to_vec();
        bytes.append(&mut stream);
        let _ = read_all(&[&bytes], to_head);
    }
}

#[test]
fn a_listener_sees_head_and_body_in_pieces() {
    #[derive(Default)]
    struct Ear(Vec<u8>, Vec<u8>);
    impl Listener for Ear {
        fn head(&mut self, head: &[u8]) {
            self.0.extend_from_slice(&header(head, "x-id").unwrap_or(b"none".into()));
        }
        fn body(&mut self, bytes: &[u8]) {
            self.1.extend_from_slice(bytes);
        }
    }
    let text = b"HTTP/1.1 100 Continue\r\nX-Id: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-ID:  7 \r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n";
    let (mut heads, mut reader, mut ear) = (Heads::new(false), AnswerReader::default(), Ear::default());
    let (mut carry, mut answers) = (Vec::new(), Vec::new());
    for byte in text {
        carry.push(*byte);
        match reader.read_to(&mut heads, &carry, &mut ear).unwrap() {
            Step::More { used } => drop(carry.drain(..used)),
            Step::Answer { used, answer } => {
                carry.drain(..used);
                answers.push(answer);
            }
        }
    }
    assert_eq!(
        (answers, ear.0.as_slice(), ear.1.as_slice()),
        (vec![sized(true, 5)], &b"7"[..], &b"abcde"[..])
    );
    assert_eq!(header(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "c"), None);
}

#[test]
fn what_old_and_new_versions_send_is_read_as_the_rules_say() {
    let parse = |text: &str| Heads::new(false).parse(text.as_bytes()).map(Option::unwrap);
    // RFC 9112, 5.2.
    let folded = "HTTP/1.1 302 Found\r\nLocation: /a\r\n \tb\r\nContent-Length:\r\n 5\r\n\r\n";
    assert_eq!(parse(folded).unwrap().framing, Framing::Length(5));
    assert_eq!(header(folded.as_bytes(), "location").as_deref(), Some(&b"/a b"[..]));
    // RFC 9110, 6.2.
    let newer = parse("HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap();
    assert!(newer.keep_alive && newer.framing == Framing::Length(5));
    assert!(parse("HTTP/2.0 200 OK\r\n\r\n").is_err());
    // RFC 9112, 6.1.
    let older = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n";
    let older = parse(older).unwrap();
    assert!(!older.keep_alive && older.framing == Framing::Chunked);
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
    let error = parse(&many).unwrap_err();
    assert!(error.rule().contains("tare's own limit"), "{error}");
}
