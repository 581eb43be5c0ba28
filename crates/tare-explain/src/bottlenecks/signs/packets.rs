//! Packets of others that the SUT's CPUs handle.

use crate::accounting::Closed;
use crate::accounting::ratio;
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::sides::server;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::neighbours;
use tare_model::outcome::TareCause;

/// A CPU is the SUT's where it ran for this share of it.
const USED_SHARE: f64 = 0.05;
/// Packets may be counted twice on their way (bridges, steering), so that more than these must be others'.
const OTHERS_MIN: f64 = 0.5;

/// The kernel's thread for packets, one for each CPU; and of what the program lost, what it ran where it is the reason.
const KERNELS_THREAD: &str = "ksoftirqd/";
const MOST: f64 = 0.5;

/// What they took of the SUT's CPUs.
pub(crate) struct OthersPackets {
    /// Of the time of the SUT's CPUs, others' packets.
    pub share: f64,
    /// Of that time, soft interrupts in all.
    pub softirq: f64,
    /// Packets handled there, and those of them that are others', in the window.
    pub packets: f64,
    pub others: f64,
}

/// `None` where packets were not counted, or where it is not known which are its own.
pub(crate) fn of_others(window: &Closed) -> Option<OthersPackets> {
    let own = at_most_own(window)?;
    let (mut wall_s, mut softirq_s, mut packets) = (0.0, 0.0, 0.0);
    for (number, cpu) in window.cpus.iter().filter(|(_, cpu)| cpu.ran_s.sut > USED_SHARE * cpu.times.wall_s) {
        wall_s += cpu.times.wall_s;
        softirq_s += cpu.times.modes.softirq_s;
        packets += window.around.packets.get(number)?;
    }
    // As if all of its own had been handled there.
    let others = (packets - own).max(0.0);
    let share =
        if others >= OTHERS_MIN * packets { ratio(softirq_s * ratio(others, packets), wall_s) } else { 0.0 };
    (wall_s > 0.0).then(|| OthersPackets {
        share: share.min(0.99),
        softirq: ratio(softirq_s, wall_s),
        packets,
        others,
    })
}

/// Packets that may be the server's own: those of its generator and, where it calls other servers, all others of TCP. Each request brings a
/// packet in at each end, unless several share one; where those that were counted are fewer, connections came and went meanwhile (of a
/// generator that gives up on a server that is kept off its CPUs, say), and all of TCP may be theirs. The same where another server is loaded
/// interleaved with it: of a slow one most packets on its CPUs are the reference server's. `None` where it has no such connections
/// and TCP carried fewer segments than there were requests: then it speaks something else.
pub(crate) fn at_most_own(window: &Closed) -> Option<f64> {
    let around = &window.around;
    let carries = |segments: &f64, ends: f64| {
        window.answered.requests.is_some_and(|requests| *segments >= ends * requests)
    };
    match around.own_packets {
        Some(lasting) if window.arms() > 1 || !carries(&lasting, around.own_ends) => {
            Some(around.segments?.max(lasting)).filter(|segments| carries(segments, 1.0))
        }
        Some(lasting) if window.downstream.programs.is_empty() => Some(lasting),
        Some(lasting) => Some(around.segments.map_or(lasting, |segments| segments.max(lasting))),
        None => around.segments.filter(|segments| carries(segments, 1.0)),
    }
}

/// Whether they take more than noise, and more than the lack of load.
pub(crate) fn take_most(accounting: &Accounting) -> bool {
    let share = of_others(&accounting.asked.pool).map_or(0.0, |found| found.share);
    server(accounting).is_some() && share >= LOSS_SHARE_MIN && share >= accounting.lost(TareCause::NoWork)
}

/// Whether they take most, and the one in front of the program is the kernel's own thread that handles packets where they are too
/// many to be handled in passing.
pub(crate) fn preempt(accounting: &Accounting) -> bool {
    are_in_front(accounting) && take_most(accounting)
}

/// Whether the one in front of the program is that thread, whosever the packets are: it ran for most of what the program lost.
pub(crate) fn are_in_front(accounting: &Accounting) -> bool {
    let lost_cpus = accounting.sut().map_or(0.0, |sut| sut.tare_share(TareCause::Preempted) * sut.cpus());
    let neighbours = neighbours(&accounting.asked.pool);
    let is_first = neighbours.first().is_some_and(|(name, _)| name.starts_with(KERNELS_THREAD));
    let handling = neighbours.iter().filter(|(name, _)| name.starts_with(KERNELS_THREAD));
    is_first && handling.map(|(_, cpus)| cpus).sum::<f64>() >= MOST * lost_cpus
}
