//! What was read, as it was read: text with a stamp and the number of its source.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use tare_sys::time::monotonic_ns;

/// Most bytes on one tape. One that is full gives up every second reading of each source, so that a long window is
/// seen to its end, the older part of it less finely.
const BYTES_MAX: usize = 64 << 20;
/// Left free, so that a reading of unknown length fits.
const ROOM_BYTES: usize = READING_BYTES_MAX + (64 << 10);
/// Most bytes of one reading.
const READING_BYTES_MAX: usize = 4 << 20;

/// One reading.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'t> {
    /// CLOCK_MONOTONIC, nanoseconds: half way through the reading.
    pub(crate) at_ns: u64,
    /// What was read, as the observer numbers its sources.
    pub(crate) source: u32,
    /// The bytes.
    pub(crate) bytes: &'t [u8],
}

impl<'t> Reading<'t> {
    /// The bytes as text, empty where they are none.
    pub(crate) fn text(&self) -> &'t str {
        std::str::from_utf8(self.bytes).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at_ns: u64,
    source: u32,
    start: usize,
    end: usize,
}

/// Readings of one window.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Where files are read into, of which mostly little is filled: what is not written to stays out of the caches.
    scratch: Vec<u8>,
}

impl Tape {
    /// Forgets everything and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Puts all readings of another tape behind those here, as far as there is room.
    pub(crate) fn append(&mut self, other: &Tape) {
        self.make_room(other.bytes.len());
        let shift = self.bytes.len();
        if shift + other.bytes.len() <= BYTES_MAX {
            self.bytes.extend_from_slice(&other.bytes);
            let moved =
                |entry: &Entry| Entry { start: entry.start + shift, end: entry.end + shift, ..*entry };
            self.entries.extend(other.entries.iter().map(moved));
        }
    }

    /// Reads a file of at most `bytes_max` bytes in one call. A full tape takes nothing more.
    pub(crate) fn record(&mut self, source: u32, file: &File, bytes_max: usize) -> io::Result<()> {
        self.read(source, file, bytes_max, true)
    }

    /// Reads a file to its end, however many calls that takes.
    pub(crate) fn record_all(&mut self, source: u32, file: &File) -> io::Result<()> {
        self.read(source, file, 64 << 10, false)
    }

    fn read(&mut self, source: u32, file: &File, chunk: usize, once: bool) -> io::Result<()> {
        self.make_room(chunk);
        if self.scratch.len() < chunk {
            self.scratch.resize(chunk, 0);
        }
        let (start, begin_ns) = (self.bytes.len(), monotonic_ns());
        let mut end = start;
        while end + chunk <= BYTES_MAX && end - start < READING_BYTES_MAX {
            let Some(buffer) = self.scratch.get_mut(..chunk) else { break };
            let read = match file.read_at(buffer, (end - start) as u64) {
                Ok(read) => read.min(chunk),
                Err(error) => {
                    self.bytes.truncate(start);
                    return Err(error);
                }
            };
            self.bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
            end += read;
            if once || read == 0 {
                break;
            }
        }
        if end > start {
            let at_ns = begin_ns.midpoint(monotonic_ns());
            self.entries.push(Entry { at_ns, source, start, end });
        }
        Ok(())
    }

    /// Keeps a number that came from no file.
    pub(crate) fn put(&mut self, source: u32, at_ns: u64, value: u64) {
        self.make_room(8);
        let start = self.bytes.len();
        if start + 8 <= BYTES_MAX {
            self.bytes.extend(value.to_ne_bytes());
            self.entries.push(Entry { at_ns, source, start, end: start + 8 });
        }
    }

    /// Keeps what was read elsewhere.
    pub(crate) fn keep(&mut self, source: u32, at_ns: u64, read: &[u8]) {
        self.make_room(read.len());
        let start = self.bytes.len();
        if start + read.len() <= BYTES_MAX {
            self.bytes.extend(read);
            self.entries.push(Entry { at_ns, source, start, end: start + read.len() });
        }
    }

    /// Keeps bytes that `read` puts into a buffer of `bytes_max`.
    pub(crate) fn record_with(
        &mut self,
        source: u32,
        bytes_max: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.make_room(bytes_max);
        let start = self.bytes.len();
        if start + bytes_max > BYTES_MAX {
            return Ok(());
        }
        self.bytes.resize(start + bytes_max, 0);
        let outcome = read(&mut self.bytes[start..]);
        let end = start + outcome.as_ref().map_or(0, |length| (*length).min(bytes_max));
        self.bytes.truncate(end);
        if end > start {
            self.entries.push(Entry { at_ns: monotonic_ns(), source, start, end });
        }
        outcome.map(drop)
    }

