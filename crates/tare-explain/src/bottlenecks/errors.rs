//! `errors`: what was measured is not the workload but its failure.

use crate::accounting::Closed;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::requests::fails;
use crate::capacity::levels::Accounting;
use crate::capacity::schedule::ERROR_SHARE_MAX;
use tare_model::outcome::{Cause, GrossIs};
use tare_model::trial::ErrorKind;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::Errors,
    title: "Errors are being measured, not the server",
    scope: Scope::Any,
    needs: &[],
    gross_is: GrossIs::Capacity,
    holds,
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "errors are not the workload",
        instead: "run again on a path that answers 200",
    },
    injections: &["error-page"],
    page: &PAGE,
};

/// Failed runs of a program do not decide: they are in a record only where they were asked for.
fn holds(accounting: &Accounting) -> Option<Claim> {
    fails(accounting).then(|| Claim::at(Rank::Failure).beside_time())
}

fn applies(accounting: &Accounting) -> bool {
    accounting.asked.pool.answered.failed() > 0.0 || accounting.failed_runs().0 > 0
}

fn describe(accounting: &Accounting) -> Draft {
    if accounting.command.is_some() { failed_runs(accounting) } else { failed_requests(accounting) }
}

fn failed_requests(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let share = pool.answered.error_share();
    let kinds: Vec<String> =
        pool.answered.errors.iter().map(|(kind, count)| format!("{count:.0} {}", kind.name())).collect();
    let mut evidence = vec![number("errors, share of all attempts", share, "share")];
    evidence.extend(pool.answered.errors.iter().map(|(kind, count)| number(kind.name(), *count, "count")));
    let failure = Failure::of(pool);
    Draft {
        summary: format!(
            "{:.2} % of the attempts failed ({}): {}.",
            100.0 * share,
            kinds.join(", "),
            failure.meaning
        ),
        confidence: accounting.support(|window| Some(window.answered.error_share()), ERROR_SHARE_MAX),
        evidence,
        remedy: failure.remedy.to_owned(),
        confirm: failure.confirm.to_owned(),
        ..Draft::default()
    }
}

/// What most of the errors do to the figures, and what is to be done.
struct Failure {
    meaning: &'static str,
    remedy: &'static str,
    confirm: &'static str,
}

/// There was an answer, and it was not the one that was meant.
const ANSWERED: [ErrorKind; 3] = [ErrorKind::Status, ErrorKind::Malformed, ErrorKind::Unexpected];
/// There was none, as somebody ended what it was to come on.
const ENDED: [ErrorKind; 6] = [
    ErrorKind::Connect,
    ErrorKind::Io,
    ErrorKind::Tls,
    ErrorKind::StreamReset,
    ErrorKind::StreamRefused,
    ErrorKind::GoAway,
];

impl Failure {
    fn of(pool: &Closed) -> Failure {
        if pool.answered.fails_mostly_by(&[ErrorKind::Timeout]) {
            return Failure {
                meaning: "what was not answered in time is in no latency, and so much of the load was not served",
                remedy: "see what the server did while they waited (tare why, its log); allow more time (--timeout), or ask for less (--rate, -c)",
                confirm: "the same run at half the load, or with more time, reports no timeouts",
            };
        }
        if pool.answered.fails_mostly_by(&ENDED) {
            return Failure {
                meaning: "connections were refused or broke, and so much of the load was not served",
                remedy: "see that the server stays up and takes so many connections (its log, its limits of connections and open files); if it \
                         closes a connection after each answer and does not announce it (Connection: close), use --no-keepalive",
                confirm: "the same run with fewer connections (-c) reports no errors",
            };
        }
        if pool.answered.fails_mostly_by(&ANSWERED) {
            return Failure {
                meaning: "this measures an error path, not the workload",
                remedy: "ask for the URL by hand and see what it answers; correct the path, or raise what the server accepts",
                confirm: "the same run on a path that answers 200 reports no errors",
            };
        }
        Failure {
            meaning: "so much of the load was not served",
            remedy: "take the kinds of error one by one, the commonest first",
            confirm: "the same run reports no errors",
        }
    }
}

fn failed_runs(accounting: &Accounting) -> Draft {
    let (failed, runs) = accounting.failed_runs();
    let share = failed as f64 / runs.max(1) as f64;
    Draft {
        summary: format!(
            "{failed} of {runs} runs ({}) ended with an error, and were counted as was asked.",
            percent(share)
        ),
        confidence: 1.0,
        evidence: vec![number("failed runs", failed as f64, "count"), number("runs", runs as f64, "count")],
        remedy: "run the command by hand and read its error output".to_owned(),
        confirm: "the command exits with 0".to_owned(),
        ..Draft::default()
    }
}

static PAGE: Page = Page {
    brief: "So much failed that the figure is not one of the workload.",
    means: &[
        "More than 0.1 % of the attempts failed. An error page can cost less or more than the answer, and \
         what was not answered in time is in no latency. The result is not valid.",
        "Fewer errors are a finding, and the figure stands.",
    ],
    evidence: &[
        "Errors as a share of all attempts, and by kind: status, timeout, connect, read and write, \
         malformed, unexpected.",
        "For a program: failed runs and all runs.",
    ],
    looks_the_same: &[
        "`ports-exhausted`: the client had no port left.",
        "`network-ceiling`: most failures are timeouts, and the time went to lost segments.",
        "`listen-overflow`: few connects fail, and the accept queue was full.",
    ],
    to_do: &[
        "Ask once by hand and read the answer: `curl -i URL`; for a program, run it and read its error \
         output.",
        "Timeouts: allow more time (`--timeout 10s`), or load less (`--rate`, `-c`). `tare why` shows what \
         the server did while requests waited.",
        "Connections that are refused or reset: look at the server's log and at its limits (`ulimit -n`, \
         most connections).",
        "An answer other than 2xx that is meant: say so with `--expect-status`.",
    ],
    to_confirm: &[
        "There is no intervention: errors are not the workload. The same run on a path that answers 200, or \
         at half the load, reports no errors.",
    ],
    source: &[
        "The generator's own count by kind; exit codes of a program's runs. RFC 9110 section 15 (status \
         codes).",
    ],
};
