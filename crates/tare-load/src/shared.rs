//! What a generator thread shares with whoever drives it.

use crate::live::Live;
use crate::tally::Tally;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tare_sys::epoll::Waker;

/// What one thread and its driver exchange. The thread reads nothing of it unless it was woken for that.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) waker: Waker,
    stop: AtomicBool,
    /// Nothing more is to be sent.
    end: AtomicBool,
    finished: AtomicBool,
    /// Whether a server took a connection that cannot be used yet.
    reached: AtomicBool,
    /// Connections that were ever opened.
    opened: AtomicU64,
    /// When sending begins; 0 until it is known.
    begin_ns: AtomicU64,
    live: Counters,
    handover: Mutex<Handover>,
    handed: Condvar,
}

/// On cache lines of its own: the thread writes it after each pass, everybody may read it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    answers: AtomicU64,
    errors: AtomicU64,
    waited_ns: AtomicU64,
}

/// There are two tallies: the thread counts in one, the other is here or with the driver.
#[derive(Debug)]
struct Handover {
    /// A cut was asked for: the origin of the next window's slices.
    asked_ns: Option<u64>,
    spare: Option<Box<Tally>>,
    done: Option<Box<Tally>>,
}

impl Shared {
    pub(crate) fn new() -> io::Result<Self> {
        let handover = Handover { asked_ns: None, spare: Some(Box::new(Tally::new())), done: None };
        Ok(Shared {
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
            end: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            reached: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            begin_ns: AtomicU64::new(0),
            live: Counters::default(),
            handover: Mutex::new(handover),
            handed: Condvar::new(),
        })
    }

    pub(crate) fn begin(&self, begin_ns: u64) -> io::Result<()> {
        self.begin_ns.store(begin_ns, Ordering::Release);
        self.waker.wake()
    }

    pub(crate) fn begin_ns(&self) -> Option<u64> {
        Some(self.begin_ns.load(Ordering::Acquire)).filter(|&ns| ns > 0)
    }

    pub(crate) fn stop(&self) -> io::Result<()> {
        self.stop.store(true, Ordering::Release);
        self.waker.wake()
    }

    pub(crate) fn end(&self) -> io::Result<()> {
        self.end.store(true, Ordering::Release);
        self.waker.wake()
    }

    /// By the thread: it has nothing more to send or to wait for.
    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// By the thread: one more connection could be opened.
    pub(crate) fn opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// By the thread: a connection is there, and what has to be agreed on first is not.
    pub(crate) fn reached(&self) {
        self.reached.store(true, Ordering::Relaxed);
    }

    /// Whether that ever happened.
    pub(crate) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// Connections that were ever opened.
    pub(crate) fn ever_opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    pub(crate) fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    pub(crate) fn ending(&self) -> bool {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// By the thread: how far it has come since the start. It is the only writer, so plain stores do.
    #[inline]
    pub(crate) fn publish(&self, live: Live) {
        self.live.answers.store(live.answers, Ordering::Relaxed);
        self.live.errors.store(live.errors, Ordering::Relaxed);
        self.live.waited_ns.store(live.waited_ns, Ordering::Relaxed);
    }

    /// How far it has come since the start.
    pub(crate) fn live(&self) -> Live {
        let Counters { answers, errors, waited_ns } = &self.live;
        let [answers, errors, waited_ns] =
            [answers, errors, waited_ns].map(|counter| counter.load(Ordering::Relaxed));
        Live { answers, errors, waited_ns }
    }

    /// By the driver: asks for what was counted, and for slices of the next window to count from `origin_ns`.
    pub(crate) fn ask(&self, origin_ns: u64) -> io::Result<()> {
        self.handover().asked_ns = Some(origin_ns);
        self.waker.wake()
    }

    /// By the thread: whether a cut was asked for, and where slices count from afterwards.
    pub(crate) fn asked_ns(&self) -> Option<u64> {
        self.handover().asked_ns
    }

    /// By the thread: gives what it counted and gets an empty tally. Not while the last one was not collected.
    pub(crate) fn hand_over(&self, counted: &mut Box<Tally>) -> bool {
        let mut handover = self.handover();
        let Some(spare) = handover.spare.take() else { return false };
        handover.asked_ns = None;
        handover.done = Some(std::mem::replace(counted, spare));
        self.handed.notify_all();
        true
    }

    /// By the driver: what the thread counted, if it answers within `patience`.
    pub(crate) fn collect(&self, patience: Duration) -> Option<Box<Tally>> {
        let (mut handover, _) = self
            .handed
            .wait_timeout_while(self.handover(), patience, |handover| handover.done.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        handover.done.take()
    }

    /// By the driver: what was collected, to be counted in again.
    pub(crate) fn give_back(&self, mut tally: Box<Tally>) {
        tally.clear();
        self.handover().spare = Some(tally);
    }

    fn handover(&self) -> MutexGuard<'_, Handover> {
        self.handover.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
