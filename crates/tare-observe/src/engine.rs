//! Windows and the thread that samples in them.

use crate::observed::Observed;
use crate::observer::{Edge, Observer, Part};
use crate::registry::{REGISTRY, STACKS_ALONE};
use crate::scene::Scene;
use crate::watch::{LoadWatch, Watch};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_model::observation::Observation;
use tare_sys::{affinity, process};

/// One stretch of a calibration: long beside the visits, short beside what disturbs some of them.
const STRETCH: Duration = Duration::from_millis(250);

/// Why observing could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The sampling thread could not be started.
    #[error("no thread for the observers: {0}; hint: is the process limit (ulimit -u) reached?")]
    Thread(io::Error),
}

/// The observers at work. Outside of windows they do nothing.
pub struct Observers {
    shared: Arc<Shared>,
    sampler: Option<JoinHandle<()>>,
    notes: Vec<String>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    scene: Scene,
    observers: Vec<Box<dyn Observer>>,
    /// Stamp of the edge that opened the window.
    window: Option<u64>,
    active: bool,
    stopping: bool,
    /// The last tick that was taken in this window, and the instant that it was due.
    tick: u64,
    at: Instant,
    /// The next tick of each observer.
    next: Vec<u64>,
}

impl State {
    /// Counts the window's ticks from now on.
    fn plan(&mut self) {
        let State { scene, observers, tick, at, next, .. } = self;
        *at = Instant::now();
        *next = observers.iter().map(|observer| observer.next(scene, *tick)).collect();
    }

    /// The next tick that is somebody's, and its instant.
    fn due(&self) -> Option<(u64, Instant)> {
        let tick = *self.next.iter().min().filter(|tick| **tick < u64::MAX)?;
        let ticks = u32::try_from(tick.saturating_sub(self.tick)).unwrap_or(u32::MAX);
        Some((tick, self.at.checked_add(period(&self.scene).saturating_mul(ticks))?))
    }

    /// Calls those whose tick this is. The others' code and data are not even touched.
    fn sample(&mut self, tick: u64, at: Instant) {
        let State { scene, observers, next, .. } = self;
        let is_due = |next: &u64| *next <= tick;
        for (observer, _) in observers.iter_mut().zip(next.iter()).filter(|(_, next)| is_due(next)) {
            observer.sample_states(scene, tick);
        }
        for (observer, next) in observers.iter_mut().zip(next).filter(|(_, next)| is_due(next)) {
            observer.sample(scene, tick);
            *next = observer.next(scene, tick);
        }
        (self.tick, self.at) = (tick, at);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observers {
    /// Opens what can be opened and starts the sampling thread. What cannot be seen is said in each
    /// observation, with the reason.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn start(watch: Watch, root: &Root) -> Result<Observers, ObserveError> {
        let mut notes = Vec::new();
        if let Err(error) = process::raise_open_files_limit() {
            notes.push(format!("the limit of open files could not be raised: {error}"));
        }
        let scene = Scene::new(watch, root);
        let home = scene.watch.observer_cpus.clone();
        let registry = if scene.watch.stacks_alone { STACKS_ALONE } else { REGISTRY };
        let observers = registry.iter().map(|open| open(&scene)).collect();
        let state = State {
            scene,
            observers,
            window: None,
            active: true,
            stopping: false,
            tick: 0,
            at: Instant::now(),
            next: Vec::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        let (sender, pinned) = std::sync::mpsc::channel();
        let sampler = std::thread::Builder::new()
            .name("tare-observe".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    let outcome = if home.is_empty() { Ok(()) } else { affinity::set(0, &home) };
                    let _ = sender.send(outcome);
                    sample_until_stopped(&shared);
                }
            })
            .map_err(ObserveError::Thread)?;
        if let Ok(Err(error)) = pinned.recv() {
            notes.push(format!("the observers could not be kept to their CPUs: {error}"));
        }
        Ok(Observers { shared, sampler: Some(sampler), notes })
    }

    /// What is not as it should be with the observers themselves, in words for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Watches another generator from the next window on.
    pub fn watch_load(&self, load: LoadWatch) {
        self.shared.lock().scene.watch.load = load;
    }

