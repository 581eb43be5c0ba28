//! What the readers of this folder need: units as people write them, and which way is better.

use crate::units::in_base;
use tare_model::outcome::Better;

/// A value in its base unit, and that unit: `ns/iter` as seconds, `MB/s` as bytes a second, `ops/sec` as `op/s`.
pub(super) fn scaled(value: f64, unit: &str) -> (f64, String) {
    let unit = unit.trim();
    let second = |per: &str| matches!(per, "s" | "sec" | "second" | "seconds");
    match unit.split_once('/').map(|(what, per)| (what.trim(), per.trim())) {
        Some(("op" | "ops" | "operations", per)) if second(per) => (value, "op/s".to_owned()),
        Some((what, per)) => {
            let (value, base) = of_bytes(value, what);
            let per = if second(per) { "s" } else { per };
            (value, format!("{base}/{per}"))
        }
        None => {
            let (value, base) = of_bytes(value, unit);
            (value, base.to_owned())
        }
    }
}

/// Sizes too; `KB` is not said to be of 1000 or 1024, and stays.
fn of_bytes(value: f64, unit: &str) -> (f64, &str) {
    match unit {
        "B" | "byte" | "bytes" | "Bytes" => (value, "B"),
        "KiB" => (value * 1024.0, "B"),
        "MiB" => (value * 1024.0 * 1024.0, "B"),
        "GiB" => (value * 1024.0 * 1024.0 * 1024.0, "B"),
        _ => in_base(value, unit),
    }
}

/// By the unit alone: rates are better when they are higher, times when they are lower.
pub(super) fn usual(unit: &str) -> Option<Better> {
    match unit {
        "s" | "B/op" | "allocs/op" => Some(Better::Lower),
        "Hz" => Some(Better::Higher),
        _ if unit.ends_with("/s") => Some(Better::Higher),
        _ if unit.starts_with("s/") => Some(Better::Lower),
        _ => None,
    }
}

/// A number, also with a decimal comma where it can be nothing else.
pub(super) fn decimal(text: &str) -> Result<f64, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Err("there is no value");
    }
    if let Ok(value) = text.parse() {
        return Ok(value);
    }
    let Some((whole, part)) = text.split_once(',') else { return Err("it is no number") };
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole.trim_start_matches(['-', '+'])) || !is_number(part) {
        return Err("it is no number, or one with separators of thousands");
    }
    if part.len() == 3 {
        return Err("its comma may be a decimal one or one of thousands");
    }
    format!("{whole}.{part}").parse().map_err(|_| "it is no number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_read_where_it_is_a_decimal_one() {
        assert_eq!(decimal(" 1,25 "), Ok(1.25));
        assert_eq!(decimal("1e-3"), Ok(1e-3));
        assert!(decimal("1,250").is_err_and(|why| why.contains("thousands")));
        assert!(decimal("1,250,000").is_err());
        assert!(decimal("x").is_err());
    }

    #[test]
    fn units_of_both_sides_are_scaled() {
        assert_eq!(scaled(12.0, "ns/iter"), (12e-9, "s/iter".to_owned()));
        assert_eq!(scaled(12.0, "ops/sec"), (12.0, "op/s".to_owned()));
        assert_eq!(scaled(2.0, "KiB/s"), (2048.0, "B/s".to_owned()));
        assert_eq!(usual("s/iter"), Some(Better::Lower));
    }
}
