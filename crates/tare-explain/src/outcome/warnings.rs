//! Everything a reader must know before quoting a number: typed, each with the next thing to try.

use crate::accounting::close::residual::{CHECKED_S_MIN, NO_VERDICT, OPEN};
use crate::bottlenecks::limit::Limit;
use crate::bottlenecks::too_noisy::NOISE_LN;
use crate::capacity::books::Books;
use crate::capacity::cost::Basis;
use crate::capacity::distance::{self, Moved};
use crate::timeline::trend;
use tare_model::Missing;
use tare_model::outcome::{Cause, GrossIs, Warning};
use tare_stats::SERIES_MIN;

/// Fewer answers than this say little about a cost or a tail.
const REQUESTS_MIN: f64 = 1000.0;

/// A shorter window is read with the error of the kernel's ticks and quota periods.
const WINDOW_S_MIN: f64 = 1.0;

/// Of a shorter load before the first trial nobody expects a level.
const WARM_UP_S_MIN: f64 = 5.0;

/// Observers that take more than this from the program's CPUs change what they look at. (The clock probe's short visits
/// take less.)
const OBSERVERS_CPUS_MAX: f64 = 0.01;

/// What can be wrong.
enum Caution<'a> {
    NoTrials,
    OneTrial,
    TooFewTrials { trials: usize },
    BooksOpen { name: &'a str, ratio: f64 },
    SutUnseen(Missing),
    RequestsUnknown,
    NoRequests,
    Errors { share: f64 },
    RunsFailed { failed: usize, runs: usize },
    GeneratorSaturated,
    ScheduleMissed { share: f64 },
    ClockMissing(Missing),
    CostNotSaturated { fitted: bool },
    NetMissing(&'a Missing),
    NotSteady { ln: f64 },
    NotWarmedUp { seconds: f64 },
    TooNoisy { half_ln: f64 },
    CpusMoved(Moved),
    FewRequests { count: f64 },
    ShortWindow { seconds: f64 },
    RunsUnchecked { seconds: f64 },
    ObserversOnSutCpus { cpus: f64 },
    CouldNotJudge { causes: String, missing: &'a Missing },
}

impl Caution<'_> {
    fn warning(self) -> Warning {
        Warning { id: self.id().to_owned(), text: self.text(), hint: self.hint() }
    }

    fn id(&self) -> &'static str {
        match self {
            Caution::NoTrials => "no-trials",
            Caution::OneTrial => "one-trial",
            Caution::TooFewTrials { .. } => "too-few-trials",
            Caution::BooksOpen { .. } => "books-open",
            Caution::SutUnseen(_) => "sut-unseen",
            Caution::RequestsUnknown => "requests-unknown",
            Caution::NoRequests => "no-requests",
            Caution::Errors { .. } | Caution::RunsFailed { .. } => "errors",
            Caution::GeneratorSaturated => "generator-saturated",
            Caution::ScheduleMissed { .. } => "schedule-missed",
            Caution::ClockMissing(_) => "clock-missing",
            Caution::CostNotSaturated { .. } => "cost-not-saturated",
            Caution::NetMissing(_) => "net-missing",
            Caution::NotSteady { .. } => "not-steady",
            Caution::NotWarmedUp { .. } => "not-warmed-up",
            Caution::TooNoisy { .. } => "too-noisy",
            Caution::CpusMoved(_) => "cpus-moved",
            Caution::FewRequests { .. } => "low-requests",
            Caution::ShortWindow { .. } => "short-window",
            Caution::RunsUnchecked { .. } => "books-unchecked",
            Caution::ObserversOnSutCpus { .. } => "observers-on-sut-cpus",
            Caution::CouldNotJudge { .. } => "could-not-judge",
        }
    }

    fn text(&self) -> String {
        match self {
            Caution::NoTrials => "no trial was finished".to_owned(),
            Caution::OneTrial => {
                "one trial gives no interval: nothing tells how far the next would be off".to_owned()
            }
            Caution::TooFewTrials { trials } => format!(
                "{trials} trials were taken, and {SERIES_MIN} are the fewest that tell how well gross is known"
            ),
            Caution::BooksOpen { name, ratio } => {
                format!("the books do not close: {:.1} % of the time of {name} is unexplained", 100.0 * ratio)
            }
            Caution::SutUnseen(missing) => missing.why.clone(),
            Caution::RequestsUnknown => {
                "the requests could not be counted, so there is no gross figure".to_owned()
            }
            Caution::NoRequests => "no request was answered".to_owned(),
            Caution::Errors { share } => format!("{:.2} % of the attempts failed", 100.0 * share),
            Caution::RunsFailed { failed, runs } => format!("{failed} of {runs} runs ended with an error"),
            Caution::GeneratorSaturated => {
                "the load generator gave out before the server: gross is a lower bound".to_owned()
            }
            Caution::ScheduleMissed { share } => {
                format!("only {:.1} % of the scheduled requests were answered", 100.0 * share)
            }
            Caution::ClockMissing(missing) => format!(
                "the effective clock is not known ({}): costs are in seconds, and a slow clock would not show",
                missing.why
            ),
            Caution::CostNotSaturated { fitted: true } => {
                "no level filled the server: its cost at saturation was carried there from the cost of a wake-up".to_owned()
            }
            Caution::CostNotSaturated { fitted: false } => {
                "no level filled the server: a request may cost less at saturation, so net may be higher".to_owned()
            }
            Caution::NetMissing(missing) => missing.why.clone(),
            Caution::NotSteady { ln } => {
                format!("the figure drifted by {:+.1} % over the trials", 100.0 * (ln.exp() - 1.0))
            }
            Caution::NotWarmedUp { seconds } => {
                format!("the rate came to no level in {seconds:.0} s of load before the first trial")
            }
            Caution::TooNoisy { half_ln } => {
                format!("gross is known to ±{:.0} % only", 100.0 * trend::half_width_ratio(*half_ln))
            }
            Caution::CpusMoved(Moved { near_ns, far_ns, far, of }) => format!(
                "the hypervisor moved the CPUs: a cache line took {near_ns:.0} ns from the server to the generator, and {far_ns:.0} ns elsewhere \
                 ({far} of {of} trials): what passes between them costs both sides more there"
            ),
            Caution::FewRequests { count } => {
                format!("only {count:.0} requests were answered: costs and high percentiles mean little")
            }
            Caution::ShortWindow { seconds } => format!(
                "the shortest window is {seconds:.2} s: run and wait step at the kernel's ticks and quota periods"
            ),
            Caution::RunsUnchecked { seconds } => format!(
                "a run lasts {:.1} ms: too short for the books of the CPUs to be checked against each other",
                1e3 * seconds
            ),
            Caution::ObserversOnSutCpus { cpus } => format!(
                "tare's observers took {:.1} % of a CPU from the program's own CPUs",
                100.0 * cpus
            ),
            Caution::CouldNotJudge { causes, missing } => format!("could not judge {causes}: {}", missing.why),
        }
    }

    fn hint(&self) -> String {
        let hint = match self {
            Caution::NoTrials => "run again",
            Caution::OneTrial => "take at least three (--trials 3)",
            Caution::TooFewTrials { .. } => "give a longer --budget, or shorter trials (-d)",
            Caution::BooksOpen { ratio, .. } if *ratio > NO_VERDICT => {
                "quote no figure; take longer trials, and look for short-lived processes and interrupts of an idle CPU"
            }
            Caution::BooksOpen { .. } => "take longer trials; shares below this size mean little",
            Caution::RequestsUnknown => "use tare's own generator, or one whose summary can be read (wrk)",
            Caution::NoRequests => "ask for the URL by hand; is the server up and the path right?",
            Caution::Errors { .. } => {
                "see which kinds failed; the figures are not those of the workload alone"
            }
            Caution::RunsFailed { .. } => "run the command by hand; the times include runs that failed",
            Caution::GeneratorSaturated => {
                "give the generator more CPUs and threads (-t, --load-cpus), or compare net"
            }
            Caution::ScheduleMissed { .. } => "lower the rate, or read the result as a closed loop's",
            Caution::CostNotSaturated { fitted: true } => {
                "give the generator more CPUs or connections; the interval of net is wide"
            }
            Caution::CostNotSaturated { fitted: false } => {
                "let a saturating level be driven (without --no-levels) by a stronger generator"
            }
            Caution::NotSteady { .. } => "warm up longer, or take later trials only",
            Caution::NotWarmedUp { .. } => {
                "look at the rate over time (tare report); a server that still warms up needs longer (--warmup 60s)"
            }
            Caution::TooNoisy { .. } => "take more or longer trials (--trials, -d)",
            Caution::CpusMoved(_) => {
                "look at the trials one by one (tare report); compare in turns (tare compare); on the host, pin the guest's CPUs"
            }
            Caution::FewRequests { .. } => "take longer trials (-d) or a higher rate",
            Caution::ShortWindow { .. } => "take trials of a second or more (-d)",
            Caution::RunsUnchecked { .. } => {
                "gross is right; for net, weigh a longer run of it (more input, or a loop of runs: -- sh -c '...')"
            }
            Caution::ObserversOnSutCpus { .. } => {
                "leave tare a CPU of its own (--sut-cpus, --load-cpus); their share is in the ledger of the CPUs"
            }
            Caution::SutUnseen(missing) | Caution::ClockMissing(missing) => &missing.remedy,
            Caution::NetMissing(missing) | Caution::CouldNotJudge { missing, .. } => &missing.remedy,
        };
        hint.to_owned()
    }
}