    /// Where nothing more fits, gives up every second reading of each source; never its first nor its last, which may be
    /// the edges of the window.
    fn make_room(&mut self, bytes: usize) {
        if self.bytes.len() + bytes <= BYTES_MAX - ROOM_BYTES {
            return;
        }
        let Tape { bytes, entries, .. } = self;
        let mut to_come: BTreeMap<u32, u64> = BTreeMap::new();
        for entry in entries.iter() {
            *to_come.entry(entry.source).or_default() += 1;
        }
        let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
        let mut end = 0;
        entries.retain_mut(|entry| {
            let place = seen.entry(entry.source).or_default();
            *place += 1;
            let is_last = to_come.get(&entry.source) == Some(&*place);
            if place.is_multiple_of(2) && !is_last {
                return false;
            }
            bytes.copy_within(entry.start..entry.end, end);
            let length = entry.end - entry.start;
            (entry.start, entry.end) = (end, end + length);
            end += length;
            true
        });
        bytes.truncate(end);
    }

    /// The last reading that was made.
    pub(crate) fn last(&self) -> Option<Reading<'_>> {
        self.entries.last().map(|entry| self.reading(entry))
    }

    /// All readings, in the order they were made.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Reading<'_>> {
        self.entries.iter().map(|entry| self.reading(entry))
    }

    fn reading(&self, entry: &Entry) -> Reading<'_> {
        let bytes = self.bytes.get(entry.start..entry.end).unwrap_or_default();
        Reading { at_ns: entry.at_ns, source: entry.source, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn readings_come_back_in_order() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b'x'; 100_000]).unwrap();
        let mut tape = Tape::default();
        tape.record(1, &file, 10).unwrap();
        tape.record_all(2, &file).unwrap();
        let mut other = Tape::default();
        other.put(3, 77, 42);
        tape.append(&other);
        let lengths: Vec<_> = tape.readings().map(|reading| (reading.source, reading.bytes.len())).collect();
        assert_eq!(lengths, [(1, 10), (2, 100_000), (3, 8)]);
        assert_eq!(tape.readings().last().unwrap().bytes, 42u64.to_ne_bytes());
        tape.clear();
        assert_eq!(tape.readings().count(), 0);
    }

    #[test]
    fn a_full_tape_gives_up_every_second_reading_but_not_the_ends() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 8 << 20]).unwrap();
        let mut tape = Tape::default();
        for at_ns in 0..40 {
            tape.put(7, at_ns, at_ns);
            tape.record_all(1, &file).unwrap();
        }
        assert!(tape.bytes.len() <= BYTES_MAX);
        assert!(tape.readings().all(|reading| reading.bytes.len() <= READING_BYTES_MAX + (64 << 10)));
        let numbers: Vec<_> = tape.readings().filter(|reading| reading.source == 7).collect();
        assert_eq!((numbers[0].at_ns, numbers[numbers.len() - 1].at_ns), (0, 39));
        assert!(numbers.len() < 40);
        let own = |reading: &&Reading| reading.bytes == reading.at_ns.to_ne_bytes();
        assert_eq!(numbers.iter().filter(own).count(), numbers.len(), "bytes stay with their stamps");
        assert!(tape.readings().filter(|reading| reading.source == 1).count() >= 4);
    }

    #[test]
    fn a_tape_that_fills_up_while_an_edge_is_read_keeps_all_of_the_edge() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 3 << 20]).unwrap();
        let mut tape = Tape::default();
        // However many readings there were, the last of a source is its closing edge.
        for source in 1..=4 {
            (0..=u64::from(source)).for_each(|at_ns| tape.put(source, at_ns, 0));
        }
        (0..64).for_each(|_| tape.record_all(9, &file).unwrap());
        assert!(tape.readings().filter(|reading| reading.source == 9).count() < 64, "it was full");
        let mut edge = Tape::default();
        edge.record_all(8, &file).unwrap();
        edge.record_all(8, &file).unwrap();
        edge.put(5, 77, 1);
        while tape.bytes.len() + edge.bytes.len() <= BYTES_MAX {
            tape.record_all(9, &file).unwrap();
        }
        tape.append(&edge);
        for source in 1..=4 {
            let last = tape.readings().filter(|reading| reading.source == source).last().unwrap();
            assert_eq!(last.at_ns, u64::from(source));
        }
        assert!(tape.readings().any(|reading| (reading.source, reading.at_ns) == (5, 77)));
    }
}
