//! Why a thread slept.

/// Why a thread slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asleep {
    Event,
    Lock,
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
    pub const SAMPLED: [Asleep; 7] = [
        Asleep::Event,
        Asleep::Lock,
        Asleep::Disk,
        Asleep::Downstream,
        Asleep::Timer,
        Asleep::Fault,
        Asleep::Other,
    ];
    /// The program's own, which stay in net.
    pub const PROGRAM: [Asleep; 5] =
        [Asleep::Lock, Asleep::Disk, Asleep::Downstream, Asleep::Timer, Asleep::Fault];

    pub fn name(self) -> &'static str {
        match self {
            Asleep::Event => "event",
            Asleep::Lock => "lock",
            Asleep::Disk => "disk",
            Asleep::Downstream => "downstream",
            Asleep::Timer => "timer",
            Asleep::Fault => "fault",
            Asleep::Other => "other",
            Asleep::Unsplit => "unsplit",
        }
    }
}
