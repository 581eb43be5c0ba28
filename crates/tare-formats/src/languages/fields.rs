//! What several readers of this folder have in common: fields of JSON as settings, and launches.

use crate::json;
use crate::metrics::{Kind, Metrics};
use serde_json::Value;
use std::collections::HashMap;

/// Sets each field that is text, a number or a truth; those of objects below under `name.field`.
pub(super) fn set_all(metrics: &mut Metrics, prefix: &str, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten().take(200) {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if is_plain(value) {
            metrics.set(&name, &json::text(value));
        }
    }
}

/// The same of one metric.
pub(super) fn set_all_of(metrics: &mut Metrics, kind: Kind<'_>, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten().take(200) {
        if is_plain(value) {
            metrics.set_of(kind, name, &json::text(value));
        }
    }
}

/// Whether a value is said in one word; an empty one says nothing.
pub(super) fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

/// The setting that says how much of what was printed warmed up.
pub(super) const LEFT_OUT: &str = "left out";

/// What it says of so many.
pub(super) fn left_out(warm_ups: usize) -> Option<String> {
    (warm_ups > 0).then(|| format!("{warm_ups} warm-up iterations, which are not results"))
}

/// Counts launches of benchmarks whose results are printed again and again.
#[derive(Default)]
pub(super) struct Launches(HashMap<String, u32>);

impl Launches {
    /// Which launch the next result of this name is, from 0 on; it takes `count` of them.
    pub fn next(&mut self, name: &str, count: u32) -> u32 {
        let next = self.0.entry(name.to_owned()).or_default();
        let launch = *next;
        *next = next.saturating_add(count);
        launch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_go_on_for_each_name() {
        let mut launches = Launches::default();
        assert_eq!([launches.next("a", 2), launches.next("b", 1), launches.next("a", 1)], [0, 0, 2]);
    }
}
