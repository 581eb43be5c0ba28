//! Wake-ups of one thread by another.

super::declare::descriptors! {
    SUT = "wakeups.sut", Count, Counter,
        "Wake-ups of a thread of the SUT by another of its threads, on this CPU; by packets and timers not.",
        "perf_event sched:sched_waking, waker and woken both threads of the SUT, no interrupt being served; threads that lived less than half a second may be missed";
}
