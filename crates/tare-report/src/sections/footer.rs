//! What the figures rest on, and what taking them took.

use super::source::{Medium, Section, Source};
use super::text::join;
use super::threads::ranges;
use crate::block::{Block, Text};
use crate::format::{bytes, count, hertz, percent, seconds};
use crate::words;
use std::collections::BTreeMap;
use tare_model::Reading;

pub(crate) static SECTION: Section = Section { title: "", media: &[Medium::Terminal], build };

/// How well the interrupts of a CPU must be known for that to need no words.
const IRQ_ERROR_SAID: f64 = 0.005;

fn build(source: &Source) -> Vec<Block> {
    let lines = [accounting(source), own_cost(source), machine(source)];
    lines.into_iter().filter(|line| !line.is_empty()).map(|line| Block::Line(Text::dim(line))).collect()
}

fn accounting(source: &Source) -> String {
    let outcome = source.outcome;
    let mut reported = vec![if outcome.verdict.valid { "valid" } else { "not valid" }.to_string()];
    let mut levels: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for trial in &outcome.trials {
        let level = levels.entry(trial.level.as_str()).or_default();
        *level = (level.0 + 1, level.1 + trial.elapsed_s);
    }
    let level = |(name, (trials, length)): (&&str, &(usize, f64))| {
        let noun = match *name {
            "run" => "run".to_string(),
            "observed" => "observed run".to_string(),
            "asked" => "trial".to_string(),
            other => format!("{other} trial"),
        };
        format!("{} of {}", words::things(*trials, &noun), seconds(length / *trials as f64))
    };
    reported.push(levels.iter().map(level).collect::<Vec<_>>().join(" + "));
    reported.push(match outcome.accounting.residual_ratio {
        Some(ratio) => format!("accounting open by {}", percent(ratio)),
        None => "accounting not checked".into(),
    });
    let errors = outcome.accounting.cpus.iter().filter_map(|cpu| Some((cpu.irq_error?, cpu.cpu)));
    if let Some((error, cpu)) =
        errors.filter(|(error, _)| *error > IRQ_ERROR_SAID).max_by(|one, other| one.0.total_cmp(&other.0))
    {
        reported.push(format!("interrupts of CPU {cpu} known to within {} of its time", percent(error)));
    }
    if let Reading::Measured(accounting) = &outcome.accounting.regime.cpu_accounting {
        let inside = match outcome.accounting.regime.irq_time_accounting {
            Reading::Measured(true) => ", interrupts outside run",
            Reading::Measured(false) => ", interrupts inside run",
            _ => "",
        };
        reported.push(format!("{accounting} accounting{inside}"));
    }
    let clocks: Vec<f64> = outcome.trials.iter().filter_map(|trial| trial.clock_hz).collect();
    reported.push(match tare_stats::median(&clocks) {
        Some(clock) => format!("clock {}", hertz(clock)),
        None => "clock not measured".into(),
    });
    join(reported)
}

/// Which threads took it on which CPUs stands in the table of threads.
fn own_cost(source: &Source) -> String {
    let Some(cost) = &source.outcome.conditions.own_cost else { return String::new() };
    let place = |cpus: &[u32]| match cpus {
        [] => String::new(),
        [one] => format!(" on CPU {one}"),
        several => format!(" on CPUs {}", ranges(several)),
    };
    join([
        match cost.observers_cpus.clone().ok() {
            Ok(cpus) => format!("watching took {} of a CPU{}", percent(cpus), place(&cost.observers_ran_on)),
            Err(missing) => format!("what watching took is not known: {}", missing.why),
        },
        match cost.observers_on_sut_cpus.value() {
            Some(share) if *share > 0.0 => format!("{} on the server's CPUs", percent(*share)),
            _ => String::new(),
        },
        match cost.generator_cpus {
            Some(cpus) => format!("making load {} CPUs{}", count(cpus), place(&cost.generator_ran_on)),
            None => String::new(),
        },
        format!("{} recorded per second", bytes(cost.recorded_bytes_hz)),
    ])
}

fn machine(source: &Source) -> String {
    let machine = &source.outcome.conditions.machine;
    let cpus = words::things(machine.cpus.len(), "CPU");
    let reported = [
        machine.cpu_model.value().cloned(),
        Some(cpus),
        machine.memory_bytes.value().map(|size| bytes(*size as f64)),
        machine.virtualization.value().cloned(),
        Some(format!("Linux {}", machine.kernel)),
        machine.tick_hz.value().map(|hz| format!("HZ {}", count(f64::from(*hz)))),
    ];
    join(reported.into_iter().flatten())
}
