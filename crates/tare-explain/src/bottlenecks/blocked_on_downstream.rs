//! `blocked-on-downstream`: serving threads slept on a socket that they had connected: another server's answers. The
//! program's own: it stays in net.

use crate::accounting::{Asleep, ratio};
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent, program_wait_draft};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::sides::{generator_is_full, server, waits_itself};
use crate::capacity::downstream::{self, Called};
use crate::capacity::levels::Accounting;
use crate::capacity::summary::program_wait;
use tare_model::downstream::DownstreamLimit;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::BlockedOnDownstream,
    title: "Another server is the bottleneck: the program waits for its answers",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    gross_is: GrossIs::Capacity,
    holds,
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

/// Somebody who is called and has time to spare is the reason only where a request waits longer for it than wake-ups take, and most of
/// that it is not at work.
const WAIT_MIN_S: f64 = 0.5e-3;
const SPARE_MIN: f64 = 0.5;
/// The server has so much time left where what it calls is full.
const LEFT_MIN: f64 = 0.05;

/// Where its threads sleep on the sockets of who they called; and where an event loop has time to spare while most requests in flight are
/// at a program that it called.
fn holds(accounting: &Accounting) -> Option<Claim> {
    called(accounting).or_else(|| waits_itself(accounting, Asleep::Downstream))
}

fn called(accounting: &Accounting) -> Option<Claim> {
    let sut = server(accounting)?;
    let pool = &accounting.asked.pool;
    let chain = downstream::blamed(pool);
    let (first, last) = chain.first().zip(chain.last())?;
    if generator_is_full(accounting) {
        return None;
    }
    let left = sut.tare_share(TareCause::NoWork) + program_wait(accounting, Asleep::Downstream);
    if last.limit != DownstreamLimit::None {
        return (left >= LEFT_MIN).then(|| Claim::at(Rank::CalledIsFull));
    }
    let wait_s = first.wait_s_per_request.filter(|wait_s| *wait_s >= WAIT_MIN_S)?;
    let work_s = ratio(last.busy_cpus, pool.rate_hz()?);
    let spare = 1.0 - ratio(work_s, wait_s);
    (left >= LOSS_SHARE_MIN && spare >= SPARE_MIN).then(|| Claim::at(Rank::WaitsForCalled))
}

fn applies(accounting: &Accounting) -> bool {
    program_wait(accounting, Asleep::Downstream) >= 0.1
}

fn describe(accounting: &Accounting) -> Draft {
    let chain = downstream::blamed(&accounting.asked.pool);
    match chain.as_slice() {
        [] => describe_sleeps(accounting),
        chain => describe_chain(accounting, chain),
    }
}

/// By the programs that requests wait for.
fn describe_chain(accounting: &Accounting, chain: &[Called]) -> Draft {
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return Draft::default() };
    let share = first.waited.map_or(0.0, |[least, _]| least);
    let names: Vec<&str> = chain.iter().map(|called| called.program.name.as_str()).collect();
    let path = names.join(", which waits for ");
    let at = last.program.at.iter().next().map_or(String::new(), |at| format!(" ({at})"));
    let each = first
        .wait_s_per_request
        .map_or(String::new(), |wait_s| format!(", {:.2} ms a request", 1e3 * wait_s));
    let mut evidence = Vec::new();
    for called in chain {
        let name = &called.program.name;
        let [least, most] = called.waited.unwrap_or_default();
        evidence.push(number(
            format!("requests that wait for {name}, of those in flight, at least"),
            least,
            "share",
        ));
        evidence.push(number(format!("requests that wait for {name}, at most"), most, "share"));
        evidence.extend(number_if(
            &format!("waited for {name} in a request"),
            called.wait_s_per_request,
            "s",
        ));
        evidence.extend(number_if(
            &format!("calls of {name} for a request"),
            called.calls_per_request,
            "count",
        ));
        evidence.extend(number_if(&format!("connections to {name} in use"), called.in_use, "share"));
        evidence.push(number(format!("{name} busy"), called.busy_cpus, "CPUs"));
    }
    if let Some(sut) = accounting.sut() {
        evidence.push(number("server busy, share of its CPUs", sut.busy() / sut.cpus(), "share"));
    }
    let most = match first.has_full_pool {
        true => format!(
            "Most requests wait for one of few connections to {}{at}: {} of these are in use, {:.2} ms for each request",
            first.program.name,
            percent(first.in_use.unwrap_or(0.0)),
            1e3 * first.wait_s_per_request.unwrap_or(0.0)
        ),
        false => {
            format!("Most requests wait for {path}{at}: {} of those in flight or more{each}", percent(share))
        }
    };
    Draft {
        summary: format!("{most}; {}.", limit_of(last)),
        effect_ln: 0.0,
        confidence: accounting.support(
            |window| {
                downstream::all(window)
                    .iter()
                    .filter(|called| {
                        called.program.caller.is_none() && called.program.name == first.program.name
                    })
                    .filter(|called| called.waited.is_some())
                    .map(Called::waits)
                    .max_by(f64::total_cmp)
            },
            downstream::MOST,
        ),
        evidence,
        // More connections help where the other server has time to spare.
        remedy: match first.has_full_pool && last.limit == DownstreamLimit::None {
            true => format!(
                "open more connections to {} (the size of the pool), or {}",
                first.program.name,
                remedy(last)
            ),
            false => remedy(last),
        },
        confirm: "with a stub in its place that answers at once the wait is gone".to_owned(),
    }
}

