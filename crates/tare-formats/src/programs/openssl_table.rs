//! The tables of `openssl speed`, and their lines of `-mr`.

use super::openssl_key::Key;
use crate::metrics::Metrics;

/// One figure of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The measurement that it sums up.
    pub key: Key,
    /// In the table's own words, with the curve.
    pub benchmark: String,
    pub value: f64,
    pub unit: &'static str,
    /// The process of `-multi` that it is of.
    pub worker: Option<u32>,
    pub line: u64,
}

/// What was read of them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub rows: Vec<Row>,
    /// Of which block sizes the figures of a row are.
    sizes: Vec<String>,
    /// Of which operations they are, in a table of operations.
    columns: Vec<&'static str>,
}

impl Tables {
    /// A line that is no measurement.
    pub fn line(&mut self, line: &str, number: u64, metrics: &mut Metrics) {
        let words: Vec<&str> = line.split_whitespace().take(40).collect();
        if let Some((setting, value)) = setting(line, &words) {
            return metrics.set(setting, value);
        }
        if let Some(rest) = line.strip_prefix("Got: ") {
            // `Got: +F:… from 1`
            let (fields, worker) = rest.rsplit_once(" from ").unwrap_or((rest, ""));
            return self.machine(fields, worker.parse().ok(), number, metrics);
        }
        if line.starts_with("+F") || line.starts_with("+H:") {
            return self.machine(line, None, number, metrics);
        }
        if words.first() == Some(&"type") && words.get(2) == Some(&"bytes") {
            self.sizes = words.iter().skip(1).step_by(2).map(|size| (*size).to_owned()).collect();
            self.columns.clear();
            return;
        }
        if words.last().is_some_and(|word| word.ends_with("/s")) && words.iter().all(|word| is_column(word)) {
            self.columns = words.iter().filter_map(|word| operation(word)).collect();
            return;
        }
        if self.columns.is_empty() {
            self.blocks(&words, number);
        } else {
            self.operations(&words, number);
        }
    }

    /// `sha256 79920.97k 332001.66k`; a rate of less than 10 kB/s is in bytes, with no `k`.
    fn blocks(&mut self, words: &[&str], number: u64) {
        let count = self.sizes.len();
        let Some(split) = words.len().checked_sub(count).filter(|split| *split > 0 && count > 0) else {
            return;
        };
        let (name, figures) = words.split_at(split);
        let values: Option<Vec<f64>> = figures.iter().map(|figure| bytes(figure)).collect();
        let name = name.join(" ");
        for (value, size) in values.into_iter().flatten().zip(&self.sizes) {
            let key = Key::of_blocks(&name, size);
            let benchmark = name.clone();
            self.rows.push(Row { key, benchmark, value, unit: "B/s", worker: None, line: number });
        }
    }

    /// `rsa 2048 bits 0.000290s 0.000019s 3444.7 52637.1`: as many times as rates.
    fn operations(&mut self, words: &[&str], number: u64) {
        let count = self.columns.len();
        let Some(split) = words.len().checked_sub(2 * count).filter(|split| *split > 0) else {
            self.columns.clear();
            return self.blocks(words, number);
        };
        let (name, figures) = words.split_at(split);
        let (times, rates) = figures.split_at(count);
        let are_times =
            times.iter().all(|time| time.strip_suffix('s').is_some_and(|s| s.parse::<f64>().is_ok()));
        let rates: Option<Vec<f64>> = rates.iter().map(|rate| rate.parse().ok()).collect();
        let Some(rates) = rates.filter(|_| are_times) else {
            self.columns.clear();
            return self.blocks(words, number);
        };
        let purpose = match self.columns.as_slice() {
            ["keygen", "encaps", ..] => Some("KEM"),
            ["keygen", ..] => Some("signature"),
            _ => None,
        };
        let benchmark = name.iter().copied().chain(purpose).collect::<Vec<_>>().join(" ");
        for (value, column) in rates.into_iter().zip(&self.columns) {
            let key = Key { benchmark: short(name, purpose), name: (*column).to_owned() };
            let benchmark = benchmark.clone();
            self.rows.push(Row { key, benchmark, value, unit: "op/s", worker: None, line: number });
        }
    }

