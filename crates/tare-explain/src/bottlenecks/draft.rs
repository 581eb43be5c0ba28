//! What findings are written with.

use crate::accounting::Asleep;
use crate::accounting::Loss;
use crate::capacity::levels::Accounting;
use crate::capacity::runs::{rusage_cpus, taken_cpus};
use crate::capacity::summary::program_wait;
use tare_model::observation::Role;
use tare_model::outcome::Evidence;

/// A finding without its cause.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub summary: String,
    pub effect_ln: f64,
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    pub remedy: String,
    pub confirm: String,
}

pub(crate) fn number(name: impl Into<String>, value: f64, unit: &str) -> Evidence {
    Evidence { name: name.into(), value, unit: unit.to_owned() }
}

/// A number that may not be there: then it is no evidence.
pub(crate) fn number_if(name: &str, value: Option<f64>, unit: &str) -> Option<Evidence> {
    value.map(|value| number(name, value, unit))
}

/// A share as whole percent for a sentence.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A time for a sentence, in the unit in which it has no zeroes in front.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 1e-3 => format!("{:.1} ms", 1e3 * s),
        s => format!("{:.0} µs", 1e6 * s),
    }
}

/// The finding of a wait that is the program's own: net has it, so it explains nothing of the tare.
pub(crate) fn program_wait_draft(
    accounting: &Accounting,
    why: Asleep,
    verb: &str,
    remedy: &str,
    confirm: &str,
) -> Draft {
    let share = program_wait(accounting, why);
    let mut evidence = vec![number(format!("{verb}, share of the CPU entitlement"), share, "share")];
    for thread in
        accounting.asked.pool.threads_of(Role::Sut).filter(|thread| thread.asleep(why) > 0.0).take(8)
    {
        evidence.push(number(
            thread.label(),
            thread.asleep(why) / thread.wall_s.max(f64::MIN_POSITIVE),
            "share",
        ));
    }
    Draft {
        summary: format!("The program's threads {verb} {} of the time they could have used.", percent(share)),
        effect_ln: 0.0,
        confidence: accounting.support(|window| Some(window.sut.as_ref()?.share(Loss::Program(why))), 0.1),
        evidence,
        remedy: remedy.to_owned(),
        confirm: confirm.to_owned(),
    }
}

/// What a command did with its time: a sentence's middle, how far the runs bear `holds` out, and the numbers.
pub(crate) fn program_shares(
    accounting: &Accounting,
    holds: fn(f64) -> bool,
) -> (String, f64, Vec<Evidence>) {
    let on_cpu = rusage_cpus(accounting.runs());
    let mut evidence = Vec::new();
    evidence.extend(number_if("on a CPU (user and kernel time)", on_cpu, "CPUs"));
    evidence.extend(number_if("kept off a CPU by others", taken_cpus(&accounting.asked.pool), "CPUs"));
    let each = accounting.runs().filter_map(|run| rusage_cpus(std::iter::once(run)));
    let held: Vec<bool> = each.map(holds).collect();
    let support = held.iter().filter(|held| **held).count() as f64 / held.len().max(1) as f64;
    let text = on_cpu.map_or("its CPU time is unknown".to_owned(), |cpus| {
        format!("it kept {cpus:.2} CPUs busy on average")
    });
    (text, support, evidence)
}
