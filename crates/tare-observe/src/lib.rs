//! Observers: what the threads of the SUT and of the generator, the CPUs, the control groups and the network
//! did in a window of time, as raw counters with monotonic stamps.
//!
//! On the sampling path nothing is parsed: open files are read into a [`tape`] with a stamp, and the text is
//! made into numbers when the window has closed. Two things cannot wait so long: what a descriptor leads to while a
//! thread sleeps on it, and the rings of [`switches`], which would run over. An observer is one file here, one file of descriptors in
//! `tare-model`, and one line in [`REGISTRY`].

mod aperf;
mod book;
mod client;
mod clock;
mod connections;
mod core_latency;
mod cpus;
mod energy;
mod engine;
mod groups;
mod idle;
mod memory;
mod network;
mod numbers;
mod pmu;
mod pressure;
mod reclaim;
mod rights;
mod scene;
mod softirqs;
mod stacks;
mod switches;
mod tape;
mod tasks;
mod thermal;
mod wakeups;

pub use engine::{ObserveError, Observers};
pub use scene::{LoadWatch, Watch};
pub use stacks::{StackWatch, Unwind};

use book::Book;
use scene::Scene;

/// Every observer, in the order in which edges are read: the CPUs' first, as close to the stamp of the window
/// as can be. Threads are put into the book by `tasks`, so what is told of them comes after it.
static REGISTRY: &[Open] = &[
    cpus::open,
    tasks::open,
    groups::open,
    network::open,
    client::open,
    connections::open,
    clock::open,
    core_latency::open,
    aperf::open,
    wakeups::open,
    pmu::open,
    pressure::open,
    memory::open,
    reclaim::open,
    softirqs::open,
    thermal::open,
    energy::open,
    stacks::open,
    switches::open,
];

/// How an observer is made; it opens what it can.
type Open = fn(&Scene) -> Box<dyn Observer>;

/// One source of counters.
trait Observer: Send {
    /// Before a window opens: look who is there, open files, forget the last window. May take its time.
    fn prepare(&mut self, scene: &Scene);

    /// The SUT was started within the window that is open, and can be looked at from now on. Quick.
    fn meet(&mut self, _scene: &Scene) {}

    /// At the instant where the window opens, and again where it closes. Quick.
    fn edge(&mut self, edge: &mut Edge);

    /// At each tick that is due for it, before anybody samples: a look at what the SUT does. It must be quick, and first:
    /// a generator that shares the observers' CPU cannot ask while they are at it, and the SUT soon sleeps for that alone.
    fn look(&mut self, _scene: &Scene, _tick: u64) {}

    /// Between the edges, at each tick that is due for any of the observers; ticks count from 1.
    fn sample(&mut self, _scene: &Scene, _tick: u64) {}

    /// The next tick after `tick` at which there is something to do. A tick that is nobody's costs no wake-up, and a
    /// wake-up costs more than what is read then: it finds every cache cold.
    fn next(&self, _scene: &Scene, _tick: u64) -> u64 {
        u64::MAX
    }

    /// After the window has closed: slow looks, then everything on tape is made into numbers.
    fn report(&mut self, scene: &Scene, book: &mut Book);

    /// Stops whatever costs something while nobody watches, or starts it again.
    fn set_active(&mut self, _active: bool) {}

    /// Measures what a window needs to know, in one that is opened for that and dropped.
    fn calibrate(&mut self, _scene: &Scene, _part: Part) {}
}

/// The course of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Begin,
    /// A stretch of it is over.
    Stretch,
    End,
}

/// One end of a window.
struct Edge {
    /// CLOCK_MONOTONIC, nanoseconds; the CPU observer moves it to where it read.
    at_ns: u64,
}
