//! Formats that collect results of other tools.

mod bmf;
mod by_regex;
mod figures;
mod github_action;
mod numbers;
mod plain_csv;

use crate::reader::Reader;

pub use by_regex::read_by_regex;

/// Every format of this kind.
pub(crate) const READERS: &[&Reader] = &[&bmf::READER, &github_action::READER];

/// Forms that many tools' results have too: they are asked where no other reader knows a text.
pub(crate) const PLAIN: &[&Reader] = &[&plain_csv::READER, &numbers::READER];