/// All warnings, those that make the result invalid first.
pub(crate) fn warnings(books: &Books, limit: Limit, unjudged: &[(Missing, Vec<Cause>)]) -> Vec<Warning> {
    let mut cautions = Vec::new();
    let (_, named) = books.asked.pool.residuals();
    let worst = named.iter().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((name, ratio)) = worst.filter(|(_, ratio)| **ratio > OPEN) {
        cautions.push(Caution::BooksOpen { name, ratio: *ratio });
    }
    if books.asked.trials.is_empty() {
        cautions.push(Caution::NoTrials);
    } else if books.http.is_some() {
        http(books, limit, &mut cautions);
    } else {
        let (failed, runs) = books.failed_runs();
        if failed > 0 {
            cautions.push(Caution::RunsFailed { failed, runs });
        }
        if let Some(seconds) =
            crate::capacity::command::mean_s(&books.asked.pool).filter(|run_s| *run_s < CHECKED_S_MIN)
        {
            cautions.push(Caution::RunsUnchecked { seconds });
        }
    }
    common(books, &mut cautions);
    let cpus = crate::outcome::own_cost::on_sut_cpus(books);
    if cpus > OBSERVERS_CPUS_MAX {
        cautions.push(Caution::ObserversOnSutCpus { cpus });
    }
    for (missing, causes) in unjudged {
        let names: Vec<String> = causes.iter().map(|cause| cause.id()).collect();
        cautions.push(Caution::CouldNotJudge { causes: names.join(", "), missing });
    }
    cautions.into_iter().map(Caution::warning).chain(books.record.notices.iter().cloned()).collect()
}

