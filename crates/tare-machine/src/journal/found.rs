//! Journals as they are found on disk: whether they may be followed, and which of their lines can be read.

use super::caller::now_ns;
use super::entry::Entry;
use super::folder::{check_folder, check_owner};
use super::id::{Id, is_alive};
use super::lines;
use crate::root::Root;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Longest journal that is read.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;

/// A journal on disk.
#[derive(Debug)]
pub(super) struct Found {
    pub path: PathBuf,
    /// What those of its lines say that can be read.
    pub entries: Vec<Entry>,
    /// Whole lines that are none of ours, counted from 1.
    bad_lines: Vec<usize>,
    /// When it was written last.
    written_unix_ns: u64,
}

/// Whose a journal is.
#[derive(Debug)]
pub(super) struct Owner {
    pub id: Id,
    pub boot_id: String,
    pub run: String,
    pub command: String,
    pub since_unix_ns: u64,
}

/// The journals of a folder.
#[derive(Debug, Default)]
pub(super) struct Journals {
    /// The newest first: what was applied last is put back first.
    pub found: Vec<Found>,
    /// Those that are not followed, and why.
    pub refused: Vec<String>,
}

/// All journals in a folder; a folder that is not there has none.
pub(super) fn journals(dir: &Path) -> Journals {
    let mut journals = Journals::default();
    let refused = |path: &Path, why: io::Error| {
        format!("{}: {why}; what journals there list is not undone", path.display())
    };
    match check_folder(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return journals,
        Err(error) => journals.refused.push(refused(dir, error)),
        Ok(()) => {
            let files = fs::read_dir(dir).into_iter().flatten().flatten().map(|file| file.path());
            for path in files.filter(|path| path.extension() == Some(OsStr::new("journal"))) {
                match read(&path) {
                    Ok(found) => journals.found.push(found),
                    // Its owner has just ended.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => journals.refused.push(refused(&path, error)),
                }
            }
        }
    }
    journals.found.sort_by_key(|found| std::cmp::Reverse(found.since_unix_ns()));
    journals
}

/// Reads a journal.
pub(super) fn read(path: &Path) -> io::Result<Found> {
    // Before it is opened: to open a pipe is to wait for its other end.
    let facts = fs::symlink_metadata(path)?;
    if !facts.is_file() {
        return Err(io::Error::other("this is no file"));
    }
    check_owner(&facts)?;
    if facts.len() > JOURNAL_BYTES_MAX {
        return Err(io::Error::other(format!("{} bytes are too many for a journal", facts.len())));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(JOURNAL_BYTES_MAX).read_to_end(&mut bytes)?;
    let (whole, last) = split(&bytes);
    let (mut entries, mut bad_lines) = (Vec::new(), Vec::new());
    for (at, line) in whole.split_inclusive(|&byte| byte == b'\n').enumerate() {
        match lines::read(line) {
            Some(entry) => entries.push(entry),
            None => bad_lines.push(at + 1),
        }
    }
    entries.extend(lines::read(last));
    let written = facts.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let written_unix_ns = u64::try_from(written.as_nanos()).unwrap_or(u64::MAX);
    Ok(Found { path: path.to_path_buf(), entries, bad_lines, written_unix_ns })
}

/// The whole lines, and the last one if it has no end: a kill may have cut it, and it was not acted on then.
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    bytes.split_at(whole)
}

impl Found {
    /// Whose it is: its first line says, and where that cannot be read its name. Nobody's when it was cut before the
    /// first line was whole: nothing had been done then.
    pub fn owner(&self, boot_now: &str) -> Option<Owner> {
        if let Some(Entry::Owner { id, boot_id, run, command, since_unix_ns }) = self.entries.first() {
            let (boot_id, run, command) = (boot_id.clone(), run.clone(), command.clone());
            return Some(Owner { id: *id, boot_id, run, command, since_unix_ns: *since_unix_ns });
        }
        self.is_damaged().then(|| Owner {
            id: self.id_by_name(),
            boot_id: if self.is_of_this_boot() { boot_now.to_string() } else { String::new() },
            run: self.name().to_string(),
            command: "tare".to_string(),
            since_unix_ns: self.written_unix_ns,
        })
    }

    fn since_unix_ns(&self) -> u64 {
        self.owner("").map_or(0, |owner| owner.since_unix_ns)
    }

    /// Whether there is something in it that cannot be read.
    pub fn is_damaged(&self) -> bool {
        let has_owner = matches!(self.entries.first(), None | Some(Entry::Owner { .. }));
        !self.bad_lines.is_empty() || !has_owner
    }

    fn is_of_this_boot(&self) -> bool {
        now_ns().saturating_sub(self.written_unix_ns) < tare_sys::time::boottime_ns()
    }

    fn name(&self) -> &str {
        self.path.file_stem().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// Files are named by the owner's pid and start time.
    fn id_by_name(&self) -> Id {
        let mut numbers = self.name().split('-').map(|number| number.parse::<u64>().unwrap_or_default());
        let mut next = || numbers.next().unwrap_or_default();
        let (pid, start_ticks) = (next(), next());
        Id { pid: u32::try_from(pid).unwrap_or_default(), start_ticks }
    }

    /// Its owner may be about to write the first line.
    pub fn lives_by_name(&self, root: &Root) -> bool {
        is_alive(root, self.id_by_name())
    }

    /// All that it lists is undone: it goes. One that cannot be read whole is kept aside, as nobody knows what else it
    /// listed; that is said.
    pub fn retire(&self, failed: &mut Vec<String>) {
        if !self.is_damaged() {
            let _ = fs::remove_file(&self.path);
            return;
        }
        let aside = self.path.with_extension("journal.damaged");
        let kept = match fs::rename(&self.path, &aside) {
            Ok(()) => aside,
            Err(_) => self.path.clone(),
        };
        let lines: Vec<String> = self.bad_lines.iter().take(5).map(usize::to_string).collect();
        failed.push(format!(
            "a journal is damaged (line {}): what its other lines list is undone, and it is kept as {}; hint: see in it what \
             else was applied, put that back by hand, and delete it",
            lines.join(", "),
            kept.display()
        ));
    }
}
