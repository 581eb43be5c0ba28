//! The SUT's control group and its ancestors.

super::declare::descriptors! {
    USAGE_NS = "groups.usage_ns", Nanosecond, Counter,
        "CPU time of the group and its children.", "cpuacct.usage (v1), cpu.stat usage_usec (v2)";
    THROTTLED_NS = "groups.throttled_ns", Nanosecond, Counter,
        "Time the group's CPU run-queues were held back, by its own or an ancestor's quota.", "cpu.stat.local throttled";
    PERIODS = "groups.periods", Count, Counter,
        "Quota periods that passed.", "cpu.stat nr_periods";
    THROTTLED_PERIODS = "groups.throttled_periods", Count, Counter,
        "Quota periods in which the quota ran out.", "cpu.stat nr_throttled";
    QUOTA_NS = "groups.quota_ns", Nanosecond, Gauge,
        "CPU time allowed in a period.", "cpu.cfs_quota_us (v1), cpu.max (v2); absent when unlimited";
    PERIOD_NS = "groups.period_ns", Nanosecond, Gauge,
        "Length of a quota period.", "cpu.cfs_period_us (v1), cpu.max (v2)";
}
