//! From events to sums: which thread ran, waited or slept, and when. Pure; knows no ring and no file.
//!
//! Every thread of the SUT is in one state at a time, and what closes a state adds its time to one sum, so the
//! sums of a thread are its life in the window, however odd the events. A CPU knows who runs and who waits there.

use super::sums::{BEHIND_MAX, IDLE, Lengths, THE_REST, Times};
use crate::sleep::{FutexWait, SOON_NS, Why};
use std::collections::HashMap;
use tare_model::schedule::{Held, Sleep, Wakers};

/// Nobody runs on a CPU though a thread waits there: this long and longer is a quota's doing, shorter is what
/// waking a CPU takes.
const HELD_NS_MIN: u64 = 1_000_000;
/// A switch follows the wake-up that brings it about within this.
const WAY_NS_MAX: u64 = HELD_NS_MIN;
/// Threads that are woken on a CPU between two switches and remembered, at most.
const WOKEN_MAX: usize = 64;

/// What happened, when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at_ns: u64,
    pub(super) cpu: u32,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// `prev` made place for `next`; it went to sleep if there is a reason.
    Switch { prev: u32, asleep: Option<Why>, next: u32 },
    /// A thread goes to sleep in a futex; its switch follows.
    Futex { tid: u32, futex: FutexWait },
    /// Somebody calls a thread; it is not in a run queue yet.
    Waking { tid: u32, by: Waker, to_cpu: u32 },
    /// A thread has entered a run queue.
    Woken { tid: u32, to_cpu: u32 },
    /// Something was lost: from here on nothing is known.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waker {
    Interrupt,
    Thread(u32),
}

/// What is known of a thread at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No event yet. Whoever sleeps all the time has none: then what a sample found holds.
    Unseen(Option<Why>),
    Lost,
    Running,
    Waiting(u32),
    Asleep(Why),
}

/// A thread and its sums.
#[derive(Debug)]
pub(super) struct Followed {
    state: State,
    since_ns: u64,
    /// The rings begin one after another: what some of them saw before this is half of the truth.
    from_ns: u64,
    last_cpu: Option<u32>,
    called_ns: Option<u64>,
    /// Its sleep is in a futex with a time limit.
    is_timed: bool,
    pub(super) times: Times,
    pub(super) waits: Lengths,
    pub(super) wakes: Lengths,
    pub(super) migrations: u32,
    pub(super) woken_by: HashMap<Option<u32>, u64>,
    pub(super) woken_cross_cpu: u64,
}

#[derive(Debug, Default)]
struct Cpu {
    /// Who runs, as far as the last event says.
    current: Option<u32>,
    /// Who waits here knows who ran until then.
    since_ns: u64,
    /// Who was put in this queue since the last switch, and when last.
    woken: Vec<u32>,
    woken_ns: u64,
    /// Whom somebody here called last, and when.
    calls: Option<(u32, u64)>,
    waiting: Vec<u32>,
    held_ns: u64,
}

/// All threads of the SUT in one window.
#[derive(Debug)]
pub(super) struct Follower {
    /// What lies before or behind these is in no sum.
    begin_ns: u64,
    end_ns: u64,
    pub(super) threads: HashMap<u32, Followed>,
    cpus: HashMap<u32, Cpu>,
}

impl Follower {
    pub(super) fn new() -> Follower {
        Follower { begin_ns: 0, end_ns: u64::MAX, threads: HashMap::new(), cpus: HashMap::new() }
    }

    /// The window begins here; only what lies behind counts.
    pub(super) fn begin(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
    }

    /// The window ends here; what comes is what happened since, and counts no more.
    pub(super) fn until(&mut self, end_ns: u64) {
        self.end_ns = end_ns;
    }

    /// A thread is followed from `at_ns` on; `asleep` is what a sample found, if it found it asleep.
    pub(super) fn follow(&mut self, tid: u32, at_ns: u64, asleep: Option<Why>) {
        self.threads.entry(tid).or_insert_with(|| Followed {
            state: State::Unseen(asleep),
            since_ns: at_ns,
            from_ns: at_ns,
            last_cpu: None,
            called_ns: None,
            is_timed: false,
            times: Times::default(),
            waits: Lengths::default(),
            wakes: Lengths::default(),
            migrations: 0,
            woken_by: HashMap::new(),
            woken_cross_cpu: 0,
        });
    }

