//! Every CPU: who used it, how long it idled, what was taken from it.

super::declare::descriptors! {
    TASK_RUN_NS = "cpus.task_run_ns", Nanosecond, Counter,
        "Sum of run of all tasks on this CPU.", "root cpuacct.usage_percpu, or /proc/schedstat";
    IDLE_NS = "cpus.idle_ns", Nanosecond, Counter,
        "Idle time (iowait included), exact to 10 ms under NO_HZ.", "/proc/stat idle + iowait";
    STEAL_NS = "cpus.steal_ns", Nanosecond, Counter,
        "Time the hypervisor gave to somebody else.", "/proc/stat steal";
    USER_NS = "cpus.user_ns", Nanosecond, Counter,
        "User time, sampled at ticks: good for shares only.", "/proc/stat user + nice";
    SYSTEM_NS = "cpus.system_ns", Nanosecond, Counter,
        "Kernel time, sampled at ticks: good for shares only.", "/proc/stat system";
    IRQ_NS = "cpus.irq_ns", Nanosecond, Counter,
        "Hard interrupt time; sampled at ticks unless the kernel accounts it.", "/proc/stat irq";
    SOFTIRQ_NS = "cpus.softirq_ns", Nanosecond, Counter,
        "Soft interrupt time; sampled at ticks unless the kernel accounts it.", "/proc/stat softirq";
    SWITCHES = "cpus.switches", Count, Counter,
        "Context switches, to and from idle included.", "perf_event software context-switches, per CPU";
    IDLE_EXITS = "cpus.idle_exits", Count, Counter,
        "Times the idle task gave the CPU to another.", "perf_event at sched:sched_switch with next_pid == 0 (each idle period that begins ends), or a BPF program there, which also counts those that end and whose beginning the kernel hid";
    IDLE_TASK_NS = "cpus.idle_task_ns", Nanosecond, Counter,
        "Time of the idle task by the clock that the scheduler charges all others with: what of it is not idle is interrupts and the idle loop.",
        "a BPF program at sched:sched_switch: sched_entity.exec_start of who gets the CPU, less that of who gave it away";
    IDLE_TASK_UNSEEN_NS = "cpus.idle_task_unseen_ns", Nanosecond, Counter,
        "Time of the CPU in which the idle task began unseen: cpus.idle_task_ns lacks so much at most.",
        "as cpus.idle_task_ns: from one idle period's end to the next one's whose begin was not seen; of a CPU with such periods also up to now";
    IDLE_EXIT_COST_NS = "cpus.idle_exit_cost_ns", Nanosecond, Gauge,
        "Time around one idle period that is in no account, less what is in two; can be negative.",
        "found between windows under the same load: (wall - run - idle) / idle periods, read on the CPU itself";
    IDLE_EXITS_SAMPLED = "cpus.idle_exits_sampled", Count, Gauge,
        "Idle periods that the reading of cpus.idle_exit_cost_ns with the same stamp is the mean of.",
        "as cpus.idle_exits, between windows";
}
