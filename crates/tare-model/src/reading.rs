//! A value that may be absent, and why.

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// Why a value is not there, and what would bring it.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize, thiserror::Error)]
#[error("missing: {why}")]
pub struct Missing {
    /// The reason, in words a user of the tool understands ("this VM exposes no PMU").
    #[serde(rename = "missing")]
    pub why: String,
    /// What the user can do to get the value; empty where nothing helps.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Missing {
    /// A reason with no remedy.
    pub fn new(why: impl Into<String>) -> Self {
        Missing { why: why.into(), remedy: String::new() }
    }

    /// A reason with what would help.
    pub fn with_remedy(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Missing { why: why.into(), remedy: remedy.into() }
    }
}

/// A measured value, or the reason there is none. Serialises as the value itself or as `{"missing": "why"}`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
#[schemars(rename = "Reading_{T}")]
pub enum Reading<T> {
    /// Nothing was measured. First, so that an object with a `missing` key is never taken for a value.
    Missing(#[serde(deserialize_with = "object")] Missing),
    /// The question makes no sense here (net of a run without requests).
    #[serde(deserialize_with = "not_applicable")]
    NotApplicable {
        /// Why the question does not apply.
        not_applicable: String,
    },
    /// The value as measured.
    Measured(T),
}

/// Reads `T` from an object alone. serde reads a struct from a list too, and would take a measured list of two words
/// for a reason and its remedy.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object with a reason")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Object(PhantomData))
}

fn not_applicable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct Reason {
        not_applicable: String,
    }
    object::<D, Reason>(deserializer).map(|reason| reason.not_applicable)
}

/// What a record that is older than the figure has of it.
impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading::missing("it was not recorded yet when this was measured")
    }
}

impl<T> Reading<T> {
    /// Missing for the given reason.
    pub fn missing(why: impl Into<String>) -> Self {
        Reading::Missing(Missing::new(why))
    }

    /// The value, if it was measured.
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Measured(value) => Some(value),
            _ => None,
        }
    }

    /// Applies `f` to a measured value and keeps the reason otherwise.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Measured(value) => Reading::Measured(f(value)),
            Reading::Missing(missing) => Reading::Missing(missing),
            Reading::NotApplicable { not_applicable } => Reading::NotApplicable { not_applicable },
        }
    }

    /// The value, or why there is none.
    pub fn ok(self) -> Result<T, Missing> {
        match self {
            Reading::Measured(value) => Ok(value),
            Reading::Missing(missing) => Err(missing),
            Reading::NotApplicable { not_applicable } => Err(Missing::new(not_applicable)),
        }
    }
}

impl<T> From<Result<T, Missing>> for Reading<T> {
    fn from(result: Result<T, Missing>) -> Self {
        match result {
            Ok(value) => Reading::Measured(value),
            Err(missing) => Reading::Missing(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialises_as_value_or_reason() {
        let measured = Reading::Measured(2.5);
        assert_eq!(serde_json::to_string(&measured).unwrap(), "2.5");
        let missing: Reading<f64> = Reading::missing("no PMU");
        assert_eq!(serde_json::to_string(&missing).unwrap(), r#"{"missing":"no PMU"}"#);
        for reading in [measured, missing] {
            let text = serde_json::to_string(&reading).unwrap();
            assert_eq!(serde_json::from_str::<Reading<f64>>(&text).unwrap(), reading);
        }
        let not_applicable: Reading<f64> = Reading::NotApplicable { not_applicable: "no requests".into() };
        let text = serde_json::to_string(&not_applicable).unwrap();
        assert_eq!(serde_json::from_str::<Reading<f64>>(&text).unwrap(), not_applicable);
    }

    #[test]
    fn a_list_of_words_is_no_reason() {
        for words in [vec![], vec!["tsc"], vec!["tsc", "kvm-clock"], vec!["a", "b", "c"]] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let reading = Reading::Measured(words);
            let text = serde_json::to_string(&reading).unwrap();
            assert_eq!(serde_json::from_str::<Reading<Vec<String>>>(&text).unwrap(), reading);
        }
    }
}
