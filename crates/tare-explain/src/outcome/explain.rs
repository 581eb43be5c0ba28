//! From a record to its outcome.

use super::gross::gross;
use super::verdict::{verdict, verdict_on_capacity};
use super::{accounting, against, ceiling, metrics, own_cost, own_count, requests, stages};
use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use crate::capacity::{command, net, schedule};
use crate::timeline::{rate_over_time, spikes};
use tare_model::outcome::{
    AgainstReference, Answers, CommandSummary, Conditions, Figures, Net, NetOrMissing, Outcome, OverTime,
    SCHEMA, TarePart,
};
use tare_model::plan::{CommandWorkload, Plan, Transport, Workload};
use tare_model::{Reading, Record};

/// Explains a record: gross, tare, net, bottleneck, findings, accounting and warnings.
///
/// `gross` and `net` are missing, with the reason, where they cannot be computed; without a gross figure above 0
/// `valid` is false.
pub fn explain(record: &Record) -> Outcome {
    let accounting = Accounting::of(record);
    let http = accounting.http.is_some();
    let stage = accounting.asked_level().and_then(|level| level.stage);
    let shows = |stage| schedule::shows_capacity(&accounting.asked.pool, accounting.asked_trials(), stage);
    let is_capacity = stage.is_some_and(shows);
    let (verdict, gross_is) =
        if is_capacity { verdict_on_capacity(&accounting) } else { verdict(&accounting) };
    let (stages, followed) = stages::of(&accounting);
    Outcome {
        verdict,
        figures: Figures {
            gross: gross(&accounting),
            ceiling: ceiling::share(&accounting),
            gross_is,
            stopping: accounting.stopping,
            net: net(&accounting),
            tare: tare(&accounting),
            metrics: metrics::metrics(&accounting),
        },
        answers: Answers {
            requests: http.then(|| requests::requests(&accounting)),
            // Of a stage that was not followed the waits grow for as long as it lasts.
            latency_ns: (http && !is_capacity).then(|| requests::latency(&accounting)),
            stages,
            followed,
            own_count: own_count::own_count(&accounting),
            commands: accounting
                .command
                .map(|command| commands(record, command, &accounting.windows))
                .unwrap_or_default(),
            results: super::tool::of_runs(&record.trials, commands_of(&record.plan)),
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

/// The commands of a plan that has some.
fn commands_of(plan: &Plan) -> &[String] {
    match &plan.workload {
        Workload::Command(commands) => &commands.commands,
        Workload::Http(_) => &[],
    }
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
