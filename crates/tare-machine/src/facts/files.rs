//! The forms in which `/proc` and `/sys` hold single values. What does not have the form is missing.

use crate::root::{Root, nonsense};
use tare_model::{CpuSet, Missing};

pub(super) const CPU_DIR: &str = "/sys/devices/system/cpu";
pub(super) const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// Longest word that names something.
const WORD_MAX: usize = 64;
/// Temperatures beyond this are no temperatures (sensors that are absent read −274 or 127).
const CELSIUS: std::ops::Range<f64> = -50.0..126.0;

/// A name: one line that begins with a letter or digit and holds nothing unprintable.
pub(super) fn word(root: &Root, path: &str) -> Result<String, Missing> {
    let text = root.text(path)?;
    let word = text.trim();
    if is_word(word) { Ok(word.to_string()) } else { Err(nonsense(path.as_ref(), &text)) }
}

fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.len() <= WORD_MAX
        && word.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Names between blanks; at least one.
pub(super) fn words(root: &Root, path: &str) -> Result<Vec<String>, Missing> {
    let text = root.text(path)?;
    let words: Vec<String> = text.split_ascii_whitespace().map(str::to_string).collect();
    if words.is_empty() || !words.iter().all(|word| is_word(word)) {
        return Err(nonsense(path.as_ref(), &text));
    }
    Ok(words)
}

/// The choice in brackets (`always [madvise] never`).
pub(super) fn chosen(root: &Root, path: &str, open: char, close: char) -> Result<String, Missing> {
    let text = root.text(path)?;
    let choice = text.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map(|(choice, _)| choice);
    choice.filter(|word| is_word(word)).map(str::to_string).ok_or_else(|| nonsense(path.as_ref(), &text))
}

/// `0` or `1`, `N` or `Y`.
pub(super) fn switch(root: &Root, path: &str) -> Result<bool, Missing> {
    let text = root.text(path)?;
    match text.trim() {
        "0" | "N" => Ok(false),
        "1" | "Y" => Ok(true),
        _ => Err(nonsense(path.as_ref(), &text)),
    }
}

/// A number that is scaled up (`kHz` to hertz, `µs` to nanoseconds).
pub(super) fn scaled(root: &Root, path: &str, factor: u64) -> Result<u64, Missing> {
    let value: u64 = root.value(path)?;
    value.checked_mul(factor).ok_or_else(|| nonsense(path.as_ref(), &value.to_string()))
}

/// The same where 0 cannot be.
pub(super) fn scaled_positive(root: &Root, path: &str, factor: u64) -> Result<u64, Missing> {
    scaled(root, path, factor).and_then(|value| match value {
        0 => Err(nonsense(path.as_ref(), "0")),
        value => Ok(value),
    })
}

/// A temperature in thousandths of a degree.
pub(super) fn celsius(root: &Root, path: &str) -> Result<f64, Missing> {
    let thousandths: i64 = root.value(path)?;
    let celsius = thousandths as f64 / 1000.0;
    // A sensor that is off reads 0.
    let real = CELSIUS.contains(&celsius) && thousandths != 0;
    real.then_some(celsius).ok_or_else(|| nonsense(path.as_ref(), &thousandths.to_string()))
}

/// CPUs in list format; an empty file is an empty set.
pub(super) fn cpus(root: &Root, path: &str) -> Result<CpuSet, Missing> {
    let text = root.text(path)?;
    CpuSet::from_list(&text).ok_or_else(|| nonsense(path.as_ref(), &text))
}

/// CPUs in mask format.
pub(super) fn mask(root: &Root, path: &str) -> Result<CpuSet, Missing> {
    let text = root.text(path)?;
    CpuSet::from_mask(&text).ok_or_else(|| nonsense(path.as_ref(), &text))
}

/// The text behind `key` on a line of its own, without blanks around it.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// Names below a directory that are `prefix` and a number, with the number, ascending.
pub(super) fn numbered(root: &Root, dir: &str, prefix: &str) -> Result<Vec<(u32, String)>, Missing> {
    let names = root.names(dir)?.into_iter();
    let mut found: Vec<(u32, String)> =
        names.filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name))).collect();
    found.sort_unstable();
    Ok(found)
}
