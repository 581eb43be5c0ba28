//! Numbers as tools print them, with units.

/// A printed number in base units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled {
    pub(crate) value: f64,
    /// Largest error that its rounding to two decimals can have made.
    pub(crate) rounding: f64,
}

impl Scaled {
    /// A number and one of `units` without a space between them.
    pub(crate) fn parse(text: &str, units: &[(&str, f64)]) -> Option<Scaled> {
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
        let scale = units.iter().find(|(name, _)| *name == unit)?.1;
        let value = positive(number)? * scale;
        Some(Scaled { value, rounding: 0.005_001 * scale })
    }

    pub(crate) fn rounded(&self) -> Option<u64> {
        whole(self.value)
    }
}

/// A number that is neither negative nor endless.
pub(crate) fn positive(text: &str) -> Option<f64> {
    // "-0" is 0.
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0).map(f64::abs)
}

/// The nearest whole number.
pub(crate) fn whole(value: f64) -> Option<u64> {
    (0.0..u64::MAX as f64).contains(&value).then(|| value.round() as u64)
}

/// The share of a percentage, shifted in decimal, so that 99.9 becomes 0.999 and not its neighbour.
pub(crate) fn share(percent: &str) -> Option<f64> {
    positive(percent).filter(|percent| *percent <= 100.0).map(|percent| (percent * 1e6).round() / 1e8)
}

/// Milliseconds, in nanoseconds.
pub(crate) fn ms_in_ns(text: &str) -> Option<u64> {
    whole(positive(text)? * 1e6)
}

/// A number without the commas of its thousands; `None` where a comma stands elsewhere, as other languages have it.
pub(crate) fn without_thousands(text: &str) -> Option<String> {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let later: Vec<&str> = groups.collect();
    let are_three =
        later.iter().all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()));
    let is_first = later.is_empty() || (1..=3).contains(&first.len());
    (!rest.contains(',') && are_three && is_first).then(|| whole.replace(',', "") + rest)
}
