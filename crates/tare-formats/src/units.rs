//! Units of other tools in base units: seconds, bytes, operations per second.

/// A value in its base unit, and that unit's name; one of an unknown unit as it is. Divided, not multiplied: 12.5 ns are then 1.25e-8 s and not
/// its neighbour.
pub(crate) fn in_base(value: f64, unit: &str) -> (f64, &str) {
    match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => (value, "s"),
        "ms" | "msec" | "milliseconds" => (value / 1e3, "s"),
        "us" | "µs" | "μs" | "usec" | "microseconds" => (value / 1e6, "s"),
        "ns" | "nsec" | "nanoseconds" => (value / 1e9, "s"),
        "ps" | "picoseconds" => (value / 1e12, "s"),
        "min" | "minutes" => (value * 60.0, "s"),
        "h" | "hr" | "hours" => (value * 3600.0, "s"),
        _ => (value, unit),
    }
}

/// How many a prefix of a unit stands for: thousands, or of `Ki` and its like powers of 1024.
pub(crate) fn prefix(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "K" | "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        _ => return None,
    })
}
