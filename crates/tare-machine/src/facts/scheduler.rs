//! How threads take turns.

use super::files;
use super::kernel::{self, Config};
use crate::root::Root;
use tare_model::survey::{Discipline, Scheduler};
use tare_model::{Missing, Reading};

/// The first release whose fair scheduler is EEVDF.
const EEVDF_SINCE: (u32, u32) = (6, 6);
const DEBUG_DIR: &str = "/sys/kernel/debug/sched";

pub(super) fn read(root: &Root, config: &Config) -> Scheduler {
    let discipline = discipline(root);
    let latency_ns = match discipline {
        Ok(Discipline::Eevdf) => {
            Reading::NotApplicable { not_applicable: "EEVDF has a base slice and no latency target".into() }
        }
        _ => latency_ns(root).into(),
    };
    Scheduler {
        discipline: discipline.into(),
        sched_ext: sched_ext(root),
        latency_ns,
        preemption: preemption(root, config).into(),
        autogroup: files::switch(root, "/proc/sys/kernel/sched_autogroup_enabled").into(),
        schedstats: schedstats(root).into(),
        realtime_share: realtime_share(root).into(),
    }
}

fn discipline(root: &Root) -> Result<Discipline, Missing> {
    if files::scaled_positive(root, &format!("{DEBUG_DIR}/base_slice_ns"), 1).is_ok() {
        return Ok(Discipline::Eevdf);
    }
    if files::scaled_positive(root, &format!("{DEBUG_DIR}/min_granularity_ns"), 1).is_ok() {
        return Ok(Discipline::Cfs);
    }
    let release = kernel::release(root);
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= EEVDF_SINCE => Ok(Discipline::Eevdf),
        (Some(Ok(_)), Some(Ok(_))) => Ok(Discipline::Cfs),
        _ => Err(Missing::new(format!("the kernel's release reads {release:?}"))),
    }
}

fn sched_ext(root: &Root) -> Reading<String> {
    const DIR: &str = "/sys/kernel/sched_ext";
    match files::word(root, &format!("{DIR}/state")).as_deref() {
        Ok("disabled") => {
            Reading::NotApplicable { not_applicable: "no scheduler was loaded (sched_ext)".into() }
        }
        Ok(_) => files::word(root, &format!("{DIR}/root/ops")).into(),
        Err(missing) => Reading::Missing(missing.clone()),
    }
}

fn latency_ns(root: &Root) -> Result<u64, Missing> {
    // Before 5.13 these were sysctls.
    let paths = [format!("{DEBUG_DIR}/latency_ns"), "/proc/sys/kernel/sched_latency_ns".to_string()];
    paths.iter().find_map(|path| files::scaled_positive(root, path, 1).ok()).ok_or_else(|| {
        Missing::with_remedy(
            "the latency target is only shown in debugfs",
            "mount -t debugfs none /sys/kernel/debug, as root",
        )
    })
}

/// What is in force (debugfs), else what the command line or the build chose.
fn preemption(root: &Root, config: &Config) -> Result<String, Missing> {
    let known = |word: &str| ["none", "voluntary", "full", "lazy", "rt"].contains(&word);
    if let Ok(word) = files::chosen(root, &format!("{DEBUG_DIR}/preempt"), '(', ')') {
        return Ok(word);
    }
    let command_line = root.text("/proc/cmdline").unwrap_or_default();
    let asked = command_line.split_ascii_whitespace().rev().find_map(|word| word.strip_prefix("preempt="));
    if let Some(word) = asked.filter(|word| known(word)) {
        return Ok(word.to_string());
    }
    let built = [
        ("CONFIG_PREEMPT_RT", "rt"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_NONE", "none"),
    ];
    for (option, word) in built {
        if config.has(option)? {
            return Ok(word.to_string());
        }
    }
    let version = root.text("/proc/version")?;
    match version.contains("PREEMPT_RT") {
        true => Ok("rt".to_string()),
        false => Err(Missing::new("the kernel's configuration names no preemption model")),
    }
}

fn schedstats(root: &Root) -> Result<bool, Missing> {
    let text = root.text("/proc/self/schedstat")?;
    let fields: Option<Vec<u64>> = text.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
    match fields {
        Some(fields) if fields.len() == 3 => Ok(fields.iter().any(|field| *field > 0)),
        _ => Err(crate::root::nonsense("/proc/self/schedstat".as_ref(), &text)),
    }
}

fn realtime_share(root: &Root) -> Result<f64, Missing> {
    let runtime_us: i64 = root.value("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period_us = files::scaled_positive(root, "/proc/sys/kernel/sched_rt_period_us", 1)?;
    Ok(if runtime_us < 0 { 1.0 } else { (runtime_us as f64 / period_us as f64).min(1.0) })
}
