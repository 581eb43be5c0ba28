//! The built-in routes: two constant answers, bodies of any size, and one route for each way to spend time.
//!
//! All but the first three hold up their event loop on purpose, as a real handler of that kind would.

use std::cell::RefCell;
use std::fs::File;
use std::hint::{black_box, spin_loop};
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tare_http::status::Status;
use tare_sys::process;
use tare_sys::time::monotonic_ns;

use crate::handler::{Answer, Request, Responder};
use crate::routes::Routes;

/// Longest time that one request may ask for.
const SPEND_NS_MAX: u64 = 10_000_000_000;
/// Largest allocation that one request may ask for, in KiB.
const ALLOC_KIB_MAX: usize = 1024 * 1024;
/// Largest `/bytes/N`.
const BYTES_MAX: u64 = 1 << 40;

/// Bodies up to this size go through the output buffer, larger ones are made as they are sent.
const INLINE_BYTES_MAX: u64 = 4096;
static INLINE: [u8; INLINE_BYTES_MAX as usize] = [b'x'; INLINE_BYTES_MAX as usize];

pub(crate) fn add(routes: &mut Routes) {
    routes.add("/plaintext", |_: &Request<'_>, answer: Responder<'_>| {
        answer.ok().content_type("text/plain").body(b"Hello, World!")
    });
    routes.add("/json", |_: &Request<'_>, answer: Responder<'_>| {
        answer.ok().content_type("application/json").body(br#"{"message":"Hello, World!"}"#)
    });
    routes.add("/bytes/*", bytes);
    routes.add("/status/*", status);
    routes.add("/spin", spin);
    routes.add("/sleep", sleep);
    routes.add("/lock", lock);
    routes.add("/alloc", alloc);
    routes.add("/fsync", fsync);
}

/// `/bytes/N`: N bytes.
fn bytes(request: &Request<'_>, answer: Responder<'_>) -> Answer {
    match request.rest().parse::<u64>() {
        Ok(n) if n <= INLINE_BYTES_MAX => {
            answer.ok().content_type("application/octet-stream").body(&INLINE[..n as usize])
        }
        Ok(n) if n <= BYTES_MAX => answer.ok().content_type("application/octet-stream").fill(n),
        _ => answer.plain(Status::NOT_FOUND),
    }
}

/// `/status/N`: that status, 200 to 599, with the fields that such an answer has to have.
fn status(request: &Request<'_>, answer: Responder<'_>) -> Answer {
    let Some(status) = request.rest().parse().ok().and_then(Status::new) else {
        return answer.plain(Status::NOT_FOUND);
    };
    let head = answer.status(status);
    demanded_fields(status).iter().fold(head, |head, (name, value)| head.static_field(name, value)).reason()
}

/// The fields without which an answer of that status is none (RFC 9110, 7.8, 15.3.7, 15.4, 15.5).
fn demanded_fields(status: Status) -> &'static [(&'static str, &'static str)] {
    match status.code() {
        // Of the very text that is sent, its reason.
        206 => &[("Content-Range", "bytes 0-14/15")],
        301..=303 | 307 | 308 => &[("Location", "/status/200")],
        401 => &[("WWW-Authenticate", "Basic realm=\"tare\"")],
        405 => &[("Allow", "GET, HEAD")],
        407 => &[("Proxy-Authenticate", "Basic realm=\"tare\"")],
        416 => &[("Content-Range", "bytes */0")],
        426 => &[("Upgrade", "HTTP/1.1"), ("Connection", "upgrade")],
        _ => &[],
    }
}

/// `/spin?ns=N`: keeps the CPU busy for N ns.
fn spin(request: &Request<'_>, answer: Responder<'_>) -> Answer {
    with_ns(request, "ns", 1, answer, spin_for)
}

/// `/sleep?us=N`: blocks the thread for N µs, as a blocking call in a handler does.
fn sleep(request: &Request<'_>, answer: Responder<'_>) -> Answer {
    with_ns(request, "us", 1000, answer, |ns| std::thread::sleep(Duration::from_nanos(ns)))
}

/// `/lock?us=N`: keeps the CPU busy for N µs under the one mutex of the process.
fn lock(request: &Request<'_>, answer: Responder<'_>) -> Answer {
    static LOCK: Mutex<()> = Mutex::new(());
    with_ns(request, "us", 1000, answer, |ns| {
        let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        spin_for(ns);
    })
}

/// `/alloc?kb=N`: allocates N KiB, touches every page and frees them.
fn alloc(request: &Request<'_>, answer: Responder<'_>) -> Answer {
    match request.query_value("kb").and_then(|kb| kb.parse::<usize>().ok()) {
        Some(kib) if kib <= ALLOC_KIB_MAX => {
            let mut memory: Vec<u8> = Vec::with_capacity(kib * 1024);
            memory.resize(kib * 1024, 1);
            black_box(&memory);
            done(answer)
        }
        _ => bad_query(answer, "hint: /alloc?kb=N with N up to 1048576"),
    }
}

/// `/fsync`: writes a byte to a file of /var/tmp that is already unlinked and waits until the disk has it.
fn fsync(_: &Request<'_>, answer: Responder<'_>) -> Answer {
    thread_local! {
        // Each thread its own: it may have a table of descriptors of its own too.
        static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
    }
    let written = FILE.with_borrow_mut(|file| {
        let file = match file {
            Some(file) => file,
            None => file.insert(unlinked_file()?),
        };
        file.rewind()?;
        file.write_all(b"x")?;
        file.sync_data()
    });
    if written.is_ok() { done(answer) } else { answer.plain(Status::INTERNAL_SERVER_ERROR) }
}

/// In /var/tmp, which outlives a restart and so is on a disk: /tmp may be memory, where nothing has to be waited for.
fn unlinked_file() -> io::Result<File> {
    let name = format!("tare-fsync-{}-{}", process::gettid(), monotonic_ns());
    let create = |folder: &Path| {
        let path = folder.join(&name);
        let file = File::create_new(&path)?;
        std::fs::remove_file(&path).map(|()| file)
    };
    create(Path::new("/var/tmp")).or_else(|_| create(&std::env::temp_dir()))
}

fn with_ns(
    request: &Request<'_>,
    name: &str,
    unit_ns: u64,
    answer: Responder<'_>,
    spend: impl FnOnce(u64),
) -> Answer {
    let asked = request.query_value(name).and_then(|n| n.parse::<u64>().ok()?.checked_mul(unit_ns));
    match asked {
        Some(ns) if ns <= SPEND_NS_MAX => {
            spend(ns);
            done(answer)
        }
        _ => bad_query(answer, "hint: ?ns=N or ?us=N, up to 10 seconds"),
    }
}

/// A function of its own, so that call stacks name it.
#[inline(never)]
fn spin_for(ns: u64) {
    let end = monotonic_ns().saturating_add(ns);
    while monotonic_ns() < end {
        spin_loop();
    }
}

fn done(answer: Responder<'_>) -> Answer {
    answer.ok().content_type("text/plain").body(b"done")
}

fn bad_query(answer: Responder<'_>, hint: &str) -> Answer {
    answer.status(Status::BAD_REQUEST).content_type("text/plain").body(hint.as_bytes())
}
