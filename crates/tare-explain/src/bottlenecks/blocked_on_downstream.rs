//! `blocked-on-downstream`: serving threads slept on a socket that they had connected: another server's answers. The
//! program's own: it stays in net.

use crate::accounting::Asleep;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, program_wait_draft};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::signs::sides::waits_itself;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::program_wait;
use tare_model::outcome::{Cause, GrossIs};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::BlockedOnDownstream,
    title: "Another server is the bottleneck: the program waits for its answers",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    gross_is: GrossIs::Capacity,
    holds: |accounting| waits_itself(accounting, Asleep::Downstream),
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "the other server is not tare's",
        instead: "run again against a quicker one",
    },
    injections: &["downstream"],
    page: &PAGE,
};

/// Servers that are named.
const PEERS_NAMED: usize = 4;

fn applies(accounting: &Accounting) -> bool {
    program_wait(accounting, Asleep::Downstream) >= 0.1
}

fn describe(accounting: &Accounting) -> Draft {
    let peers = accounting.asked.pool.switches.peers();
    let named: Vec<&str> = peers.iter().take(PEERS_NAMED).map(|peer| peer.peer.as_str()).collect();
    let verb = match named.as_slice() {
        [] => "slept on another server".to_owned(),
        named => format!("slept on {}", named.join(", ")),
    };
    let mut draft = program_wait_draft(
        accounting,
        Asleep::Downstream,
        &verb,
        "ask that server less often (cache, batch), several times at once, or make it faster; measure it with tare run --sut-pid",
        "with the other server's answers ready at once (a stub) the wait is gone",
    );
    let share = |peer: &tare_model::schedule::PeerShare| {
        number(format!("{}, of all sleep on other servers", peer.peer), peer.share, "share")
    };
    draft.evidence.extend(peers.iter().take(PEERS_NAMED).map(share));
    draft
}

static PAGE: Page = Page {
    brief: "Serving threads slept on another server's answers (backend, database).",
    means: &[
        "Threads that handle requests waited for the answer of another server (downstream). The program is \
         not full, and its CPU time per request says little about its rate.",
        "Downstream calls are a part of the program, so the wait stays in net.",
    ],
    evidence: &[
        "Share of the entitlement in which serving threads slept on sockets that they had connected.",
        "The other servers by address or name, each with its share of that sleep.",
    ],
    looks_the_same: &[
        "`too-little-concurrency`: threads wait for requests on accepted connections. That is idle time, \
         and not this.",
        "`lock-contended`: a pool of downstream connections that is too small shows as a wait for the \
         pool's lock.",
        "An event loop that waits for many sockets at once is idle for tare. Then the result is \
         `too-little-concurrency` or `unknown`.",
    ],
    to_do: &[
        "Ask less often (cache, batch), or several at once instead of one after the other.",
        "Measure the other server itself: `tare run --sut-pid PID URL`. Its own bottleneck is the answer.",
        "Allow more at once: more threads, a larger connection pool, until the other server is full.",
    ],
    to_confirm: &[
        "There is no intervention: the other server is not tare's. Run again against a stub that answers at \
         once. The wait is gone.",
        "By hand: `ss -tnp` (the program's connections), and `tare run --stacks-off-cpu URL` with `tare \
         flame --off-cpu`.",
    ],
    source: &[
        "Which socket a thread sleeps on (`/proc/PID/task/TID/syscall` and `fd`), samples of its wait. E. \
         Lazowska and others, Quantitative System Performance, 1984, chapter 5: bounds of a closed system.",
    ],
};
