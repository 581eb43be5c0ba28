//! Figures in the words of a check.

/// `70 ms`, `2.5 s`, `850 µs`.
pub(super) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms"], "s")
}

/// In the first unit in which it is less than one of the next, as it is written: what is rounded up to one is one.
fn scaled(value: f64, step: f64, units: &[&str], last: &str) -> String {
    let mut value = value;
    for unit in units {
        let text = short(value);
        if text.parse().is_ok_and(|shown: f64| shown.abs() < step) {
            return format!("{text} {unit}");
        }
        value /= step;
    }
    format!("{} {last}", short(value))
}

/// `2.9 GHz`.
pub(super) fn clock(hz: f64) -> String {
    format!("{:.2} GHz", hz / 1e9)
}

/// `15.6 GiB`, `512 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["bytes", "KiB", "MiB", "GiB"], "TiB")
}

/// `30 %`, `1.2 %`, `0 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// Up to three digits: `0.04`, `1.2`, `30`, `12345`.
pub(super) fn short(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        size if size < 0.1 => 3,
        size if size < 1.0 => 2,
        size if size < 20.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if digits > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `1 CPU`, `3 CPUs`.
pub(super) fn things(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The first few, and how many there are besides.
pub(super) fn list(words: &[String], most: usize) -> String {
    let shown = words.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    match words.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        let times = [0.0, 850.0, 4e6, 7e7, 2.5e9].map(time);
        assert_eq!(times, ["0 ns", "850 ns", "4 ms", "70 ms", "2.5 s"]);
        let times = [999.4, 999.6, 999_499.0, 999.5e3, 999.9e6, 1e12].map(time);
        assert_eq!(times, ["999 ns", "1 µs", "999 µs", "1 ms", "1 s", "1000 s"]);
        assert_eq!([(1 << 20) - 1, (1 << 30) - 1, 1 << 50].map(bytes), ["1 MiB", "1 GiB", "1024 TiB"]);
        assert_eq!(
            [0, 512, 1 << 21, 16_777_216_000].map(bytes),
            ["0 bytes", "512 bytes", "2 MiB", "15.6 GiB"]
        );
        assert_eq!([0.0, 0.0004, 0.012, 0.3, 1.0].map(percent), ["0 %", "0.04 %", "1.2 %", "30 %", "100 %"]);
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!((list(&names, 2), list(&names, 3)), ("a, b and 1 more".into(), "a, b, c".into()));
    }
}