    /// Takes the next event; they come in the order of time.
    pub(super) fn take(&mut self, event: &Event) {
        let at_ns = event.at_ns;
        match event.what {
            What::Switch { prev, asleep, next } => self.switch(at_ns, event.cpu, prev, asleep, next),
            What::Futex { tid, futex } => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.is_timed = futex.is_timed;
                }
            }
            What::Waking { tid, by, to_cpu } => {
                self.cpus.entry(event.cpu).or_default().calls = Some((tid, at_ns));
                self.waking(at_ns, tid, by, event.cpu != to_cpu);
            }
            What::Woken { tid, to_cpu } => {
                let called = self.cpus.get_mut(&event.cpu).and_then(|state| state.calls.take());
                self.woken(self.queued_at_ns(event, called, tid, to_cpu), at_ns, tid, to_cpu);
            }
            What::Lost => self.lost(at_ns),
        }
    }

    /// The window ends: closes what is open.
    pub(super) fn end(&mut self, end_ns: u64) {
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.settle(cpu, end_ns, None);
        }
        let window = (self.begin_ns, end_ns);
        for thread in self.threads.values_mut() {
            match thread.state {
                // It ran or slept throughout, and no switch shows it.
                State::Unseen(asleep) => {
                    thread.state = asleep.map_or(State::Running, State::Asleep);
                }
                // Settled with its CPU; the kernel counts a wait when it is over.
                State::Waiting(_) => {
                    thread.times.correct_wait(overlap(window, thread.since_ns, end_ns) as i64);
                    thread.since_ns = end_ns;
                }
                _ => {}
            }
            thread.close(window, end_ns);
        }
        self.end_ns = end_ns;
    }

    /// Time that threads were held on CPUs that nobody used.
    pub(super) fn held(&self) -> Vec<Held> {
        let mut held: Vec<Held> =
            self.cpus.iter().map(|(cpu, state)| Held { cpu: *cpu, ns: state.held_ns }).collect();
        held.retain(|held| held.ns > 0);
        held.sort_unstable_by_key(|held| held.cpu);
        held
    }

    fn window(&self) -> (u64, u64) {
        (self.begin_ns, self.end_ns)
    }

    fn switch(&mut self, event_ns: u64, cpu: u32, prev: u32, asleep: Option<Why>, next: u32) {
        let at_ns = if asleep.is_none() { self.pushed_at_ns(event_ns, cpu, next) } else { event_ns };
        self.settle(cpu, at_ns, Some(prev));
        self.leave_queue(at_ns, prev);
        let window = self.window();
        if let Some(thread) = self.threads.get_mut(&prev).filter(|thread| event_ns >= thread.from_ns) {
            // Whoever leaves a CPU has run, unless events in between were lost.
            match thread.state {
                State::Unseen(_) => thread.state = State::Running,
                State::Running => {}
                _ => thread.state = State::Lost,
            }
            thread.close(window, at_ns);
            thread.last_cpu = Some(cpu);
            thread.state = asleep.map_or(State::Waiting(cpu), State::Asleep);
            match asleep {
                Some(why) => {
                    let counts = event_ns >= window.0 && event_ns < window.1;
                    thread.times.blocked.entry(why).or_default().1 += u64::from(counts);
                }
                None => self.cpus.entry(cpu).or_default().waiting.push(prev),
            }
        }
        self.switch_in((at_ns, event_ns), cpu, prev, next);
        let state = self.cpus.entry(cpu).or_default();
        (state.current, state.since_ns) = (Some(next), at_ns);
        state.woken.clear();
    }

    /// When `next` began to run and whoever it pushed off (the idle task, it may be) ceased to, by the kernel's accounts.
    ///
    /// A wake-up that pushes somebody off sets the clock of its run queue, and the switch that follows does not set it
    /// again (`rq_clock_skip_update`, since Linux 2.6.33): the way of the interrupt to that CPU, and out of its idle
    /// state, is run already. The event of the switch is stamped behind it, here some 20 µs. A way of a millisecond and
    /// more was none: then it waited for its turn, or for a quota.
    fn pushed_at_ns(&self, event_ns: u64, cpu: u32, next: u32) -> u64 {
        let Some(state) = self.cpus.get(&cpu) else { return event_ns };
        let is_way = state.woken.contains(&next) && event_ns.saturating_sub(state.woken_ns) < WAY_NS_MAX;
        if is_way { state.woken_ns.max(state.since_ns).min(event_ns) } else { event_ns }
    }

    fn switch_in(&mut self, (at_ns, event_ns): (u64, u64), cpu: u32, prev: u32, next: u32) {
        let waiting_since_ns = self.leave_queue(at_ns, next);
        let window = self.window();
        let Some(thread) = self.threads.get_mut(&next) else { return };
        if event_ns < thread.from_ns {
            return;
        }
        match thread.state {
            State::Waiting(_) => {
                let counts = event_ns >= window.0 && event_ns < window.1;
                if let Some(since_ns) = waiting_since_ns.filter(|_| counts) {
                    thread.waits.add(event_ns.saturating_sub(since_ns));
                    if let Some(called_ns) = thread.called_ns {
                        thread.wakes.add(event_ns.saturating_sub(called_ns));
                    }
                }
            }
            // Never called, so it was ready all the time, and since when nobody knows.
            State::Unseen(_) => {
                thread.times.wait_edges_ns = None;
                let ns = overlap(window, thread.since_ns, at_ns);
                thread.times.waited(prev, ns, ns >= HELD_NS_MIN);
                thread.state = State::Waiting(cpu);
            }
            State::Running => thread.state = State::Lost,
            State::Lost | State::Asleep(_) => {}
        }
        thread.close(window, at_ns);
        let moved = thread.last_cpu.is_some_and(|last| last != cpu);
        thread.migrations += u32::from(moved && event_ns >= window.0 && event_ns < window.1);
        (thread.state, thread.last_cpu, thread.called_ns) = (State::Running, Some(cpu), None);
        thread.is_timed = false;
    }

    fn waking(&mut self, at_ns: u64, tid: u32, by: Waker, crosses: bool) {
        let counts = at_ns >= self.begin_ns && at_ns < self.end_ns;
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| at_ns >= thread.from_ns) else {
            return;
        };
        if matches!(thread.state, State::Asleep(_) | State::Unseen(_)) {
            thread.called_ns = Some(at_ns);
            if by == Waker::Interrupt {
                thread.call_a_pause_what_it_is(at_ns, counts);
            }
            let waker = match by {
                Waker::Interrupt => None,
                Waker::Thread(waker) => Some(waker),
            };
            let known = thread.woken_by.len() < BEHIND_MAX || thread.woken_by.contains_key(&waker);
            let waker = if known { waker } else { Some(THE_REST) };
            *thread.woken_by.entry(waker).or_default() += u64::from(counts);
            thread.woken_cross_cpu += u64::from(counts && crosses);
        }
    }

    /// When a woken thread was put in the queue of its CPU, by the kernel's accounts.
    ///
    /// From another CPU that is right behind the call (or behind its going to sleep, if it was called meanwhile): the event
    /// of the wake-up is stamped when that CPU has been interrupted too, which takes a virtual machine 15 µs. A way of a
    /// millisecond and more was none: then the caller's own CPU was stopped, before or after, nobody knows.
    fn queued_at_ns(&self, event: &Event, called: Option<(u32, u64)>, tid: u32, to_cpu: u32) -> u64 {
        let called_ns =
            called.filter(|(called, _)| *called == tid && event.cpu != to_cpu).map(|(_, at_ns)| at_ns);
        let Some(called_ns) = called_ns.filter(|at_ns| event.at_ns.saturating_sub(*at_ns) < WAY_NS_MAX)
        else {
            return event.at_ns;
        };
        let switched_ns = self.cpus.get(&to_cpu).map_or(0, |state| state.since_ns);
        let slept_ns = self.threads.get(&tid).map_or(0, |thread| thread.since_ns);
        called_ns.max(switched_ns).max(slept_ns).min(event.at_ns)
    }

    fn woken(&mut self, at_ns: u64, event_ns: u64, tid: u32, cpu: u32) {
        let window = self.window();
        let state = self.cpus.entry(cpu).or_default();
        state.woken_ns = state.woken_ns.max(at_ns);
        if state.woken.len() < WOKEN_MAX {
            state.woken.push(tid);
        }
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| event_ns >= thread.from_ns) else {
            return;
        };
        match thread.state {
            State::Unseen(asleep) => thread.state = State::Asleep(asleep.unwrap_or(Sleep::Other.into())),
            State::Asleep(_) | State::Lost => {}
            // It had not got round to sleeping.
            State::Running | State::Waiting(_) => return,
        }
        thread.close(window, at_ns);
        thread.state = State::Waiting(cpu);
        self.cpus.entry(cpu).or_default().waiting.push(tid);
    }

    /// If a thread waits for a CPU (another than the one that it is given at last, it may be), its wait is known up to
    /// here. Returns since when it waited.
    fn leave_queue(&mut self, at_ns: u64, tid: u32) -> Option<u64> {
        let State::Waiting(cpu) = self.threads.get(&tid)?.state else { return None };
        self.settle(cpu, at_ns, None);
        let state = self.cpus.entry(cpu).or_default();
        state.waiting.retain(|waiting| *waiting != tid);
        let known_ns = state.since_ns;
        let window = self.window();
        let thread = self.threads.get_mut(&tid)?;
        let since_ns = thread.since_ns;
        thread.since_ns = since_ns.max(known_ns);
        if at_ns >= window.0 && at_ns < window.1 {
            // The kernel counts all of it now.
            thread.times.correct_wait(-(window.0.saturating_sub(since_ns) as i64));
        }
        Some(since_ns)
    }

    fn lost(&mut self, at_ns: u64) {
        let window = self.window();
        let waiting: Vec<u32> = self.threads.keys().copied().collect();
        for tid in waiting {
            self.leave_queue(at_ns, tid);
        }
        for state in self.cpus.values_mut() {
            state.current = None;
            state.calls = None;
            state.woken.clear();
        }
        for thread in self.threads.values_mut() {
            if !matches!(thread.state, State::Unseen(_)) {
                // What it did last goes on to here at most.
                thread.state = State::Lost;
                thread.times.wait_edges_ns = None;
                thread.close(window, at_ns);
            }
        }
    }

    /// Tells those who wait on a CPU who ran there since the last event: `runner`, or whoever was put there last.
    fn settle(&mut self, cpu: u32, at_ns: u64, runner: Option<u32>) {
        let window = (self.begin_ns, self.end_ns.min(at_ns));
        let Some(state) = self.cpus.get_mut(&cpu) else { return };
        let mut held_ns = 0;
        for tid in &state.waiting {
            let Some(thread) = self.threads.get_mut(tid) else { continue };
            // Who came to a CPU between two events was not seen: whoever joined the queue after the last one waits
            // behind it, whoever was in the queue before saw the CPU idle.
            let seen = state.current.filter(|_| thread.since_ns <= state.since_ns);
            let ran = seen.or(runner).or(state.current).unwrap_or(IDLE);
            let ns = overlap(window, thread.since_ns.max(state.since_ns), at_ns);
            let is_held = ns >= HELD_NS_MIN;
            thread.times.waited(ran, ns, is_held);
            if ran == IDLE && is_held {
                held_ns = held_ns.max(ns);
            }
        }
        state.held_ns += held_ns;
        state.since_ns = state.since_ns.max(at_ns);
    }
}

