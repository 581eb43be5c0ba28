//! How much may be opened, and what may be observed.

use super::draft::{Draft, Examined, Topic, each, note, ok, unknown, warn};
use tare_model::Reading;
use tare_model::check::Area;
use tare_model::survey::{Access, Limit};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Limits,
    ids: &["open-files", "processes", "pmu", "nmi-watchdog", "root", "tracefs", "perf", "kernel-symbols"],
    look,
};

/// Fewer open files hold fewer connections than load tests use.
const FILES_FEW: u64 = 4096;
const PROCESSES_FEW: u64 = 4096;
/// `perf_event_paranoid` from here on keeps the kernel's part from ordinary users.
const PARANOID: i32 = 2;

fn look(examined: &Examined) -> Vec<Draft> {
    let survey = examined.survey;
    let mut drafts = each("open-files", &survey.limits.open_files, open_files);
    drafts.extend(survey.limits.processes.value().and_then(|limit| {
        let soft = limit.soft.filter(|soft| *soft < PROCESSES_FEW)?;
        Some(
            warn("processes", format!("{soft} processes and threads at most (ulimit -u)"))
                .effect("servers with a thread per connection stop there")
                .fix("ulimit -u, /etc/security/limits.conf, or TasksMax= of the unit"),
        )
    }));
    drafts.extend(each("pmu", &survey.machine.pmu, |there| match there {
        true => ok("pmu", "hardware counters can be read"),
        false => note("pmu", "no hardware counters (PMU)")
            .effect(
                "instructions, IPC and cache misses are not known: cost is in CPU time, the clock is probed",
            )
            .fix("bare metal, or a virtual machine whose host passes its PMU on"),
    }));
    drafts.extend(observing(&survey.access));
    drafts
}

fn open_files(limit: &Limit) -> Draft {
    let number = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let found = format!("{} open files (ulimit -n), up to {}", number(limit.soft), number(limit.hard));
    match limit.soft {
        Some(soft) if soft < FILES_FEW => warn("open-files", found)
            .effect(format!(
                "servers and generators started from here fail beyond some {} connections",
                soft.saturating_sub(50)
            ))
            .fix(format!("ulimit -n {}", number(limit.hard))),
        _ => ok("open-files", found),
    }
}

fn observing(access: &Access) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let root = access.root.value().copied();
    if root == Some(false) {
        drafts.push(
            note("root", "not run as root")
                .effect("other users' processes, tracepoints and some limits stay unseen")
                .fix("run tare as root for the whole picture"),
        );
    }
    if access.nmi_watchdog.value() == Some(&true) {
        drafts.push(
            note("nmi-watchdog", "the NMI watchdog holds a hardware counter")
                .effect("one event fewer can be counted at a time")
                .fix("sysctl kernel.nmi_watchdog=0"),
        );
    }
    if let (Some(level), false) = (access.perf_event_paranoid.value(), root == Some(true)) {
        drafts.push(match *level >= PARANOID {
            true => note("perf", format!("perf_event_paranoid is {level}"))
                .effect("without root the kernel's half of a server's time cannot be looked into")
                .fix("sysctl kernel.perf_event_paranoid=1"),
            false => ok("perf", format!("perf_event_paranoid is {level}")),
        });
    }
    if let Reading::Missing(missing) = &access.tracefs {
        drafts
            .push(unknown("tracefs", missing).effect("wake-ups and throttling cannot be traced one by one"));
    }
    if access.kptr_restrict.value().is_some_and(|level| *level >= 2) {
        drafts.push(
            note("kernel-symbols", "kptr_restrict is 2")
                .effect("stacks show the kernel's functions as numbers")
                .fix("sysctl kernel.kptr_restrict=1"),
        );
    }
    drafts
}
