//! Numbers as people read them. A number that is not finite is `–`: it never reaches a reader as `NaN`.
//!
//! Number and unit are joined by a no-break space, so that no line ends between them.

use tare_model::figure::Unit;

/// Stands where there is no figure.
pub(crate) const NONE: &str = "–";

/// No-break space.
const JOINT: char = '\u{a0}';

const DECIMAL: &[(f64, &str)] =
    &[(1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
const BINARY: &[(f64, &str)] = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
    (1_099_511_627_776.0, "TiB"),
];
/// Counts and rates have no thousandths of their own.
const FROM_ONE: usize = 3;
const UP_TO_SECONDS: usize = 4;

/// A count or a rate without its unit: `178k`, `95.1k`, `0.42`.
pub(crate) fn count(value: f64) -> String {
    scaled(value, &DECIMAL[FROM_ONE..]).map_or(NONE.into(), |(figure, prefix)| figure + prefix)
}

/// A value with the unit it was stated in: `178k req/s`, `1.24 ms`, `98 %`.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "s" => seconds(value),
        "ns" => seconds(value / 1e9),
        "Hz" => hertz(value),
        "B" | "bytes" => bytes(value),
        "%" => percent(value / 100.0),
        "ratio" | "share" => percent(value),
        "ln" => format!("{}{JOINT}ln", logarithm(value)),
        "" | "count" => count(value),
        "CPUs" if value == 1.0 => format!("1{JOINT}CPU"),
        _ if unit.starts_with("share ") => format!("{}{}", percent(value), &unit["share".len()..]),
        _ if unit.starts_with("s/") => format!("{}{}", seconds(value), &unit[1..]),
        _ if unit.starts_with("B/") => format!("{}{}", bytes(value), &unit[1..]),
        _ if unit.starts_with("1/") => format!("{}{}", count(value), &unit[1..]),
        _ => format!("{}{JOINT}{unit}", count(value)),
    }
}

/// A time given in seconds: `131 µs`, `1.24 ms`, `20.0 s`.
pub(crate) fn seconds(value: f64) -> String {
    scaled(value, &DECIMAL[..UP_TO_SECONDS])
        .map_or(NONE.into(), |(figure, prefix)| format!("{figure}{JOINT}{prefix}s"))
}

/// A frequency: `2.89 GHz`.
pub(crate) fn hertz(value: f64) -> String {
    scaled(value, &DECIMAL[FROM_ONE..])
        .map_or(NONE.into(), |(figure, prefix)| format!("{figure}{JOINT}{prefix}Hz"))
}

/// An amount of memory: `15.6 GiB`.
pub(crate) fn bytes(value: f64) -> String {
    scaled(value, BINARY).map_or(NONE.into(), |(figure, unit)| format!("{figure}{JOINT}{unit}"))
}

/// A share of one in prose: `98 %`, `1.2 %`, `0.03 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let figure = match value.abs() {
        size if !size.is_finite() => return NONE.into(),
        0.0 => "0".into(),
        size if size < 0.005 => "<0.01".into(),
        size if size < 0.995 => fixed(value, 2),
        size if size < 9.95 => fixed(value, 1),
        size if size < 1e6 => fixed(value, 0),
        _ => return format!("{}{JOINT}%", count(value)),
    };
    format!("{figure}{JOINT}%")
}

/// A share of one by which something changed, in prose: `+12 %`, `−0.40 %`.
pub(crate) fn change(share: f64) -> String {
    format!("{}{}", sign(share), percent(share.abs()))
}

/// A true minus sign, or plus.
pub(crate) fn sign(value: f64) -> &'static str {
    if value < 0.0 { "−" } else { "+" }
}

/// A share of one as a table shows it, without the sign: `98.1`, `0.0`, `0`.
pub(crate) fn hundredths(share: f64) -> String {
    let value = share * 100.0;
    match value {
        _ if !value.is_finite() => NONE.into(),
        0.0 => "0".into(),
        _ if value.abs() >= 1e5 => count(value),
        _ => fixed(value, 1),
    }
}

/// A ratio of two times: `2.20`.
pub(crate) fn ratio(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e4 { fixed(value, 2) } else { count(value) }
}

/// A figure in its unit, where the head of its table says which.
pub(crate) fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Time => seconds(value),
        Unit::Rate => count(value),
        Unit::Cpus => ratio(value),
        Unit::Share => percent(value),
    }
}

/// A logarithm: `1.204`, `0.003`.
pub(crate) fn logarithm(value: f64) -> String {
    if value.is_finite() && value.abs() < 1e6 { fixed(value, 3) } else { count(value) }
}

/// A text from elsewhere with its figures joined to their units as here.
pub(crate) fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for c in text.chars() {
        let after_figure = joined.ends_with(|last: char| last.is_ascii_digit());
        joined.push(if c == ' ' && after_figure { JOINT } else { c });
    }
    joined
}

