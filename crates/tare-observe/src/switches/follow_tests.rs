use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn switch(at_ms: u64, cpu: u32, prev: u32, asleep: Option<Sleep>, next: u32) -> Event {
    let what = What::Switch { prev, asleep: asleep.map(Why::from), next };
    Event { at_ns: at_ms * MS, cpu, what }
}

fn followed(tids: &[u32], events: &[Event], end_ms: u64) -> Follower {
    let mut follower = Follower::new();
    tids.iter().for_each(|tid| follower.follow(*tid, 0, None));
    events.iter().for_each(|event| follower.take(event));
    follower.end(end_ms * MS);
    follower
}

fn slept_ms(thread: &Followed) -> Vec<(Sleep, u64)> {
    thread.times.sleeps().into_iter().map(|sleep| (sleep.why, sleep.ns / MS)).collect()
}

#[test]
fn a_thread_runs_sleeps_and_waits() {
    let called =
        Event { at_ns: 30 * MS, cpu: 1, what: What::Waking { tid: 7, by: Waker::Thread(9), to_cpu: 0 } };
    let woken = Event { at_ns: 31 * MS, cpu: 0, what: What::Woken { tid: 7, to_cpu: 0 } };
    let events = [
        // It ran from the start, is pushed off by 5, comes back, sleeps, and waits behind 6, whose coming was hidden.
        switch(10, 0, 7, None, 5),
        switch(15, 0, 5, Some(Sleep::Other), 7),
        switch(20, 0, 7, Some(Sleep::Disk), 0),
        called,
        woken,
        switch(33, 0, 6, None, 7),
    ];
    let follower = followed(&[7], &events, 40);
    let thread = &follower.threads[&7];
    assert_eq!(thread.times.run_ns, (10 + 5 + 7) * MS);
    assert_eq!(thread.times.behind, HashMap::from([(5, 5 * MS), (6, 2 * MS)]));
    assert_eq!(slept_ms(thread), [(Sleep::Disk, 11)]);
    assert_eq!((thread.times.held_ns, thread.times.delay_ns, thread.times.unknown_ns), (0, 0, 0));
    assert_eq!(thread.woken_by, HashMap::from([(Some(9), 1)]));
    assert_eq!(thread.waits.counts().iter().sum::<u32>(), 2);
    assert_eq!(thread.wakes.counts().iter().sum::<u32>(), 1);
    assert_eq!(thread.woken_cross_cpu, 1);
}

#[test]
fn a_wait_that_its_time_limit_ends_soon_is_a_pause() {
    let parked = |is_timed| FutexWait { address: 0x7000, sleep: Sleep::Parked, is_timed };
    let slept = |is_timed, by, until_ms| {
        let futex = Event { at_ns: 10 * MS, cpu: 0, what: What::Futex { tid: 7, futex: parked(is_timed) } };
        let woken = |what| Event { at_ns: until_ms * MS, cpu: 0, what };
        let events = [
            futex,
            switch(10, 0, 7, Some(Sleep::Parked), 0),
            woken(What::Waking { tid: 7, by, to_cpu: 0 }),
            woken(What::Woken { tid: 7, to_cpu: 0 }),
            switch(until_ms, 0, 0, None, 7),
        ];
        let follower = followed(&[7], &events, until_ms + 10);
        let sleeps = follower.threads[&7].times.sleeps().into_iter().filter(|sleep| sleep.ns > 0);
        sleeps.map(|sleep| (sleep.why, sleep.ns / MS, sleep.count)).collect::<Vec<_>>()
    };
    let (timer, thread) = (Waker::Interrupt, Waker::Thread(9));
    assert_eq!(slept(true, timer, 30), [(Sleep::Timer, 20, 1)]);
    // Called before its time was up; a long limit, as of a pool that has nothing to do; no limit.
    assert_eq!(slept(true, thread, 30), [(Sleep::Parked, 20, 1)]);
    assert_eq!(slept(true, timer, 110), [(Sleep::Parked, 100, 1)]);
    assert_eq!(slept(false, timer, 30), [(Sleep::Parked, 20, 1)]);
}

