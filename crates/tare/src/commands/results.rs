//! Files of results of other tools, where a command takes one.

use crate::cli::choice::ChoiceArgs;
use crate::failure::Failure;
use crate::terminal;
use anyhow::{Context, anyhow};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use tare_formats::{Choice, Input};
use tare_model::outcome::Outcome;
use tare_model::tool::ToolMetrics;
use tare_store::StoreError;

/// What a record begins with.
const RECORD: &[u8] = b"SQLite format 3\0";
/// Longest file that is read.
const BYTES_MAX: u64 = 1 << 30;

/// Whether a file (`-`: standard input) is no record, and so may be another tool's.
pub fn is_of_a_tool(path: &Path) -> bool {
    path == Path::new("-") || matches!(tare_store::read(path), Err(StoreError::NotARecord { .. }))
}

/// The results in a file (`-`: standard input), whosever they are: those that are chosen.
pub fn read(path: &Path, choice: &Choice) -> Result<ToolMetrics, Failure> {
    read_bytes(&bytes(path)?, path, choice)
}

/// The same of what was read already from this file.
pub fn read_bytes(bytes: &[u8], path: &Path, choice: &Choice) -> Result<ToolMetrics, Failure> {
    if bytes.starts_with(RECORD) {
        let hint = "hint: name its file, and no results of a tool beside it; several files a side are of results alone";
        return Err(Failure::usage(anyhow!("{} is a record of tare ({hint})", path.display())));
    }
    let text = tare_formats::text_of(bytes);
    let input = Input { bytes, ..Input::of_text(&text) };
    let found =
        tare_formats::read(&input).map_err(|why| Failure::usage(anyhow!("{}: {why}", path.display())))?;
    chosen(found, choice, path)
}

/// The results in the files of one side of a comparison, each of launches of its own: those that are chosen.
pub fn read_side(paths: &[&Path], choice: &Choice) -> Result<ToolMetrics, Failure> {
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let found = read(path, choice)?;
        let first = all.first().map_or(&found.format, |first: &ToolMetrics| &first.format);
        if *first != found.format {
            return Err(Failure::usage(anyhow!(
                "{} has results of {first} and {} of {} (hint: files of one side are of one tool)",
                paths[0].display(),
                path.display(),
                found.format
            )));
        }
        all.push(found);
    }
    let together =
        tare_explain::tool::joined(all).ok_or_else(|| Failure::usage(anyhow!("no file is named")))?;
    Ok(tare_explain::tool::estimated(together))
}

/// What a regular expression finds in a file.
pub fn read_by_regex(path: &Path, pattern: &str, choice: &Choice) -> Result<ToolMetrics, Failure> {
    let bytes = bytes(path)?;
    if bytes.starts_with(RECORD) {
        return Err(Failure::usage(anyhow!(
            "{} is a record of tare (hint: leave out --meter-regex)",
            path.display()
        )));
    }
    let text = tare_formats::text_of(&bytes);
    let found = tare_formats::read_by_regex(pattern, &Input::of_text(&text));
    let found = found.map_err(|error| Failure::usage(anyhow!("--meter-regex: {error}")))?;
    chosen(found, choice, path)
}

fn chosen(mut found: ToolMetrics, choice: &Choice, path: &Path) -> Result<ToolMetrics, Failure> {
    choice.keep(&mut found).map_err(|why| Failure::usage(anyhow!("{}: {why}", path.display())))?;
    Ok(tare_explain::tool::estimated(found))
}

/// Leaves of an outcome's results those that are chosen. What was measured is shown where none is, and said.
pub fn choose(outcome: &mut Outcome, args: &ChoiceArgs) {
    if !args.is_given() {
        return;
    }
    let Some(mut results) = outcome.answers.results.take() else {
        terminal::say(
            "tare: --benchmark and --metric choose nothing: no results of a benchmark were printed",
        );
        return;
    };
    if let Err(why) = args.choice().keep(&mut results) {
        terminal::say(&format!("tare: all results are shown: {why}"));
    }
    outcome.answers.results = Some(tare_explain::tool::estimated(results));
}

/// All of a file (`-`: standard input), unpacked.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    whole(path).with_context(|| format!("cannot read {}", path.display())).map_err(Failure::usage)
}

fn whole(path: &Path) -> anyhow::Result<Vec<u8>> {
    let reader: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut bytes = Vec::new();
    reader.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(anyhow!("it is longer than {} MiB (hint: give a part of it)", BYTES_MAX >> 20));
    }
    Ok(tare_formats::unpacked(bytes)?)
}
