//! `softirq-oversubscribed`: the SUT's CPUs handled packets that are not its own.
//!
//! A CPU takes in what its network queues give it, whoever it is for, and whoever runs there waits (or is charged with it,
//! where the kernel does not account interrupts apart). The kernel counts the packets of each CPU, and of the SUT's
//! connections those that came in: the rest are others'. How long they took is their share of soft interrupts, which are
//! sampled at ticks, all packets taken to be equally dear.

use super::{Draft, NOTICE_SHARE, Rule, Scope, number, percent};
use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::bottlenecks::Input;
use crate::bottlenecks::decide::LOSS_SHARE_MIN;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, TareCause};

/// A CPU is the SUT's where it ran for this share of it.
const USED_SHARE: f64 = 0.05;
/// Packets may be counted twice on their way (bridges, steering), so that more than these must be others'.
const OTHERS_MIN: f64 = 0.5;

pub(super) static RULE: Rule = Rule {
    cause: Cause::SoftirqSaturated,
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Packets],
    applies: |accounting| {
        oversubscription(&accounting.asked.pool)
            .is_some_and(|oversubscription| oversubscription.share >= NOTICE_SHARE)
    },
    describe,
};

/// Whether it takes more than noise, and more than the lack of load.
pub(crate) fn holds(accounting: &Accounting) -> bool {
    let share =
        oversubscription(&accounting.asked.pool).map_or(0.0, |oversubscription| oversubscription.share);
    share >= LOSS_SHARE_MIN && share >= accounting.lost(TareCause::NoWork)
}

struct Oversubscription {
    /// Of the time of the SUT's CPUs, others' packets.
    share: f64,
    /// Of that time, soft interrupts in all.
    softirq: f64,
    /// Packets handled there, and those of them that are others', in the window.
    packets: f64,
    others: f64,
}

/// `None` where packets were not counted.
fn oversubscription(window: &Closed) -> Option<Oversubscription> {
    let own = window.around.own_packets?;
    let (mut wall_s, mut softirq_s, mut packets) = (0.0, 0.0, 0.0);
    for (cpu, accounting) in window
        .cpus
        .iter()
        .filter(|(_, accounting)| accounting.ran_s.sut > USED_SHARE * accounting.times.wall_s)
    {
        wall_s += accounting.times.wall_s;
        softirq_s += accounting.times.modes.softirq_s;
        packets += window.around.packets.get(cpu)?;
    }
    // As if all of its own had been handled there.
    let others = (packets - own).max(0.0);
    let share =
        if others >= OTHERS_MIN * packets { ratio(softirq_s * ratio(others, packets), wall_s) } else { 0.0 };
    (wall_s > 0.0).then(|| Oversubscription {
        share: share.min(0.99),
        softirq: ratio(softirq_s, wall_s),
        packets,
        others,
    })
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let none = Oversubscription { share: 0.0, softirq: 0.0, packets: 0.0, others: 0.0 };
    let Oversubscription { share, softirq, packets, others } = oversubscription(pool).unwrap_or(none);
    let per_s = |count: f64| ratio(count, pool.span.wall_s);
    Draft {
        summary: format!(
            "The server's CPUs spent {} of their time on packets that are not its own: {:.0} of {:.0} a second.",
            percent(share),
            per_s(others),
            per_s(packets)
        ),
        effect_ln: -(1.0 - share).ln(),
        confidence: accounting.support(|window| Some(oversubscription(window)?.share), NOTICE_SHARE),
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