fn http<'a>(books: &'a Books, limit: Limit, cautions: &mut Vec<Caution<'a>>) {
    let pool = &books.asked.pool;
    match pool.requests {
        None => cautions.push(Caution::RequestsUnknown),
        Some(0.0) => cautions.push(Caution::NoRequests),
        Some(count) if count < REQUESTS_MIN => cautions.push(Caution::FewRequests { count }),
        Some(_) => {}
    }
    if crate::bottlenecks::limit::fails(books) {
        cautions.push(Caution::Errors { share: pool.error_share() });
    }
    if books.sut().is_none() {
        cautions.push(Caution::SutUnseen(crate::bottlenecks::sut_unseen(books)));
    }
    if limit.cause == Cause::LoadGeneratorBound && limit.gross_is == GrossIs::LowerBound {
        cautions.push(Caution::GeneratorSaturated);
    }
    let scheduled = pool.requests.zip(pool.scheduled).filter(|(_, scheduled)| *scheduled > 0.0);
    if let Some((requests, scheduled)) =
        scheduled.filter(|_| crate::bottlenecks::limit::missed_schedule(pool))
    {
        cautions.push(Caution::ScheduleMissed { share: requests / scheduled });
    }
    if pool.shortest_s < WINDOW_S_MIN {
        cautions.push(Caution::ShortWindow { seconds: pool.shortest_s });
    }
    match &books.weighing {
        Ok(weighing) => match weighing.choice.as_ref().map(|choice| choice.basis) {
            Some(Basis::Fitted) => cautions.push(Caution::CostNotSaturated { fitted: true }),
            Some(Basis::UpperBound) => cautions.push(Caution::CostNotSaturated { fitted: false }),
            _ => {}
        },
        Err(missing) if books.sut().is_some() => cautions.push(Caution::NetMissing(missing)),
        Err(_) => {}
    }
}

fn common<'a>(books: &'a Books, cautions: &mut Vec<Caution<'a>>) {
    match (books.asked.trials.len(), books.stopping) {
        (trials @ 1..SERIES_MIN, Some(_)) => cautions.push(Caution::TooFewTrials { trials }),
        (1, None) => cautions.push(Caution::OneTrial),
        _ => {}
    }
    if let Some(missing) = crate::bottlenecks::clock_missing(books).filter(|_| !books.asked.trials.is_empty())
    {
        cautions.push(Caution::ClockMissing(missing));
    }
    let load_before = books.asked_trials().next().and_then(crate::timeline::course::warm_up);
    if let Some(warm_up) = load_before.filter(|warm_up| !warm_up.is_over()) {
        let seconds = warm_up.slice_ns as f64 / 1e9 * warm_up.answers.len() as f64;
        if seconds >= WARM_UP_S_MIN {
            cautions.push(Caution::NotWarmedUp { seconds });
        }
    }
    if let Some(drift) = trend::drift(books).filter(|drift| drift.is_clear()) {
        cautions.push(Caution::NotSteady { ln: drift.ln });
    }
    if let Some(half_ln) = trend::half_width_ln(books).filter(|half| *half > NOISE_LN) {
        cautions.push(Caution::TooNoisy { half_ln });
    }
    cautions.extend(distance::moved(books.record).map(Caution::CpusMoved));
}
