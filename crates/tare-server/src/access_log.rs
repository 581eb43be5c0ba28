//! The access log: a line for each answer, in the Common Log Format that every tool reads.
//!
//! A loop writes lines into a buffer of its own, in memory; a thread of the log takes what is there ten times a
//! second, or when a buffer is half full, and writes it out. So no loop ever waits for a disk or for the reader of a
//! pipe: where those are too slow the buffer is full, and lines are dropped and counted.

use std::fmt;
use std::io::Write;
use std::mem::{swap, take};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tare_http::request::{Head, Method, Version};
use tare_http::target::Target;
use tare_http::write::number;

/// Bytes of lines that may wait in the buffer of one loop.
const BUFFER_BYTES: usize = 1024 * 1024;
/// Longest path, and longest query, that is written out; the rest is cut off.
const TARGET_BYTES_MAX: usize = 1024;
/// Longest line: a path and a query of which every byte is escaped, and what stands around it.
const LINE_BYTES_MAX: usize = 8 * TARGET_BYTES_MAX + 256;
/// How long a line waits at most while the writer keeps up.
const PERIOD: Duration = Duration::from_millis(100);
/// How long the end of a server waits for what is left to be written: the reader may have stopped.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// Where the lines of a server go. Clones are the same log.
#[derive(Clone)]
pub struct AccessLog {
    shared: Arc<Shared>,
}

