//! Why a thread slept.

/// Why a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asleep {
    Event,
    /// In a futex that is a lock's; in older records in any.
    Lock,
    /// In any other futex: for work, for a hand-over, for another thread to end.
    Parked,
    Disk,
    /// On another server.
    Downstream,
    Timer,
    /// For a page of memory.
    Fault,
    Other,
    /// It was never sampled.
    Unsplit,
}

impl Asleep {
    pub const SAMPLED: [Asleep; 8] = [
        Asleep::Event,
        Asleep::Lock,
        Asleep::Parked,
        Asleep::Disk,
        Asleep::Downstream,
        Asleep::Timer,
        Asleep::Fault,
        Asleep::Other,
    ];
    /// The program's own, which stay in net.
    pub const PROGRAM: [Asleep; 5] =
        [Asleep::Lock, Asleep::Disk, Asleep::Downstream, Asleep::Timer, Asleep::Fault];

    /// With nothing to do, as far as can be seen.
    pub const NO_WORK: [Asleep; 4] = [Asleep::Event, Asleep::Parked, Asleep::Other, Asleep::Unsplit];

    pub fn name(self) -> &'static str {
        match self {
            Asleep::Event => "event",
            Asleep::Lock => "lock",
            Asleep::Parked => "parked",
            Asleep::Disk => "disk",
            Asleep::Downstream => "downstream",
            Asleep::Timer => "timer",
            Asleep::Fault => "fault",
            Asleep::Other => "other",
            Asleep::Unsplit => "unsplit",
        }
    }
}
