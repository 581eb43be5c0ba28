use super::*;
use crate::interleaving::{Interleaving, TURN_NS_MIN};
use crate::spec::{Gaps, Pacing};
use crate::target::Target;
use proptest::prelude::*;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const LAST_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
const TIMEOUT_NS: u64 = 50_000_000;

fn client(pacing: Pacing, pipeline: u32, connections: u32) -> Client {
    let mut spec = LoadSpec::new(Target::parse("http://h/").unwrap());
    (spec.pacing, spec.pipeline, spec.timeout_ns) = (pacing, pipeline, TIMEOUT_NS);
    let program = std::sync::Arc::new(spec.compile().unwrap());
    let requests = Requests::new(&spec, &program, 0).unwrap();
    let mut client = Client::new(&spec, connections, requests, Quota::new(None, false), &program.heads());
    client.begin(Schedule::new(&spec, 0, 0, (connections * pipeline) as usize), 0);
    client
}

fn errors(client: &Client, kind: ErrorKind) -> u64 {
    let index = ErrorKind::ALL.iter().position(|other| *other == kind).unwrap();
    client.tally.errors[index]
}

fn send_all(client: &mut Client, c: u32) -> usize {
    let bytes = client.unsent(c).unwrap().len();
    client.sent(c, bytes);
    bytes
}

/// Delivers bytes and answers what was asked next, as an engine does.
fn deliver(client: &mut Client, c: u32, bytes: &[u8], now_ns: u64) -> Verdict {
    let mut buffer = vec![0; BUFFER_BYTES_MIN + bytes.len()];
    let restored = client.restore(c, &mut buffer);
    buffer[restored..restored + bytes.len()].copy_from_slice(bytes);
    let verdict = client.received(c, &buffer[..restored + bytes.len()], bytes.len(), now_ns);
    if verdict == Verdict::Keep {
        client.fill(c, now_ns);
    }
    verdict
}

#[test]
fn a_closed_loop_keeps_its_depth_and_its_stamps() {
    let mut client = client(Pacing::Closed, 3, 1);
    client.opened(0, 10);
    let one = client.places.rings[0].written.len();
    assert_eq!(send_all(&mut client, 0), 3 * one);
    assert_eq!(deliver(&mut client, 0, &ANSWER.repeat(2), 1010), Verdict::Keep);
    assert_eq!(client.unsent(0).unwrap().len(), 2 * one, "as many requests as there were answers");
    client.sent(0, one / 2);
    assert_eq!(client.unsent(0).unwrap().len(), 2 * one - one / 2);
    send_all(&mut client, 0);
    assert_eq!(deliver(&mut client, 0, ANSWER, 1020), Verdict::Keep);
    assert_eq!(client.tally.times.latency.quantile_ns(0.0), Some(1000));
    assert_eq!(client.tally.times.latency.max_ns().map(|ns| ns / 10), Some(101));
    assert_eq!((client.tally.answers, client.in_flight(1020)), (3, 3));
}

#[test]
fn what_stood_behind_a_close_is_sent_again_with_its_stamps() {
    let mut client = client(Pacing::Closed, 3, 1);
    client.opened(0, 0);
    let all = send_all(&mut client, 0);
    assert_eq!(deliver(&mut client, 0, LAST_ANSWER, 1_000), Verdict::Reopen);
    assert_eq!((client.unsent(0).unwrap().len(), client.in_flight(0)), (0, 2));
    client.opened(0, 5_000);
    assert_eq!(send_all(&mut client, 0), all, "two again and one more");
    deliver(&mut client, 0, &ANSWER.repeat(3), 6_000);
    assert_eq!(client.tally.times.latency.quantile_ns(0.5), Some(1_000), "the first and the last");
    assert_eq!(client.tally.times.latency.quantile_ns(0.51).map(|ns| ns / 100), Some(60), "those sent twice");
    assert_eq!(client.tally.errors, [0; ErrorKind::ALL.len()]);
}