struct Shared {
    buffers: Mutex<Vec<Arc<Buffer>>>,
    out: Mutex<Box<dyn Write + Send>>,
    /// Whether the writer is to end, or to look at once, and whether it has ended.
    due: Mutex<Due>,
    changed: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct Due {
    now: bool,
    end: bool,
    ended: bool,
}

struct Buffer {
    lines: Mutex<Vec<u8>>,
    /// The writer was notified that this is half full.
    notified: AtomicBool,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessLog")
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AccessLog {
    /// A log that is written to `out`.
    pub fn new(out: impl Write + Send + 'static) -> AccessLog {
        let shared = Shared {
            buffers: Mutex::default(),
            out: Mutex::new(Box::new(out)),
            due: Mutex::default(),
            changed: Condvar::new(),
            lost: AtomicU64::new(0),
        };
        AccessLog { shared: Arc::new(shared) }
    }

    /// Lines that could not be written: the disk was full, or nobody reads the pipe any more. Those that were
    /// dropped before are in [`crate::counters::Counts::log_lines_dropped`].
    pub fn lost_lines(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// The end that one loop writes to.
    pub(crate) fn writer(&self) -> LogWriter {
        let lines = Mutex::new(Vec::with_capacity(BUFFER_BYTES));
        let buffer = Arc::new(Buffer { lines, notified: AtomicBool::new(false) });
        lock(&self.shared.buffers).push(Arc::clone(&buffer));
        LogWriter { log: self.clone(), buffer, second: u64::MAX, time: Vec::with_capacity(32) }
    }

    /// Writes until [`AccessLog::end`], then what is left.
    pub(crate) fn run(&self) {
        let mut spare = Vec::with_capacity(BUFFER_BYTES);
        loop {
            let ends = self.wait();
            let buffers = lock(&self.shared.buffers).clone();
            for buffer in &buffers {
                // The loop goes on with the empty one while this is written.
                swap(&mut *lock(&buffer.lines), &mut spare);
                buffer.notified.store(false, Ordering::Relaxed);
                self.write(&spare);
                spare.clear();
            }
            if ends {
                lock(&self.shared.due).ended = true;
                self.shared.changed.notify_all();
                return;
            }
        }
    }

    fn wait(&self) -> bool {
        let due = lock(&self.shared.due);
        let waited = self.shared.changed.wait_timeout_while(due, PERIOD, |due| !due.now && !due.end);
        let (mut due, _) = waited.unwrap_or_else(PoisonError::into_inner);
        due.now = false;
        due.end
    }

    fn write(&self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let mut out = lock(&self.shared.out);
        if out.write_all(lines).and_then(|()| out.flush()).is_err() {
            let count = lines.iter().filter(|byte| **byte == b'\n').count();
            self.shared.lost.fetch_add(count as u64, Ordering::Relaxed);
        }
    }

    fn look_now(&self) {
        lock(&self.shared.due).now = true;
        self.shared.changed.notify_all();
    }

    /// No loop writes any more: what is left is written, if that takes no longer than two seconds.
    pub(crate) fn end(&self) {
        let mut due = lock(&self.shared.due);
        due.end = true;
        self.shared.changed.notify_all();
        drop(self.shared.changed.wait_timeout_while(due, END_PATIENCE, |due| !due.ended));
    }

    /// After the end of the server: whether nobody took what was left. Its thread still waits in the write.
    pub fn is_stuck(&self) -> bool {
        let due = lock(&self.shared.due);
        due.end && !due.ended
    }
}

/// What was asked, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'l> {
    /// A request that was read.
    Read(Method, Target<'l>, Version),
    /// The first line of one that was not, as it came; it may be cut.
    Line(&'l [u8]),
    /// Nothing came, or nothing was read.
    Unknown,
}

impl<'l> Asked<'l> {
    pub(crate) fn by(head: &Head<'l>) -> Asked<'l> {
        Asked::Read(head.method, head.target, head.version)
    }

    /// By the bytes that a request begins with.
    pub(crate) fn begins(bytes: &'l [u8]) -> Asked<'l> {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        match bytes.split(is_end).find(|line| !line.is_empty()) {
            Some(line) => Asked::Line(line),
            None => Asked::Unknown,
        }
    }

    /// Whether it is HEAD, however it goes on.
    pub(crate) fn is_head(&self) -> bool {
        match self {
            Asked::Read(method, ..) => *method == Method::Head,
            Asked::Line(line) => line.starts_with(b"HEAD "),
            Asked::Unknown => false,
        }
    }
}

/// What an answer was to.
pub(crate) struct Line<'l> {
    pub(crate) from: Option<IpAddr>,
    pub(crate) asked: Asked<'l>,
    pub(crate) status: u16,
    /// Bytes of the body.
    pub(crate) bytes: u64,
}

/// One loop's end of the log.
pub(crate) struct LogWriter {
    log: AccessLog,
    buffer: Arc<Buffer>,
    /// The second that `time` stands for.
    second: u64,
    time: Vec<u8>,
}

impl LogWriter {
    /// Writes a line; false where there was no room for it.
    pub(crate) fn write(&mut self, line: &Line<'_>, unix_s: u64) -> bool {
        if self.second != unix_s {
            self.second = unix_s;
            self.time = time_of(unix_s, take(&mut self.time));
        }
        let mut out = lock(&self.buffer.lines);
        if out.len() + LINE_BYTES_MAX > BUFFER_BYTES {
            return false;
        }
        match line.from {
            // Formatting into a Vec cannot fail.
            Some(address) => drop(write!(out, "{address}")),
            None => out.push(b'-'),
        }
        out.extend_from_slice(b" - - ");
        out.extend_from_slice(&self.time);
        out.extend_from_slice(b" \"");
        match line.asked {
            Asked::Read(method, target, version) => {
                out.extend_from_slice(method.name().as_bytes());
                out.push(b' ');
                escape(target.path.as_bytes(), &mut out);
                if let Some(query) = target.query {
                    out.push(b'?');
                    escape(query.as_bytes(), &mut out);
                }
                out.extend_from_slice(match version {
                    Version::Http10 => b" HTTP/1.0",
                    Version::Http11 => b" HTTP/1.1",
                });
            }
            Asked::Line(line) => {
                let mut words = line[..line.len().min(TARGET_BYTES_MAX)].split(|byte| *byte == b' ');
                escape(words.next().unwrap_or_default(), &mut out);
                for word in words {
                    out.push(b' ');
                    escape(word, &mut out);
                }
            }
            Asked::Unknown => out.push(b'-'),
        }
        out.extend_from_slice(b"\" ");
        number(&mut out, u64::from(line.status));
        out.push(b' ');
        number(&mut out, line.bytes);
        out.push(b'\n');
        let half_full = out.len() > BUFFER_BYTES / 2;
        drop(out);
        if half_full && !self.buffer.notified.swap(true, Ordering::Relaxed) {
            self.log.look_now();
        }
        true
    }
}

/// Bytes that end the quoted part or the line, or control a terminal, are written as `\xHH`.
fn escape(target: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in &target[..target.len().min(TARGET_BYTES_MAX)] {
        match byte {
            b'"' | b'\\' | ..=b' ' | 0x7f.. => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                out.extend_from_slice(&[b'\\', b'x', high, low]);
            }
            _ => out.push(*byte),
        }
    }
}

/// `[06/Nov/1994:08:49:37 +0000]`, from the date as HTTP writes it.
fn time_of(unix_s: u64, mut out: Vec<u8>) -> Vec<u8> {
    // `Sun, 06 Nov 1994 08:49:37 GMT`
    let date = tare_http::date::write_date(unix_s);
    out.clear();
    out.push(b'[');
    for (part, after) in [(5..7, b'/'), (8..11, b'/'), (12..16, b':'), (17..25, b' ')] {
        out.extend_from_slice(&date[part]);
        out.push(after);
    }
    out.extend_from_slice(b"+0000]");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn get(path: &str, version: Version) -> Line<'_> {
        let target = Target { path, query: None, authority: None };
        Line { from: None, asked: Asked::Read(Method::Get, target, version), status: 200, bytes: 7 }
    }

    fn ended(log: &AccessLog) {
        log.end();
        log.run();
    }

    #[test]
    fn lines_are_in_the_common_format_and_cannot_be_forged() {
        let kept = Kept::default();
        let log = AccessLog::new(kept.clone());
        let mut writer = log.writer();
        let from = Some("127.0.0.1".parse().unwrap());
        assert!(writer.write(&Line { from, ..get("/a", Version::Http11) }, 784_111_777));
        let target = "/\"\n\\\u{1b}\u{e9}";
        assert!(writer.write(&get(target, Version::Http10), 784_111_778));
        for unread in [&b"\r\nGET /a b\tHTTP\"1\nX: y"[..], b"\x16\x03\x01", b"\r\n"] {
            let line = Line { asked: Asked::begins(unread), status: 400, ..get("", Version::Http11) };
            assert!(writer.write(&line, 784_111_778));
        }
        ended(&log);
        let text = String::from_utf8(lock(&kept.0).clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                r#"127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] "GET /a HTTP/1.1" 200 7"#,
                r#"- - - [06/Nov/1994:08:49:38 +0000] "GET /\x22\x0a\x5c\x1b\xc3\xa9 HTTP/1.0" 200 7"#,
                r#"- - - [06/Nov/1994:08:49:38 +0000] "GET /a b\x09HTTP\x221" 400 7"#,
                r#"- - - [06/Nov/1994:08:49:38 +0000] "\x16\x03\x01" 400 7"#,
                r#"- - - [06/Nov/1994:08:49:38 +0000] "-" 400 7"#,
            ]
        );
    }

    #[test]
    fn a_full_buffer_drops_lines_and_says_so() {
        let kept = Kept::default();
        let log = AccessLog::new(kept.clone());
        let mut writer = log.writer();
        let long = "x".repeat(5000);
        let line = get(&long, Version::Http11);
        let written = (0..5000).filter(|_| writer.write(&line, 0)).count();
        assert!(written > 500 && written < 1000, "{written}");
        assert!(lock(&writer.buffer.lines).capacity() == BUFFER_BYTES, "it never grows");
        ended(&log);
        assert!(writer.write(&line, 0), "there is room again");
        assert_eq!(lock(&kept.0).iter().filter(|byte| **byte == b'\n').count(), written);
    }

    #[test]
    fn lines_that_nobody_takes_are_counted() {
        let log = AccessLog::new(Broken);
        let mut writer = log.writer();
        assert!((0..3).all(|_| writer.write(&get("/", Version::Http11), 0)));
        ended(&log);
        assert_eq!(log.lost_lines(), 3);
    }
}
