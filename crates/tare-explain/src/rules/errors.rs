//! `errors`: what was measured is not the workload but its failure.

use super::{Draft, Rule, Scope, number, percent};
use crate::books::Books;
use crate::limit::ERROR_SHARE_MAX;
use tare_record::outcome::Cause;

pub(super) static RULE: Rule =
    Rule { cause: Cause::Errors, scope: Scope::Any, needs: &[], applies, describe };

fn applies(books: &Books) -> bool {
    books.asked.pool.errors() > 0.0 || books.failed_runs().0 > 0
}

fn describe(books: &Books) -> Draft {
    if books.command.is_some() { failed_runs(books) } else { failed_requests(books) }
}

fn failed_requests(books: &Books) -> Draft {
    let pool = &books.asked.pool;
    let share = pool.error_share();
    let kinds: Vec<String> =
        pool.errors.iter().map(|(kind, count)| format!("{count:.0} {}", kind.name())).collect();
    let mut evidence = vec![number("errors, share of all attempts", share, "share")];
    evidence.extend(pool.errors.iter().map(|(kind, count)| number(kind.name(), *count, "count")));
    Draft {
        summary: format!(
            "{:.2} % of the attempts failed ({}): this measures an error path, not the workload.",
            100.0 * share,
            kinds.join(", ")
        ),
        confidence: books.support(|window| Some(window.error_share()), ERROR_SHARE_MAX),
        evidence,
        remedy: "ask for the URL by hand and see what it answers; correct the path, or raise what the server accepts".to_owned(),
        confirm: "the same run on a path that answers 200 reports no errors".to_owned(),
        ..Draft::default()
    }
}

fn failed_runs(books: &Books) -> Draft {
    let (failed, runs) = books.failed_runs();
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
