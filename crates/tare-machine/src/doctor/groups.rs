//! Quotas, sets of CPUs and memory limits of control groups.

use super::draft::{Draft, Examined, Topic, bad, each, note, ok, several, unknown, warn};
use super::words::{bytes, percent, short, things, time};
use tare_model::Reading;
use tare_model::check::Area;
use tare_model::survey::{CpuGroup, CpusetGroup, MemoryGroup, Quota};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Groups,
    ids: &[
        "cpu-quota",
        "cpu-quota-above",
        "cpu-weight",
        "cpu-idle",
        "uclamp",
        "cpu-set",
        "cpu-partition",
        "memory-limit",
    ],
    look,
};

/// From here on a group that fills up is slowed down by reclaim before it is killed.
const MEMORY_FULL: f64 = 0.8;

fn look(examined: &Examined) -> Vec<Draft> {
    let groups = &examined.survey.groups;
    let cpus = groups.allowed_cpus.value().map(|cpus| cpus.len()).filter(|count| *count > 0);
    let mut drafts = several("cpu-quota", &groups.cpu, |levels| quotas(levels, cpus));
    drafts.extend(above(examined));
    drafts.extend(weights(groups.cpu.value().map_or(&[], Vec::as_slice)));
    drafts.extend(clamps(groups.cpu.value().map_or(&[], Vec::as_slice)));
    drafts.extend(partition(groups.cpuset.value().map_or(&[], Vec::as_slice)));
    drafts.extend(each("cpu-set", &groups.allowed_cpus, |allowed| {
        cpu_set(examined, &allowed.to_string(), allowed.len())
    }));
    drafts.extend(several("memory-limit", &groups.memory, |levels| memory(levels)));
    drafts
}

/// Every quota on the path, wherever it is: a parent's holds as much as the group's own.
fn quotas(levels: &[CpuGroup], cpus: Option<usize>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for level in levels {
        match &level.quota {
            Reading::Measured(quota) => drafts.push(quota_of(level, *quota, cpus)),
            Reading::Missing(missing) => drafts.push(unknown("cpu-quota", missing)),
            Reading::NotApplicable { .. } => {}
        }
    }
    if drafts.is_empty() {
        let groups = things(levels.len(), "group");
        drafts.push(ok("cpu-quota", format!("no CPU quota on the {groups} that can be seen")));
    }
    drafts
}

fn quota_of(level: &CpuGroup, quota: Quota, cpus: Option<usize>) -> Draft {
    let share = match quota.cpus() {
        cpus if cpus < 1.0 => format!("{} of one CPU", percent(cpus)),
        cpus => match short(cpus).as_str() {
            "1" => "1 CPU".to_owned(),
            cpus => format!("{cpus} CPUs"),
        },
    };
    let found = format!("{} may use {share} over {}", group(&level.path), time(quota.period_ns as f64));
    if let Some(cpus) = cpus.filter(|cpus| quota.cpus() >= *cpus as f64) {
        return note("cpu-quota", found)
            .effect(format!("it does not bind: {} may be used at all", things(cpus, "CPU")));
    }
    let since = match level.throttling.value() {
        Some(seen) if seen.throttled_periods > 0 && seen.periods > 0 => format!(
            "; so far it ran out in {} of {} periods",
            percent(seen.throttled_periods as f64 / seen.periods as f64),
            seen.periods
        ),
        _ => String::new(),
    };
    let runtime = quota.cpus().ceil();
    bad("cpu-quota", found)
        .effect(format!("{}{since}", stop_and_go(quota, cpus)))
        .fix(format!(
            "raise or remove it, or count it in: GOMAXPROCS={runtime}, -XX:ActiveProcessorCount={runtime}"
        ))
        .setting("quota")
}

