//! The history of a branch: a file with a run a line, as JSON.

use crate::old::{self, Part, Version};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tare_model::gate::{Run, SCHEMA};
use tare_model::outcome::Warning;

/// Lines that are read at most, the last ones.
pub const LINES_MAX: usize = 10_000;
/// A file of more than this holds no history.
const BYTES_MAX: u64 = 64 << 20;
/// Lines that cannot be used are reported by number up to this many.
const NAMED_MAX: usize = 8;

/// Why a history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file system's words.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A folder, a device, or far too long.
    #[error(
        "{path} is no history (hint: a file with a run a line, as 'tare gate --keep' writes it; keep its last {LINES_MAX} lines)"
    )]
    NoHistory {
        /// Which file.
        path: PathBuf,
    },
}

/// The runs of a branch in the order they were kept, and what could not be read.
#[derive(Debug, Default)]
pub struct History {
    /// The runs.
    pub runs: Vec<Run>,
    /// Lines that were skipped.
    pub warnings: Vec<Warning>,
}

impl History {
    /// Reads the last [`LINES_MAX`] lines; a file that is not there holds none.
    ///
    /// # Errors
    /// It cannot be read, or is something else. A broken line is a warning, no error.
    pub fn read(path: &Path) -> Result<History, HistoryError> {
        let failed = |source| HistoryError::Io { path: path.to_owned(), source };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(History::default()),
            Err(error) => return Err(failed(error)),
            Ok(about) if about.is_file() && about.len() <= BYTES_MAX => {}
            Ok(_) => return Err(HistoryError::NoHistory { path: path.to_owned() }),
        }
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)).map_err(failed)?;
        Ok(History::of(&bytes))
    }

    fn of(bytes: &[u8]) -> History {
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        // Behind the last end of a line stands nothing, or a line that was not written to its end.
        let count = lines.len();
        let blank = |line: &[u8]| line.iter().all(u8::is_ascii_whitespace);
        let first =
            (count - usize::from(lines.last().is_some_and(|line| blank(line)))).saturating_sub(LINES_MAX);
        let mut history = History::default();
        let mut skipped = Vec::new();
        for (at, line) in lines.into_iter().enumerate().skip(first).filter(|(_, line)| !blank(line)) {
            match read_line(line) {
                Ok(run) => history.runs.push(run),
                Err(_) if at + 1 == count => skipped.push((at + 1, "is cut short".to_owned())),
                Err(why) => skipped.push((at + 1, why)),
            }
        }
        history.warn(first, &skipped);
        history
    }

    fn warn(&mut self, older: usize, skipped: &[(usize, String)]) {
        let mut warn = |id: &str, text: String, hint: &str| {
            self.warnings.push(Warning { id: id.into(), text, hint: hint.into() });
        };
        if older > 0 {
            let text = format!("the history is longer than is read: its first {older} lines are left out");
            warn("history-long", text, "keep its last lines only");
        }
        for (number, why) in skipped.iter().take(NAMED_MAX) {
            warn("history-line", format!("line {number} of the history {why} and is skipped"), "take it out");
        }
        if let Some(more) = skipped.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            warn("history-line", format!("{more} more lines of the history are skipped"), "is it a history?");
        }
    }
}

fn read_line(line: &[u8]) -> Result<Run, String> {
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { schema: old::FORMAT }) => {
            old::read(Part::Line, line).map_err(|_| "is broken".to_owned())
        }
        Ok(Version { schema }) if schema != SCHEMA => {
            Err(format!("is of version {schema} (this tare writes version {SCHEMA})"))
        }
        _ => serde_json::from_slice(line).map_err(|_| "is broken".to_owned()),
    }
}

/// Adds a run: one line at the end, in one write.
///
/// # Errors
/// The file cannot be written.
pub fn append(path: &Path, run: &Run) -> Result<(), HistoryError> {
    let put = || {
        let mut line = serde_json::to_string(run).map_err(std::io::Error::other)?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // A line that was cut short before must not take this one with it.
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            line.insert(0, '\n');
        }
        line.push('\n');
        file.write_all(line.as_bytes())?;
        file.sync_data()
    };
    put().map_err(|source| HistoryError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Reading;
    use tare_model::comparison::Figure;
    use tare_model::gate::FigureValue;

    fn run(label: &str) -> Run {
        let measured = FigureValue { value: 1e5, half_ln: Some(0.01), trials: 5 };
        Run {
            schema: SCHEMA,
            label: label.into(),
            time_unix_s: 1,
            length_s: Some(10.0),
            plan: "p".into(),
            machine: "m".into(),
            kernel: "k".into(),
            valid: true,
            figures: [
                (Figure::Throughput, Reading::Measured(measured)),
                (Figure::P999, Reading::missing("too few answers")),
            ]
            .into(),
            against_reference: [(Figure::Net, measured)].into(),
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("main.jsonl");
        assert!(History::read(&path).unwrap().runs.is_empty());
        append(&path, &run("a")).unwrap();
        append(&path, &run("b")).unwrap();
        let history = History::read(&path).unwrap();
        assert_eq!(history.runs, [run("a"), run("b")]);
        assert!(history.warnings.is_empty());
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert!(matches!(History::read(other), Err(HistoryError::NoHistory { .. })), "{other:?}");
            assert!(append(other, &run("c")).is_err() || other != folder.path());
        }
    }

    #[test]
    fn a_line_that_is_cut_short_is_reported_and_takes_none_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("main.jsonl");
        append(&path, &run("a")).unwrap();
        append(&path, &run("b")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        let history = History::read(&path).unwrap();
        assert_eq!(history.runs, [run("a")]);
        assert!(history.warnings[0].text.contains("line 2 of the history is cut short"), "{history:?}");
        append(&path, &run("c")).unwrap();
        let history = History::read(&path).unwrap();
        assert_eq!(history.runs, [run("a"), run("c")]);
        assert!(history.warnings[0].text.contains("line 2 of the history is broken"), "{history:?}");
    }

    #[test]
    fn strange_lines_are_reported_by_number_and_long_histories_by_their_end() {
        let line = serde_json::to_string(&run("a")).unwrap();
        let older = line.replacen("\"schema\":2", "\"schema\":0", 1);
        let text = format!("{line}\n{older}\n\nnonsense\n{line}\n");
        let history = History::of(text.as_bytes());
        assert_eq!(history.runs.len(), 2);
        let reported: Vec<&str> = history.warnings.iter().map(|warning| warning.text.as_str()).collect();
        assert!(reported[0].starts_with("line 2 of the history is of version 0"), "{reported:?}");
        assert!(reported[1].starts_with("line 4 of the history is broken"), "{reported:?}");
        let long = History::of("x\n".repeat(LINES_MAX + 3).as_bytes());
        assert!(long.warnings.len() == 2 + NAMED_MAX && long.warnings[0].text.contains("first 3 lines"));
    }
}
