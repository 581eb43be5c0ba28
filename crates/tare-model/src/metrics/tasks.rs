//! Threads: of the SUT, the generator, tare itself, and whoever else ran on the SUT's CPUs.

super::declare::descriptors! {
    RUN_NS = "tasks.run_ns", Nanosecond, Counter,
        "Time on a CPU.", "/proc/PID/task/TID/schedstat field 1";
    WAIT_NS = "tasks.wait_ns", Nanosecond, Counter,
        "Time runnable without a CPU; added when the wait ends.", "/proc/PID/task/TID/schedstat field 2";
    OPEN_WAIT_NS = "tasks.open_wait_ns", Nanosecond, Gauge,
        "How long the wait that was going on at the beginning, and at the end, of the window had lasted by then; at least, and 0 where there was none.",
        "/proc/PID/task/TID/schedstat: run and wait beyond the time that has passed since";
    USER_NS = "tasks.user_ns", Nanosecond, Counter,
        "User part of run, in clock ticks of 10 ms.", "/proc/PID/task/TID/stat utime";
    SYSTEM_NS = "tasks.system_ns", Nanosecond, Counter,
        "Kernel part of run, in clock ticks of 10 ms.", "/proc/PID/task/TID/stat stime";
    PROCESS_USER_NS = "tasks.process_user_ns", Nanosecond, Counter,
        "User time of the whole process, threads that have ended included, in clock ticks of 10 ms; of its main thread only.",
        "/proc/PID/stat utime";
    PROCESS_SYSTEM_NS = "tasks.process_system_ns", Nanosecond, Counter,
        "Kernel time of the whole process, threads that have ended included, in clock ticks of 10 ms; of its main thread only.",
        "/proc/PID/stat stime";
    CHILDREN_USER_NS = "tasks.children_user_ns", Nanosecond, Counter,
        "User time of children that have ended and were waited for, with what those had of theirs, in clock ticks of 10 ms; of main threads only, and missing where there was none.",
        "/proc/PID/stat cutime";
    CHILDREN_SYSTEM_NS = "tasks.children_system_ns", Nanosecond, Counter,
        "Kernel time of the same.", "/proc/PID/stat cstime";
    OTHERS_RUN_NS = "tasks.others_run_ns", Nanosecond, Counter,
        "Run of other threads that ran too little to be listed one by one, together; of the machine.",
        "/proc/PID/task/TID/schedstat field 1, at both edges";
    VOLUNTARY_SWITCHES = "tasks.voluntary_switches", Count, Counter,
        "Switches because the thread went to sleep.", "/proc/PID/task/TID/status voluntary_ctxt_switches";
    INVOLUNTARY_SWITCHES = "tasks.involuntary_switches", Count, Counter,
        "Switches because another thread was given the CPU.", "/proc/PID/task/TID/status nonvoluntary_ctxt_switches";
    LAST_CPU = "tasks.last_cpu", Index, Gauge,
        "The CPU the thread ran on last.", "/proc/PID/task/TID/stat processor";
    MAJOR_FAULTS = "tasks.major_faults", Count, Counter,
        "Page faults that needed the disk.", "/proc/PID/task/TID/stat majflt";
    MINOR_FAULTS = "tasks.minor_faults", Count, Counter,
        "Page faults served from memory.", "/proc/PID/task/TID/stat minflt";
    SAMPLES = "tasks.samples", Count, Counter,
        "Samples of what the thread was doing, a hundred a second; those that its schedstat made needless are counted as the samples before and after found it.", "the observer's own count of the next nine";
    SAMPLES_RUNNABLE = "tasks.samples_runnable", Count, Counter,
        "Samples that found it running or runnable.", "/proc/PID/task/TID/syscall 'running'";
    SAMPLES_EVENT = "tasks.samples_event", Count, Counter,
        "Samples that found it waiting for events or a socket.", "/proc/PID/task/TID/syscall (epoll_wait, recv, accept, poll with descriptors …)";
    SAMPLES_LOCK = "tasks.samples_lock", Count, Counter,
        "Samples that found it in a futex whose word says that a lock is taken; in records from before 0.2, in any futex.", "/proc/PID/task/TID/syscall (futex, with operation and value)";
    SAMPLES_PARKED = "tasks.samples_parked", Count, Counter,
        "Samples that found it in any other futex: parked without work, waiting for a hand-over or for a thread to end.", "/proc/PID/task/TID/syscall (futex, with operation and value)";
    SAMPLES_DISK = "tasks.samples_disk", Count, Counter,
        "Samples that found it in file I/O or uninterruptible sleep.", "/proc/PID/task/TID/syscall (fsync, pread …), stat state D";
    SAMPLES_TIMER = "tasks.samples_timer", Count, Counter,
        "Samples that found it sleeping for a time.", "/proc/PID/task/TID/syscall (nanosleep, poll and select without descriptors …)";
    SAMPLES_DOWNSTREAM = "tasks.samples_downstream", Count, Counter,
        "Samples that found it waiting for a socket that it had connected.", "/proc/PID/task/TID/syscall (recv, read, send …), /proc/PID/task/TID/fd, /proc/PID/net/tcp";
    SAMPLES_FAULT = "tasks.samples_fault", Count, Counter,
        "Samples that found it asleep outside of a system call: for a page of its memory.", "/proc/PID/task/TID/syscall '-1'";
    SAMPLES_OTHER = "tasks.samples_other", Count, Counter,
        "Samples that found it blocked in anything else.", "/proc/PID/task/TID/syscall";
}
