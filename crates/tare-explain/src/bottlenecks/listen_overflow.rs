//! `listen-overflow`: connections were refused room in the accept queue.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::sides::server;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};
use tare_model::trial::ErrorKind;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ListenOverflow,
    title: "The accept queue is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Network],
    gross_is: GrossIs::LowerBound,
    holds,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "the queue's length is the program's to ask for",
        instead: "raise its backlog (and net.core.somaxconn), and run again",
    },
    injections: &["backlog"],
    page: &PAGE,
};

fn holds(accounting: &Accounting) -> Option<Claim> {
    let refused = accounting.asked.pool.answered.errors.contains_key(&ErrorKind::Connect);
    (server(accounting).is_some() && applies(accounting) && refused).then(|| Claim::at(Rank::QueueFull))
}

fn applies(accounting: &Accounting) -> bool {
    accounting.asked.pool.around.listen_overflows.is_some_and(|overflows| overflows >= 1.0)
}

fn describe(accounting: &Accounting) -> Draft {
    let overflows = accounting.asked.pool.around.listen_overflows.unwrap_or(0.0);
    let refused = accounting.asked.pool.answered.errors.get(&ErrorKind::Connect).copied().unwrap_or(0.0);
    Draft {
        summary: format!(
            "{overflows:.0} connection attempts found the accept queue full ({refused:.0} failed for the generator)."
        ),
        effect_ln: 0.0,
        confidence: if overflows >= 1.0 { 1.0 } else { 0.0 },
        evidence: vec![
            number("accept queue overflows in this network namespace", overflows, "count"),
            number("failed connects of the generator", refused, "count"),
        ],
        remedy: "raise the server's backlog and net.core.somaxconn, or open connections more slowly"
            .to_owned(),
        confirm: "with a longer queue the counter stands still".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "Connection attempts found the server's accept queue full.",
    means: &[
        "A connection that is set up waits in the listening socket's queue until the server accepts it. If \
         the queue is full the kernel drops the attempt, and the client tries again after a second or more.",
        "Throughput is a lower bound, and latency of new connections has steps of whole seconds.",
    ],
    evidence: &[
        "Overflows of accept queues in this network namespace during the trials.",
        "Connections that failed for the generator.",
    ],
    looks_the_same: &[
        "`errors`: connections are refused because nobody listens. The counter of overflows stands still.",
        "`server-cpu-bound`: the server is too busy to accept. It is named when the server is full; the \
         overflow is its consequence.",
        "A SYN flood limit: `TcpExtTCPReqQFullDrop` grows, not `TcpExtListenOverflows`.",
    ],
    to_do: &[
        "Raise the backlog that the server gives to listen(), and the kernel's bound for it: `tare tune \
         --apply --somaxconn 4096`.",
        "Accept more at once: several accepting threads (SO_REUSEPORT), accept in a loop until EAGAIN.",
        "Open connections more slowly, or keep them alive: the default of `tare run`, without \
         `--no-keepalive`.",
    ],
    to_confirm: &[
        "There is no intervention: the program chooses its backlog. With a longer queue the counter stands \
         still.",
        "By hand: `ss -ltn` (Recv-Q: waiting, Send-Q: room) and `nstat -az TcpExtListenOverflows \
         TcpExtListenDrops`.",
    ],
    source: &["`/proc/net/netstat` (ListenOverflows), connect errors of the generator. Linux: listen(2), \
         Documentation/networking/ip-sysctl.rst (somaxconn)."],
};