#[test]
fn a_ready_thread_on_an_idle_cpu_is_held_back() {
    // Two threads of one CPU under a quota: both are held while the CPU idles, and once for the CPU.
    let events = [
        switch(1, 0, 7, None, 8),
        switch(30, 0, 8, None, 0),
        switch(100, 0, 0, None, 7),
        switch(110, 0, 7, None, 8),
    ];
    let follower = followed(&[7, 8], &events, 120);
    let of = |tid| &follower.threads[&tid];
    assert_eq!((of(7).times.held_ns, of(8).times.held_ns), (70 * MS, 70 * MS));
    assert_eq!(of(7).times.behind, HashMap::from([(8, (29 + 10) * MS)]));
    assert_eq!(follower.held(), [Held { cpu: 0, ns: 70 * MS }]);
}

#[test]
fn a_thread_called_from_another_cpu_is_ready_before_that_cpu_is_interrupted() {
    let at = |at_us: u64, cpu, what| Event { at_ns: at_us * 1000, cpu, what };
    let switch =
        |prev, asleep: Option<Sleep>, next| What::Switch { prev, asleep: asleep.map(Why::from), next };
    let sums_us = |called_us, woken_on| {
        let mut events = vec![
            at(10, 0, switch(7, Some(Sleep::Timer), 8)),
            at(called_us, 1, What::Waking { tid: 7, by: Waker::Thread(9), to_cpu: 0 }),
            at(116, woken_on, What::Woken { tid: 7, to_cpu: 0 }),
            at(120, 0, switch(8, None, 7)),
        ];
        events.sort_by_key(|event| event.at_ns);
        let follower = followed(&[7, 8], &events, 5);
        let [woken, pushed] = [7, 8].map(|tid| &follower.threads[&tid]);
        let slept: u64 = woken.times.sleeps().iter().map(|sleep| sleep.ns / 1000).sum();
        (slept, woken.times.run_ns / 1000, pushed.times.run_ns / 1000)
    };
    // The call sets the clock of the other CPU's queue, and what follows goes by that.
    assert_eq!(sums_us(100, 1), (90, 4910, 90));
    // Called while it was about to sleep: it is ready when it does.
    assert_eq!(sums_us(5, 1), (0, 5000, 0));
    // Put into the queue by that CPU itself, which sets its own clock then.
    assert_eq!(sums_us(100, 0), (106, 4894, 106));
}

#[test]
fn the_way_from_a_wake_up_that_pushes_somebody_off_is_run() {
    let at = |at_us: u64, what| Event { at_ns: at_us * 1000, cpu: 0, what };
    let switch =
        |prev, asleep: Option<Sleep>, next| What::Switch { prev, asleep: asleep.map(Why::from), next };
    let sums_us = |asleep, switched_us| {
        let events = [
            at(10, switch(7, Some(Sleep::Timer), 8)),
            at(100, What::Waking { tid: 7, by: Waker::Interrupt, to_cpu: 0 }),
            at(101, What::Woken { tid: 7, to_cpu: 0 }),
            at(switched_us, switch(8, asleep, 7)),
        ];
        let follower = followed(&[7, 8], &events, 5);
        let [woken, pushed] = [7, 8].map(|tid| &follower.threads[&tid]);
        (
            woken.times.run_ns / 1000,
            woken.times.behind.get(&8).map_or(0, |ns| ns / 1000),
            pushed.times.run_ns / 1000,
        )
    };
    assert_eq!(sums_us(None, 131), (10 + 4899, 0, 91), "pushed off at once");
    assert_eq!(sums_us(None, 3101), (10 + 1899, 3000, 3091), "when a tick came");
    assert_eq!(sums_us(Some(Sleep::Lock), 131), (10 + 4869, 30, 121), "gone by itself");
}

