//! Whom to watch.

/// Whom to watch, and from where; by default nobody, once a second.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Processes of the SUT; their descendants are watched too. Empty: the SUT is not seen.
    pub sut_pids: Vec<u32>,
    /// Processes whose threads are read at both edges as the SUT's are: another server that is loaded interleaved with it.
    pub beside_pids: Vec<u32>,
    /// The load generator.
    pub load: LoadWatch,
    /// The port that the SUT answers on; `None` for one that is no server.
    pub server_port: Option<u16>,
    /// CPUs of the SUT.
    pub sut_cpus: Vec<u32>,
    /// CPUs of the generator.
    pub load_cpus: Vec<u32>,
    /// CPUs that observers run on; empty: anywhere.
    pub observer_cpus: Vec<u32>,
    /// Samples per second between the edges, 1 to 100.
    pub sample_hz: f64,
    /// Whether the effective clock is probed: twice a second, a thread of ours hops onto a CPU of the SUT.
    pub clock: bool,
    /// Whether call stacks are sampled, and which.
    pub stacks: Option<StackWatch>,
    /// Whether nothing but these stacks is to be seen: a window then opens and closes without everybody being read.
    pub stacks_alone: bool,
    /// Whether switches and wake-ups of the SUT's threads are traced: exact, but each sleep then costs it some
    /// microseconds.
    pub trace: bool,
}

/// The load generator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LoadWatch {
    /// Threads of this process.
    Threads(Vec<u32>),
    /// Other processes, with their descendants.
    Process(Vec<u32>),
    /// None is to be seen.
    #[default]
    None,
}

/// How callers are found in the program's own code, on a CPU; off it always by frame pointers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unwind {
    /// By the kernel, while it samples: code without frame pointers hides its callers.
    #[default]
    FramePointers,
    /// From a copy of each stack, after the window.
    Dwarf,
}

/// Which stacks to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackWatch {
    /// Samples per second of CPU time, 1 to 10,000.
    pub hz: u32,
    /// How callers are found in the program's own code.
    pub unwind: Unwind,
    /// Also where threads waited, and for how long: a sample at each of their switches.
    pub off_cpu: bool,
    /// Where names of a program's functions are looked for.
    pub names: Names,
}

/// Where names of a program's functions are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Names {
    /// In symbol tables, and in debug files too, which may take a second and more of each window.
    #[default]
    DebugFiles,
    /// In symbol tables alone, which are quick to read: for a profile that nobody asked for.
    Tables,
}
