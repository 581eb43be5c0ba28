//! Durations as people write them.

use std::time::Duration;

/// Longest duration of anything, one day: a bound on how long tare can run away.
const DURATION_MAX: Duration = Duration::from_secs(86_400);

/// Parses a duration: `2`, `2s`, `500ms`, `1.5s`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is not a duration; write it as 500ms, 2s or 1m");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_s = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad()),
    };
    let number: f64 = digits.parse().map_err(|_| bad())?;
    let duration = Duration::try_from_secs_f64(number * unit_s).map_err(|_| bad())?;
    if duration > DURATION_MAX {
        return Err(format!("'{text}' is longer than a day"));
    }
    Ok(duration)
}
