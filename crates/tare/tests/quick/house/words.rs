//! The words that went away, and where each may still stand because it means something else.

use std::collections::BTreeMap;

/// Words and phrases of one meaning that went away.
pub struct Gone {
    /// What takes their place.
    pub instead: &'static str,
    /// In lower case. `a_b`, `a-b` and `AB` count as `a b`.
    pub words: &'static [&'static str],
    /// Phrases that hold one of the words in another meaning.
    pub unless_in: &'static [&'static str],
    /// Files that have this word use the others in another meaning.
    pub unless_beside: Option<&'static str>,
}

const fn gone(instead: &'static str, words: &'static [&'static str]) -> Gone {
    Gone { instead, words, unless_in: &[], unless_beside: None }
}

/// The left column of the glossary. Where a word of it is also ordinary English or a term of its own, only phrases
/// of the old meaning stand here, or what it may stand in is named.
pub const GONE: &[Gone] = &[
    // "hold" is ordinary: it went away for what is done with a session.
    gone(
        "session",
        &[
            "sitting",
            "sittings",
            "hold a session",
            "holds a session",
            "hold the session",
            "holds the session",
            "session held",
            "session is held",
            "sessions held",
            "held session",
        ],
    ),
    // The documentation, and the program that makes pages of it.
    Gone {
        unless_in: &["the book", "md book"],
        ..gone("accounting", &["book", "books", "booked", "ledger", "ledgers"])
    },
    // A limit of a resource, of a group or of a number stays a limit.
    gone(
        "bottleneck",
        &[
            "is the limit",
            "was the limit",
            "be the limit",
            "are the limit",
            "not the limit",
            "never the limit",
            "the limit is what",
            "the limit was",
            "the limit is said",
            "the limit first",
            "the limit or",
            "the limit and",
            "the limit says",
            "limit and findings",
            "limit findings",
            "limit rules",
            "name a limit",
            "name the limit",
            "names the limit",
            "named the limit",
            "names a limit",
            "no limit is named",
            "confirm the limit",
            "another limit",
            "or limit",
            "limit confidence",
            "limit cause",
            "limit the first",
            "what the limit is",
            "which limit",
            "limits throughput",
            "seen limits",
            "limits vec cause",
            "limit server cpu bound",
            "limit load generator bound",
            "limit unknown",
            "limit errors",
            "limit network",
            "limit s own",
            "with this limit",
            "neither a limit",
            "a limit that is",
            "causes and limits",
        ],
    ),
    gone("measure", &["weigh", "weighs", "weighed", "weighing", "weighings"]),
    // Weighted sums, and what the kernel calls the weight of a group or a thread.
    gone(
        "service demand",
        &[
            "weight of a request",
            "weights of a request",
            "cost of a request",
            "costs of a request",
            "cost of each request",
            "cost per request",
        ],
    ),
    gone("reference server", &["reference weight", "reference weights", "known weight", "known weights"]),
    gone("idle (no work)", &["starve", "starves", "starved", "starving"]),
    gone("interference, or drift", &["weather", "weathers", "weathered"]),
    // The verb ("looks for", "looks at") is ordinary; the noun went away.
    gone(
        "samples",
        &[
            "the looks",
            "by looks",
            "of looks",
            "those looks",
            "these looks",
            "all looks",
            "between looks",
            "from looks",
            "few looks",
            "more looks",
            "its looks",
            "our looks",
            "looks are",
            "looks were",
            "looks of",
            "per look",
            "looks per",
            "a look",
            "each look",
            "one look",
            "first look",
            "last look",
            "next look",
            "every look",
            "number of looks",
            "looks share",
            "looks at a second",
        ],
    ),
    gone("interleaved", &["in turns", "by turns"]),
    gone("arm", &["party", "parties"]),
    gone("A/A control", &["placebo", "placebos", "against itself"]),
    Gone {
        unless_in: &["lots of", "dealt with"],
        ..gone("randomized order", &["lots", "dealt", "by lot", "drawn by lot"])
    },
    gone("CPU entitlement", &["allotment", "allotments", "allotted"]),
    // "own" is ordinary; the loss of that name is self-contention.
    gone("self-contention", &["own threads in the way", "own threads in each other"]),
    Gone { unless_in: &["of course"], ..gone("timeline", &["course", "courses"]) },
    // The certificates of TLS.
    Gone { unless_beside: Some("tls"), ..gone("calibration report", &["certificate", "certificates"]) },
    // The kernel's distance between NUMA nodes.
    Gone {
        unless_in: &[
            "numa distance",
            "numa distances",
            "node distance",
            "node distances",
            "distances of nodes",
            "distance of nodes",
            "distance file",
        ],
        ..gone(
            "core-to-core latency",
            &[
                "distance between cpus",
                "distance of cpus",
                "distances between cpus",
                "distance of two cpus",
                "cpu distance",
                "cpus are apart",
                "cpus apart",
                "distance ns",
                "distances ns",
                "mod distance",
            ],
        )
    },
    gone("more / less CPU per request", &["dearer", "cheaper"]),
    gone("oversubscribed", &["crowd", "crowds", "crowded", "crowding", "overcrowded"]),
    gone("warning", &["caution", "cautions"]),
    // The peer of a socket stays a peer.
    gone("wake-up of another SUT thread", &["peer wake", "peer wakes", "peer wakeup", "peer wakeups"]),
    gone("interference-corrected", &["calm", "calmer", "calmly", "calmest"]),
    // Shifting bits or time is ordinary.
    gone(
        "change points",
        &["level shift", "level shifts", "shifts of level", "shifts of the level", "a shift of"],
    ),
    gone("reported, known, detected", &["told", "telling", "untold", "foretold"]),
    // A program that waits for something is ordinary; the cause has another name.
    Gone { unless_in: &["the program waits", "a program waits"], ..gone("program-idle", &["program waits"]) },
    gone("setting", &["knob", "knobs"]),
];

/// A word of a text, in lower case, and the line it stands in.
struct Word {
    text: String,
    line: usize,
    /// Nothing but spaces and marks of comments or names stands between it and the word before.
    follows: bool,
}

/// The words of a text: of `aB_c` they are `a`, `b` and `c`.
fn words_of(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut line, mut follows, mut before) = (1, false, ' ');
    let letters: Vec<char> = text.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        if letter.is_alphabetic() {
            let next_is_lower = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
            let begins = !before.is_alphabetic()
                || letter.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_lower);
            if begins {
                words.push(Word { text: String::new(), line, follows });
                follows = true;
            }
            if let Some(word) = words.last_mut() {
                word.text.extend(letter.to_lowercase());
            }
        } else {
            follows &= letter.is_whitespace() || "_-/`*#!\\".contains(letter);
            line += usize::from(letter == '\n');
        }
        before = letter;
    }
    words
}

