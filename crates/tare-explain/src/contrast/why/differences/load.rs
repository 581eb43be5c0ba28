//! The load, the quotas, and where threads ran.

use super::list::List;
use crate::accounting::Closed;
use crate::capacity::core_latency::{ELSEWHERE, transfer_ns};
use crate::capacity::levels::Accounting;
use std::collections::BTreeSet;
use tare_model::observation::Role;
use tare_model::plan::{CommandWorkload, Generator, HttpWorkload, Level, Transport};
use tare_model::survey::CpuGroup;
use tare_model::why::Kind;
use tare_model::{Reading, Record};

pub(super) fn compare(a: &Accounting, b: &Accounting, list: &mut List) {
    match (a.http, b.http, a.command, b.command) {
        (Some(one), Some(other), _, _) => http(one, other, (a.asked_level(), b.asked_level()), list),
        (_, _, Some(one), Some(other)) => command(one, other, list),
        _ => {}
    }
    quota(a, b, list);
    placement(a, b, list);
}

fn http(a: &HttpWorkload, b: &HttpWorkload, levels: (Option<&Level>, Option<&Level>), list: &mut List) {
    let path = |url: &Option<String>| {
        let url = url.as_ref()?;
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        Some(rest.find('/').map_or("/", |at| &rest[at..]).to_owned())
    };
    let matters = "another request: its cost is not that of the first";
    list.compare(Kind::Request, "the path that is asked for", path(&a.url), path(&b.url), matters);
    let scheme = |url: &Option<String>| Some(url.as_ref()?.split_once("://")?.0.to_owned());
    let matters = "encryption is part of a request's cost";
    list.compare(Kind::Request, "the scheme", scheme(&a.url), scheme(&b.url), matters);
    let matters = "on loopback the sender pays for the receiver's part of the network";
    list.compare(Kind::Transport, "the way of the requests", transport(a), transport(b), matters);
    let matters = "another generator makes other batches, and wakes the server another way";
    list.compare(Kind::Load, "the generator", generator(a), generator(b), matters);
    let Some((one, other)) = levels.0.zip(levels.1) else { return };
    let matters = "with fewer requests in flight a server sleeps more, and each request pays for waking it";
    let number = |count: u32| Some(count.to_string());
    list.compare(Kind::Load, "connections", number(one.connections), number(other.connections), matters);
    list.compare(
        Kind::Load,
        "requests in flight on each",
        number(one.pipeline),
        number(other.pipeline),
        matters,
    );
    let rate = |level: &Level| {
        Some(level.rate_hz.map_or_else(|| "closed loop".to_owned(), |hz| format!("open loop, {hz} req/s")))
    };
    let matters = "a fixed rate is what was asked for, not what could be done";
    list.compare(Kind::Load, "the pace", rate(one), rate(other), matters);
    let length = |level: &Level| Some(format!("{} s", level.trial_ns as f64 / 1e9));
    let matters = "short trials see less of what comes and goes";
    list.compare(Kind::Load, "the length of a trial", length(one), length(other), matters);
}

fn transport(http: &HttpWorkload) -> Option<String> {
    Some(match http.transport {
        Transport::Loopback => "loopback".to_owned(),
        Transport::Namespace => "another network namespace".to_owned(),
        Transport::Remote => "another host".to_owned(),
    })
}

fn generator(http: &HttpWorkload) -> Option<String> {
    Some(match &http.generator {
        Generator::Own { threads } => format!("tare's own, threads: {threads}"),
        Generator::Started { command } => command.clone(),
        Generator::Attached { .. } => "one that was running".to_owned(),
    })
}

fn command(a: &CommandWorkload, b: &CommandWorkload, list: &mut List) {
    let first = |workload: &CommandWorkload| workload.commands.first().cloned();
    list.compare(
        Kind::CommandLine,
        "the command",
        first(a),
        first(b),
        "another program, or asked to do something else",
    );
    let matters = "starting a shell is part of each run's time";
    list.compare(Kind::CommandLine, "the shell", a.shell.clone(), b.shell.clone(), matters);
}

