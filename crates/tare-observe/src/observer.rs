//! What an observer is.

use crate::observed::Observed;
use crate::scene::Scene;

/// One source of counters.
pub(crate) trait Observer: Send {
    /// Before a window opens: look who is there, open files, forget the last window. May take its time.
    fn prepare(&mut self, scene: &Scene);

    /// The SUT was started within the window that is open, and can be looked at from now on. Quick.
    fn meet(&mut self, _scene: &Scene) {}

    /// At the instant where the window opens, and again where it closes. Quick.
    fn edge(&mut self, edge: &mut Edge);

    /// At each tick that is due for it, before anybody samples: a sample of what the SUT does. It must be quick, and first:
    /// a generator that shares the observers' CPU cannot ask while they are at it, and the SUT soon sleeps for that alone.
    fn sample_states(&mut self, _scene: &Scene, _tick: u64) {}

    /// Between the edges, at each tick that is due for any of the observers; ticks count from 1.
    fn sample(&mut self, _scene: &Scene, _tick: u64) {}

    /// The next tick after `tick` at which there is something to do. A tick that is nobody's costs no wake-up, and a
    /// wake-up costs more than what is read then: it finds every cache cold.
    fn next(&self, _scene: &Scene, _tick: u64) -> u64 {
        u64::MAX
    }

    /// After the window has closed: slow looks, then everything on tape is made into numbers.
    fn report(&mut self, scene: &Scene, observed: &mut Observed);

    /// Stops whatever costs something while nobody watches, or starts it again.
    fn set_active(&mut self, _active: bool) {}

    /// Whether [`Observer::calibrate`] finds something that a window does not see itself.
    fn has_to_calibrate(&self) -> bool {
        false
    }

    /// Measures what a window needs to know, in one that is opened for that and dropped.
    fn calibrate(&mut self, _scene: &Scene, _part: Part) {}
}

/// The parts of a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Begin,
    /// A stretch of it is over.
    Stretch,
    End,
}

/// One end of a window.
pub(crate) struct Edge {
    /// CLOCK_MONOTONIC, nanoseconds; the CPU observer moves it to where it read.
    pub(crate) at_ns: u64,
}
