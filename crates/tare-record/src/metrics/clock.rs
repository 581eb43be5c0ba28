//! The effective clock.

super::descriptors! {
    EFFECTIVE_HZ = "clock.effective_hz", Hertz, Gauge,
        "Effective clock of the CPU.", "a chain of dependent multiplies, 3 cycles each, timed; median of short undisturbed samples";
}
