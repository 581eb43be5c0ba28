//! Time in which somebody waited for something that there was too little of, by the system and by the SUT's group.

super::declare::descriptors! {
    CPU_SOME_NS = "pressure.cpu_some_ns", Nanosecond, Counter,
        "Time in which at least one thread waited for a CPU.", "/proc/pressure/cpu or the group's cpu.pressure, some total";
    MEMORY_SOME_NS = "pressure.memory_some_ns", Nanosecond, Counter,
        "Time in which at least one thread waited for memory.", "/proc/pressure/memory or the group's memory.pressure, some total";
    MEMORY_FULL_NS = "pressure.memory_full_ns", Nanosecond, Counter,
        "Time in which all threads that were not idle waited for memory.", "/proc/pressure/memory or the group's memory.pressure, full total";
    IO_SOME_NS = "pressure.io_some_ns", Nanosecond, Counter,
        "Time in which at least one thread waited for a disk.", "/proc/pressure/io or the group's io.pressure, some total";
    IO_FULL_NS = "pressure.io_full_ns", Nanosecond, Counter,
        "Time in which all threads that were not idle waited for a disk.", "/proc/pressure/io or the group's io.pressure, full total";
}
