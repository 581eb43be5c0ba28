//! What holds for requests and answers alike: the grammar of chunked bodies, and that cuts between reads change nothing.

use tare_http::chunked::{Bounds, Decoder};
use tare_http::limits::Limits;
use tare_http::refusal::Refusal;
use tare_http::response::{AnswerReader, Heads, Malformed, Step};

/// Decoded bytes, and whether that was the whole body.
type Outcome<E> = Result<(u64, bool), E>;

fn request(pieces: &[&[u8]]) -> Outcome<Refusal> {
    let (mut decoder, mut bytes, mut done) = (Decoder::default(), 0, false);
    let bounds = Bounds::from(&Limits::default());
    for piece in pieces {
        done = decoder.read(piece, &bounds, |data| bytes += data.len() as u64)?.done;
    }
    Ok((bytes, done))
}

/// Reads one answer; what is left of a piece comes again before the next.
fn answer(pieces: &[&[u8]]) -> Outcome<Malformed> {
    let (mut heads, mut reader, mut carry) = (Heads::new(false), AnswerReader::default(), Vec::new());
    for piece in pieces {
        carry.extend_from_slice(piece);
        match reader.read(&mut heads, &carry)? {
            Step::Answer { answer, .. } => return Ok((answer.body_bytes, true)),
            Step::More { used } => drop(carry.drain(..used)),
        }
    }
    Ok((0, false))
}

