//! Everything a reader must know before quoting a number: typed, each with the next thing to try.

use crate::accounting::{CHECKED_S_MIN, NO_VERDICT, OPEN};
use crate::bottlenecks::Verdict;
use crate::bottlenecks::signs::requests::fails;
use crate::bottlenecks::too_noisy::NOISE_LN;
use crate::capacity::core_latency::{self, Moved};
use crate::capacity::levels::Accounting;
use crate::capacity::schedule;
use crate::capacity::service_demand::Basis;
use crate::outcome::ceiling::{self, Above, AboveLink};
use crate::outcome::compiles::{Compiles, compiles};
use crate::outcome::failures::{self, Mostly, NO_REQUESTS_HINT, errors_text, no_requests_text};
use crate::outcome::generator_report::{self, OtherTime};
use crate::outcome::own_count::{self, OtherCount};
use crate::outcome::patterns;
use crate::outcome::redirects::OnlyRedirects;
use crate::outcome::requests::error_reasons;
use crate::outcome::sampling::{FewSamples, few_samples};
use crate::timeline::trend;
use tare_model::Missing;
use tare_model::outcome::{Cause, GrossIs, Stopped, Warning};
use tare_model::plan::Workload;
use tare_stats::SERIES_MIN;

/// The warning of an open loop that did not get what it was to send.
pub(crate) const SCHEDULE_MISSED: &str = "schedule-missed";

/// Fewer answers than this say little about a cost or a tail.
const REQUESTS_MIN: f64 = 1000.0;

/// A shorter window is read with the error of the kernel's ticks and quota periods.
const WINDOW_S_MIN: f64 = 1.0;

/// Of a shorter load before the first trial nobody expects a level.
const WARM_UP_S_MIN: f64 = 5.0;

/// Lines of a generator's standard error that are shown.
const COMPLAINTS_SHOWN: usize = 3;

/// Observers that take more than this from the program's CPUs change what they observe. (The clock probe's short visits
/// take less.)
const OBSERVERS_CPUS_MAX: f64 = 0.01;

