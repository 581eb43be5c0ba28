//! Why the server's threads did not run: asleep by reason, and behind whom they waited.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::format::{count, joined, percent, seconds, with_unit};
use crate::words;
use tare_model::observation::Role;
use tare_model::outcome::{Hypothesis, Judged, ServingAccounting, Standing};
use tare_model::schedule::{
    HolderShare, ProgramLockShare, Quantiles, ScheduleSource, SwitchAccounting, UNSEEN_WAKE_SHARE_MAX,
};

pub(crate) static SECTION: Section =
    Section { title: "Asleep and waiting", media: &[Medium::Terminal, Medium::Page], build };

/// Names in a list, at most, and the least share that is reported.
const ROWS_MAX: usize = 6;
const SHARE_SHOWN: f64 = 0.005;
/// Threads that had a lock, at most.
const HOLDERS_MAX: usize = 3;

/// A label, and what is to be reported of it.
type Pair = (String, String);

fn build(source: &Source) -> Vec<Block> {
    let accounting = &source.outcome.accounting;
    let (Some(sut), Some(switches)) = (&accounting.sut, &accounting.switches) else { return Vec::new() };
    let Some(how) = switches.blocked_source else { return Vec::new() };
    // Not a table: what a figure is of stands behind it, and must not go where the terminal is narrow.
    let mut pairs = sleeps(&sut.serving, switches);
    pairs.extend(waits(&sut.serving, switches));
    pairs.extend(wakes(switches));
    pairs.extend(program_locks(switches));
    pairs.extend(kernel_locks(switches));
    pairs.extend(hypotheses(switches));
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Line(Text::dim(method(how, switches, of(source)))), Block::Pairs(pairs)];
    if switches.events_lost > 0 {
        let lost = format!("{} events were lost: what they said is missing here.", switches.events_lost);
        blocks.push(Block::Line(Text::plain(lost)));
    }
    if let Some(unseen) = switches.unseen_wake_share.filter(|share| *share > UNSEEN_WAKE_SHARE_MAX) {
        let unseen = format!(
            "The kernel reported no wake-up for {} of the sleeps: the waits and wake-ups here are lower bounds.",
            percent(unseen)
        );
        blocks.push(Block::Line(Text::plain(unseen)));
    }
    blocks
}

/// Whose threads they are.
fn of(source: &Source) -> &'static str {
    if source.http().is_some() { "Of its serving threads" } else { "Of the program's threads" }
}

fn method(how: ScheduleSource, switches: &SwitchAccounting, of: &str) -> String {
    let samples = "up to a hundred samples a second of what they were doing";
    match how {
        ScheduleSource::Samples => match &switches.not_traced {
            Some(missing) => format!("{of}, by {samples}: {}.", joined(&words::with_remedy(missing))),
            None => format!("{of}, by {samples}; --trace tells every switch."),
        },
        ScheduleSource::Tracepoints if switches.sampled_share > 0.0 => format!(
            "{of}, by every switch (tracepoints); {} of their time by {samples}, since the switches left the accounting of those threads open.",
            percent(switches.sampled_share)
        ),
        ScheduleSource::Tracepoints => format!("{of}, by every switch (tracepoints)."),
    }
}

fn sleeps(serving: &ServingAccounting, switches: &SwitchAccounting) -> Vec<Pair> {
    // A main thread that waits for its workers all day would hide what they wait for.
    let ServingAccounting { wall_s, blocked_s, .. } = serving;
    let mut parts: Vec<(&String, &f64)> =
        blocked_s.iter().filter(|(_, slept_s)| **slept_s >= SHARE_SHOWN * wall_s).collect();
    parts.sort_by(|a, b| b.1.total_cmp(a.1));
    let pair = |(why, slept_s): (&String, &f64)| {
        let what = match why.as_str() {
            "event" => ", for events, or a socket that it accepted".to_owned(),
            "lock" => {
                ", in a futex or a lock of the kernel: for a lock, or until another thread has work for it"
                    .to_owned()
            }
            "disk" => ", for a disk".to_owned(),
            "downstream" => downstream(switches),
            "timer" => ", for a time to pass".to_owned(),
            "fault" => ", for a page of memory".to_owned(),
            "parked" => {
                ", in a futex whose word says that nobody holds it, as a thread does that waits for work"
                    .to_owned()
            }
            "other" => ", in another system call".to_owned(),
            "unsplit" => ", the reason could not be sampled".to_owned(),
            _ => String::new(),
        };
        let why = match why.as_str() {
            "parked" => "without work, it seems",
            "unsplit" => "not known",
            "other" => "other call",
            why => why,
        };
        (format!("asleep: {why}"), format!("{} of their time{what}", percent(slept_s / wall_s)))
    };
    parts.into_iter().map(pair).collect()
}

fn downstream(switches: &SwitchAccounting) -> String {
    let peers = switches.downstream.iter().take(ROWS_MAX);
    let peers: Vec<String> = peers.map(|peer| format!("{} {}", peer.peer, percent(peer.share))).collect();
    match peers.is_empty() {
        true => ", for other servers".to_owned(),
        false => format!(", for other servers: {}", peers.join(", ")),
    }
}