/// The half width of an interval relative to its value (`±1.2 %`), or its ends where it lies askew.
pub(crate) fn spread(value: f64, ci95: Option<[f64; 2]>, each: impl Fn(f64) -> String) -> String {
    let Some([low, high]) = ci95 else { return String::new() };
    if ![low, high, value].iter().all(|end| end.is_finite()) || value == 0.0 {
        return String::new();
    }
    let (below, above) = (value - low, high - value);
    const ASKEW: f64 = 1.5;
    if below < 0.0 || above < 0.0 || below.max(above) > ASKEW * below.min(above) {
        return between([low, high], each);
    }
    format!("±{}", percent((high - low) / 2.0 / value.abs()))
}

/// An interval by its ends: `−0.012…0.003`.
pub(crate) fn between([low, high]: [f64; 2], each: impl Fn(f64) -> String) -> String {
    format!("{}…{}", each(low), each(high))
}

/// Three significant digits and the largest prefix that leaves at least one before the point.
fn scaled<'a>(value: f64, scales: &[(f64, &'a str)]) -> Option<(String, &'a str)> {
    if !value.is_finite() {
        return None;
    }
    let size = significant(value.abs());
    // A zero has no size: it is given in the base unit.
    let size = if size == 0.0 { 1.0 } else { size };
    let at = scales.iter().rposition(|(factor, _)| size >= *factor * (1.0 - 1e-12)).unwrap_or(0);
    let (factor, prefix) = *scales.get(at)?;
    let figure = value / factor;
    let text = match significant(figure.abs()) {
        size if size >= 1e5 => format!("{figure:.2e}"),
        size if size >= 99.95 || size == 0.0 => fixed(figure, 0),
        size if size >= 9.995 => fixed(figure, 1),
        size if size >= 0.0995 => fixed(figure, 2),
        size if size >= 0.000_95 => fixed(figure, 3),
        _ if figure < 0.0 => ">−0.001".into(),
        _ => "<0.001".into(),
    };
    // A whole number of nanoseconds or things has no digits behind the point.
    let whole = factor == 1.0 && value.fract() == 0.0 && value.abs() < 1000.0;
    Some((if whole { fixed(value, 0) } else { text }, prefix))
}

/// Rounded to three significant digits, so that 999.6 takes the next prefix.
fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    if unit > 0.0 && unit.is_finite() { (value / unit).round() * unit } else { value }
}

/// Fixed decimals with a true minus sign, and none on a zero.
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    if value < 0.0 && !zero { format!("−{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(text: String) -> String {
        text.replace(JOINT, " ")
    }

    #[test]
    fn figures_read_well() {
        let counts = [0.0, 3.0, 3.1234, 31.234, 312.4, 999.6, 5000.0, 95_123.0, 178_412.0, 1_134_000.0];
        let read = counts.map(count);
        assert_eq!(read, ["0", "3", "3.12", "31.2", "312", "1.00k", "5.00k", "95.1k", "178k", "1.13M"]);
        let times = [2e-9, 1.31e-4, 1.24e-3, 0.9999, 20.0, 3600.0, 0.0];
        let read = times.map(|time| plain(seconds(time)));
        assert_eq!(read, ["2.00 ns", "131 µs", "1.24 ms", "1.00 s", "20 s", "3600 s", "0 s"]);
        let shares = [0.0, 0.00001, 0.0003, 0.012, 0.0995, 0.984, 1.0, -0.25];
        let read = shares.map(|share| plain(percent(share)));
        assert_eq!(read, ["0 %", "<0.01 %", "0.03 %", "1.2 %", "10 %", "98 %", "100 %", "−25 %"]);
        assert_eq!(plain(bytes(16_777_216_000.0)), "15.6 GiB");
        assert_eq!(plain(with_unit(178_412.0, "req/s")), "178k req/s");
        let reported = [(0.5, "share of a CPU"), (12.0, "1/s"), (3.0, "count"), (0.25, "ln"), (2.0, "CPUs")];
        let read = reported.map(|(value, unit)| plain(with_unit(value, unit)));
        assert_eq!(read, ["50 % of a CPU", "12/s", "3", "0.250 ln", "2 CPUs"]);
        assert_eq!(hundredths(-0.00001), "0.0");
        assert_eq!([0.12, -0.004, 0.0].map(|share| plain(change(share))), ["+12 %", "−0.40 %", "+0 %"]);
    }

    #[test]
    fn spreads_say_when_they_lie_askew() {
        let said = |value, ci95| plain(spread(value, ci95, count));
        assert_eq!(said(100.0, Some([98.8, 101.2])), "±1.2 %");
        assert_eq!(said(100.0, Some([50.0, 101.0])), "50…101");
        assert_eq!(said(100.0, None), "");
        assert_eq!(said(0.0, Some([-1.0, 1.0])), "");
        assert_eq!(said(1.0, Some([f64::NAN, 1.0])), "");
    }

    proptest! {
        #[test]
        fn any_number_is_short_and_finite(value in prop::num::f64::ANY) {
            for text in [count(value), seconds(value), hertz(value), bytes(value), percent(value),
                         hundredths(value), ratio(value), logarithm(value), with_unit(value, "req/s")] {
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                prop_assert!(text.chars().count() <= 20, "{text}");
            }
        }
    }
}
