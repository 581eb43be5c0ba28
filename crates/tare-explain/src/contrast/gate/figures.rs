//! What a gate takes from a record: every figure with its interval from the trials, and what makes two runs comparable.

use crate::accounting::Closed;
use crate::capacity::estimate;
use crate::capacity::levels::Accounting;
use crate::capacity::summary;
use std::collections::BTreeMap;
use tare_model::figure::{Figure, Source};
use tare_model::gate::{FigureValue, Run, SCHEMA};
use tare_model::machine::MachineFacts;
use tare_model::outcome::{AgainstReference, Cause, GrossIs, NetOrMissing, Outcome};
use tare_model::plan::{Generator, HttpWorkload, Level, Purpose, Sut, Transport};
use tare_model::trial::HttpSample;
use tare_model::{Missing, Reading, Record};

/// Histograms distinguish latencies to three digits: no interval of theirs is narrower.
const RESOLUTION_LN: f64 = 1e-3;

/// The figures of a record, under the name that its user gives it.
///
/// # Errors
/// It measures a program that ends, or nothing.
pub fn run(record: &Record, label: &str) -> Result<Run, Missing> {
    run_of((&Accounting::of(record), &crate::outcome::explain::explain(record)), label)
}

/// The same of a record that is explained already.
pub(in crate::contrast) fn run_of(
    (accounting, outcome): (&Accounting, &Outcome),
    label: &str,
) -> Result<Run, Missing> {
    let record = accounting.record;
    let http = accounting.http.ok_or_else(|| {
        Missing::with_remedy(
            "it measures a program that ends, not a server",
            "'tare why A.tare B.tare' accounts for the difference of two programs",
        )
    })?;
    Ok(Run {
        schema: SCHEMA,
        label: label.to_owned(),
        time_unix_s: record.plan.started_unix_s,
        length_s: Some(accounting.length_s()),
        plan: plan(record, http, accounting),
        machine: machine(&record.machine),
        kernel: record.machine.kernel.clone(),
        valid: outcome.verdict.valid,
        figures: Figure::of_servers()
            .map(|figure| (figure, figure_of(figure, accounting, outcome).into()))
            .collect(),
        against_reference: against_reference(accounting, outcome),
    })
}

fn figure_of(figure: Figure, accounting: &Accounting, outcome: &Outcome) -> Result<FigureValue, Missing> {
    match figure.describe().source {
        Source::Rate => throughput(accounting, outcome),
        Source::Net => match &outcome.figures.net {
            NetOrMissing::Net(net) => measured(net.value, of_trials(accounting), accounting),
            NetOrMissing::Missing(missing) => Err(missing.clone()),
        },
        Source::CpuPerRequest => {
            let cost_s = |window: &Closed| window.per_request(window.sut.as_ref()?.run_s);
            let cost = estimate::estimate(&accounting.asked, "s", cost_s)
                .ok_or_else(|| Missing::new("the server's threads cannot be seen from here"))?;
            measured(cost.value, cost.ci95, accounting)
        }
        Source::Latency(quantile) => latency(accounting, quantile),
        Source::Time | Source::CpuTime => Err(Missing::new("a server's record has no time of a command")),
    }
}

/// What the trials say of net: how far runs lie apart is added where two are held against each other.
fn of_trials(accounting: &Accounting) -> Option<[f64; 2]> {
    let interval = accounting.net_estimate.as_ref().ok()?.net_of_trials?;
    Some([interval.lo, interval.hi])
}

fn throughput(accounting: &Accounting, outcome: &Outcome) -> Result<FigureValue, Missing> {
    match outcome.figures.gross_is {
        GrossIs::Capacity => {}
        GrossIs::LowerBound => {
            let (why, remedy) = match outcome.verdict.bottleneck {
                Cause::LoadGeneratorBound => (
                    "the generator gave out first".to_owned(),
                    "go by net, or give the generator more CPUs (--load-cpus)",
                ),
                Cause::Unknown => ("the bottleneck has no name".to_owned(), "go by net or by latencies"),
                cause => (format!("the bottleneck is {}", cause.id()), "go by net or by latencies"),
            };
            let why = format!("{why}, so that the server's rate is at least this");
            return Err(Missing::with_remedy(why, remedy));
        }
        GrossIs::Offered => {
            return Err(Missing::with_remedy(
                "a fixed rate was asked for, which says nothing of what the server can do",
                "go by net or by latencies",
            ));
        }
    }
    let missing = || Missing::new("the requests could not be counted");
    measured(outcome.figures.gross.value().ok_or_else(missing)?, outcome.figures.gross.ci95(), accounting)
}

/// A figure whose interval is from the trials of the asked load.
fn measured(value: f64, ci95: Option<[f64; 2]>, accounting: &Accounting) -> Result<FigureValue, Missing> {
    if !(value > 0.0 && value.is_finite()) {
        return Err(Missing::new("it is not above 0"));
    }
    let half_ln = ci95.map(|[low, high]| 0.5 * (high / low).ln()).filter(|half| half.is_finite());
    Ok(FigureValue { value, half_ln, trials: accounting.asked.pool.span.trials })
}