impl Followed {
    /// Ends the state at `at_ns`. A wait's time is known from its CPU, not here.
    fn close(&mut self, window: (u64, u64), at_ns: u64) {
        let ns = overlap(window, self.since_ns, at_ns);
        match self.state {
            State::Unseen(_) | State::Lost => self.times.unknown_ns += ns,
            State::Running => self.times.run_ns += ns,
            State::Asleep(why) => self.times.blocked.entry(why).or_default().0 += ns,
            State::Waiting(_) => {}
        }
        self.since_ns = self.since_ns.max(at_ns);
    }

    /// A wait in a futex that its time limit ended soon was a pause. (Whoever has something for a thread calls it itself.)
    fn call_a_pause_what_it_is(&mut self, at_ns: u64, counts: bool) {
        let State::Asleep(why) = self.state else { return };
        let is_pause = self.is_timed && at_ns.saturating_sub(self.since_ns) < SOON_NS;
        if is_pause && why.sleep == Sleep::Parked {
            let pause = Why::from(Sleep::Timer);
            self.state = State::Asleep(pause);
            if counts && let Some(parked) = self.times.blocked.get_mut(&why) {
                parked.1 = parked.1.saturating_sub(1);
                self.times.blocked.entry(pause).or_default().1 += 1;
            }
        }
    }

    /// Wake-ups by role.
    pub(super) fn wakers(&self, is_sut: impl Fn(u32) -> bool, is_load: impl Fn(u32) -> bool) -> Wakers {
        let mut wakers = Wakers { cross_cpu: self.woken_cross_cpu, ..Wakers::default() };
        for (waker, count) in &self.woken_by {
            match waker {
                None => wakers.interrupt += count,
                Some(tid) if is_sut(*tid) => wakers.sut += count,
                Some(tid) if is_load(*tid) => wakers.load += count,
                Some(_) => wakers.other += count,
            }
        }
        wakers
    }
}

fn overlap(window: (u64, u64), from_ns: u64, to_ns: u64) -> u64 {
    to_ns.min(window.1).saturating_sub(from_ns.max(window.0))
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