    /// Watches other processes as the SUT, at once: a program that is started after its window was opened.
    pub fn watch_sut(&self, pids: Vec<u32>) {
        let mut state = self.shared.lock();
        let State { scene, observers, window, tick, next, .. } = &mut *state;
        scene.watch.sut_pids = pids;
        if window.is_some() {
            observers.iter_mut().for_each(|observer| observer.meet(scene));
            *next = observers.iter().map(|observer| observer.next(scene, *tick)).collect();
            self.shared.wake.notify_all();
        }
    }

    /// Opens a window. One that is still open is dropped.
    pub fn begin(&self) {
        self.begin_after(|| ());
    }

    /// The same, with something that is done when all is prepared, right before the window opens.
    pub fn begin_after(&self, last: impl FnOnce()) {
        let mut state = self.shared.lock();
        let State { scene, observers, .. } = &mut *state;
        scene.with_census(|| observers.iter_mut().for_each(|observer| observer.prepare(scene)));
        last();
        let at_ns = edge(observers);
        state.tick = 0;
        state.window = Some(at_ns);
        state.plan();
        self.shared.wake.notify_all();
    }

    /// Closes the window and hands over what was seen in it. Without an open one, the observation is empty.
    pub fn end(&self) -> Observation {
        let mut state = self.shared.lock();
        let State { scene, observers, window, .. } = &mut *state;
        let Some(begin_ns) = window.take() else { return Observation::default() };
        let end_ns = edge(observers);
        let mut observed = Observed::new(begin_ns, end_ns);
        scene.with_census(|| observers.iter_mut().for_each(|observer| observer.report(scene, &mut observed)));
        observed.close()
    }

    /// Measures, under the load that runs now, what an idle period takes that no counter has: visits the SUT's
    /// and the generator's CPUs every quarter of a second for `duration`, at least once, while the observers do what
    /// they do in a window. Each quarter is a reading of its own, kept with the next window; those from which time was
    /// stolen are left out. Drops a window that is open.
    ///
    /// Returns at once where the idle task itself is watched: each window then measures that.
    pub fn calibrate_idle(&self, duration: Duration) {
        if !self.shared.lock().observers.iter().any(|observer| observer.has_to_calibrate()) {
            return;
        }
        self.begin();
        self.calibrate(Part::Begin);
        for _ in 0..(duration.as_nanos() / STRETCH.as_nanos()).max(1) {
            std::thread::sleep(STRETCH);
            self.calibrate(Part::Stretch);
        }
        self.calibrate(Part::End);
        let mut state = self.shared.lock();
        if state.window.take().is_some() {
            edge(&mut state.observers);
        }
    }

    fn calibrate(&self, part: Part) {
        let mut state = self.shared.lock();
        let State { scene, observers, .. } = &mut *state;
        for observer in observers {
            observer.calibrate(scene, part);
        }
    }

    /// Switches all watching between the edges off or on, kernel counters included: for finding out what it
    /// costs. Edges are read either way.
    pub fn set_active(&self, active: bool) {
        let mut state = self.shared.lock();
        state.active = active;
        for observer in &mut state.observers {
            observer.set_active(active);
        }
        state.plan();
        self.shared.wake.notify_all();
    }

    /// Ends the threads.
    pub fn stop(self) {}
}

impl Drop for Observers {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.wake.notify_all();
        if let Some(sampler) = self.sampler.take() {
            let _ = sampler.join();
        }
    }
}

fn edge(observers: &mut [Box<dyn Observer>]) -> u64 {
    let mut edge = Edge { at_ns: tare_sys::time::monotonic_ns() };
    for observer in observers {
        observer.edge(&mut edge);
    }
    edge.at_ns
}

fn sample_until_stopped(shared: &Shared) {
    let mut state = shared.lock();
    while !state.stopping {
        let due = if state.window.is_some() && state.active { state.due() } else { None };
        let Some((tick, at)) = due else {
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let now = Instant::now();
        if now < at {
            state = shared.wake.wait_timeout(state, at - now).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        // A tick that comes late by more than a period is not made up for: the stamps tell.
        let late = now - at > period(&state.scene);
        state.sample(tick, if late { now } else { at });
    }
}

fn period(scene: &Scene) -> Duration {
    Duration::from_secs_f64(1.0 / scene.sample_hz())
}
