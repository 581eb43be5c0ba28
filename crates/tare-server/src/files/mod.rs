//! Serving the files of a folder (RFC 9110, 13 and 14).
//!
//! The kernel keeps paths within the folder.

mod conditions;
mod media;
mod path;

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use tare_http::date::write_date;
use tare_http::status::Status;
use tare_sys::file::{Facts, Kind, facts, kind_at, open_beneath};

use crate::handler::{Answer, Handler, Request, Responder};
use conditions::{Selected, Validators, select};
use path::Decoded;

/// The files of a folder.
#[derive(Debug)]
pub struct Files {
    folder: File,
}

/// A precompressed form of a file: the suffix of its name and its content coding.
const CODINGS: [(&str, &str); 2] = [(".br", "br"), (".gz", "gzip")];

/// A file that was found, and in which coding.
struct Found {
    file: File,
    facts: Facts,
    coding: Option<&'static str>,
}

impl Files {
    /// The files of the folder at `path`, which must be one.
    pub fn new(path: &Path) -> io::Result<Files> {
        let folder = File::open(path)?;
        match folder.metadata()?.is_dir() {
            true => Ok(Files { folder }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens the file, or its precompressed form where the client takes that.
    fn find(&self, path: &mut Decoded, request: &Request<'_>) -> io::Result<Found> {
        for (suffix, coding) in CODINGS {
            if accepts(request, coding)
                && let Some(path) = path.with_suffix(suffix)
                && let Ok((file, facts)) = self.open(path)
                && facts.kind == Kind::File
            {
                return Ok(Found { file, facts, coding: Some(coding) });
            }
        }
        let text = path.text().ok_or(io::ErrorKind::InvalidFilename)?;
        let (file, facts) = self.open(text)?;
        Ok(Found { file, facts, coding: None })
    }

    /// Pipes and devices are not even opened: that would wake a writer, or worse. What takes the place of a file
    /// meanwhile is opened without waiting, and is not sent.
    fn open(&self, path: &CStr) -> io::Result<(File, Facts)> {
        match kind_at(&self.folder, path) {
            Ok(Kind::Special) => return Err(io::ErrorKind::NotFound.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // `openat2` decides about anything else: it does not reveal what lies outside the folder.
            Ok(Kind::File | Kind::Folder) | Err(_) => {}
        }
        let file = open_beneath(&self.folder, path)?;
        let facts = facts(&file)?;
        Ok((file, facts))
    }
}

impl Handler for Files {
    fn handle(&self, request: &Request<'_>, responder: Responder<'_>) -> Answer {
        let Some(mut path) = Decoded::new(request.path()) else {
            return responder.plain(Status::NOT_FOUND);
        };
        let asked_folder = path.add_index();
        match self.find(&mut path, request) {
            Ok(found) if found.facts.kind == Kind::File => send(request, responder, found, path.bytes()),
            Ok(found) if found.facts.kind == Kind::Folder && !asked_folder => to_folder(request, responder),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => responder.plain(Status::FORBIDDEN),
            // Not there, not a file, or a way out of the folder: the answer is the same.
            Ok(_) | Err(_) => responder.plain(Status::NOT_FOUND),
        }
    }
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
    let validators = Validators::new(found.facts.modified_unix_s, bytes, responder.unix_s());
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
    if has_codings(path) || found.coding.is_some() {
        head = head.static_field("Vary", "Accept-Encoding");
    }
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

/// Whether the content of that kind of file is worth compressing, so that the answer may depend on what the
/// client takes.
fn has_codings(path: &[u8]) -> bool {
    media::is_text(media::of_path(path))
}

/// Whether the client takes the coding: named, and not with a weight of zero (RFC 9110, 12.5.3).
fn accepts(request: &Request<'_>, coding: &str) -> bool {
    request.head().list("accept-encoding").any(|element| {
        let mut parts = element.split(|b| *b == b';').map(<[u8]>::trim_ascii);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding.as_bytes()));
        let refused = parts.any(|p| {
            p.strip_prefix(b"q=")
                .or_else(|| p.strip_prefix(b"Q="))
                .is_some_and(|q| !q.is_empty() && q.iter().all(|b| matches!(b, b'0' | b'.')))
        });
        named && !refused
    })
}
