//! Where the load generator stood when the server waited for work: out of the generator's own accounting.

use super::split::Split;
use crate::accounting::{Loss, tare_name};
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use tare_model::metric::Subject;
use tare_model::metrics::clock;
use tare_model::observation::Role;
use tare_model::outcome::TareCause;
use tare_model::plan::Generator;

/// Of a quota of which so much was used nothing was left: periods in which it was not all needed count too.
const USED_UP: f64 = 0.8;
/// A loss of this share of its time is worth a word.
const LOSS_MIN: f64 = 0.1;
/// Clocks that differ by less are the same.
const CLOCK_SHARE_MIN: f64 = 0.03;

/// Why the server waited for work in the run where it did so more, if that is the largest part of the difference, and shown to be one.
pub(super) fn why_no_work(split: &Split, a: &Accounting, b: &Accounting) -> Option<String> {
    let largest = split.parts.iter().max_by(|one, other| one.ln.abs().total_cmp(&other.ln.abs()))?;
    let may_be_none = largest.ci95.is_some_and(|interval| interval.lo <= 0.0 && interval.hi >= 0.0);
    if largest.id != tare_name(TareCause::NoWork) || largest.ln == 0.0 || may_be_none {
        return None;
    }
    let (name, no_work, other) = if largest.ln < 0.0 { ("B", b, a) } else { ("A", a, b) };
    Some(match reason(no_work) {
        Some(reason) => format!("In {name} {reason}{}.", beside(no_work, other)),
        None => format!("In {name} the server waited for work, and its generator cannot be seen from here."),
    })
}

fn reason(accounting: &Accounting) -> Option<String> {
    let load = accounting.load()?;
    let (busy, cpus) = (load.busy(), load.cpus());
    let lost = |cause| load.share(Loss::Tare(cause));
    // The observers are in the same group, and use the quota too.
    let pool = &accounting.asked.pool;
    let observers_s: f64 = pool.threads_of(Role::Tare).map(|thread| thread.run_s).sum();
    let used = busy + if pool.span.wall_s > 0.0 { observers_s / pool.span.wall_s } else { 0.0 };
    if let Some(quota) = quota_cpus(accounting).filter(|quota| *quota < cpus && used >= USED_UP * quota) {
        return Some(format!(
            "our own generator was slowed by a quota of {quota:.2} CPUs: it ran on {busy:.2}, with tare's observers on {used:.2}"
        ));
    }
    let taken = [
        (TareCause::Preempted, "others ran on the generator's CPUs"),
        (TareCause::Placement, "the server ran on the generator's CPUs"),
        (TareCause::SelfContention, "the generator's threads had to share its CPUs"),
        (TareCause::Steal, "the hypervisor took the generator's CPUs away"),
    ];
    let most = taken.into_iter().max_by(|one, other| lost(one.0).total_cmp(&lost(other.0)))?;
    if lost(most.0) >= LOSS_MIN {
        return Some(format!("{}, {:.0} % of its time", most.1, 100.0 * lost(most.0)));
    }
    let full = generator::fullness(&accounting.asked.pool).unwrap_or(0.0);
    if full >= generator::SATURATED {
        return Some(format!("the generator had nothing left: it ran on {busy:.2} of its {cpus:.2} CPUs"));
    }
    if accounting.asked.pool.answered.scheduled.is_some() {
        return Some("no more requests were offered: the rate was fixed".to_owned());
    }
    Some(format!(
        "the generator had room left (it ran on {busy:.2} of its {cpus:.2} CPUs): more connections may bring more"
    ))
}

/// The tightest quota on tare's own group and those above it; `None` where the generator is somebody else's, or none
/// is known.
fn quota_cpus(accounting: &Accounting) -> Option<f64> {
    matches!(accounting.http?.generator, Generator::Own { .. }).then_some(())?;
    let groups = accounting.record.identity.as_ref()?.survey.groups.cpu.value()?;
    let quotas = groups.iter().filter_map(|group| group.quota.value()).map(|quota| quota.cpus());
    quotas.min_by(f64::total_cmp)
}

/// What else the generator's own accounting shows: more CPU per request, a slower clock.
fn beside(no_work: &Accounting, other: &Accounting) -> String {
    let mut words = String::new();
    let cost = |accounting: &Accounting| accounting.asked.pool.per_request(accounting.load()?.run_s);
    if let (Some(here), Some(there)) = (cost(no_work), cost(other)) {
        words += &format!("; a request cost it {:.2} µs, {:.2} µs in the other run", 1e6 * here, 1e6 * there);
    }
    if let (Some(here), Some(there)) = (clock_hz(no_work), clock_hz(other))
        && (here / there - 1.0).abs() > CLOCK_SHARE_MIN
    {
        words += &format!("; its CPUs ran at {:.2} GHz, {:.2} GHz in the other run", here / 1e9, there / 1e9);
    }
    words
}

/// Median effective clock of the CPUs that the generator may use.
fn clock_hz(accounting: &Accounting) -> Option<f64> {
    let usable = &accounting.load()?.usable;
    let columns = accounting.record.trials.iter().flat_map(|trial| &trial.observation.columns);
    let mine = columns.filter(|column| {
        let of_cpu = matches!(column.subject, Subject::Cpu(cpu) if usable.contains(&cpu));
        of_cpu && column.metric == clock::EFFECTIVE_HZ.id
    });
    let samples: Vec<f64> = mine.flat_map(|column| &column.samples).map(|sample| sample.value).collect();
    tare_stats::median(&samples).filter(|hz| *hz > 0.0)
}