/// What can be wrong with a result.
enum Doubt<'a> {
    NoTrials,
    OneTrial,
    TooFewTrials {
        trials: usize,
    },
    AccountingOpen {
        name: &'a str,
        ratio: f64,
    },
    Unclaimed {
        share: f64,
        cpus: f64,
    },
    SutUnseen(Missing),
    RequestsUnknown,
    /// The same of a server that is asked something else than HTTP: nobody promised a count.
    OperationsUnknown,
    NoRequests(Option<Mostly>),
    OnlyRedirects(OnlyRedirects),
    Errors {
        share: f64,
        mostly: Option<Mostly>,
    },
    RunsFailed {
        failed: usize,
        runs: usize,
    },
    GeneratorSaturated,
    ScheduleMissed {
        share: f64,
    },
    AboveLink(AboveLink),
    AboveCeiling(Above),
    ReportOfOtherTime(OtherTime),
    ReportOfOtherCount(OtherCount),
    GeneratorComplains(&'a str),
    ClockMissing(Missing),
    CostNotSaturated {
        fitted: bool,
    },
    NetMissing(&'a Missing),
    NetOfThisSession,
    NotSteady {
        ln: f64,
    },
    NotWarmedUp {
        seconds: f64,
    },
    TooNoisy {
        half_ln: f64,
    },
    CpusMoved(Moved),
    FewRequests {
        count: f64,
    },
    ShortWindow {
        seconds: f64,
    },
    RunsUnchecked {
        seconds: f64,
    },
    ObserversOnSutCpus {
        cpus: f64,
    },
    FewSamples(FewSamples),
    Compiles(Compiles),
    CouldNotJudge {
        causes: String,
        missing: &'a Missing,
    },
}

impl Doubt<'_> {
    fn warning(self) -> Warning {
        Warning { id: self.id().to_owned(), text: self.text(), hint: self.hint() }
    }

    fn id(&self) -> &'static str {
        match self {
            Doubt::NoTrials => "no-trials",
            Doubt::OneTrial => "one-trial",
            Doubt::TooFewTrials { .. } => "too-few-trials",
            Doubt::AccountingOpen { .. } => "accounting-open",
            Doubt::Unclaimed { .. } => "cpu-time-unclaimed",
            Doubt::SutUnseen(_) => "sut-unseen",
            Doubt::RequestsUnknown => "requests-unknown",
            Doubt::OperationsUnknown => "operations-unknown",
            Doubt::NoRequests(_) => "no-requests",
            Doubt::OnlyRedirects(only) => only.id(),
            Doubt::Errors { .. } | Doubt::RunsFailed { .. } => "errors",
            Doubt::GeneratorSaturated => "generator-saturated",
            Doubt::ScheduleMissed { .. } => SCHEDULE_MISSED,
            Doubt::AboveLink(_) => "above-link-speed",
            Doubt::AboveCeiling(_) => "above-ceiling",
            Doubt::ReportOfOtherTime(_) => "report-of-other-time",
            Doubt::ReportOfOtherCount(_) => "report-of-other-count",
            Doubt::GeneratorComplains(_) => "generator-complains",
            Doubt::ClockMissing(_) => "clock-missing",
            Doubt::CostNotSaturated { .. } => "cost-not-saturated",
            Doubt::NetMissing(_) => "net-missing",
            Doubt::NetOfThisSession => "net-of-this-session",
            Doubt::NotSteady { .. } => "not-steady",
            Doubt::NotWarmedUp { .. } => "not-warmed-up",
            Doubt::TooNoisy { .. } => "too-noisy",
            Doubt::CpusMoved(_) => "cpus-moved",
            Doubt::FewRequests { .. } => "low-requests",
            Doubt::ShortWindow { .. } => "short-window",
            Doubt::RunsUnchecked { .. } => "accounting-unchecked",
            Doubt::ObserversOnSutCpus { .. } => "observers-on-sut-cpus",
            Doubt::FewSamples(_) => "few-samples",
            Doubt::Compiles(_) => "compiles-first",
            Doubt::CouldNotJudge { .. } => "could-not-judge",
        }
    }

    fn text(&self) -> String {
        match self {
            Doubt::NoTrials => "no trial was finished".to_owned(),
            Doubt::OneTrial => {
                "one trial gives no interval: how far the next would be off is not known".to_owned()
            }
            Doubt::TooFewTrials { trials } => format!(
                "{trials} trials were taken, and {SERIES_MIN} are the fewest that show how well a figure is known"
            ),
            Doubt::AccountingOpen { name, ratio } => {
                format!("the accounting does not close: {:.1} % of the time of {name} is unexplained", 100.0 * ratio)
            }
            Doubt::Unclaimed { share, cpus } => format!(
                "{cpus:.2} CPUs were used by processes that ended between two samples and that nobody claims, {:.0} % of what the server or \
                 program is known to have used: they may be its own, and then a request costs more than is shown",
                100.0 * share
            ),
            Doubt::SutUnseen(missing) => missing.why.clone(),
            Doubt::RequestsUnknown => {
                "the requests could not be counted, so there is no gross figure".to_owned()
            }
            Doubt::OperationsUnknown => {
                "no result of the load generator could be read: CPU time and time accounting alone".to_owned()
            }
            Doubt::NoRequests(mostly) => no_requests_text(mostly.as_ref()),
            Doubt::OnlyRedirects(redirects) => redirects.text(),
            Doubt::Errors { share, mostly } => errors_text(*share, mostly.as_ref()),
            Doubt::RunsFailed { failed, runs } => format!("{failed} of {runs} runs ended with an error"),
            Doubt::GeneratorSaturated => {
                "the load generator gave out before the server: gross is a lower bound".to_owned()
            }
            Doubt::ScheduleMissed { share } => {
                format!("only {:.1} % of the scheduled requests were answered", 100.0 * share)
            }
            Doubt::AboveLink(AboveLink { link, bits_per_s }) => format!(
                "{:.2} Gbit/s are more than the network card {} carries ({:.2} Gbit/s): the count or the time is wrong",
                bits_per_s / 1e9,
                link.interface,
                link.bits_per_s as f64 / 1e9
            ),
            Doubt::AboveCeiling(Above { name, share }) => format!(
                "the figure is {share:.2} times the ceiling {name}: that was measured under worse conditions, or the server saves a part of \
                 the work that the ceiling holds (a copy, a system call)"
            ),
            Doubt::ReportOfOtherTime(OtherTime { said_s, watched_s }) => format!(
                "the generator reports on {said_s:.2} s, and was watched for {watched_s:.2} s: its counts are not those of the window"
            ),
            Doubt::ReportOfOtherCount(OtherCount { answers, bytes, segments, bytes_received }) => format!(
                "the generator reports {answers:.0} answers of {bytes:.0} bytes, and its connections received {segments:.0} segments of \
                 {bytes_received:.0} bytes: its counts are not those of the window"
            ),
            Doubt::GeneratorComplains(text) => {
                let first: Vec<&str> = text.lines().take(COMPLAINTS_SHOWN).collect();
                let more = text.lines().count() - first.len();
                let more = if more > 0 { format!(" · {more} more lines") } else { String::new() };
                format!("the generator wrote to standard error: {}{more}", first.join(" · "))
            }
            Doubt::ClockMissing(missing) => format!(
                "the effective clock is not known ({}): costs are in seconds, and a slow clock would not show",
                missing.why
            ),
            Doubt::CostNotSaturated { fitted: true } => {
                "at no load level was the server saturated (no CPU time left, and the next request always there): what a request costs \
                 then was computed from what a wake-up costs".to_owned()
            }
            Doubt::CostNotSaturated { fitted: false } => {
                "at no load level was the server saturated (no CPU time left, and the next request always there): a request may take less \
                 CPU time then, so net may be higher".to_owned()
            }
            Doubt::NetMissing(missing) => missing.why.clone(),
            Doubt::NetOfThisSession => {
                "another session may find a net many times as high or as low: the trials are too few, or too short, for how much they differ"
                    .to_owned()
            }
            Doubt::NotSteady { ln } => {
                format!("the figure drifted by {:+.1} % over the trials", 100.0 * (ln.exp() - 1.0))
            }
            Doubt::NotWarmedUp { seconds } => {
                format!("the rate came to no level in {seconds:.0} s of load before the first trial")
            }
            Doubt::TooNoisy { half_ln } => {
                format!("gross is known to ±{:.0} % only", 100.0 * crate::capacity::stopping::half_width_ratio(*half_ln))
            }
            Doubt::CpusMoved(Moved { near_ns, far_ns, far, of }) => format!(
                "the hypervisor moved the CPUs: a cache line took {near_ns:.0} ns from the server to the generator, and {far_ns:.0} ns elsewhere \
                 ({far} of {of} trials): what passes between them costs both sides more there"
            ),
            Doubt::FewRequests { count } => {
                format!("only {count:.0} requests were answered: costs and high percentiles mean little")
            }
            Doubt::ShortWindow { seconds } => format!(
                "the shortest window is {seconds:.2} s: run and wait step at the kernel's ticks and quota periods"
            ),
            Doubt::RunsUnchecked { seconds } => format!(
                "a run lasts {:.1} ms: too short for the accounting of the CPUs to be checked against each other",
                1e3 * seconds
            ),
            Doubt::ObserversOnSutCpus { cpus } => format!(
                "tare's observers took {:.1} % of a CPU from the program's own CPUs",
                100.0 * cpus
            ),
            Doubt::FewSamples(FewSamples { taken, expected, rate_hz }) => format!(
                "{taken:.0} call stacks were sampled, where its CPU time gives {expected:.0} at {rate_hz:.0} Hz: the clock fired less often \
                 than it was to, and perhaps not where the time went"
            ),
            Doubt::Compiles(Compiles { share, .. }) => format!(
                "{:.0} % of the CPU time was of compilers and linkers: time, CPU time and bottleneck are of them too, the benchmarks' results are not",
                100.0 * share
            ),
            Doubt::CouldNotJudge { causes, missing } => format!("could not judge {causes}: {}", missing.why),
        }
    }

    fn hint(&self) -> String {
        let hint = match self {
            Doubt::NoTrials => "run again",
            Doubt::OneTrial => "take at least three (--trials 3)",
            Doubt::TooFewTrials { .. } => "give a longer --budget, or shorter trials (-d)",
            Doubt::AccountingOpen { ratio, .. } if *ratio > NO_VERDICT => {
                "quote no figure; take longer trials, and look for short-lived processes and interrupts of an idle CPU"
            }
            Doubt::Unclaimed { .. } => {
                "quote no figure; run tare as root in the machine's own namespaces, where the kernel reports the end of every process, or stop what else runs here"
            }
            Doubt::AccountingOpen { .. } => "take longer trials; shares below this size mean little",
            Doubt::RequestsUnknown => "use tare's own generator, or one whose summary can be read (wrk)",
            Doubt::OperationsUnknown => {
                "for a gross figure use a generator whose result can be read ('tare help formats')"
            }
            Doubt::OnlyRedirects(redirects) => redirects.hint(),
            Doubt::NoRequests(mostly) => mostly.as_ref().map_or(NO_REQUESTS_HINT, Mostly::hint),
            Doubt::Errors { .. } => "see which kinds failed; the figures are not those of the workload alone",
            Doubt::RunsFailed { .. } => "run the command by hand; the times include runs that failed",
            Doubt::GeneratorSaturated => {
                "give the generator more CPUs and threads (-t, --load-cpus), or compare net"
            }
            Doubt::ScheduleMissed { .. } => "lower the rate, or read the result as a closed loop's",
            Doubt::ReportOfOtherTime(_) | Doubt::ReportOfOtherCount(_) => {
                "quote no figure; have --load run one generator once, which loads from its start to its end"
            }
            Doubt::AboveLink(_) => {
                "quote no figure; see whether the requests went to that host at all (a proxy or a cache on this machine answers too)"
            }
            Doubt::AboveCeiling(_) => "measure the ceilings again while the machine is idle (tare ceiling)",
            Doubt::GeneratorComplains(_) => {
                "see whether it did what you meant: its counts are of what it did"
            }
            Doubt::CostNotSaturated { fitted: true } => {
                "give the generator more CPUs or connections (--load-cpus, -c); the interval of net is wide"
            }
            Doubt::CostNotSaturated { fitted: false } => {
                "give the generator more CPUs (--load-cpus) or connections (-c, or its own option); with --no-levels nothing shows the cost where it is full"
            }
            Doubt::NotSteady { .. } => "warm up longer, or take later trials only",
            Doubt::NotWarmedUp { .. } => {
                "look at the rate over time (tare report); a server that still warms up needs longer (--warmup 60s)"
            }
            Doubt::TooNoisy { .. } | Doubt::NetOfThisSession => {
                "take more trials (--trials), or longer ones (of a server: -d)"
            }
            Doubt::CpusMoved(_) => {
                "look at the trials one by one (tare report); compare both interleaved (tare compare); on the host, pin the guest's CPUs"
            }
            Doubt::FewRequests { .. } => "take longer trials (-d) or a higher rate",
            Doubt::ShortWindow { .. } => "take trials of a second or more (-d)",
            Doubt::RunsUnchecked { .. } => {
                "gross is right; for net, measure a longer run of it (more input, or a loop of runs: -- sh -c '...')"
            }
            Doubt::ObserversOnSutCpus { .. } => {
                "leave tare a CPU of its own (--sut-cpus, --load-cpus); their share is in the accounting of the CPUs"
            }
            Doubt::FewSamples(_) => {
                "take care with shares of functions; measure again at a rate that the clock can keep (--stacks=199), with no other sampler beside"
            }
            Doubt::Compiles(Compiles { hint, .. }) => hint,
            Doubt::SutUnseen(missing) | Doubt::ClockMissing(missing) => &missing.remedy,
            Doubt::NetMissing(missing) | Doubt::CouldNotJudge { missing, .. } => &missing.remedy,
        };
        hint.to_owned()
    }
}