/// What the last of the chain has no more of.
fn limit_of(last: &Called) -> String {
    let (name, full) = (&last.program.name, percent(last.fullness));
    match last.limit {
        DownstreamLimit::OneThread => format!("{name}'s one working thread (its event loop) is busy {full}"),
        DownstreamLimit::AllThreads => format!("all threads that {name} works with are busy {full}"),
        DownstreamLimit::OneAtATime => {
            format!("{name} keeps {:.2} CPUs busy though it may use more and those are free", last.busy_cpus)
        }
        DownstreamLimit::Cpus => format!(
            "the CPUs that {name} may use are {full} full, {:.2} CPUs of that by itself",
            last.busy_cpus
        ),
        DownstreamLimit::Quota => format!(
            "{name} uses {:.2} of the {:.2} CPUs that its quota allows",
            last.busy_cpus,
            last.program.quota_cpus.unwrap_or(0.0)
        ),
        DownstreamLimit::None => {
            format!("{name} has time to spare (busy {full} at most): it sleeps or waits itself")
        }
    }
}

fn remedy(last: &Called) -> String {
    let name = &last.program.name;
    let first = match last.limit {
        DownstreamLimit::OneThread | DownstreamLimit::OneAtATime => {
            format!("run more of {name} (processes, workers, threads)")
        }
        DownstreamLimit::AllThreads => format!("give {name} more workers"),
        DownstreamLimit::Cpus => format!("give {name} CPUs of its own, or more of them"),
        DownstreamLimit::Quota => format!("raise {name}'s quota"),
        DownstreamLimit::None => format!("find what {name} waits for (its workers, its disk, whom it calls)"),
    };
    let pid = last.program.pids.iter().next().copied().unwrap_or(0);
    format!(
        "{first}; or ask it less often (cache, batch); measure it alone: tare run --sut-pid {pid} with a load of its own"
    )
}

fn describe_sleeps(accounting: &Accounting) -> Draft {
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
        "Downstream calls are a part of the program, so the wait stays in net. Where the other server is full, net is what the two can \
         do together. Where it has time to spare, more requests in flight may bring more, up to the net that is shown.",
    ],
    evidence: &[
        "Local programs at the other ends of the program's connections (TCP, Unix sockets, other network namespaces), found by who holds \
         the sockets, and those that they call in turn.",
        "Requests that wait for each, as a share of those in flight: connections on which the program sent last, sampled five times a \
         second. `at least` counts those that are known to wait; a Unix socket that is kept open does not show it.",
        "Connections to each that are in use: with all of them in use the other requests wait for one (a pool that is too small, or a server \
         behind it that is too slow).",
        "What the other server has no more of: one full thread, its CPUs, its quota; or that it has time to spare.",
        "Share of the entitlement in which serving threads slept on sockets that they had connected.",
        "The other servers by address or name, each with its share of that sleep.",
    ],
    looks_the_same: &[
        "`too-little-concurrency`: threads wait for requests on accepted connections. That is idle time, \
         and not this.",
        "`lock-contended`: threads that share a pool of connections that is too small wait for the pool's lock. Here the \
         connections themselves are seen to be in use.",
        "`server-cpu-bound`: the other server runs on the program's own CPUs, and these are full.",
        "`load-generator-bound`: requests wait for the generator, not for the other server.",
        "A server on another host: the program's threads are seen to sleep for it, an event loop is not. Then \
         the result is `too-little-concurrency` or `unknown`.",
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