/// Who ran in its place; threads of one name and role together, as each trial has a generator thread of its own.
fn waits(serving: &ServingAccounting, switches: &SwitchAccounting) -> Option<Pair> {
    let mut named: Vec<(String, Role, f64, f64)> = Vec::new();
    for one in &switches.preempted_by {
        match named.iter_mut().find(|(name, role, ..)| *name == one.name && *role == one.role) {
            Some((.., share, wait_s)) => (*share, *wait_s) = (*share + one.share, *wait_s + one.wait_s),
            None => named.push((one.name.clone(), one.role, one.share, one.wait_s)),
        }
    }
    named.sort_by(|one, other| other.2.total_cmp(&one.2));
    let waited_s: f64 = named.iter().map(|(.., wait_s)| wait_s).sum();
    let share = waited_s / serving.wall_s;
    let whose = |(name, role, share, _): &(String, Role, f64, f64)| {
        let whose = match role {
            Role::Sut => "its own",
            Role::Downstream => "downstream",
            Role::Load => "load generator",
            Role::Tare => "tare",
            Role::Other => "another program",
        };
        format!("{name} {} ({whose})", percent(*share))
    };
    let shown = named.iter().filter(|(_, _, share, _)| *share >= SHARE_SHOWN).take(ROWS_MAX);
    let shown: Vec<String> = shown.map(whose).collect();
    (share >= SHARE_SHOWN).then(|| {
        let of = format!("{} of their time; of that behind {}", percent(share), shown.join(", "));
        ("ready while others ran".to_owned(), of)
    })
}

fn wakes(switches: &SwitchAccounting) -> Vec<Pair> {
    let times = |one: &Quantiles| {
        let ns = |ns: f64| seconds(ns / 1e9);
        let ends = [ns(one.p90), ns(one.p99), ns(one.max)];
        let [most, nearly_all, longest] = ends;
        format!(
            "{} times: 90 % within {most}, 99 % within {nearly_all}, longest within {longest}",
            count(one.count)
        )
    };
    let named =
        [("waited for a CPU", &switches.run_queue_ns), ("from wake-up to running", &switches.wake_up_ns)];
    let mut pairs: Vec<Pair> = named
        .into_iter()
        .filter_map(|(name, of)| of.as_ref().map(|one| (name.to_owned(), times(one))))
        .collect();
    pairs.extend(switches.woken_hz.as_ref().map(|woken| {
        let all = woken.sut + woken.load + woken.interrupt + woken.other;
        let by = format!(
            "{} times a second: by own threads {}, generator {}, interrupts {}, others {}; {} across CPUs",
            count(all),
            count(woken.sut),
            count(woken.load),
            count(woken.interrupt),
            count(woken.other),
            count(woken.cross_cpu)
        );
        ("woken".to_owned(), by)
    }));
    let moved = switches.migrations_hz.map(|hz| format!("{} times a second", count(hz)));
    pairs.extend(moved.map(|moved| ("moved to another CPU".to_owned(), moved)));
    pairs
}

fn program_locks(switches: &SwitchAccounting) -> Vec<Pair> {
    let shown = switches.locks.iter().filter(|lock| lock.share >= SHARE_SHOWN).take(ROWS_MAX);
    let pair = |lock: &ProgramLockShare| {
        let slept = format!(
            "{} of their time asleep, {} times a second",
            percent(lock.share),
            count(lock.contended_hz)
        );
        let held =
            lock.held_ns.map_or(String::new(), |ns| format!("; held for {} each time", seconds(ns / 1e9)));
        let holder = |of: &HolderShare| format!("{} (thread {}) {}", of.name, of.tid, percent(of.share));
        let holders: Vec<String> = lock.holders.iter().take(HOLDERS_MAX).map(holder).collect();
        let by = if holders.is_empty() { String::new() } else { format!("; by {}", holders.join(", ")) };
        (format!("lock {}", lock.at), format!("{slept}{held}{by}"))
    };
    shown.map(pair).collect()
}

fn kernel_locks(switches: &SwitchAccounting) -> Vec<Pair> {
    let shown = switches.kernel_locks.iter().filter(|lock| lock.share >= SHARE_SHOWN).take(ROWS_MAX);
    let pair = |lock: &tare_model::schedule::LockShare| {
        let how = if lock.spins { "spinning" } else { "sleeping" };
        let share = percent(lock.share);
        let of = format!("{share} of their time {how}, {} times a second", count(lock.contended_hz));
        (format!("kernel lock at {}", lock.at), of)
    };
    shown.map(pair).collect()
}