#[test]
fn a_broken_connection_fails_its_current_request_alone() {
    let mut client = client(Pacing::Closed, 3, 1);
    client.opened(0, 0);
    send_all(&mut client, 0);
    assert_eq!(deliver(&mut client, 0, &ANSWER[..7], 1), Verdict::Keep);
    assert_eq!(client.broke(0, ErrorKind::Io), Verdict::Reopen);
    assert_eq!((errors(&client, ErrorKind::Io), client.in_flight(2), client.failures(0)), (1, 2, 1));
    client.opened(0, 3);
    send_all(&mut client, 0);
    assert_eq!(deliver(&mut client, 0, ANSWER, 4), Verdict::Keep, "the half head is forgotten");
    assert_eq!(client.failures(0), 0);
}

#[test]
fn all_that_waited_too_long_is_late_and_nothing_else() {
    let mut client = client(Pacing::Closed, 2, 1);
    client.opened(0, 0);
    send_all(&mut client, 0);
    deliver(&mut client, 0, ANSWER, 40_000_000);
    assert_eq!(client.expire(0, TIMEOUT_NS), Verdict::Keep);
    assert_eq!(client.expire(0, TIMEOUT_NS + 1), Verdict::Reopen);
    assert_eq!((errors(&client, ErrorKind::Timeout), client.in_flight(0)), (1, 1));
    assert_eq!(client.expire(0, 10 * TIMEOUT_NS), Verdict::Keep, "nothing is sent on a closed connection");
}

#[test]
fn a_close_before_the_next_request_left_is_no_error() {
    let mut client = client(Pacing::Closed, 1, 1);
    client.opened(0, 0);
    send_all(&mut client, 0);
    deliver(&mut client, 0, ANSWER, 1_000);
    assert_eq!(client.ended(0, false, 1_000), Verdict::Reopen);
    assert_eq!(
        (client.tally.answers, client.tally.errors, client.in_flight(1_000)),
        (1, [0; ErrorKind::ALL.len()], 1)
    );
    client.opened(0, 2_000);
    send_all(&mut client, 0);
    assert_eq!(client.ended(0, false, 3_000), Verdict::Reopen);
    assert_eq!(errors(&client, ErrorKind::Io), 1);
}

#[test]
fn an_upload_may_be_answered_early_or_cut_off() {
    const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    let mut client = client(Pacing::Closed, 1, 1);
    client.opened(0, 0);
    let half = client.unsent(0).unwrap().len() / 2;
    client.sent(0, half);
    assert_eq!(deliver(&mut client, 0, TOO_LARGE, 1_000), Verdict::Reopen, "the rest is not sent");
    assert_eq!((client.tally.answers, errors(&client, ErrorKind::Status)), (1, 1));
    assert_eq!((errors(&client, ErrorKind::Malformed), client.in_flight(1_000)), (0, 0));
    client.opened(0, 2_000);
    let half = client.unsent(0).unwrap().len() / 2;
    client.sent(0, half);
    assert_eq!(client.broke(0, ErrorKind::Io), Verdict::Reopen);
    assert_eq!((client.tally.answers, errors(&client, ErrorKind::Io), client.in_flight(2_000)), (1, 1, 0));
    // The next one begins with its first byte.
    client.opened(0, 3_000);
    let whole = client.unsent(0).unwrap().len();
    assert_eq!(send_all(&mut client, 0), whole);
    assert_eq!(deliver(&mut client, 0, ANSWER, 4_000), Verdict::Keep);
}

#[test]
fn an_answer_that_is_longer_than_it_says_is_one_failure() {
    for answer in ["HTTP/1.1 204 No\r\n\r\nbody", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nbody"] {
        let mut client = client(Pacing::Closed, 1, 1);
        for attempts in 1..4 {
            client.opened(0, 0);
            send_all(&mut client, 0);
            assert_eq!(deliver(&mut client, 0, answer.as_bytes(), 1), Verdict::Reopen);
            let why = Fault::malformed("bytes that no request asked for");
            assert_eq!((client.tally.answers, &client.tally.reasons), (0, &vec![(why, attempts)]));
        }
        assert_eq!(client.tally.times.latency.count(), 0);
    }
}

