//! A file of requests, one a line, read while it is needed: memory for one line, whatever the file's length.

use crate::message::{LINE_BYTES_MAX, Message, MessageError};
use crate::regular;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// The lines of one thread: every `threads`th of those that are not empty.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Of the line read last, from 1.
    number: u64,
    /// Requests to pass over before the next one of this thread.
    skip: u64,
    threads: u64,
}

impl Lines {
    /// Opens the file for thread `thread` of `threads`.
    pub(crate) fn open(path: &Path, (thread, threads): (u32, u32)) -> Result<Lines, MessageError> {
        let fault = |why: String| MessageError::File { path: path.to_path_buf(), why };
        let reader = BufReader::with_capacity(64 * 1024, regular::open(path).map_err(fault)?);
        let (skip, threads) = (u64::from(thread), u64::from(threads));
        Ok(Lines { path: path.to_path_buf(), reader, line: Vec::new(), number: 0, skip, threads })
    }

    /// Reads every line once.
    pub(crate) fn check(
        path: &Path,
        mut each: impl FnMut(Message) -> Result<(), String>,
    ) -> Result<(), MessageError> {
        let mut lines = Lines::open(path, (0, 1))?;
        let mut any = false;
        while lines.advance()? {
            any = true;
            lines.message().and_then(&mut each).map_err(|why| lines.fault(why))?;
        }
        if any { Ok(()) } else { Err(lines.fault("no request stands in it".to_owned())) }
    }

    /// The next request of this thread; the file is begun again at its end. `None`: it can no longer be read, or holds nothing.
    pub(crate) fn next(&mut self) -> Option<Message> {
        // A file that shrank to nothing must not be gone through for ever.
        let mut rewound = 0;
        loop {
            if !self.advance().ok()? {
                rewound += 1;
                self.reader.rewind().ok()?;
                self.number = 0;
                if rewound > self.threads {
                    return None;
                }
                continue;
            }
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.skip = self.threads - 1;
            return self.message().ok();
        }
    }

    /// Reads the next line that is not empty; false at the end.
    fn advance(&mut self) -> Result<bool, MessageError> {
        loop {
            self.line.clear();
            let mut bounded = Read::take(&mut self.reader, LINE_BYTES_MAX as u64 + 1);
            let read =
                bounded.read_until(b'\n', &mut self.line).map_err(|why| self.fault(why.to_string()))?;
            self.number += 1;
            if read == 0 {
                return Ok(false);
            }
            if read > LINE_BYTES_MAX {
                return Err(self.fault(format!("it is longer than {LINE_BYTES_MAX} bytes")));
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn message(&self) -> Result<Message, String> {
        let text = std::str::from_utf8(&self.line).map_err(|_| "it is not UTF-8".to_owned())?.trim();
        if text.starts_with('{') { from_json(text) } else { from_raw(text) }
    }

    fn fault(&self, why: String) -> MessageError {
        MessageError::Line { path: self.path.clone(), number: self.number, why }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    method: Option<String>,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
}

fn from_json(text: &str) -> Result<Message, String> {
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Message {
        method: json.method.unwrap_or_else(|| "GET".to_owned()),
        path: json.path,
        headers: json.headers.into_iter().collect(),
        body: json.body.into_bytes(),
    })
}

/// `METHOD PATH[ HTTP/1.1][\r\nNAME: VALUE…][\r\n\r\nBODY]`, line ends written as the four characters `\r\n`.
fn from_raw(text: &str) -> Result<Message, String> {
    let (head, body) = text.split_once("\\r\\n\\r\\n").unwrap_or((text, ""));
    let mut lines = head.split("\\r\\n").filter(|line| !line.is_empty());
    let mut words = lines.next().unwrap_or_default().split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err("a request is `METHOD PATH` or a JSON object".to_owned());
    };
    if !matches!((words.next(), words.next()), (None | Some("HTTP/1.1"), None)) {
        return Err("after the path only HTTP/1.1 may follow".to_owned());
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}` is not a header"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let headers = lines.map(header).collect::<Result<_, String>>()?;
    let body = body.replace("\\r", "\r").replace("\\n", "\n").into_bytes();
    Ok(Message { method: method.to_owned(), path: path.to_owned(), headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn each_thread_takes_every_nth_line_and_begins_again() {
        let file = file(
            "GET /a\n\n{\"path\":\"/b\",\"body\":\"x\"}\r\nPOST /c HTTP/1.1\\r\\nA: b\\r\\n\\r\\nl1\\nl2",
        );
        let take = |thread| {
            let mut lines = Lines::open(file.path(), (thread, 2)).unwrap();
            (0..3).map(|_| lines.next().unwrap().path).collect::<Vec<_>>()
        };
        assert_eq!(
            (take(0), take(1)),
            (["/a", "/c", "/b"].map(String::from).to_vec(), ["/b", "/a", "/c"].map(String::from).to_vec())
        );
        let mut all = Vec::new();
        Lines::check(file.path(), |message| {
            all.push(message);
            Ok(())
        })
        .unwrap();
        assert_eq!(
            (all.len(), all[1].body.as_slice(), all[2].body.as_slice()),
            (3, &b"x"[..], &b"l1\nl2"[..])
        );
        assert_eq!((all[2].method.as_str(), all[2].headers[0].1.as_str()), ("POST", "b"));
    }

    #[test]
    fn mistakes_come_with_their_line() {
        for (text, line) in
            [("", 1), ("GET /\nnonsense\n", 2), ("{\"pat\":1}", 1), ("GET / HTTP/2", 1), ("GET /\\r\\nx", 1)]
        {
            let error = Lines::check(file(text).path(), |_| Ok(())).unwrap_err();
            assert!(
                matches!(&error, MessageError::Line { number, .. } if *number == line),
                "{text:?}: {error}"
            );
        }
        let long = file(&"x".repeat(LINE_BYTES_MAX + 1));
        assert!(Lines::check(long.path(), |_| Ok(())).is_err());
        // What has one reading in it, a pipe, would be empty for the threads once it was checked.
        for path in ["/nowhere", "/dev/null"] {
            assert!(matches!(Lines::open(Path::new(path), (0, 1)), Err(MessageError::File { .. })));
        }
        assert!(Lines::open(file("\n\n").path(), (0, 1)).unwrap().next().is_none());
    }
}
