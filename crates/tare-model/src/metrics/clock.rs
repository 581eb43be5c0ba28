//! The effective clock.

super::declare::descriptors! {
    EFFECTIVE_HZ = "clock.effective_hz", Hertz, Gauge,
        "Effective clock of the CPU.", "a chain of dependent multiplies, 3 cycles each, timed; median of short undisturbed samples";
    APERF = "clock.aperf", Count, Counter,
        "Ticks of the clock that the CPU ran at, while not idle.", "IA32_APERF: perf_event msr/aperf/, or /dev/cpu/N/msr 0xe8";
    MPERF = "clock.mperf", Count, Counter,
        "Ticks of a fixed clock, while not idle.", "IA32_MPERF: perf_event msr/mperf/, or /dev/cpu/N/msr 0xe7";
    TSC = "clock.tsc", Count, Counter,
        "Ticks of the same fixed clock, always.", "time stamp counter: perf_event msr/tsc/, or /dev/cpu/N/msr 0x10";
}