/// Whole, in two pieces wherever it can be cut, and byte by byte.
fn every_cut(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut cuts = vec![vec![bytes], bytes.chunks(1).collect()];
    cuts.extend((1..bytes.len()).map(|at| vec![&bytes[..at], &bytes[at..]]));
    cuts
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// `⏎` stands for CR LF.
fn bytes_of(text: &str) -> Vec<u8> {
    text.replace('⏎', "\r\n").into_bytes()
}

#[test]
fn good_chunks_are_read_however_they_are_cut() {
    for (body, bytes) in [
        ("0⏎⏎", 0),
        ("00⏎⏎", 0),
        ("3⏎abc⏎0⏎⏎", 3),
        ("0003⏎abc⏎0⏎⏎", 3),
        ("A⏎0123456789⏎a⏎0123456789⏎0⏎⏎", 20),
        ("1;a⏎x⏎0⏎⏎", 1),
        ("1;a=b;c;d=\"\"⏎x⏎0;e⏎⏎", 1),
        ("1 ;\ta = b\t; c ;d⏎x⏎0⏎⏎", 1),
        ("1;a=\"; \\\" \t\u{e9}\" ;b⏎x⏎0⏎⏎", 1),
        ("1⏎\r⏎0⏎⏎", 1),
        ("1⏎x⏎0⏎A: b⏎C:⏎⏎", 1),
    ] {
        let (body, all) = (bytes_of(body), bytes_of(&format!("{HEAD}{body}")));
        for pieces in every_cut(&body) {
            assert_eq!(request(&pieces), Ok((bytes, true)), "{pieces:?}");
        }
        for pieces in every_cut(&all) {
            assert_eq!(answer(&pieces), Ok((bytes, true)), "{pieces:?}");
        }
    }
}

#[test]
fn broken_chunks_are_refused_for_the_same_reason_however_they_are_cut() {
    for (body, rule) in [
        ("⏎", "chunk size is not a number"),
        ("x⏎", "chunk size is not a number"),
        ("-1⏎", "chunk size is not a number"),
        (" 1⏎", "chunk size is not a number"),
        ("0x1⏎", "chunk size is not a number"),
        ("1x⏎", "chunk size is not a number"),
        ("11111111111111111⏎", "chunk size is too large"),
        ("1 1⏎a⏎", "white space after a chunk size or extension"),
        ("1;⏎a⏎", "chunk extension breaks the grammar"),
        ("1; ⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a;⏎a⏎", "chunk extension breaks the grammar"),
        ("1;;a⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a ⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a b⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a=⏎a⏎", "chunk extension breaks the grammar"),
        ("1;=b⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a@b⏎a⏎", "chunk extension breaks the grammar"),
        ("1;\"a\"⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a=\"b⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a=\"b\"c⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a=\"\\⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a=\"\0\"⏎a⏎", "chunk extension breaks the grammar"),
        ("1;a=\"\rx⏎a⏎", "chunk extension breaks the grammar"),
        ("1\na⏎", "LF without CR"),
        ("1;a\na⏎", "LF without CR"),
        ("1;a=\"\n\"⏎", "LF without CR"),
        ("1\rxa⏎", "CR without LF"),
        ("1;a\rxa⏎", "CR without LF"),
        ("1\r⏎a⏎", "CR without LF"),
        ("1⏎ab⏎", "chunk does not end where its size says"),
        ("1⏎a\n0⏎", "LF without CR"),
        ("4⏎ab⏎0⏎⏎", "chunk does not end where its size says"),
        ("1⏎a\rx", "chunk does not end where its size says"),
        ("0⏎\n", "LF without CR"),
        ("0⏎A: b\n", "LF without CR"),
        ("0⏎A: b\rc⏎", "CR without LF"),
        ("0⏎\rA: b⏎", "CR without LF"),
        ("0⏎A⏎", "trailer field breaks the grammar"),
        ("0⏎A\r: b⏎", "trailer field breaks the grammar"),
        ("0⏎A : b⏎", "trailer field breaks the grammar"),
        ("0⏎A: b⏎ c⏎", "trailer field breaks the grammar"),
        ("0⏎A: \0⏎", "trailer field breaks the grammar"),
    ] {
        let (body, all) = (bytes_of(body), bytes_of(&format!("{HEAD}{body}")));
        for pieces in every_cut(&body) {
            assert_eq!(request(&pieces), Err(Refusal::Chunk(rule)), "{pieces:?}");
        }
        for pieces in every_cut(&all) {
            assert_eq!(answer(&pieces), Err(Malformed::Chunk(rule)), "{pieces:?}");
        }
    }
}

/// Old servers pad sizes; a request that does is refused, as two readers of it may differ.
#[test]
fn padded_sizes_are_taken_of_answers_alone() {
    for body in ["1 ⏎a⏎0⏎⏎", "1\t ⏎a⏎0 ⏎⏎", "1;a=b ⏎a⏎0⏎⏎"] {
        let (body, all) = (bytes_of(body), bytes_of(&format!("{HEAD}{body}")));
        for pieces in every_cut(&body) {
            let why = Refusal::Chunk("white space after a chunk size or extension");
            assert_eq!(request(&pieces), Err(why), "{pieces:?}");
        }
        for pieces in every_cut(&all) {
            assert_eq!(answer(&pieces), Ok((1, true)), "{pieces:?}");
        }
    }
}

#[test]
fn bounds_on_chunks_hold_and_let_long_bodies_through() {
    let long = "e".repeat(10_000);
    for body in [format!("1;{long}⏎"), format!("1;a=\"{long}\"⏎"), format!("1;{}⏎", " ".repeat(10_000))]
    {
        let body = bytes_of(&body);
        assert_eq!(request(&[&body]), Err(Refusal::Chunk("chunk size or extensions are too long")));
        assert_eq!(answer(&[HEAD.as_bytes(), &body]), Err(Malformed::ChunkLineTooLong));
    }
    let zeroes = bytes_of(&format!("{}1⏎", "0".repeat(10_000)));
    assert_eq!(request(&[&zeroes]), Err(Refusal::Chunk("chunk size or extensions are too long")));
    assert_eq!(answer(&[HEAD.as_bytes(), &zeroes]), Err(Malformed::ChunkLineTooLong));
    let trailer = bytes_of(&format!("0⏎A: {long}"));
    assert_eq!(request(&[&trailer]), Err(Refusal::HeadTooLarge));
    assert_eq!(answer(&[HEAD.as_bytes(), &trailer]), Err(Malformed::ChunkLineTooLong));
    // Sizes that are padded with zeroes, however many chunks there are.
    let padded = bytes_of(&format!("{}0⏎⏎", "00000001⏎a⏎".repeat(10_000)));
    assert_eq!(request(&[&padded]), Ok((10_000, true)));
    // An answer has any number of chunks with extensions; those of a request are bounded together.
    let extended = bytes_of(&format!("{}0⏎⏎", "1;a=b⏎a⏎".repeat(10_000)));
    assert_eq!(answer(&[HEAD.as_bytes(), &extended]), Ok((10_000, true)));
    assert_eq!(request(&[&extended]), Err(Refusal::Chunk("chunk size or extensions are too long")));
}

#[test]
fn a_bare_cr_in_the_head_of_an_answer_is_refused_however_it_is_cut() {
    for head in [
        "\rHTTP/1.1 200 OK⏎Content-Length: 0⏎⏎",
        "HTTP/1.1\r200 OK⏎Content-Length: 0⏎⏎",
        "HTTP/1.1 200 O\rK⏎Content-Length: 0⏎⏎",
        "HTTP/1.1 200 OK\r⏎Content-Length: 0⏎⏎",
        "HTTP/1.1 200 OK⏎Content\r-Length: 0⏎⏎",
        "HTTP/1.1 200 OK⏎Content-Length: 0\r0⏎⏎",
        "HTTP/1.1 200 OK⏎Content-Length: 0⏎\r⏎",
    ] {
        for pieces in every_cut(&bytes_of(head)) {
            assert!(matches!(answer(&pieces), Err(Malformed::Head(_))), "{pieces:?}");
        }
    }
    // RFC 9112, 2.2: an LF may be taken as the end of a line by itself.
    let bare_lf = "HTTP/1.1 200 OK\nContent-Length: 1\n\nx";
    for pieces in every_cut(bare_lf.as_bytes()) {
        assert_eq!(answer(&pieces), Ok((1, true)), "{pieces:?}");
    }
}
