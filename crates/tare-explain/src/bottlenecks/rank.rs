//! The order in which one bottleneck hides another.

use std::cmp::Ordering;

/// Where a claim stands: the first rank that is claimed names the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Requests failed, and it is known what made them fail. First of all: an error page is not the workload.
    FailureExplained,
    /// Requests failed.
    Failure,
    /// There is no figure that could be explained.
    NothingMeasured,
    /// An open loop got the rate that it asked for: whatever else was lost did not hold the rate.
    RateReached,
    /// Most of the requests' time they waited for acknowledgements that were held back. Before all CPU time: whatever was taken or full could
    /// only shorten the rest.
    AcksHeldBack,
    /// Others took CPU time from the program. Before the server itself: a server that is held back is not full, however busy
    /// it is with the rest.
    TakenByOthers,
    /// The kernel took memory back. Before the server itself: it is at work, or charged, meanwhile.
    MemoryReclaimed,
    /// The kernel handled what others were sent. As above; after memory, which makes packets wait, too.
    OthersPackets,
    /// Most requests wait for a program that the server calls, which is full, and the server has time to spare. Before the server itself:
    /// requests queue in front of what holds them back.
    CalledIsFull,
    /// The server is full, and one kind of its own work is known to fill it.
    FullOfOneWork,
    /// As many threads run as can at once. Before the full server: its CPUs are not what it lacks.
    LimitFull,
    /// The server is full.
    ServerFull,
    /// The program waits for reasons of its own. After the server: who is full does not wait.
    OwnWaits,
    /// The generator is full, and the server has time to spare.
    GeneratorFull,
    /// One of the server's threads is full. After the generator: a single busy thread is no sign while requests are missing.
    OneThreadFull,
    /// Neither side is full, and the CPUs that both use are.
    FullTogether,
    /// Neither side is full, and most requests wait for a program that the server calls.
    WaitsForCalled,
    /// Neither side is full, and requests spend their time on the way.
    OnTheWay,
    /// The runtime put threads to sleep. It alone knows why, so nothing below may be named.
    Parked,
    /// New connections find no room. Before their number: those that are refused are in no count of it.
    QueueFull,
    /// More requests in flight would bring more.
    FewInFlight,
    /// Neither side has quite nothing left, and more connections bring no more: the one that others keep off its CPUs for longer, or
    /// the fuller one, if it is nearly full.
    FullerSide,
    /// What a program that ends did with its time.
    ProgramTime,
    /// Nothing else is known.
    NothingNamed,
}

impl Rank {
    /// What a claim of this rank says: a reader sees why another one counts more.
    pub fn says(self) -> &'static str {
        match self {
            Rank::FailureExplained => "requests failed, and why is known",
            Rank::Failure => "requests failed",
            Rank::NothingMeasured => "nothing was measured",
            Rank::RateReached => "the rate that was asked for was reached",
            Rank::AcksHeldBack => "most of the requests' time was a wait for acknowledgements",
            Rank::TakenByOthers => "others took CPU time from the program",
            Rank::MemoryReclaimed => "the kernel took memory back",
            Rank::OthersPackets => "the kernel handled packets of others",
            Rank::CalledIsFull => "a program that the server calls is full",
            Rank::FullOfOneWork => "the server is full of one kind of work",
            Rank::LimitFull => "as many threads run as can at once",
            Rank::ServerFull => "the server is full",
            Rank::OwnWaits => "the program waits for reasons of its own",
            Rank::GeneratorFull => "the generator is full, and the server is not",
            Rank::OneThreadFull => "one thread of the server is full",
            Rank::FullTogether => "the CPUs that both sides use are full",
            Rank::WaitsForCalled => "most requests wait for a program that the server calls",
            Rank::OnTheWay => "requests spend their time on the way",
            Rank::Parked => "the runtime put threads to sleep",
            Rank::QueueFull => "new connections find no room",
            Rank::FewInFlight => "more requests in flight would bring more",
            Rank::FullerSide => "of two sides that are nearly full it is the fuller one",
            Rank::ProgramTime => "this is what the program did with its time",
            Rank::NothingNamed => "nothing else is known",
        }
    }
}

/// A bottleneck's claim to be the one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub rank: Rank,
    /// Of several at one rank the largest counts.
    pub share: f64,
    /// Whether it is judged by the time accounting, and falls with it.
    pub by_time: bool,
}

impl Claim {
    pub fn at(rank: Rank) -> Claim {
        Claim { rank, share: 0.0, by_time: true }
    }

    /// Against others of its rank.
    pub fn of_share(self, share: f64) -> Claim {
        Claim { share, ..self }
    }

    /// Stands though the time accounting does not close: other data show it.
    pub fn beside_time(self) -> Claim {
        Claim { by_time: false, ..self }
    }

    /// By rank and share: the least is what counts least.
    pub fn order(&self, other: &Claim) -> Ordering {
        other.rank.cmp(&self.rank).then(self.by_share(other))
    }

    pub fn by_share(&self, other: &Claim) -> Ordering {
        self.share.total_cmp(&other.share)
    }
}