#[test]
fn what_a_ring_had_before_all_of_them_did_is_nothing() {
    let mut follower = Follower::new();
    follower.follow(7, 10 * MS, Some(Sleep::Timer.into()));
    let woken = Event { at_ns: 20 * MS, cpu: 0, what: What::Woken { tid: 7, to_cpu: 0 } };
    // That it went to sleep again was in no ring yet.
    [switch(5, 0, 0, None, 7), woken, switch(22, 0, 9, Some(Sleep::Other), 7)]
        .iter()
        .for_each(|event| follower.take(event));
    follower.end(30 * MS);
    let thread = &follower.threads[&7];
    assert_eq!((slept_ms(thread), thread.times.unknown_ns), (vec![(Sleep::Timer, 10)], 0));
}

#[test]
fn waits_across_the_edges_of_a_window_are_set_against_the_kernels_count() {
    let mut follower = Follower::new();
    (7..9).for_each(|tid| follower.follow(tid, 0, None));
    let events = [switch(10, 0, 7, None, 8), switch(35, 0, 8, None, 7), switch(50, 0, 7, None, 8)];
    follower.take(&events[0]);
    follower.begin(30 * MS);
    events[1..].iter().for_each(|event| follower.take(event));
    follower.end(60 * MS);
    // Of 25 ms that are counted in the window 20 were before it, and 10 at its end are not counted yet.
    assert_eq!(follower.threads[&7].times.wait_edges_ns, Some((10 - 20) * MS as i64));
    assert_eq!(follower.threads[&8].times.wait_edges_ns, None, "nobody saw since when it waited");
}

#[test]
fn who_is_never_seen_is_as_a_sample_found_it() {
    let mut follower = Follower::new();
    follower.follow(1, 0, Some(Sleep::Event.into()));
    follower.follow(2, 0, None);
    follower.begin(5 * MS);
    follower.end(10 * MS);
    assert_eq!(slept_ms(&follower.threads[&1]), [(Sleep::Event, 5)]);
    assert_eq!(follower.threads[&2].times.run_ns, 5 * MS);
}

fn any_event() -> impl Strategy<Value = (u64, u32, u8, u32, u32)> {
    (0u64..50, 0u32..3, 0u8..12, 0u32..6, 0u32..6)
}

proptest! {
    #[test]
    fn the_sums_of_a_thread_are_its_life(
        events in prop::collection::vec(any_event(), 0..200),
        (begin_ms, length_ms) in (0u64..500, 0u64..5000),
        // The ways of wake-ups are microseconds, those of quotas milliseconds.
        step_ns in prop_oneof![Just(MS / 100), Just(MS / 2)],
    ) {
        let (begin_ns, end_ns) = (begin_ms * step_ns, (begin_ms + length_ms) * step_ns);
        let mut follower = Follower::new();
        (1..5).for_each(|tid| follower.follow(tid, 0, (tid == 1).then_some(Sleep::Lock.into())));
        follower.begin(begin_ns);
        let mut at_ns = 0;
        for (after_ms, cpu, kind, a, b) in events {
            at_ns += after_ms * step_ns;
            let what = match kind {
                0..=3 => What::Switch { prev: a, asleep: None, next: b },
                4..=6 => What::Switch { prev: a, asleep: Some(Sleep::Timer.into()), next: b },
                7..=8 => What::Waking { tid: a, by: Waker::Interrupt, to_cpu: b },
                9..=10 => What::Woken { tid: a, to_cpu: b },
                _ => What::Lost,
            };
            follower.take(&Event { at_ns, cpu, what });
        }
        let end_ns = end_ns.max(at_ns);
        follower.end(end_ns);
        for thread in follower.threads.values() {
            let blocked: u64 = thread.times.blocked.values().map(|(ns, _)| ns).sum();
            let behind: u64 = thread.times.behind.values().sum();
            let sum = thread.times.run_ns + blocked + behind + thread.times.held_ns + thread.times.delay_ns + thread.times.unknown_ns;
            prop_assert_eq!(sum, end_ns - begin_ns);
        }
    }
}
