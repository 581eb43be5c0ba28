//! How far the server's CPUs are from the generator's.

super::declare::descriptors! {
    TRANSFER_NS = "core_latency.transfer_ns", Nanosecond, Gauge,
        "What a cache line takes from the CPU to the generator's first one.", "a number handed to and fro by two threads, half of a round trip; before and after the window";
}