    /// `+F:6:sha256:36741259.41:…`, `+F2:2:2048:1059.63:19258.41`, `+F6:0:253:Ed25519:7093.0:2623.0`.
    fn machine(&mut self, line: &str, worker: Option<u32>, number: u64, metrics: &mut Metrics) {
        let fields: Vec<&str> = line.split(':').collect();
        if let ["+H", sizes @ ..] = fields.as_slice() {
            self.sizes = sizes.iter().map(|size| (*size).to_owned()).collect();
            return;
        }
        let numbers =
            |fields: &[&str]| fields.iter().map(|field| field.parse().ok()).collect::<Option<Vec<f64>>>();
        let (name, key, columns, values): (String, String, &[&str], _) = match fields.as_slice() {
            ["+F", _, name, rest @ ..] => {
                let values = numbers(rest).filter(|values| values.len() == self.sizes.len());
                let Some(values) = values else {
                    return metrics.skip(
                        number,
                        line,
                        "it has not as many figures as there are block sizes: cut off",
                    );
                };
                for (value, size) in values.into_iter().zip(&self.sizes) {
                    let (key, benchmark) = (Key::of_blocks(name, size), (*name).to_owned());
                    self.rows.push(Row { key, benchmark, value, unit: "B/s", worker, line: number });
                }
                return;
            }
            ["+F2", _, bits, rest @ ..] => {
                const RSA: &[&str] = &["sign", "verify", "encrypt", "decrypt"];
                (format!("rsa {bits} bits"), format!("{bits} rsa"), RSA, numbers(rest))
            }
            ["+F3", _, bits, rest @ ..] => {
                (format!("dsa {bits} bits"), format!("{bits} dsa"), SIGNATURE, numbers(rest))
            }
            ["+F4", which, bits, rest @ ..] => (
                format!("{bits} bits ecdsa (curve {which})"),
                format!("{bits} ecdsa"),
                SIGNATURE,
                numbers(rest),
            ),
            // The second figure is the time of one operation.
            ["+F5", which, bits, rate, _] => (
                format!("{bits} bits ecdh (curve {which})"),
                format!("{bits} ecdh"),
                &["op"],
                numbers(&[rate]),
            ),
            ["+F8", _, bits, rate, _] => {
                (format!("{bits} bits ffdh"), format!("{bits} ffdh"), &["op"], numbers(&[rate]))
            }
            ["+F6" | "+F7", _, bits, name, rest @ ..] => {
                let key = format!("{bits} {}", name.to_lowercase());
                (format!("{bits} bits {name}"), key, SIGNATURE, numbers(rest))
            }
            ["+F9" | "+F10", ..] => {
                let why =
                    "the table of -mr has only a number for its name: the lines +R of stderr say which it is";
                return metrics.skip(number, line, why);
            }
            _ => return metrics.skip(number, line, "it does not say what it is of, or it is cut off"),
        };
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            return metrics.skip(number, line, "not all of its figures are numbers: cut off");
        };
        for (value, column) in values.into_iter().zip(columns) {
            let key = Key { benchmark: key.clone(), name: (*column).to_owned() };
            let benchmark = name.clone();
            self.rows.push(Row { key, benchmark, value, unit: "op/s", worker, line: number });
        }
    }
}

const SIGNATURE: &[&str] = &["sign", "verify"];

/// `1234.56k`, or `123.45` in bytes.
fn bytes(figure: &str) -> Option<f64> {
    match figure.strip_suffix('k') {
        Some(thousands) => thousands.parse().ok().map(|value: f64| value * 1e3),
        None => figure.parse().ok(),
    }
}

fn is_column(word: &str) -> bool {
    operation(word).is_some()
        || matches!(
            word,
            "sign" | "signs" | "verify" | "encrypt" | "decrypt" | "keygen" | "encaps" | "decaps" | "op"
        )
}

fn operation(column: &str) -> Option<&'static str> {
    Some(match column {
        "sign/s" => "sign",
        "verify/s" => "verify",
        "encr./s" => "encrypt",
        "decr./s" => "decrypt",
        "keygens/s" => "keygen",
        "encaps/s" => "encaps",
        "decaps/s" => "decaps",
        "op/s" => "op",
        _ => return None,
    })
}

/// As the lines of measurements say it: `rsa 2048 bits` and `2048 bits private rsa's` are both `2048 rsa`; `253 bits EdDSA (Ed25519)` is `253 ed25519`.
fn short(name: &[&str], purpose: Option<&str>) -> String {
    if purpose.is_some() {
        return name.iter().copied().chain(purpose).collect::<Vec<_>>().join(" ");
    }
    let name: Vec<String> =
        name.iter().filter(|word| **word != "bits").map(|word| word.to_lowercase()).collect();
    let words: Vec<&str> = name.iter().map(String::as_str).collect();
    let inner = |word: &str| word.trim_start_matches('(').trim_end_matches(')').to_owned();
    match words.as_slice() {
        [alg @ ("rsa" | "dsa"), bits] => format!("{bits} {alg}"),
        [bits, "eddsa" | "sm2", curve] => format!("{bits} {}", inner(curve)),
        [bits, alg, _curve] => format!("{bits} {alg}"),
        words => words.join(" "),
    }
}

/// `version: 3.0.22` and its like; older versions begin with `OpenSSL 1.1.1n  15 Mar 2022`.
fn setting<'a>(line: &'a str, words: &[&'a str]) -> Option<(&'a str, &'a str)> {
    if let ["OpenSSL", version, ..] = words {
        return Some(("version", version));
    }
    let (name, value) = line.split_once(':')?;
    ["version", "built on", "options", "compiler", "CPUINFO"].contains(&name).then_some((name, value.trim()))
}