#[test]
fn failures_say_which_rule_was_broken() {
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    let long = "y".repeat(HEAD_BYTES_MAX);
    for (answer, why) in [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "not HTTP/1"),
        ("HTTP/1.1 2x0 OK\r\n".to_owned(), "status line breaks the grammar"),
        ("HTTP/1.1 101 x\r\n\r\n".to_owned(), "the server switched protocols"),
        ("HTTP/1.1 099 x\r\n\r\n".to_owned(), "status is not a number from 100 to 999"),
        (head("A B: c"), "header name is not a token"),
        (head("A: \0"), "header value holds a control character"),
        (head("A: b\rc"), "header value holds a control character"),
        (head(&"A: b\r\n".repeat(200)), "more than 128 header fields, tare's own limit"),
        (head(&format!("A: {long}")), "head is longer than 16 KiB, tare's own limit"),
        (head("Content-Length: 1x"), "Content-Length is not one decimal number"),
        (head("Content-Length: 1\r\nContent-Length: 2"), "Content-Length is not one decimal number"),
        (
            head("Content-Length: 1\r\nTransfer-Encoding: chunked"),
            "both Content-Length and Transfer-Encoding",
        ),
        (chunked("x\r\n"), "chunk size is not a number"),
        (chunked("1;\r\na\r\n"), "chunk extension breaks the grammar"),
        (chunked("1\r\nab"), "chunk does not end where its size says"),
        (chunked("0\r\nA\r\n"), "trailer field breaks the grammar"),
        (chunked(&format!("1;{long}\r\n")), "chunk size, extensions or trailer are too long"),
    ] {
        let mut client = client(Pacing::Closed, 1, 1);
        client.opened(0, 0);
        send_all(&mut client, 0);
        // Big ones come in pieces, as from a socket.
        let mut pieces = answer.as_bytes().chunks(8192);
        let ends = pieces.any(|piece| deliver(&mut client, 0, piece, 1) == Verdict::Reopen);
        assert!(
            ends && client.tally.reasons == [(Fault::malformed(why), 1)],
            "{why}: {:?}",
            client.tally.reasons
        );
    }
    let mut client = client(Pacing::Closed, 1, 1);
    for (cut, why) in [(0, "closed without an answer"), (7, "closed in the middle of an answer")] {
        client.opened(0, 0);
        send_all(&mut client, 0);
        deliver(&mut client, 0, &ANSWER[..cut], 1);
        client.ended(0, cut > 0, 1);
        assert_eq!(client.tally.reasons.last(), Some(&(Fault { kind: ErrorKind::Io, why }, 1)));
    }
    client.opened(0, 2);
    send_all(&mut client, 0);
    client.broke(0, Fault::broken(&std::io::ErrorKind::ConnectionReset.into()));
    assert_eq!(client.tally.reasons[2].0.why, "connection reset");
    client.tally.clear();
    assert!(client.tally.reasons.is_empty());
}