/// What a quota does to programs that would use more: they run until it is used up, then all stop.
fn stop_and_go(quota: Quota, cpus: Option<usize>) -> String {
    let period_ns = quota.period_ns as f64;
    let alone_ns = (quota.quota_ns as f64).min(period_ns);
    let one = (quota.quota_ns < quota.period_ns).then(|| {
        format!("after {} of work everything stops for {}", time(alone_ns), time(period_ns - alone_ns))
    });
    let busy = cpus.filter(|cpus| *cpus > 1).map(|cpus| {
        let each_ns = quota.quota_ns as f64 / cpus as f64;
        let threads = format!("{cpus} busy threads");
        match one {
            Some(_) => format!("with {threads} after {} for {}", time(each_ns), time(period_ns - each_ns)),
            None => format!(
                "{threads} use it up in {}, then everything stops for {}",
                time(each_ns),
                time(period_ns - each_ns)
            ),
        }
    });
    [one, busy].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Groups above the highest that can be seen.
fn above(examined: &Examined) -> Option<Draft> {
    let groups = &examined.survey.groups;
    let levels = groups.cpu.value()?;
    if groups.sees_root.value() != Some(&false) {
        return None;
    }
    let own = levels.iter().filter_map(|level| Some(level.throttling.value()?.throttled_ns));
    let own_ns = own.fold(0, u64::saturating_add);
    let local_ns = levels.first().and_then(|level| level.throttled_local_ns.value()).copied();
    let found = "missing: groups above this container's cannot be seen from inside";
    let fix = "on the host, look at cpu.max (cpu.cfs_quota_us) of every group above the container's";
    Some(match local_ns {
        Some(local_ns) if local_ns > own_ns => bad("cpu-quota-above", found)
            .effect(format!(
                "one of them has a quota: it held this group back for {} so far (cpu.stat.local)",
                time((local_ns - own_ns) as f64)
            ))
            .fix(fix),
        _ => note("cpu-quota-above", found).fix(fix),
    })
}

fn weights(levels: &[CpuGroup]) -> Option<Draft> {
    // Rounding of the kernel's own conversions between v1 and v2.
    const SAME: f64 = 0.02;
    let set = levels.iter().find_map(|level| {
        let weight = *level.weight.value()?;
        ((weight - 1.0).abs() > SAME).then_some((level, weight))
    });
    let (level, weight) = set?;
    let found = format!("{} has {} times the usual CPU weight", group(&level.path), short(weight));
    let draft = note("cpu-weight", found);
    Some(draft.effect("next to busy neighbours it gets its weight's share, not an equal one"))
}

/// What holds a group back without a quota.
fn clamps(levels: &[CpuGroup]) -> Vec<Draft> {
    let mut drafts = Vec::new();
    if let Some(level) = levels.iter().find(|level| level.idle.value() == Some(&true)) {
        drafts.push(
            bad(
                "cpu-idle",
                format!("{} has cpu.idle: it runs when nobody else wants to", group(&level.path)),
            )
            .effect("whoever else wants a CPU takes it: throughput is what the others leave")
            .fix("echo 0 > cpu.idle of the group, or another group"),
        );
    }
    let bound = |level: &CpuGroup| level.uclamp_max_ratio.value().copied().filter(|ratio| *ratio < 1.0);
    if let Some((level, ratio)) = levels.iter().find_map(|level| Some((level, bound(level)?))) {
        let found = format!(
            "{} counts as at most {} busy when the clock is chosen (cpu.uclamp.max)",
            group(&level.path),
            percent(ratio)
        );
        drafts.push(
            warn("uclamp", found)
                .effect("with the governor schedutil the clock stays down, and on machines of two kinds of core it stays on slow ones")
                .fix("echo max > cpu.uclamp.max of the group"),
        );
    }
    drafts
}

/// A partition that the kernel could not make.
fn partition(levels: &[CpusetGroup]) -> Option<Draft> {
    let invalid = |level: &&CpusetGroup| level.partition.value().is_some_and(|kind| kind.contains("invalid"));
    let level = levels.iter().find(invalid)?;
    let kind = level.partition.value().map_or("", String::as_str);
    Some(
        warn("cpu-partition", format!("{}: the partition of its CPUs is {kind}", group(&level.path)))
            .effect("its CPUs are shared with others as if nobody had asked for them")
            .fix("CPUs that no other group has, in cpuset.cpus and in those of the groups above"),
    )
}

fn cpu_set(examined: &Examined, allowed: &str, count: usize) -> Draft {
    match examined.topology.online.value().map(|online| online.len()) {
        Some(online) if count < online => {
            let by = match smallest_set(examined, count) {
                Some(path) => format!(" ({} allows no more)", group(&path)),
                None => String::new(),
            };
            note("cpu-set", format!("{} of {online} may be used: {allowed}{by}", things(count, "CPU")))
                .effect("others may run there too; what sizes itself by the machine starts too many threads")
                .fix(format!("GOMAXPROCS={count}, -XX:ActiveProcessorCount={count}"))
        }
        _ => ok("cpu-set", format!("every CPU may be used ({allowed})")),
    }
}

fn smallest_set(examined: &Examined, count: usize) -> Option<String> {
    let levels = examined.survey.groups.cpuset.value()?;
    // The highest group that has no more than this is the one that took the others away.
    let holds = |cpus: &Reading<tare_model::CpuSet>| cpus.value().is_some_and(|cpus| cpus.len() <= count);
    levels.iter().rev().find(|level| holds(&level.cpus)).map(|level| level.path.clone())
}

/// Every limit that is nearly reached, wherever it is, and the smallest, which programs should fit into: a group above
/// may be full of what others hold.
fn memory(levels: &[MemoryGroup]) -> Vec<Draft> {
    let limited: Vec<(&MemoryGroup, u64)> =
        levels.iter().filter_map(|level| Some((level, *level.limit_bytes.value()?))).collect();
    let smallest = limited.iter().min_by_key(|(_, bytes)| *bytes).map(|(level, _)| &level.path);
    let known = |(level, limit): &&(&MemoryGroup, u64)| {
        used(level, *limit).is_none_or(|used| used > MEMORY_FULL) || Some(&level.path) == smallest
    };
    let mut drafts: Vec<Draft> =
        limited.iter().filter(known).map(|(level, limit)| memory_of(level, *limit)).collect();
    drafts.extend(levels.iter().filter_map(|level| match &level.limit_bytes {
        Reading::Missing(missing) => Some(unknown("memory-limit", missing)),
        _ => None,
    }));
    if drafts.is_empty() {
        drafts.push(
            note("memory-limit", "no memory limit on the path to the root")
                .effect("Go and Java size their heaps by GOGC and by the whole machine: collections come when they like")
                .fix("set GOMEMLIMIT (-Xmx) to what the program shall have"),
        );
    }
    drafts
}

/// Share of a limit.
fn used(level: &MemoryGroup, limit: u64) -> Option<f64> {
    level.used_bytes.value().map(|used| *used as f64 / limit.max(1) as f64)
}

fn memory_of(level: &MemoryGroup, limit: u64) -> Draft {
    let used = used(level, limit);
    let in_use = used.map_or_else(
        || "; how much is in use is not known".to_owned(),
        |used| format!(", {} in use", percent(used)),
    );
    let found = format!("{} may hold {}{in_use}", group(&level.path), bytes(limit));
    let fix = format!("GOMEMLIMIT={}, or -Xmx, below it", limit / 10 * 9);
    match used {
        Some(used) if used > MEMORY_FULL => warn("memory-limit", found)
            .effect("its page cache is thrown out and read again, and beyond the limit it is killed")
            .fix("raise the limit, or free its page cache"),
        _ => note("memory-limit", found)
            .effect("the page cache counts; beyond it the program is killed")
            .fix(fix),
    }
}

fn group(path: &str) -> String {
    if path == "/" { "the topmost group".to_owned() } else { format!("group {path}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::check::Level;

    fn level(path: &str, limit: Reading<u64>, used_bytes: u64) -> MemoryGroup {
        let high_bytes = Reading::NotApplicable { not_applicable: "no limit".into() };
        let used_bytes = Reading::Measured(used_bytes);
        let page_cache_bytes = Reading::Measured(0);
        MemoryGroup { path: path.into(), limit_bytes: limit, high_bytes, used_bytes, page_cache_bytes }
    }

    fn known(levels: &[MemoryGroup]) -> Vec<(Level, String)> {
        memory(levels).into_iter().map(|draft| (draft.0.level, draft.0.found)).collect()
    }

    #[test]
    fn a_full_group_above_is_reported_and_so_is_what_cannot_be_read() {
        const GIB: u64 = 1 << 30;
        let inner = level("/a/b", Reading::Measured(GIB), GIB / 1000);
        let outer = level("/a", Reading::Measured(GIB / 10 * 11), GIB / 10 * 11 - 1);
        let hidden = level("/", Reading::missing("/x may not be read"), 0);
        let found = known(&[inner.clone(), outer, hidden.clone()]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], (Level::Note, "group /a/b may hold 1 GiB, 0.1 % in use".into()));
        assert_eq!(found[1], (Level::Warn, "group /a may hold 1.1 GiB, 100 % in use".into()));
        assert_eq!(found[2], (Level::Note, "missing: /x may not be read".into()));
        assert_eq!(known(&[hidden]).len(), 1);
        let roomy = level("/a", Reading::Measured(2 * GIB), GIB);
        assert_eq!(known(&[inner, roomy]).len(), 1);
        assert!(known(&[]).iter().all(|(level, found)| *level == Level::Note && found.starts_with("no ")));
    }

    #[test]
    fn one_cpu_is_one() {
        let level = CpuGroup {
            path: "/a".into(),
            quota: Reading::missing("x"),
            weight: Reading::missing("x"),
            idle: Reading::missing("not read"),
            uclamp_min_ratio: Reading::missing("not read"),
            uclamp_max_ratio: Reading::missing("not read"),
            throttling: Reading::missing("x"),
            throttled_local_ns: Reading::missing("x"),
        };
        let found = |quota_ns, period_ns| quota_of(&level, Quota { quota_ns, period_ns }, Some(4)).0;
        let one = found(100_000_000, 100_000_000);
        assert_eq!(one.found, "group /a may use 1 CPU over 100 ms");
        let little = found(1_000_000, 1_000_000_000);
        assert!(
            little.effect.starts_with("after 1 ms of work everything stops for 999 ms; "),
            "{}",
            little.effect
        );
        assert!(little.effect.ends_with("after 250 µs for 1 s"), "{}", little.effect);
    }
}
