//! What [JMH](https://github.com/openjdk/jmh) writes with `-rf csv` and `-rf scsv`, as the results its JSON has.

use crate::metrics::Metrics;
use crate::rows::fields_by;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The columns that every table begins with.
const COLUMNS: [&str; 5] = ["Benchmark", "Mode", "Threads", "Samples", "Score"];

/// What parts the columns of the table whose header this is.
pub(super) fn separator(line: &str) -> Option<char> {
    [',', ';'].into_iter().find(|separator| {
        let cells = owned(line, *separator);
        let is_ours = cells.iter().zip(COLUMNS).filter(|(cell, name)| cell == name).count() == COLUMNS.len();
        is_ours && cells.iter().any(|cell| cell == "Unit")
    })
}

/// The rows of all tables in the text, each with its line.
pub(super) fn results(text: &str, metrics: &mut Metrics) -> Vec<(u64, Value)> {
    let (mut table, mut all) = (None, Vec::new());
    for (line, number) in text.lines().zip(1..) {
        if let Some(separator) = separator(line) {
            table = Some((separator, owned(line, separator)));
            continue;
        }
        let Some((separator, columns)) = &table else { continue };
        let cells = owned(line, *separator);
        if cells.len() < 2 {
            continue;
        }
        match row(columns, &cells) {
            Some(result) => all.push((number, result)),
            None => metrics.skip(number, line, "the row is cut off, or its score is no number"),
        }
    }
    all
}

/// A row as the JSON would have it.
fn row(columns: &[String], cells: &[String]) -> Option<Value> {
    let cell = |name: &str| cells.get(columns.iter().position(|column| column == name)?);
    // The language of the machine decides whether there are decimal commas.
    let number = |text: &String| text.replace(',', ".").parse::<f64>().ok();
    let score = number(cell("Score")?).filter(|score| score.is_finite())?;
    let error = columns.iter().position(|column| column.starts_with("Score Error"));
    let error = error.and_then(|at| cells.get(at)).and_then(number);
    let mut parameters = Map::new();
    for (column, value) in columns.iter().zip(cells) {
        if let Some(name) = column.strip_prefix("Param: ").filter(|_| !value.is_empty()) {
            parameters.insert(name.to_owned(), Value::from(value.as_str()));
        }
    }
    let primary = json!({"score": score, "scoreError": error, "scoreUnit": cell("Unit")?});
    Some(json!({
        "benchmark": cell("Benchmark")?,
        "mode": cell("Mode")?,
        "threads": cell("Threads")?,
        "params": parameters,
        "primaryMetric": primary,
    }))
}

/// The fields of a row.
fn owned(line: &str, separator: char) -> Vec<String> {
    fields_by(line, separator).into_iter().map(Cow::into_owned).collect()
}
