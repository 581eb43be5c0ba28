//! Soft interrupts by kind.

super::declare::descriptors! {
    NET_RX = "softirqs.net_rx", Count, Counter,
        "Receive runs of the network on this CPU.", "/proc/softirqs NET_RX";
    NET_TX = "softirqs.net_tx", Count, Counter,
        "Runs that free what was sent on this CPU.", "/proc/softirqs NET_TX";
    TIMER = "softirqs.timer", Count, Counter,
        "Runs of timers on this CPU.", "/proc/softirqs TIMER";
    SCHED = "softirqs.sched", Count, Counter,
        "Balancing runs of the scheduler on this CPU.", "/proc/softirqs SCHED";
    RCU = "softirqs.rcu", Count, Counter,
        "Runs that reclaim memory on this CPU.", "/proc/softirqs RCU";
    BLOCK = "softirqs.block", Count, Counter,
        "Runs that complete disk requests on this CPU.", "/proc/softirqs BLOCK";
}
