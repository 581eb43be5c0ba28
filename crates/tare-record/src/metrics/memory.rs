//! Memory of the SUT's processes.

super::descriptors! {
    RESIDENT_BYTES = "memory.resident_bytes", Byte, Gauge,
        "Memory of the process that is in RAM, shared pages included; of its main thread.", "/proc/PID/statm field 2";
}