#[test]
fn the_first_place_that_a_redirect_leads_to_is_known() {
    let mut client = client(Pacing::Closed, 1, 1);
    client.opened(0, 0);
    let mut after = |answer: &str| {
        send_all(&mut client, 0);
        assert_eq!(deliver(&mut client, 0, answer.as_bytes(), 1), Verdict::Keep);
        client.redirected_to()
    };
    assert_eq!(after("HTTP/1.1 201 Created\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n"), None);
    assert_eq!(after("HTTP/1.1 304 Not Modified\r\nLocation: /same\r\n\r\n"), None);
    assert_eq!(after("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), None);
    let moved = |to: &str| format!("HTTP/1.1 301 Moved\r\nlocation:  {to} \r\nContent-Length: 0\r\n\r\n");
    assert_eq!(after(&moved("https://h/\u{9b}")).as_deref(), Some("https://h/"));
    assert_eq!(after(&moved("/other")).as_deref(), Some("https://h/"));
}

#[test]
fn bytes_nobody_asked_for_are_malformed() {
    let mut client = client(Pacing::Open { rate_hz: 1.0, gaps: Gaps::Fixed }, 1, 1);
    client.opened(0, 0);
    send_all(&mut client, 0);
    assert_eq!(deliver(&mut client, 0, ANSWER, 1), Verdict::Keep);
    assert_eq!(deliver(&mut client, 0, ANSWER, 2), Verdict::Reopen);
    assert_eq!((client.tally.answers, errors(&client, ErrorKind::Malformed)), (1, 1));
    client.opened(0, 2_000_000_000);
    assert_eq!(client.in_flight(2_000_000_000), 2);
    assert_eq!(deliver(&mut client, 0, ANSWER, 2_000_000_001), Verdict::Reopen, "not sent yet");
}

#[test]
fn due_requests_go_to_the_connection_that_was_free_longest() {
    let mut client = client(Pacing::Open { rate_hz: 1e6, gaps: Gaps::Fixed }, 2, 3);
    client.schedule.take(0);
    for c in [2, 0, 1] {
        client.opened(c, 1);
    }
    let taken: Vec<_> = std::iter::from_fn(|| client.assign(8_500)).collect();
    assert_eq!(taken, [2, 0, 1, 2, 0, 1], "spread, then full");
    assert_eq!(client.in_flight(8_500), 8);
    assert_eq!(client.schedule.due(8_500).map(|due| due.unsent), Some(2));
}

#[derive(Debug, Clone)]
enum Happening {
    Answer { count: usize, last: bool, cut: usize },
    Break,
    End,
    Reopen,
    Refuse,
    Pass { ns: u64 },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0usize..5, prop::bool::weighted(0.1), any::<usize>())
            .prop_map(|(count, last, cut)| Happening::Answer { count, last, cut }),
        1 => Just(Happening::Break),
        1 => Just(Happening::End),
        3 => Just(Happening::Reopen),
        1 => Just(Happening::Refuse),
        3 => (0u64..20_000_000).prop_map(|ns| Happening::Pass { ns }),
    ]
}