/// All warnings, those that make the result invalid first.
pub(crate) fn warnings(
    accounting: &Accounting,
    bottleneck: Verdict,
    unjudged: &[(Missing, Vec<Cause>)],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (_, named) = accounting.asked.pool.residuals();
    let worst = named.iter().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((name, ratio)) = worst.filter(|(_, ratio)| **ratio > OPEN) {
        warnings.push(Doubt::AccountingOpen { name, ratio: *ratio });
    }
    let pool = &accounting.asked.pool;
    if let Some(share) = pool.unclaimed_share() {
        let cpus = pool.unclaimed_s.unwrap_or(0.0) / pool.span.wall_s.max(f64::MIN_POSITIVE);
        warnings.push(Doubt::Unclaimed { share, cpus });
    }
    if accounting.asked.trials.is_empty() {
        warnings.push(Doubt::NoTrials);
    } else if accounting.http.is_some() {
        http(accounting, bottleneck, &mut warnings);
    } else {
        let (failed, runs) = accounting.failed_runs();
        if failed > 0 {
            warnings.push(Doubt::RunsFailed { failed, runs });
        }
        if let Some(seconds) = crate::capacity::runs::mean_s(&accounting.gross_level().pool)
            .filter(|run_s| *run_s < CHECKED_S_MIN)
        {
            warnings.push(Doubt::RunsUnchecked { seconds });
        }
        warnings.extend(compiles(accounting).map(Doubt::Compiles));
    }
    common(accounting, &mut warnings);
    let cpus = crate::outcome::own_cost::on_sut_cpus(accounting);
    if cpus > OBSERVERS_CPUS_MAX {
        warnings.push(Doubt::ObserversOnSutCpus { cpus });
    }
    for (missing, causes) in unjudged {
        let names: Vec<String> = causes.iter().map(|cause| cause.id()).collect();
        warnings.push(Doubt::CouldNotJudge { causes: names.join(", "), missing });
    }
    let patterns = match &accounting.record.plan.workload {
        Workload::Command(commands) => patterns::warnings(accounting.record, commands),
        Workload::Http(_) => Vec::new(),
    };
    let notices = accounting.record.notices.iter().cloned();
    warnings.into_iter().map(Doubt::warning).chain(patterns).chain(notices).collect()
}

