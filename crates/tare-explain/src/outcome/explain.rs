//! From a record to its outcome.

use super::{confirmation, ledger, own_cost, requests, warnings};
use crate::accounting::close::{residual, window};
use crate::bottlenecks;
use crate::bottlenecks::limit::{self, Limit};
use crate::capacity::books::Books;
use crate::capacity::{command, summary, weigh};
use crate::timeline::{course, spikes};
use tare_model::outcome::{
    AgainstReference, Cause, Gross, GrossIs, Net, NetOrMissing, Outcome, SCHEMA, TarePart,
};
use tare_model::plan::Transport;
use tare_model::{Missing, Reading, Record};

/// Explains a record: gross, tare, net, limit, findings, ledgers and warnings.
///
/// `gross` and `net` are missing, with the reason, where they cannot be computed; without a gross figure above 0
/// `valid` is false.
pub fn explain(record: &Record) -> Outcome {
    let books = Books::keep(record);
    let open = books.asked.pool.residuals().0.is_some_and(|residual| residual > residual::NO_VERDICT);
    let mut limit = limit::decide(&books);
    // Errors show in the requests, whatever the books of time say.
    let failed = limit::fails(&books);
    // And this in the connections, beside two sides that have more time to spare than the books miss.
    let stands = failed || limit.cause == Cause::NetworkCeiling;
    if open && !stands {
        limit = Limit { cause: Cause::Unknown, gross_is: limit.gross_is };
    }
    let judgement = bottlenecks::judge(&books, limit.cause);
    let warnings = warnings::warnings(&books, limit, &judgement.unjudged);
    let http = books.http.is_some();
    let gross = gross(&books);
    Outcome {
        schema: SCHEMA,
        workload: if http { "http" } else { "command" }.to_owned(),
        valid: gross.value().is_some_and(|value| value > 0.0)
            && !open
            && !failed
            && !limit::missed_schedule(&books.asked.pool),
        warnings,
        limit: limit.cause,
        gross,
        gross_is: if http { limit.gross_is } else { GrossIs::Capacity },
        stopping: books.stopping,
        net: net(&books),
        tare: tare(&books),
        findings: judgement.findings,
        confirmation: record.intervention.as_ref().map(confirmation::confirmation),
        ledger: ledger::ledger(&books),
        requests: http.then(|| requests::requests(&books)),
        latency_ns: http.then(|| requests::latency(&books)),
        commands: books
            .command
            .map(|command| command::summaries(record, command, &books.windows))
            .unwrap_or_default(),
        spikes: match http {
            true => spikes::spikes(&books),
            false => Reading::NotApplicable { not_applicable: "a command has no latency".to_owned() },
        },
        course: course::course(&books),
        tried_layouts: books.http.map(|http| http.tried_layouts.clone()).unwrap_or_default(),
        own_cost: Some(own_cost::own_cost(&books)),
        machine: record.machine.clone(),
        trials: requests::trials(&books),
    }
}

fn gross(books: &Books) -> Gross {
    let (unit, figure): (&str, fn(&window::Window) -> Option<f64>) = match books.http {
        Some(_) => ("req/s", window::Window::rate_hz),
        None => ("s", command::mean_s),
    };
    let why = if books.asked.trials.is_empty() {
        "no trial was finished"
    } else {
        "the requests could not be counted"
    };
    summary::estimate(&books.asked, unit, figure)
        .map(|estimate| summary::stopped(estimate, books.stopping.as_ref()))
        .map_or_else(|| Gross::Missing { reason: Missing::new(why), unit: unit.to_owned() }, Gross::Measured)
}

fn net(books: &Books) -> NetOrMissing {
    let Some(http) = books.http else { return command::net(&books.weighing) };
    match &books.weighing {
        Ok(weighing) => NetOrMissing::Net(Net {
            value: weighing.net,
            unit: "req/s".to_owned(),
            ci95: weighing.net_ci95.map(|interval| [interval.lo, interval.hi]),
            transport: match http.transport {
                Transport::Loopback => "loopback",
                Transport::Namespace => "namespace",
                Transport::Remote => "remote",
            }
            .to_owned(),
            cpus: weighing.allotted,
            ref_clock_hz: weighing.reference_hz,
            against_reference: weighing.against.as_ref().map(against),
        }),
        Err(missing) => NetOrMissing::Missing(missing.clone()),
    }
}

fn against(against: &weigh::Against) -> AgainstReference {
    AgainstReference {
        ratio: against.ratio,
        ci95: against.ratio_ci95.map(|interval| [interval.lo, interval.hi]),
        cpu_ns_per_request: against.cost_s * 1e9,
        weather_taken_out: against.calm,
    }
}

fn tare(books: &Books) -> Vec<TarePart> {
    let Ok(weighing) = &books.weighing else { return Vec::new() };
    let part = |(cause, ln_share, ci95): (_, f64, Option<tare_stats::Interval>)| TarePart {
        cause,
        ln_share,
        ci95: ci95.map(|interval| [interval.lo, interval.hi]),
    };
    weigh::by_size(&weighing.parts).into_iter().map(part).collect()
}
