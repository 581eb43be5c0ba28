//! Serving the files of a folder (RFC 9110, 13 and 14).
//!
//! The kernel keeps paths within the folder.

mod codings;
mod conditions;
mod media;
mod requested;

use std::cell::RefCell;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tare_http::date::write_date;
use tare_http::status::Status;
use tare_sys::file::{Facts, Kind, facts, kind_at, open_beneath};

use crate::handler::{Answer, Handler, Request, Responder};
use codings::Coding;
use conditions::{Selected, Validators, select};
use requested::Decoded;

/// The files of a folder. One that is renamed is served on, wherever it is then. Where its path comes to lead to another folder, as when a new
/// release takes the place of the old one, they are those of the new one within a second.
#[derive(Debug)]
pub struct Files {
    path: PathBuf,
    /// As it was found first.
    folder: File,
    /// Which of all `Files` this is, in [`CURRENT`].
    id: usize,
}

/// What a path leads to since a thread looked last. Of each thread's own: with tables of their own a descriptor is another one elsewhere.
struct Current {
    id: usize,
    looked_unix_s: u64,
    folder: Option<File>,
}

thread_local! {
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// A file that was found, and in which coding.
struct Found {
    file: File,
    facts: Facts,
    coding: Option<&'static str>,
    /// Whether the client takes that.
    accepted: bool,
}

impl Files {
    /// The files of the folder at `path`, which must be one.
    pub fn new(path: &Path) -> io::Result<Files> {
        static IDS: AtomicUsize = AtomicUsize::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        Ok(Files { path: std::path::absolute(path)?, folder: open_folder(path)?, id })
    }

    /// Does something in the folder that the path leads to, or led to a second ago.
    fn within<T>(&self, now_unix_s: u64, act: impl FnOnce(&File) -> T) -> T {
        CURRENT.with_borrow_mut(|all| {
            let known = all.iter().position(|current| current.id == self.id);
            let at = known.unwrap_or_else(|| {
                all.push(Current { id: self.id, looked_unix_s: 0, folder: None });
                all.len() - 1
            });
            let Some(current) = all.get_mut(at) else { return act(&self.folder) };
            if current.looked_unix_s != now_unix_s {
                current.looked_unix_s = now_unix_s;
                current.folder = open_folder(&self.path).ok().or(current.folder.take());
            }
            act(current.folder.as_ref().unwrap_or(&self.folder))
        })
    }

    /// Opens the file, or its precompressed form where the client takes that.
    fn find(folder: &File, path: &mut Decoded, request: &Request<'_>) -> io::Result<Found> {
        let accepted = codings::accepted(request.head());
        for Coding { suffix, name } in accepted.preferred.into_iter().flatten() {
            if let Some(path) = path.with_suffix(suffix)
                && let Ok((file, facts)) = open(folder, path)
                && facts.kind == Kind::File
            {
                return Ok(Found { file, facts, coding: Some(name), accepted: true });
            }
        }
        let text = path.text().ok_or(io::ErrorKind::InvalidFilename)?;
        let (file, facts) = open(folder, text)?;
        Ok(Found { file, facts, coding: None, accepted: accepted.identity })
    }
}

fn open_folder(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    match folder.metadata()?.is_dir() {
        true => Ok(folder),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// Pipes and devices are not even opened: that would wake a writer, or worse. What takes the place of a file
/// meanwhile is opened without waiting, and is not sent.
fn open(folder: &File, path: &CStr) -> io::Result<(File, Facts)> {
    match kind_at(folder, path) {
        Ok(Kind::Special) => return Err(io::ErrorKind::NotFound.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        // `openat2` decides about anything else: it does not reveal what lies outside the folder.
        Ok(Kind::File | Kind::Folder) | Err(_) => {}
    }
    let file = open_beneath(folder, path)?;
    let facts = facts(&file)?;
    Ok((file, facts))
}

impl Handler for Files {
    fn handle(&self, request: &Request<'_>, responder: Responder<'_>) -> Answer {
        let Some(mut path) = Decoded::new(request.path()) else {
            return responder.plain(Status::NOT_FOUND);
        };
        let asked_folder = path.add_index();
        let found = self.within(responder.unix_s(), |folder| Files::find(folder, &mut path, request));
        match found {
            Ok(found) if found.facts.kind == Kind::File && !found.accepted => {
                let head = responder.status(Status::NOT_ACCEPTABLE);
                head.static_field("Vary", "Accept-Encoding").reason()
            }
            Ok(found) if found.facts.kind == Kind::File => send(request, responder, found, path.bytes()),
            Ok(found) if found.facts.kind == Kind::Folder && !asked_folder => to_folder(request, responder),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => responder.plain(Status::FORBIDDEN),
            // Who takes another coding finds something there (RFC 9110, 12.5.5).
            Err(_) if self.within(responder.unix_s(), |folder| has_form(folder, &mut path)) => {
                let head = responder.status(Status::NOT_FOUND);
                head.static_field("Vary", "Accept-Encoding").reason()
            }
            // Not there, not a file, or a way out of the folder: the answer is the same.
            Ok(_) | Err(_) => responder.plain(Status::NOT_FOUND),
        }
    }
}

/// Whether the file at `path`, which is not there itself, has a precompressed form.
fn has_form(folder: &File, path: &mut Decoded) -> bool {
    codings::CODINGS.iter().any(|coding| {
        let found = path.with_suffix(coding.suffix).and_then(|path| open(folder, path).ok());
        found.is_some_and(|(_, facts)| facts.kind == Kind::File)
    })
}

/// `/folder` is at `/folder/`, so that relative links within it work.
fn to_folder(request: &Request<'_>, responder: Responder<'_>) -> Answer {
    // A path that begins with two slashes would name another host.
    let mut location = format!("/{}/", request.path().trim_start_matches('/'));
    if let Some(query) = request.head().target.query {
        location.push('?');
        location.push_str(query);
    }
    responder.status(Status::MOVED_PERMANENTLY).field("Location", location.as_bytes()).empty()
}

fn send(request: &Request<'_>, responder: Responder<'_>, found: Found, path: &[u8]) -> Answer {
    let bytes = found.facts.bytes;
    let validators = Validators::new(&found.facts, found.coding, responder.unix_s());
    let last_modified = write_date(validators.modified_unix_s);
    let (status, mut ranges) = match select(request, &validators) {
        Selected::Whole => (Status::OK, Vec::new()),
        Selected::Parts(ranges) => (Status::PARTIAL_CONTENT, ranges),
        Selected::NotModified => (Status::NOT_MODIFIED, Vec::new()),
        Selected::Failed => return responder.plain(Status::PRECONDITION_FAILED),
        Selected::Unsatisfiable => {
            let whole = format!("bytes */{bytes}");
            let head = responder.status(Status::RANGE_NOT_SATISFIABLE);
            return head.field("Content-Range", whole.as_bytes()).empty();
        }
    };
    let mut head = responder.status(status).field("Last-Modified", &last_modified);
    head = head.field("ETag", validators.etag.as_bytes());
    // Also of a file as it is: with a precompressed form beside it, another client gets that.
    head = head.static_field("Vary", "Accept-Encoding");
    if status == Status::NOT_MODIFIED {
        return head.empty();
    }
    let media_type = media::of_path(path);
    if let Some(coding) = found.coding {
        head = head.static_field("Content-Encoding", coding);
    }
    match (ranges.pop(), ranges.is_empty()) {
        (None, _) => {
            let head = head.content_type(media_type).static_field("Accept-Ranges", "bytes");
            head.file(found.file, 0, bytes)
        }
        (Some(range), true) => {
            let head = head.content_type(media_type).content_range(range.start, range.end - 1, bytes);
            head.file(found.file, range.start, range.end - range.start)
        }
        (Some(last), false) => {
            ranges.push(last);
            head.file_parts(found.file, bytes, media_type, ranges)
        }
    }
}
