//! Memory of the SUT's processes, and of its groups and the machine where there is too little.

super::declare::descriptors! {
    RESIDENT_BYTES = "memory.resident_bytes", Byte, Gauge,
        "Memory of the process that is in RAM, shared pages included; of its main thread.", "/proc/PID/statm field 2";
    LIMIT_HITS = "memory.limit_hits", Count, Counter,
        "Times that a group was at its bottleneck and memory had to be taken back first.", "memory.failcnt (v1), memory.events high + max (v2)";
    REFAULTED_BYTES = "memory.refaulted_bytes", Byte, Counter,
        "What was read in again soon after it had been taken back; of a group with its children, or of the machine.",
        "workingset_refault_anon + workingset_refault_file of memory.stat or /proc/vmstat, pages";
    READ_BYTES = "memory.read_bytes", Byte, Counter,
        "What the whole machine read from disks.", "/proc/vmstat pgpgin";
    LIMIT_BYTES = "memory.limit_bytes", Byte, Gauge,
        "What a group may use.", "memory.limit_in_bytes (v1), memory.max (v2); absent when unlimited";
    HIGH_BYTES = "memory.high_bytes", Byte, Gauge,
        "What a group may use before it is slowed down.", "memory.high (v2); absent when unlimited";
    USED_BYTES = "memory.used_bytes", Byte, Gauge,
        "What a group uses, file pages included.", "memory.usage_in_bytes (v1), memory.current (v2)";
}
