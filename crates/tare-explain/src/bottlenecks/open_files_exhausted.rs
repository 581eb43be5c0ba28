//! `open-files-exhausted`: the server has as many files open as it may have, so it can accept no connection.

use crate::accounting::OpenFiles;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::requests::fails;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};
use tare_model::trial::ErrorKind;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::OpenFilesExhausted,
    title: "The server's limit on open files is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::OpenFiles],
    gross_is: GrossIs::LowerBound,
    holds,
    applies: |accounting| refuses(accounting).is_some(),
    describe,
    confirm: Confirm::Cannot {
        why: "a server plans its connections by the limit that it started with",
        instead: "start it with a higher limit (ulimit -n), and run again",
    },
    injections: &[],
    page: &PAGE,
};

/// Some servers keep one descriptor back, to accept and close with it.
const KEPT_BACK: f64 = 1.0;

/// What the generator sees of a connection that is not accepted, or is accepted and closed at once.
const UNSERVED: [ErrorKind; 3] = [ErrorKind::Connect, ErrorKind::Timeout, ErrorKind::Io];

/// Only where connections wait to be accepted: a server whose cache of files meets the limit can time out for reasons of its own.
fn holds(accounting: &Accounting) -> Option<Claim> {
    refuses(accounting)?;
    waiting(accounting)?;
    if fails(accounting) && accounting.asked.pool.answered.fails_mostly_by(&UNSERVED) {
        return Some(Claim::at(Rank::FailureExplained).beside_time());
    }
    Some(Claim::at(Rank::QueueFull))
}

/// The limit is met, and connections go without. Caches of files meet it too, and then nobody goes without.
fn refuses(accounting: &Accounting) -> Option<OpenFiles> {
    let files = accounting.asked.pool.around.open_files?;
    let unserved =
        waiting(accounting).is_some() || UNSERVED.iter().any(|kind| failed(accounting, *kind) >= 1.0);
    (files.open + KEPT_BACK >= files.limit && unserved).then_some(files)
}

/// Connections that waited to be accepted when a trial was over.
fn waiting(accounting: &Accounting) -> Option<f64> {
    accounting.asked.pool.around.waiting.filter(|count| *count >= 1.0)
}

fn failed(accounting: &Accounting, kind: ErrorKind) -> f64 {
    accounting.asked.pool.answered.errors.get(&kind).copied().unwrap_or(0.0)
}

fn describe(accounting: &Accounting) -> Draft {
    let files = accounting.asked.pool.around.open_files.unwrap_or(OpenFiles { open: 0.0, limit: 0.0 });
    let unserved: f64 = UNSERVED.iter().map(|kind| failed(accounting, *kind)).sum();
    let mut evidence = vec![
        number("open files of one server process, most at once", files.open, "count"),
        number("its limit on open files", files.limit, "count"),
        number("connections that failed or were not answered in time", unserved, "count"),
    ];
    evidence.extend(number_if(
        "connections that waited to be accepted, at the end of a trial",
        waiting(accounting),
        "count",
    ));
    evidence.extend(number_if("connections of the load", accounting.connections(), "count"));
    let queued = waiting(accounting)
        .map_or(String::new(), |count| format!(", and {count:.0} connections waited to be accepted"));
    Draft {
        summary: format!(
            "A process of the server had {:.0} of the {:.0} files open that it may have{queued}. It can accept no further \
             connection; for the generator {unserved:.0} failed or were not answered in time.",
            files.open, files.limit
        ),
        // The limit is read, and not the error of accept itself; without a queue, failures may have another reason.
        confidence: if waiting(accounting).is_some() { 0.95 } else { 0.5 },
        evidence,
        remedy:
            "start the server with a higher limit: `ulimit -n`, LimitNOFILE= of its unit, or its own setting \
                 (worker_rlimit_nofile of nginx)"
                .to_owned(),
        confirm: "with a higher limit every connection of the load is accepted".to_owned(),
        ..Draft::default()
    }
}

static PAGE: Page = Page {
    brief: "The server has as many files open as it may, and accepts no connection.",
    means: &[
        "Each connection is an open file of the process that accepted it. At the limit (RLIMIT_NOFILE) \
         accept() fails with EMFILE. The connection stays in the accept queue until another one is closed, or \
         the server closes it at once.",
        "Those that are served go on as before, so throughput can look normal. Those that are not served \
         time out. Gross is a lower bound.",
    ],
    evidence: &[
        "Open files of the server's process that is nearest to its limit, and that limit.",
        "Connections that still waited to be accepted when a trial was over.",
        "Connections that failed for the generator, or were not answered in time.",
    ],
    looks_the_same: &[
        "`listen-overflow`: the accept queue itself is full. There the server accepts too slowly, and its \
         open files are below the limit.",
        "`server-cpu-bound`: a full server is slow to accept. It is named when the server is full.",
        "A cache of open files that fills the limit: no connection fails or waits.",
        "A limit of the server's own (worker_connections of nginx, maxclients of redis): its open files are \
         below the limit. It is not recognised.",
    ],
    to_do: &[
        "Start the server with a higher limit: `ulimit -n 65536`, `LimitNOFILE=65536` of its unit, or its own \
         setting (`worker_rlimit_nofile` of nginx).",
        "Look for files that are never closed: the count grows without load, too.",
        "Use fewer connections.",
    ],
    to_confirm: &[
        "There is no intervention: a server plans by the limit that it started with. With a higher limit \
         every connection of the load is accepted.",
        "By hand: `grep 'open files' /proc/PID/limits`, `ls /proc/PID/fd | wc -l`, `ss -ltn` (Recv-Q: who \
         waits).",
    ],
    source: &[
        "Size of `/proc/PID/fd` (Linux 6.2), `/proc/PID/limits`, sock_diag. Linux: getrlimit(2), accept(2) \
         (EMFILE), proc(5).",
    ],
};
