//! `softirq-saturated`: the SUT's CPUs handled packets that are not its own.
//!
//! A CPU handles what its network queues receive, for whomever it is, and whoever runs there waits (or is charged with it,
//! where the kernel does not account interrupts apart). The kernel counts the packets of each CPU, and of the SUT's
//! connections those that came in: the rest are others'. How long they took is their share of soft interrupts, which are
//! sampled at ticks, and each packet counts alike.

use crate::accounting::ratio;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::NOTICE_SHARE;
use crate::bottlenecks::signs::packets::{self, OthersPackets};
use crate::bottlenecks::signs::sides::taken_by_others;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::SoftirqSaturated,
    title: "Other programs' packets on its CPUs are the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Packets],
    gross_is: GrossIs::Capacity,
    holds,
    applies: |accounting| {
        packets::of_others(&accounting.asked.pool).is_some_and(|found| found.share >= NOTICE_SHARE)
    },
    describe,
    confirm: Confirm::Cannot {
        why: "other programs' packets are not tare's to stop",
        instead: "steer them to other CPUs, and run again",
    },
    injections: &[],
    page: &PAGE,
};

/// Packets that are too many to be handled in passing are handled by a thread, which others then wait for.
fn holds(accounting: &Accounting) -> Option<Claim> {
    if packets::preempt(accounting) {
        return taken_by_others(accounting, TareCause::Preempted);
    }
    packets::take_most(accounting).then(|| Claim::at(Rank::OthersPackets))
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let none = OthersPackets { share: 0.0, softirq: 0.0, packets: 0.0, others: 0.0 };
    let OthersPackets { share, softirq, packets, others } = packets::of_others(pool).unwrap_or(none);
    let per_s = |count: f64| ratio(count, pool.span.wall_s);
    Draft {
        summary: format!(
            "The server's CPUs spent {} of their time on packets that are not its own: {:.0} of {:.0} a second.",
            percent(share),
            per_s(others),
            per_s(packets)
        ),
        effect_ln: -(1.0 - share).ln(),
        confidence: accounting.support(|window| Some(packets::of_others(window)?.share), NOTICE_SHARE),
        evidence: vec![
            number("others' packets, share of the time of the server's CPUs", share, "share"),
            number("soft interrupts, share of the same", softirq, "share"),
            number("packets handled there", per_s(packets), "1/s"),
            number("of them not the server's", per_s(others), "1/s"),
        ],
        remedy: "send the other traffic's interrupts to other CPUs (tare tune --irqs-off, rps_cpus), or give the server CPUs \
                 without network queues"
            .to_owned(),
        confirm: "with the other traffic stopped, or steered away, throughput rises".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The program's CPUs handled packets of others in soft interrupts.",
    means: &[
        "A CPU handles what its network queues receive, for whomever it is. The thread that runs there \
         waits, or is charged with that time where the kernel does not account interrupts apart.",
        "More than half of the packets that the server's CPUs handled belong to other programs, and their \
         time is a part of the tare.",
    ],
    evidence: &[
        "Others' packets: share of the time of the server's CPUs. It is the share of soft interrupts there, \
         times the share of packets that are not the server's.",
        "Packets per second handled there, and how many of them are not the server's.",
        "Soft interrupts are sampled at ticks, and packets may be counted twice (bridges, steering). So the \
         share is an estimate, and is 0 unless others have more than half.",
        "All of TCP counts as the server's own where it calls other servers, where its connections came and went, and where the \
         reference server is loaded interleaved with it.",
    ],
    looks_the_same: &[
        "`server-cpu-bound`: the packets are the server's own. On loopback the sender does the receiver's \
         work.",
        "`cpu-contended`: ksoftirqd in front of the program is this cause; any other process is that one.",
        "`network-ceiling`: packets are lost or held back on the way, and the CPUs have time.",
    ],
    to_do: &[
        "Send the other traffic's interrupts elsewhere: `tare tune --apply --irqs-off 0-3`, and `rps_cpus` \
         of its queues.",
        "Give the server CPUs without network queues: `cat /proc/interrupts`.",
        "Find the traffic: `ss -tinp`, `tcpdump -i eth0 -c 100`, `iftop`.",
    ],
    to_confirm: &[
        "There is no intervention: other programs' packets are not tare's to stop. Stop the other traffic, \
         or steer it to other CPUs, and run again. Throughput rises.",
        "By hand: `mpstat -P ALL 1` (column %soft), and `cat /proc/net/softnet_stat` twice (first column: \
         packets of each CPU).",
    ],
    source: &["`/proc/net/softnet_stat`, `/proc/stat`, tcp_info of the server's connections. Linux: \
         Documentation/networking/scaling.rst."],
};