/// What of the old words a text has: the line, the words, and what should stand there.
pub fn found(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let words = words_of(text);
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, word) in words.iter().enumerate() {
        places.entry(&word.text).or_default().push(at);
    }
    let stand = |phrase: &str| -> Vec<usize> {
        let first = phrase.split(' ').next().and_then(|first| places.get(first));
        first.into_iter().flatten().copied().filter(|at| stands_at(&words, *at, phrase)).collect()
    };
    let mut found = Vec::new();
    for gone in GONE {
        if gone.unless_beside.is_some_and(|other| places.contains_key(other)) {
            continue;
        }
        for phrase in gone.words {
            let ends = |start: usize, phrase: &str| start + phrase.split(' ').count();
            for at in stand(phrase) {
                let excused = gone.unless_in.iter().any(|other| {
                    let around = |start: &usize| *start <= at && ends(*start, other) >= ends(at, phrase);
                    stand(other).iter().any(around)
                });
                if !excused {
                    found.push((words[at].line, *phrase, gone.instead));
                }
            }
        }
    }
    found.sort_unstable();
    found
}

fn stands_at(words: &[Word], at: usize, phrase: &str) -> bool {
    let parts = phrase.split(' ').enumerate();
    parts
        .into_iter()
        .all(|(i, part)| words.get(at + i).is_some_and(|word| word.text == part && (i == 0 || word.follows)))
}

#[test]
fn old_words_are_found_in_names_and_across_lines_and_nowhere_else() {
    let of = |text: &str| found(text).into_iter().map(|(line, phrase, _)| (line, phrase)).collect::<Vec<_>>();
    assert_eq!(of("let SittingPlan = books_a;"), [(1, "books"), (1, "sitting")]);
    assert_eq!(of("/// run in\n/// turns, as a party"), [(1, "in turns"), (2, "party")]);
    assert_eq!(of("of course lots of limits and a peer, in turn; a certificate for TLS"), []);
    assert_eq!(of("a certificate"), [(1, "certificate")]);
    assert_eq!(of("ends in. Turns come"), []);
    assert_eq!(of("`mdBook` makes pages of the book"), []);
    assert_eq!(of("of the books"), [(1, "books")]);
}