fn http<'a>(accounting: &'a Accounting, bottleneck: Verdict, warnings: &mut Vec<Doubt<'a>>) {
    let pool = &accounting.asked.pool;
    match pool.answered.requests {
        None if accounting.http.is_some_and(|server| server.url.is_none()) => {
            warnings.push(Doubt::OperationsUnknown);
        }
        None => warnings.push(Doubt::RequestsUnknown),
        Some(0.0) => warnings.push(Doubt::NoRequests(mostly(accounting))),
        Some(count) if count < REQUESTS_MIN => warnings.push(Doubt::FewRequests { count }),
        Some(_) => {}
    }
    let details = accounting.samples().map(|sample| sample.detail.as_deref());
    warnings.extend(OnlyRedirects::of(details).map(Doubt::OnlyRedirects));
    if fails(accounting) {
        let share = pool.answered.error_share();
        warnings.push(Doubt::Errors { share, mostly: mostly(accounting) });
    }
    if accounting.sut().is_none() {
        warnings.push(Doubt::SutUnseen(crate::bottlenecks::sut_unseen(accounting)));
    }
    if bottleneck.cause == Cause::LoadGeneratorBound && bottleneck.gross_is == GrossIs::LowerBound {
        warnings.push(Doubt::GeneratorSaturated);
    }
    let scheduled =
        pool.answered.requests.zip(pool.answered.scheduled).filter(|(_, scheduled)| *scheduled > 0.0);
    if let Some((requests, scheduled)) = scheduled.filter(|_| schedule::missed(pool)) {
        warnings.push(Doubt::ScheduleMissed { share: requests / scheduled });
    }
    warnings.extend(ceiling::above_link(accounting).map(Doubt::AboveLink));
    warnings.extend(ceiling::above(accounting).map(Doubt::AboveCeiling));
    warnings.extend(generator_report::other_time(accounting).map(Doubt::ReportOfOtherTime));
    warnings.extend(own_count::other_count(accounting).map(Doubt::ReportOfOtherCount));
    warnings.extend(generator_report::complaint(accounting).map(Doubt::GeneratorComplains));
    if pool.span.shortest_s < WINDOW_S_MIN {
        warnings.push(Doubt::ShortWindow { seconds: pool.span.shortest_s });
    }
    match &accounting.net_estimate {
        Ok(net_estimate) => {
            match net_estimate.choice.as_ref().map(|choice| choice.basis) {
                Some(Basis::Fitted) => warnings.push(Doubt::CostNotSaturated { fitted: true }),
                Some(Basis::UpperBound) => warnings.push(Doubt::CostNotSaturated { fitted: false }),
                _ => {}
            }
            if net_estimate.is_of_this_session_alone() {
                warnings.push(Doubt::NetOfThisSession);
            }
        }
        Err(missing) if accounting.sut().is_some() => warnings.push(Doubt::NetMissing(missing)),
        Err(_) => {}
    }
}