fn quota(a: &Accounting, b: &Accounting, list: &mut List) {
    let reported = |accounting: &Accounting| {
        let quota = accounting.asked.pool.throttling.quota.as_ref()?;
        Some(format!("{:.2} CPUs, each {:.0} ms", quota.cpus, 1e3 * quota.period_s))
    };
    let matters = "it is held back when it is used up: shows as throttled";
    list.compare(Kind::Quota, "the program's quota", reported(a), reported(b), matters);
    let (Some(one), Some(other)) = (&a.record.identity, &b.record.identity) else { return };
    let tightest = |groups: &Vec<CpuGroup>| {
        let quotas = groups.iter().filter_map(|group| group.quota.value());
        quotas
            .min_by(|one, other| one.cpus().total_cmp(&other.cpus()))
            .map(|quota| format!("{:.2} CPUs", quota.cpus()))
    };
    let side = |groups: &Reading<Vec<CpuGroup>>| groups.value().and_then(tightest);
    let sides = (side(&one.survey.groups.cpu), side(&other.survey.groups.cpu));
    let matters =
        "it holds for tare's own load generator and for what tare starts: the server may wait for work";
    list.compare(Kind::Quota, "tare's own quota", sides.0, sides.1, matters);
}

fn placement(a: &Accounting, b: &Accounting, list: &mut List) {
    for (role, name) in [(Role::Sut, "the program's CPUs"), (Role::Load, "the generator's CPUs")] {
        let reported =
            |accounting: &Accounting| allowed(&accounting.asked.pool, role).map(|cpus| list_of(&cpus));
        let matters =
            "which caches, siblings and interrupts it shares, and with whom, is part of the service demand";
        list.compare(Kind::Placement, name, reported(a), reported(b), matters);
    }
    let together = |accounting: &Accounting| {
        let (sut, load) =
            (allowed(&accounting.asked.pool, Role::Sut)?, allowed(&accounting.asked.pool, Role::Load)?);
        Some(if sut.is_disjoint(&load) { "apart" } else { "together" }.to_owned())
    };
    let matters = "on one CPU they take turns, and nobody pays for waking another CPU";
    list.compare(Kind::Placement, "program and generator", together(a), together(b), matters);
    core_latency(a, b, list);
    let threads = |accounting: &Accounting| {
        let serving = accounting.asked.pool.threads_of(Role::Sut).filter(|thread| thread.serves()).count();
        (serving > 0).then(|| serving.to_string())
    };
    // Threads of programs come and go from run to run.
    if a.http.is_some() {
        let matters = "its CPU entitlement is as many CPUs at most; more threads than CPUs take turns";
        list.compare(Kind::Threads, "the program's threads at work", threads(a), threads(b), matters);
    }
    let asked =
        |record: &Record| (!record.plan.sut_cpus.is_empty()).then(|| format!("{:?}", record.plan.sut_cpus));
    let matters = "it was put there for the measurement";
    list.compare(Kind::Placement, "--sut-cpus", asked(a.record), asked(b.record), matters);
}

/// Core-to-core latency between the two sides, where that was not nearly the same.
fn core_latency(a: &Accounting, b: &Accounting, list: &mut List) {
    let of = |accounting: &Accounting| {
        let samples = accounting.asked_trials().filter_map(|trial| transfer_ns(&trial.observation));
        tare_stats::median(&samples.collect::<Vec<_>>())
    };
    let Some((one, other)) = of(a).zip(of(b)) else { return };
    if one.max(other) >= ELSEWHERE * one.min(other) {
        let reported = |ns: f64| Some(format!("{ns:.0} ns"));
        let matters =
            "the longer a cache line takes, the more what passes between the two costs both: shows as cost";
        list.compare(
            Kind::Placement,
            "a cache line from the program to the generator",
            reported(one),
            reported(other),
            matters,
        );
    }
}

/// The CPUs that the threads at work may use.
fn allowed(pool: &Closed, role: Role) -> Option<BTreeSet<u32>> {
    let at_work = pool.threads_of(role).filter(|thread| thread.serves());
    let cpus: BTreeSet<u32> = at_work.flat_map(|thread| thread.id.allowed.iter().copied()).collect();
    (!cpus.is_empty()).then_some(cpus)
}

/// `0-3,8`.
fn list_of(cpus: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => runs.push((*cpu, *cpu)),
        }
    }
    let reported = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(reported).collect::<Vec<_>>().join(",")
}