proptest! {
    /// Whether answers are counted one by one or many at a time, the same is counted and sent.
    #[test]
    fn answers_alike_are_answers(
        pipeline in 1u32..6,
        pieces in prop::collection::vec((prop::collection::vec(0usize..4, 0..6), any::<usize>()), 1..20),
    ) {
        const MALFORMED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nhi";
        let mut clients = [(); 2].map(|()| client(Pacing::Closed, pipeline, 1));
        clients[1].alike = None;
        clients.iter_mut().for_each(|client| client.opened(0, 0));
        for (at, (answers, cut)) in pieces.iter().enumerate() {
            let kinds = [ANSWER, ANSWER, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", MALFORMED];
            let bytes: Vec<u8> = answers.iter().flat_map(|&kind| kinds[kind]).copied().collect();
            let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
            let now_ns = 1_000 * at as u64;
            let seen = clients.each_mut().map(|client| {
                let mut verdicts = Vec::new();
                for piece in [first, second] {
                    // The socket takes as much as it likes.
                    let sent = client.unsent(0).unwrap().len().min(cut % 500);
                    client.sent(0, sent);
                    let verdict = deliver(client, 0, piece, now_ns);
                    verdicts.push(verdict);
                    if verdict == Verdict::Reopen {
                        client.opened(0, now_ns);
                    }
                }
                let tally = &client.tally;
                let counted = (tally.answers, tally.errors, tally.status_codes.clone(), tally.bytes_in);
                let apart = (tally.times.latency.clone(), tally.times.whole_apart.clone(), client.failures(0));
                (verdicts, counted, apart, client.unsent(0).unwrap().to_vec(), client.in_flight(now_ns))
            });
            prop_assert_eq!(&seen[0], &seen[1]);
        }
    }

    /// Whatever happens to connections, each arrival of an open loop is answered once, fails once, or waits.
    #[test]
    fn every_arrival_has_one_fate(
        pipeline in 1u32..4,
        poisson: bool,
        happenings in prop::collection::vec((0u32..3, happening()), 1..80),
    ) {
        let gaps = if poisson { Gaps::Poisson } else { Gaps::Fixed };
        let mut client = client(Pacing::Open { rate_hz: 2000.0, gaps }, pipeline, 3);
        let mut now_ns = 0;
        for (c, happening) in happenings {
            let connection = client.places.at(c);
            let (open, in_flight) = (connection.open, connection.in_flight as usize);
            match happening {
                Happening::Answer { count, last, cut } if open => {
                    let mut bytes = ANSWER.repeat(count.min(in_flight));
                    if last && count < in_flight {
                        bytes.extend_from_slice(LAST_ANSWER);
                    }
                    let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
                    if deliver(&mut client, c, first, now_ns) == Verdict::Keep {
                        deliver(&mut client, c, second, now_ns);
                    }
                }
                Happening::Break if open => { client.broke(c, ErrorKind::Io); }
                Happening::End if open => { client.ended(c, false, now_ns); }
                Happening::Reopen if !open => client.opened(c, now_ns),
                Happening::Refuse if !open => client.refused(c..c + 1, ErrorKind::Connect.into()),
                Happening::Pass { ns } => {
                    now_ns += ns;
                    client.expire(c, now_ns);
                }
                _ => {}
            }
            while client.assign(now_ns).is_some() {}
            for c in 0..3 {
                let connection = client.places.at(c);
                prop_assert!(connection.in_flight <= pipeline);
                prop_assert!(connection.unsent <= connection.outstanding);
                send_all(&mut client, c);
            }
            prop_assert!(client.free.len() <= 3);
            let failed = errors(&client, ErrorKind::Io) + errors(&client, ErrorKind::Timeout);
            let scheduled = client.schedule.due(now_ns).unwrap().scheduled;
            prop_assert_eq!(errors(&client, ErrorKind::Malformed), 0);
            let fates = client.tally.answers + failed + client.in_flight(now_ns);
            prop_assert_eq!(fates, scheduled);
        }
    }
}

#[test]
fn what_is_due_while_every_connection_is_busy_waits_for_an_answer() {
    let pacing = Pacing::Open { rate_hz: 1e6, gaps: Gaps::Fixed };
    let mut client = client(pacing, 1, 1);
    client.opened(0, 0);
    while client.assign(10_000).is_some() {}
    assert!(client.in_flight(10_000) > 1, "more is due than one connection carries");
    assert_eq!(client.next_due_ns(), None, "it would look again and again, and find nothing to do");
    send_all(&mut client, 0);
    deliver(&mut client, 0, ANSWER, 20_000);
    while client.assign(20_000).is_some() {}
    assert_eq!(client.next_due_ns(), None);
}

#[test]
fn out_of_turn_connections_wait_and_are_all_filled_when_it_comes() {
    let turn_ns = TURN_NS_MIN;
    let turns =
        |place| Interleaving { begin_ns: 0, turn_ns, rest_ns: 0, arms: 2, place, seed: 1, slices: None };
    // Whoever is second in the first round.
    let turns = [0, 1].map(turns).into_iter().find(|turns| !turns.at(0).is_ours).unwrap();
    let mut client = client(Pacing::Interleaved(turns), 1, 2);
    assert_eq!(client.next_due_ns(), None, "nobody to be woken for");
    client.opened(0, 10);
    client.opened(1, 20);
    assert_eq!((client.in_flight(20), client.next_due_ns()), (0, Some(turn_ns)));
    assert_eq!(client.assign(turn_ns - 1), None);
    assert_eq!([turn_ns - 1, turn_ns].map(|now_ns| client.is_out_of_turn(now_ns)), [true, false]);
    assert_eq!(
        [client.assign(turn_ns), client.assign(turn_ns), client.assign(turn_ns)],
        [Some(0), Some(1), None]
    );
    (0..2).for_each(|c| _ = send_all(&mut client, c));
    assert_eq!(deliver(&mut client, 0, ANSWER, turn_ns + 10), Verdict::Keep);
    assert_eq!(client.in_flight(turn_ns + 10), 2, "in its turn it is a closed loop");
    // The second round is in the reverse order: its first turn is ours again.
    let over_ns = 3 * turn_ns;
    send_all(&mut client, 0);
    assert_eq!(deliver(&mut client, 0, ANSWER, over_ns + 10), Verdict::Keep);
    assert_eq!(
        (client.in_flight(over_ns + 10), client.tally.answers),
        (1, 2),
        "what is in flight is answered"
    );
    assert_eq!(client.tally.out_of_turn, 1, "and counted as late");
}