/// What most attempts failed by.
fn mostly(accounting: &Accounting) -> Option<Mostly> {
    let errors = &accounting.asked.pool.answered.errors;
    let errors = errors.iter().map(|(kind, count)| (*kind, *count as u64)).collect();
    failures::mostly(&errors, &error_reasons(accounting))
}

fn common<'a>(accounting: &'a Accounting, warnings: &mut Vec<Doubt<'a>>) {
    match (accounting.gross_level().trials.len(), accounting.stopping) {
        (1.., Some(Stopped { trials, .. })) if trials < SERIES_MIN => {
            warnings.push(Doubt::TooFewTrials { trials });
        }
        (1, None) => warnings.push(Doubt::OneTrial),
        _ => {}
    }
    if let Some(missing) =
        crate::bottlenecks::clock_missing(accounting).filter(|_| !accounting.asked.trials.is_empty())
    {
        warnings.push(Doubt::ClockMissing(missing));
    }
    let load_before = accounting.asked_trials().next().and_then(crate::capacity::stopping::warm_up);
    if let Some(warm_up) = load_before.filter(|warm_up| !warm_up.is_over()) {
        let seconds = warm_up.slice_ns as f64 / 1e9 * warm_up.answers.len() as f64;
        if seconds >= WARM_UP_S_MIN {
            warnings.push(Doubt::NotWarmedUp { seconds });
        }
    }
    if let Some(drift) = trend::drift(accounting).filter(|drift| drift.is_clear()) {
        warnings.push(Doubt::NotSteady { ln: drift.ln });
    }
    if let Some(half_ln) = trend::half_width_ln(accounting).filter(|half| *half > NOISE_LN) {
        warnings.push(Doubt::TooNoisy { half_ln });
    }
    warnings.extend(few_samples(accounting).map(Doubt::FewSamples));
    warnings.extend(core_latency::moved(accounting.record).map(Doubt::CpusMoved));
}
