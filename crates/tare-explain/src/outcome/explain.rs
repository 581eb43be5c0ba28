//! From a record to its outcome.

use super::{accounting, against, confirmation, generator_report, metrics, own_cost, requests, warnings};
use crate::accounting::{Closed, NO_VERDICT};
use crate::bottlenecks;
use crate::bottlenecks::signs::requests::{fails, missed_schedule};
use crate::capacity::levels::Accounting;
use crate::capacity::{command, estimate, net, runs};
use crate::timeline::{rate_over_time, spikes};
use tare_model::outcome::{
    AgainstReference, Answers, CommandSummary, Conditions, Figures, Gross, GrossIs, Net, NetOrMissing,
    Outcome, OverTime, SCHEMA, TarePart, Verdict,
};
use tare_model::plan::{CommandWorkload, Transport};
use tare_model::{Missing, Reading, Record};

/// Explains a record: gross, tare, net, bottleneck, findings, accounting and warnings.
///
/// `gross` and `net` are missing, with the reason, where they cannot be computed; without a gross figure above 0
/// `valid` is false.
pub fn explain(record: &Record) -> Outcome {
    let accounting = Accounting::of(record);
    let open = accounting.asked.pool.residuals().0.is_some_and(|residual| residual > NO_VERDICT);
    let bottleneck = bottlenecks::decide(&accounting, open);
    // Errors show in the requests, whatever the time accounting says.
    let failed = fails(&accounting);
    let judgement = bottlenecks::judge(&accounting, bottleneck.cause);
    let warnings = warnings::warnings(&accounting, bottleneck, &judgement.unjudged);
    let http = accounting.http.is_some();
    let gross = gross(&accounting);
    let own = judgement.findings.iter().find(|finding| finding.cause == bottleneck.cause);
    let bottleneck_confidence = own.map(|finding| finding.confidence);
    Outcome {
        verdict: Verdict {
            valid: (gross.value().is_some_and(|value| value > 0.0) || is_uncounted(&accounting))
                && !open
                && accounting.asked.pool.unclaimed_share().is_none()
                && !failed
                && generator_report::other_time(&accounting).is_none()
                && !missed_schedule(&accounting.asked.pool),
            warnings,
            bottleneck: bottleneck.cause,
            bottleneck_confidence,
            findings: judgement.findings,
            confirmation: record.intervention.as_ref().map(confirmation::confirmation),
        },
        figures: Figures {
            gross,
            gross_is: if http { bottleneck.gross_is } else { GrossIs::Capacity },
            stopping: accounting.stopping,
            net: net(&accounting),
            tare: tare(&accounting),
            metrics: metrics::metrics(&accounting),
        },
        answers: Answers {
            requests: http.then(|| requests::requests(&accounting)),
            latency_ns: http.then(|| requests::latency(&accounting)),
            commands: accounting
                .command
                .map(|command| commands(record, command, &accounting.windows))
                .unwrap_or_default(),
        },
        over_time: OverTime {
            spikes: match http {
                true => spikes::spikes(&accounting),
                false => Reading::NotApplicable { not_applicable: "a command has no latency".to_owned() },
            },
            timeline: rate_over_time::timeline(&accounting),
        },
        conditions: Conditions {
            tried_layouts: accounting.http.map(|http| http.tried_layouts.clone()).unwrap_or_default(),
            own_cost: Some(own_cost::own_cost(&accounting)),
            machine: record.machine.clone(),
        },
        schema: SCHEMA,
        workload: if http { "http" } else { "command" }.to_owned(),
        accounting: accounting::accounting(&accounting),
        trials: requests::trials(&accounting),
    }
}

/// Whether a server that is not asked over HTTP was loaded, and nobody counted what it did: its CPU time and time accounting stand
/// for themselves.
fn is_uncounted(accounting: &Accounting) -> bool {
    let any_protocol = accounting.http.is_some_and(|server| server.url.is_none());
    any_protocol && !accounting.asked.trials.is_empty() && accounting.asked.pool.answered.requests.is_none()
}

fn gross(accounting: &Accounting) -> Gross {
    let figure: fn(&Closed) -> Option<f64> = match accounting.http {
        Some(_) => Closed::rate_hz,
        None => runs::mean_s,
    };
    let unit = accounting.record.plan.workload.unit();
    let why = match accounting.http {
        _ if accounting.asked.trials.is_empty() => "no trial was finished",
        Some(server) if server.url.is_none() => "nobody counted the operations",
        _ => "the requests could not be counted",
    };
    estimate::estimate(&accounting.asked, unit, figure)
        .map(|estimate| estimate::stopped(estimate, accounting.stopping.as_ref()))
        .map_or_else(|| Gross::Missing { reason: Missing::new(why), unit: unit.to_owned() }, Gross::Measured)
}

fn net(accounting: &Accounting) -> NetOrMissing {
    let Some(http) = accounting.http else { return command::net(&accounting.net_estimate) };
    match &accounting.net_estimate {
        Ok(net_estimate) => NetOrMissing::Net(Net {
            value: net_estimate.net,
            unit: accounting.record.plan.workload.unit().to_owned(),
            ci95: net_estimate.net_ci95.map(|interval| [interval.lo, interval.hi]),
            transport: match http.transport {
                Transport::Loopback => "loopback",
                Transport::Namespace => "namespace",
                Transport::Remote => "remote",
            }
            .to_owned(),
            cpus: net_estimate.entitled,
            ref_clock_hz: net_estimate.reference_hz,
            against_reference: net_estimate.against.as_ref().map(against),
        }),
        Err(missing) => NetOrMissing::Missing(missing.clone()),
    }
}

fn against(against: &net::Against) -> AgainstReference {
    AgainstReference {
        ratio: against.ratio,
        ci95: against.ratio_ci95.map(|interval| [interval.lo, interval.hi]),
        cpu_ns_per_request: against.cost_s * 1e9,
        interference_corrected: against.corrected,
        level: against.level,
    }
}

fn tare(accounting: &Accounting) -> Vec<TarePart> {
    let Ok(net_estimate) = &accounting.net_estimate else { return Vec::new() };
    let part = |(cause, ln_share, ci95): (_, f64, Option<tare_stats::Interval>)| TarePart {
        cause,
        ln_share,
        ci95: ci95.map(|interval| [interval.lo, interval.hi]),
    };
    net::by_size(&net_estimate.parts).into_iter().map(part).collect()
}

/// The commands, each with what it is against the fastest.
fn commands(record: &Record, commands: &CommandWorkload, windows: &[Closed]) -> Vec<CommandSummary> {
    let mut summaries = command::summaries(record, commands, windows);
    for summary in &mut summaries {
        summary.start_up.clone_from(&commands.start_up);
    }
    against::fill_in(record, commands, &mut summaries);
    summaries
}
