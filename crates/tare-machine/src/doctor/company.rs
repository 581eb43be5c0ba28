//! Who else uses CPU.

use super::draft::{Draft, Examined, Topic, each, note, ok, several, warn};
use super::words::{list, percent, short, things, time};
use tare_model::check::Area;
use tare_model::survey::Company;

pub(super) static TOPIC: Topic = Topic { area: Area::Company, ids: &["others", "steal-now"], look };

/// Below this share of all CPUs the others are the machine's own housekeeping.
const QUIET: f64 = 0.02;
/// From here on any measurement has company.
const BUSY: f64 = 0.10;
const STEAL: f64 = 0.01;

fn look(examined: &Examined) -> Vec<Draft> {
    several("others", &examined.survey.company, |company| {
        let cpus = examined.topology.online.value().map_or(1, |online| online.len().max(1));
        let mut drafts = each("others", &company.busy_cpus, |busy| others(company, *busy, cpus));
        if let Some(steal) = company.steal_share.value().filter(|steal| **steal > STEAL) {
            drafts.push(
                warn("steal-now", format!("the hypervisor takes {} of the CPUs now", percent(*steal)))
                    .effect("what it takes is missing from throughput, and comes as pauses of milliseconds")
                    .fix(
                        "another host, or dedicated CPUs; measure in alternation, never one after the other",
                    ),
            );
        }
        drafts
    })
}

fn others(company: &Company, busy_cpus: f64, cpus: usize) -> Draft {
    let share = busy_cpus / cpus as f64;
    let names: Vec<String> = company
        .processes
        .iter()
        .map(|process| format!("{} {} CPU", process.name, short(process.cpus)))
        .collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", list(&names, 3)) };
    let found = format!(
        "others use {} of {} (over {}){names}",
        short(busy_cpus),
        things(cpus, "CPU"),
        time(company.window_ns as f64)
    );
    let draft = match share {
        share if share < QUIET => return ok("others", found),
        share if share < BUSY => note("others", found),
        _ => warn("others", found),
    };
    draft
        .effect(format!(
            "up to {} of throughput, and caches with it; more where they share a core with the server",
            percent(share.min(1.0))
        ))
        .fix("stop them, or keep them off the server's CPUs (taskset, cpuset)")
}
