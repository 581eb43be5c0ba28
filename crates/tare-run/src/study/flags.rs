//! What a command line says of a plan, as the text that it would be in a file.

use super::nearest::hint;
use super::settings::Settings;
use crate::error::LabError;
use std::collections::BTreeMap;

/// Keys whose values are numbers, so that a comma stands between two levels. In others it may be part of one.
const NUMBERS: [&str; 8] =
    ["connections", "threads", "rate", "pipeline", "blocks", "reruns", "trials", "seed"];

/// `settings` as `KEY=VALUE`, `factors` as `KEY=LEVEL`, of numbers `KEY=LEVEL,LEVEL`; a key may come again with further levels.
/// What the values must be is judged where files are read.
pub fn as_plan(settings: &[String], factors: &[String]) -> Result<String, LabError> {
    let settings = pairs(settings, "--set", "--set connections=64")?;
    let mut text: String =
        settings.iter().map(|(key, value)| format!("{key} = {}\n", literal(key, value))).collect();
    let mut levels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, value) in pairs(factors, "--factor", "--factor threads=1,2,4")? {
        if !Settings::KEYS.contains(&key) {
            return Err(LabError::usage(
                format!("--factor: '{key}' cannot be varied"),
                hint(key, &Settings::KEYS),
            ));
        }
        let each: Vec<&str> = if NUMBERS.contains(&key) { value.split(',').collect() } else { vec![value] };
        levels.entry(key).or_default().extend(each.into_iter().map(|level| literal(key, level.trim())));
    }
    if !levels.is_empty() {
        text += "[factors]\n";
    }
    for (key, levels) in levels {
        let is_set = settings.iter().any(|(set, _)| *set == key);
        if levels.len() < 2 || is_set {
            let what = if is_set { "is set and varied" } else { "has one level, which varies nothing" };
            let hint = match NUMBERS.contains(&key) {
                true => format!("as --factor {key}=1,2, or --set {key}=1"),
                false => format!("repeat --factor {key}=… for each level, or take --set"),
            };
            return Err(LabError::usage(format!("--factor: '{key}' {what}"), hint));
        }
        text += &format!("{key} = [{}]\n", levels.join(", "));
    }
    Ok(text)
}

/// Keys and values of what a flag was given, each time.
fn pairs<'g>(given: &'g [String], flag: &str, example: &str) -> Result<Vec<(&'g str, &'g str)>, LabError> {
    let is_key =
        |key: &&str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let pair = |given: &'g String| {
        let pair = given.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let wrong = || LabError::usage(format!("{flag}: {given:?} is no KEY=VALUE"), format!("as {example}"));
        pair.filter(|(key, _)| is_key(key)).ok_or_else(wrong)
    };
    given.iter().map(pair).collect()
}

/// A number as it stands; anything else is a text, which a shell has taken the quotes from.
fn literal(key: &str, value: &str) -> String {
    let is_word =
        |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte));
    match NUMBERS.contains(&key) && value.starts_with(|first: char| first.is_ascii_digit()) && is_word(value)
    {
        true => value.to_owned(),
        // What JSON has for a text TOML has, too.
        false => serde_json::Value::from(value).to_string(),
    }
}
