//! The effective clock of the SUT's CPUs, from a thread that hops onto them.

use crate::observed::Observed;
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::clock::EFFECTIVE_HZ;
use tare_model::observation::Sample;
use tare_sys::clock::{ClockError, probe_hz};
use tare_sys::time::monotonic_ns;

/// Between two probes of one CPU.
const PERIOD: Duration = Duration::from_millis(500);
/// Most probes in that time, all CPUs together: with more CPUs, each has its turn less often.
const PROBES_A_PERIOD: u32 = 8;
/// Most probes that are kept of a window.
const PROBES_MAX: usize = 100_000;

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    if !scene.watch.clock {
        return Box::new(Clock::Off(Missing::new("the clock probe was not asked for")));
    }
    if scene.watch.sut_cpus.is_empty() {
        return Box::new(Clock::Off(Missing::new("the SUT's CPUs are not known")));
    }
    let prober = Arc::new(Prober::default());
    let thread = std::thread::Builder::new().name("tare-clock".into()).spawn({
        let (prober, cpus) = (Arc::clone(&prober), scene.watch.sut_cpus.clone());
        let home = scene.watch.observer_cpus.clone();
        move || {
            // Where it cannot be kept there, it sleeps wherever it last was: no harm.
            let _ = if home.is_empty() { Ok(()) } else { tare_sys::affinity::set(0, &home) };
            prober.run(&cpus);
        }
    });
    match thread {
        Ok(thread) => Box::new(Clock::On { prober, thread: Some(thread) }),
        Err(error) => Box::new(Clock::Off(Missing::new(format!("no thread for the probe: {error}")))),
    }
}

enum Clock {
    Off(Missing),
    On { prober: Arc<Prober>, thread: Option<JoinHandle<()>> },
}

#[derive(Default)]
struct Prober {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    in_window: bool,
    inactive: bool,
    stopping: bool,
    probes: Vec<(u64, u32, Result<f64, ClockError>)>,
}

impl Prober {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probes one CPU after the other while a window is open.
    fn run(&self, cpus: &[u32]) {
        let pause = PERIOD / u32::try_from(cpus.len()).unwrap_or(u32::MAX).clamp(1, PROBES_A_PERIOD);
        let mut rotation = cpus.iter().cycle();
        let mut state = self.lock();
        while !state.stopping {
            if !state.in_window || state.inactive {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let Some(&cpu) = rotation.next() else { return };
            drop(state);
            let outcome = probe_hz(cpu);
            let at_ns = monotonic_ns();
            state = self.lock();
            if state.in_window && state.probes.len() < PROBES_MAX {
                state.probes.push((at_ns, cpu, outcome));
            }
            let idle = |state: &mut State| !state.stopping;
            state =
                self.wake.wait_timeout_while(state, pause, idle).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Observer for Clock {
    fn prepare(&mut self, _scene: &Scene) {
        if let Clock::On { prober, .. } = self {
            let mut state = prober.lock();
            state.probes.clear();
            state.in_window = false;
        }
    }

    fn edge(&mut self, _edge: &mut Edge) {
        if let Clock::On { prober, .. } = self {
            let mut state = prober.lock();
            state.in_window = !state.in_window;
            prober.wake.notify_all();
        }
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        let prober = match self {
            Clock::Off(reason) => return observed.absent(&EFFECTIVE_HZ, None, reason.clone()),
            Clock::On { prober, .. } => prober,
        };
        let probes = std::mem::take(&mut prober.lock().probes);
        for &cpu in &scene.watch.sut_cpus {
            let mut reason = "the window was over before it was this CPU's turn".to_string();
            let mut samples = Vec::new();
            for (at_ns, _, outcome) in probes.iter().filter(|(_, probed, _)| *probed == cpu) {
                match outcome {
                    Ok(hz) => samples.push(Sample { at_ns: *at_ns, value: *hz }),
                    Err(error) => reason = error.to_string(),
                }
            }
            if samples.is_empty() {
                observed.absent(&EFFECTIVE_HZ, Some(Subject::Cpu(cpu)), Missing::new(reason));
            }
            observed.column(&EFFECTIVE_HZ, Subject::Cpu(cpu), samples);
        }
    }

    fn set_active(&mut self, active: bool) {
        if let Clock::On { prober, .. } = self {
            prober.lock().inactive = !active;
            prober.wake.notify_all();
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if let Clock::On { prober, thread } = self {
            prober.lock().stopping = true;
            prober.wake.notify_all();
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
    }
}
