//! The machine in full.

use super::execution;
use super::source::{Medium, Section, Source};
use crate::block::Block;
use crate::format::{bytes, hertz, seconds};
use tare_model::Reading;

pub(crate) static SECTION: Section = Section { title: "Machine", media: &[Medium::Page], build };

const COUNTERS: &str = "hardware counters";

fn build(source: &Source) -> Vec<Block> {
    let machine = &source.outcome.conditions.machine;
    let regime = &machine.regime;
    let yes = |known: &Reading<bool>| reported(known, |yes| if *yes { "yes" } else { "no" }.into());
    let text = |known: &Reading<String>| reported(known, Clone::clone);
    let online: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.cpu).collect();
    let pairs = [
        ("processor", text(&machine.cpu_model)),
        ("CPUs", super::threads::ranges(&online)),
        ("memory", reported(&machine.memory_bytes, |size| bytes(*size as f64))),
        ("kernel", machine.kernel.clone()),
        ("virtualization", text(&machine.virtualization)),
        ("clocksource", text(&machine.clocksource)),
        ("governor", text(&machine.governor)),
        ("scheduler tick", reported(&machine.tick_hz, |hz| hertz(f64::from(*hz)))),
        ("base slice", reported(&machine.base_slice_ns, |ns| seconds(*ns as f64 / 1e9))),
        (COUNTERS, yes(&machine.pmu)),
        ("CPU accounting", text(&regime.cpu_accounting)),
        ("interrupts kept out of run", yes(&regime.irq_time_accounting)),
        ("steal kept out of run", yes(&regime.paravirt_time_accounting)),
        ("cgroup", text(&regime.cgroup)),
    ];
    // That there are none is said with the reason.
    let is_said = machine.pmu.value() == Some(&false) && execution::says_why_none(source);
    let pairs = pairs.into_iter().filter(|(label, _)| !(is_said && *label == COUNTERS));
    vec![Block::Pairs(pairs.map(|(label, value)| (label.to_string(), value)).collect())]
}

fn reported<T>(known: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    match known {
        Reading::Measured(value) => words(value),
        Reading::Missing(missing) => format!("missing: {}", missing.why),
        Reading::NotApplicable { not_applicable } => format!("does not apply: {not_applicable}"),
    }
}