/// What may hold back a server that shares nothing, where that was asked about: switches were traced.
fn hypotheses(switches: &SwitchAccounting) -> Vec<Pair> {
    let is_asked = switches.blocked_source == Some(ScheduleSource::Tracepoints);
    let pair = |judged: &Judged| {
        let name = match judged.hypothesis {
            Hypothesis::SocketLock => "sockets' locks",
            Hypothesis::SoftirqOnBusyCpus => "soft interrupts",
            Hypothesis::CrossCpuWakeups => "cross-CPU wake-ups",
        };
        let reported = |value: f64| with_unit(value, &judged.unit);
        let (low, high) = (reported(judged.refuted_below), reported(judged.supported_from));
        let (word, bounds) = match judged.standing {
            Standing::Supported => ("supported", format!("from {high} on")),
            Standing::Refuted => ("refuted", format!("below {low}")),
            Standing::NotVisibleHere => {
                ("not visible here", format!("refuted below {low}, supported from {high} on"))
            }
        };
        let rests_on = match judged.figure.clone().ok() {
            Ok(value) => format!("at {} ({bounds}): {}", reported(value), judged.of),
            Err(missing) => joined(&missing.why),
        };
        (format!("hypothesis: {name}"), format!("{word}, {rests_on}"))
    };
    switches.hypotheses.iter().filter(|_| is_asked).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tare_model::schedule::{PeerShare, Preemptor, WakerRates};
    use tare_model::{Missing, Reading};

    fn judged(hypothesis: Hypothesis, standing: Standing, figure: Reading<f64>, unit: &str) -> Judged {
        let (of, unit) = ("a figure".to_owned(), unit.to_owned());
        Judged { hypothesis, standing, of, unit, figure, supported_from: 0.2, refuted_below: 0.02 }
    }

    #[test]
    fn every_figure_says_what_it_is_of() {
        let behind = |name: &str, role, share| Preemptor {
            name: name.to_owned(),
            pid: 7,
            role,
            share,
            wait_s: 2.0 * share,
        };
        let powers = Vec::new();
        let times = Quantiles { count: 54_300.0, p50: 1e3, p90: 16_400.0, p99: 262e3, max: 8.39e6, powers };
        let switches = SwitchAccounting {
            blocked_source: Some(ScheduleSource::Tracepoints),
            not_traced: None,
            sampled_share: 0.0,
            events_lost: 0,
            preempted_by: vec![
                behind("neighbour", Role::Other, 0.4),
                behind("tare-load-0", Role::Load, 0.35),
                behind("tare-load-0", Role::Load, 0.25),
            ],
            run_queue_ns: Some(times),
            wake_up_ns: None,
            unseen_wake_share: None,
            migrations_hz: Some(1.69),
            woken_hz: Some(WakerRates { sut: 0.0, load: 1.0, interrupt: 226.0, other: 0.0, cross_cpu: 84.2 }),
            locks: Vec::new(),
            kernel_locks: Vec::new(),
            downstream: vec![PeerShare { peer: "10.0.0.1:5432".to_owned(), share: 1.0 }],
            hypotheses: vec![
                judged(Hypothesis::SocketLock, Standing::Refuted, Reading::Measured(0.001), "share"),
                judged(Hypothesis::SoftirqOnBusyCpus, Standing::Supported, Reading::Measured(0.4), "share"),
                judged(
                    Hypothesis::CrossCpuWakeups,
                    Standing::NotVisibleHere,
                    Reading::Measured(0.1),
                    "count",
                ),
                judged(
                    Hypothesis::SocketLock,
                    Standing::NotVisibleHere,
                    Reading::missing("7 events were lost"),
                    "share",
                ),
            ],
        };
        let serving = ServingAccounting {
            threads: 1,
            wall_s: 10.0,
            blocked_s: BTreeMap::from([("downstream".to_owned(), 5.0), ("lock".to_owned(), 0.04)]),
        };
        let mut pairs = sleeps(&serving, &switches);
        pairs.extend(waits(&serving, &switches));
        pairs.extend(wakes(&switches));
        pairs.extend(hypotheses(&switches));
        let reported: Vec<String> =
            pairs.iter().map(|(label, text)| format!("{label}: {}", text.replace('\u{a0}', " "))).collect();
        insta::assert_snapshot!(reported.join("\n"), @r"
        asleep: downstream: 50 % of their time, for other servers: 10.0.0.1:5432 100 %
        ready while others ran: 20 % of their time; of that behind tare-load-0 60 % (load generator), neighbour 40 % (another program)
        waited for a CPU: 54.3k times: 90 % within 16.4 µs, 99 % within 262 µs, longest within 8.39 ms
        woken: 227 times a second: by own threads 0, generator 1, interrupts 226, others 0; 84.2 across CPUs
        moved to another CPU: 1.69 times a second
        hypothesis: sockets' locks: refuted, at 0.10 % (below 2.0 %): a figure
        hypothesis: soft interrupts: supported, at 40 % (from 20 % on): a figure
        hypothesis: cross-CPU wake-ups: not visible here, at 0.10 (refuted below 0.020, supported from 0.20 on): a figure
        hypothesis: sockets' locks: not visible here, 7 events were lost
        ");

        let refused = Missing::with_remedy("tracefs may not be listed", "run tare as root");
        let refused = SwitchAccounting { not_traced: Some(refused), ..switches };
        let reported = method(ScheduleSource::Samples, &refused, "Of its serving threads");
        assert!(reported.ends_with("doing: tracefs may not be listed (run tare as root)."), "{reported}");
    }
}
