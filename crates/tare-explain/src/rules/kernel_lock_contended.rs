//! `kernel-lock-contended`: threads of the program contended for locks of the kernel. Where that is spinning it is run
//! time and looks like work. Three explanations compete, and each is set against the numbers: one socket's lock, soft
//! interrupts on CPUs that are busy already, and wake-ups from other CPUs.

use super::{Draft, Input, Rule, Scope, number, number_if, percent};
use crate::allotment::ratio;
use crate::books::Books;
use crate::window::Window;
use std::fmt;
use tare_record::outcome::{Cause, Evidence};

pub(super) static RULE: Rule =
    Rule { cause: Cause::KernelLockContended, scope: Scope::Any, needs: &[Input::Sut], applies, describe };

/// Less of the serving threads' time than this is no finding.
const NOTICE_SHARE: f64 = 0.03;
/// From this share of contended time on at sockets' locks those are the place; below the other they are not.
const SOCKETS_SUPPORT: f64 = 0.5;
const SOCKETS_REFUTE: f64 = 0.1;
/// The same for soft interrupts' share of the busy time of the program's CPUs.
const SOFTIRQ_SUPPORT: f64 = 0.15;
const SOFTIRQ_REFUTE: f64 = 0.03;
/// And for wake-ups from other CPUs, for each request (without requests: for each millisecond).
const WAKES_SUPPORT: f64 = 0.3;
const WAKES_REFUTE: f64 = 0.05;

/// What the numbers say of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Supported,
    Refuted,
    NotVisible,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Standing::Supported => "supported",
            Standing::Refuted => "refuted",
            Standing::NotVisible => "not visible here",
        })
    }
}

fn standing(figure: Option<f64>, support: f64, refute: f64) -> Standing {
    match figure {
        Some(figure) if figure >= support => Standing::Supported,
        Some(figure) if figure < refute => Standing::Refuted,
        _ => Standing::NotVisible,
    }
}

fn contended(window: &Window) -> Option<f64> {
    let serving_s = window.sut.as_ref()?.serving_s;
    window.switches.is_traced().then(|| ratio(window.switches.contended_s(|_, _, _| true), serving_s))
}

/// Functions that take the lock of one socket.
fn is_socket(function: &str) -> bool {
    ["lock_sock", "release_sock", "__sk_", "sk_", "sock_", "tcp_", "udp_", "unix_", "inet_"]
        .iter()
        .any(|start| function.trim_start_matches('_').starts_with(start.trim_start_matches('_')))
}

fn at_sockets(window: &Window) -> Option<f64> {
    let all_s = window.switches.contended_s(|_, _, _| true);
    (all_s > 0.0).then(|| window.switches.contended_s(|at, _, _| is_socket(at)) / all_s)
}

/// Soft interrupts' share of the busy time of the CPUs that the program ran on.
fn softirq(window: &Window) -> Option<f64> {
    let used = || window.cpus.values().filter(|cpu| cpu.ran_s.sut > 0.01 * cpu.wall_s);
    let busy_s: f64 = used().map(|cpu| cpu.user_s + cpu.system_s + cpu.softirq_s).sum();
    (busy_s > 0.0).then(|| used().map(|cpu| cpu.softirq_s).sum::<f64>() / busy_s)
}

fn wakes(window: &Window) -> Option<f64> {
    let crossing = window.switches.cross_cpu()?;
    window.per_request(crossing).or_else(|| (window.wall_s > 0.0).then(|| crossing / window.wall_s / 1e3))
}

fn applies(books: &Books) -> bool {
    contended(&books.asked.pool).is_some_and(|share| share >= NOTICE_SHARE)
}

fn describe(books: &Books) -> Draft {
    let pool = &books.asked.pool;
    let share = contended(pool);
    let (sockets, softirq, wakes) = (at_sockets(pool), softirq(pool), wakes(pool));
    let spun = share.map(|_| {
        let all_s = pool.switches.contended_s(|_, _, _| true);
        ratio(pool.switches.contended_s(|_, spins, _| spins), all_s)
    });
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(number_if(
        "contention for the kernel's locks, of the serving threads' time",
        share,
        "share",
    ));
    evidence.extend(number_if("of that by spinning", spun, "share"));
    if let Some((at, locks)) = pool.switches.most_contended() {
        evidence.push(number(format!("different locks at {at}, where most was"), f64::from(locks), "count"));
    }
    evidence.extend(number_if("of that at a socket's lock", sockets, "share"));
    evidence.extend(number_if("soft interrupts in the busy time of its CPUs", softirq, "share"));
    evidence.extend(number_if("wake-ups from another CPU, a request (or ms)", wakes, "count"));
    let place = pool.switches.most_contended().map_or(String::new(), |(at, _)| format!(", most at {at}"));
    Draft {
        summary: format!(
            "Threads of the program contended for locks of the kernel {} of their time{place}. One socket's lock: {}; soft interrupts forced onto busy CPUs: {}; wake-ups across CPUs: {}.",
            share.map_or("an unknown share".to_owned(), percent),
            standing(sockets, SOCKETS_SUPPORT, SOCKETS_REFUTE),
            standing(softirq, SOFTIRQ_SUPPORT, SOFTIRQ_REFUTE),
            standing(wakes, WAKES_SUPPORT, WAKES_REFUTE),
        ),
        effect_ln: 0.0,
        confidence: books.support(contended, NOTICE_SHARE),
        evidence,
        remedy: "give each thread sockets (SO_REUSEPORT), an epoll and files of its own, and keep interrupts off its CPUs"
            .to_owned(),
        confirm: "with one thread the contention is gone; perf lock contention names the callers".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_stands_falls_or_is_not_seen() {
        assert_eq!(standing(Some(0.6), 0.5, 0.1), Standing::Supported);
        assert_eq!(standing(Some(0.05), 0.5, 0.1), Standing::Refuted);
        assert_eq!(standing(Some(0.3), 0.5, 0.1), Standing::NotVisible);
        assert_eq!(standing(None, 0.5, 0.1), Standing::NotVisible);
        assert!(is_socket("lock_sock_nested") && is_socket("__lock_sock") && is_socket("tcp_v4_rcv"));
        assert!(!is_socket("ep_poll") && !is_socket("futex_wake"));
    }
}
