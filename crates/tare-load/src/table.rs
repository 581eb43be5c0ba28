//! The values of a CSV file (RFC 4180), in one piece of memory.

use crate::message::MessageError;
use crate::regular;
use std::io::Read;
use std::path::Path;

/// Largest file that is taken, in bytes: it is held in memory.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Rows of values; the first row of the file names the columns.
#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<String>,
    bytes: Vec<u8>,
    /// Where each value ends, row by row.
    ends: Vec<usize>,
}

impl Table {
    /// Reads the file at `path`.
    pub(crate) fn load(path: &Path) -> Result<Table, MessageError> {
        let fault = |why: String| MessageError::File { path: path.to_path_buf(), why };
        let file = regular::open(path).map_err(fault)?;
        let metadata = file.metadata().map_err(|error| fault(error.to_string()))?;
        let (mut text, limit) = (Vec::new(), FILE_BYTES_MAX + 1);
        // A file of /proc has no length, and one that grows another one than it had.
        let is_long = metadata.len() >= limit
            || file.take(limit).read_to_end(&mut text).map_err(|error| fault(error.to_string()))? as u64
                == limit;
        if is_long {
            return Err(fault(format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        Table::parse(&text).map_err(fault)
    }

    /// Takes the text apart; every row must have as many values as there are names.
    pub(crate) fn parse(text: &[u8]) -> Result<Table, String> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let (mut names, mut bytes, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rest, mut row) = (text, 0);
        while !rest.is_empty() {
            row += 1;
            let (mut values, mut more) = (0, true);
            while more {
                let begin = bytes.len();
                (more, rest) = value(rest, &mut bytes)
                    .ok_or_else(|| format!("row {row}: a quote is not closed, or stands within a value"))?;
                values += 1;
                if row == 1 {
                    names.push(String::from_utf8_lossy(&bytes[begin..]).trim().to_owned());
                    bytes.clear();
                } else {
                    ends.push(bytes.len());
                }
            }
            if values != names.len() {
                return Err(format!("row {row} has {values} values, not {}", names.len()));
            }
        }
        if ends.is_empty() {
            Err("it has no rows below the names".to_owned())
        } else {
            Ok(Table { names, bytes, ends })
        }
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }

    /// The value in a row, counted from the first again after the last, and a column.
    pub(crate) fn value(&self, number: u64, column: usize) -> &[u8] {
        let rows = (self.ends.len() / self.names.len()) as u64;
        let at = (number % rows) as usize * self.names.len() + column;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[at]]
    }
}

/// Moves one value to `out`; whether the row goes on, and what follows. `None`: its quotes are wrong.
fn value<'a>(text: &'a [u8], out: &mut Vec<u8>) -> Option<(bool, &'a [u8])> {
    let mut rest = text;
    if let Some(mut quoted) = rest.strip_prefix(b"\"") {
        loop {
            let quote = quoted.iter().position(|&byte| byte == b'"')?;
            out.extend_from_slice(&quoted[..quote]);
            quoted = &quoted[quote + 1..];
            match quoted.strip_prefix(b"\"") {
                Some(after) => {
                    out.push(b'"');
                    quoted = after;
                }
                None => break,
            }
        }
        rest = quoted;
    } else {
        let end = rest.iter().position(|byte| b",\r\n\"".contains(byte)).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..end]);
        rest = &rest[end..];
    }
    match rest {
        [] => Some((false, rest)),
        [b',', after @ ..] => Some((true, after)),
        [b'\r', b'\n', after @ ..] | [b'\n', after @ ..] => Some((false, after)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_found_and_begin_again() {
        let table = Table::parse(b"a, b\r\n1,\n\"x\"\"y\",\"p,\nq\"").unwrap();
        assert_eq!((table.column("a"), table.column("b"), table.column("c")), (Some(0), Some(1), None));
        let all: Vec<_> = (0..3).flat_map(|row| [0, 1].map(|column| table.value(row, column))).collect();
        assert_eq!(all, [&b"1"[..], b"", b"x\"y", b"p,\nq", b"1", b""]);
    }

    #[test]
    fn mistakes_are_reported() {
        for text in ["", "a,b\n", "a,b\n1\n", "a\n\"x", "a\n\"x\"y\n", "a\nx\"\n"] {
            assert!(Table::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_files_of_bounded_length_are_taken() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\n1\n").unwrap();
        assert_eq!(Table::load(file.path()).unwrap().value(0, 0), b"1");
        file.as_file().set_len(FILE_BYTES_MAX + 1).unwrap();
        for (path, word) in [(file.path(), "longer than"), (Path::new("/dev/zero"), "regular file")] {
            let error = Table::load(path).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_was_quoted_is_read_back(rows in prop::collection::vec(("\\PC{0,8}", "[a-z\",\r\n]{0,6}"), 1..6)) {
            let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            let body: String = rows.iter().map(|(a, b)| format!("{},{}\n", quote(a), quote(b))).collect();
            let table = Table::parse(format!("a,b\n{body}").as_bytes()).unwrap();
            for (number, (a, b)) in rows.iter().enumerate() {
                prop_assert_eq!(table.value(number as u64, 0), a.as_bytes());
                prop_assert_eq!(table.value(number as u64, 1), b.as_bytes());
            }
        }
    }
}