/// A percentile of each trial's latencies; where one is missing the others would be of the faster trials alone.
fn latency(accounting: &Accounting, quantile: f64) -> Result<FigureValue, Missing> {
    let each: Option<Vec<f64>> = accounting.samples().map(|sample| quantile_ln(sample, quantile)).collect();
    let each = each.ok_or_else(|| {
        Missing::with_remedy(
            "a trial has too few answers for it, or its latencies are not known",
            "give longer trials (-d)",
        )
    })?;
    from_logarithms(&each, RESOLUTION_LN).ok_or_else(|| Missing::new("no trial was finished"))
}

/// In seconds, as a logarithm.
fn quantile_ln(sample: &HttpSample, quantile: f64) -> Option<f64> {
    summary::quantile_s(sample, quantile).map(f64::ln)
}

/// Of values of trials: their geometric mean, with an interval that is no narrower than this.
fn from_logarithms(each: &[f64], half_min: f64) -> Option<FigureValue> {
    let mean = tare_stats::mean_interval(each)?;
    let half_ln = mean.ci95.map(|interval| (0.5 * (interval.hi - interval.lo)).max(half_min));
    Some(FigureValue { value: mean.value.exp(), half_ln, trials: each.len() as u32 })
}

fn against_reference(accounting: &Accounting, outcome: &Outcome) -> BTreeMap<Figure, FigureValue> {
    let NetOrMissing::Net(net) = &outcome.figures.net else { return BTreeMap::new() };
    let Some(AgainstReference { ratio, ci95, .. }) = net.against_reference else { return BTreeMap::new() };
    let net = measured(ratio, ci95, accounting).ok().map(|net| (Figure::Net, net));
    let cost = from_logarithms(&costs_ln(accounting), 0.0).map(|cost| (Figure::CpuPerRequest, cost));
    net.into_iter().chain(cost).collect()
}

/// What a request of the program cost over what one of the reference did, in each window that both were loaded in.
fn costs_ln(accounting: &Accounting) -> Vec<f64> {
    let costs_s = |purpose| accounting.interleaved_costs_s(purpose).into_iter();
    let pairs = costs_s(Purpose::Saturating).zip(costs_s(Purpose::Reference));
    pairs.filter_map(|(program, reference)| Some((program? / reference?).ln())).collect()
}

/// A stage in words.
fn stage(level: &Level) -> Option<String> {
    let stage = level.stage?;
    Some(if stage.is_ramp() { format!("{}-{}", stage.from_hz, stage.to_hz) } else { stage.to_hz.to_string() })
}

/// What was asked for, so that the same words are the same plan.
fn plan(record: &Record, http: &HttpWorkload, accounting: &Accounting) -> String {
    let load = accounting.asked_level().map_or_else(
        || "no load".to_owned(),
        |level| {
            let stages: Vec<String> = http.levels.iter().filter_map(stage).collect();
            let pace = match level.rate_hz {
                Some(_) if !stages.is_empty() => format!(" at {} req/s", stages.join(", ")),
                rate => rate.map(|hz| format!(" at {hz} req/s")).unwrap_or_default(),
            };
            let depth =
                if level.pipeline > 1 { format!(", {} in flight", level.pipeline) } else { String::new() };
            format!("{} connections{depth}{pace}", level.connections)
        },
    );
    let generator = match &http.generator {
        Generator::Own { .. } => String::new(),
        Generator::Started { command } => format!(" of {command}"),
        Generator::Attached { .. } => " of a running generator".to_owned(),
    };
    let transport = match http.transport {
        Transport::Loopback => "",
        Transport::Namespace => ", into another network namespace",
        Transport::Remote => ", to another host",
    };
    let cpus = |list: &[u32]| match list {
        [] => "any CPU".to_owned(),
        list => format!("CPU {}", list.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
    };
    format!(
        "{}, {load}{generator}{transport}, server on {}, generator on {}",
        url(http),
        cpus(&record.plan.sut_cpus),
        cpus(&record.plan.load_cpus)
    )
}

/// The URL, where there is one; of a server that tare starts without its port, which may be another one each time.
fn url(http: &HttpWorkload) -> String {
    let Some(given) = &http.url else { return "no URL".to_owned() };
    let whole = || given.clone();
    if !matches!(http.sut, Sut::Embedded | Sut::Started { .. }) {
        return whole();
    }
    let Some((scheme, rest)) = given.split_once("://") else { return whole() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let port = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, digits)| port(digits)).map_or(host, |(name, _)| name);
    format!("{scheme}://{host}{path}")
}

/// Processor and CPUs.
pub(super) fn machine(facts: &MachineFacts) -> String {
    let model = match &facts.cpu_model {
        Reading::Measured(model) => model.as_str(),
        _ => "a processor of unknown kind",
    };
    format!("{model}, {} CPUs", facts.cpus.len())
}
