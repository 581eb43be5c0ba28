//! `/proc/interrupts`: devices' interrupts, and those that CPUs have without a device.
//!
//! x86 gives numbers to devices and names to the others. ARM, RISC-V, POWER and Xen give numbers to timers and to what
//! CPUs send each other as well: these are known by the words behind the counts.

use super::files;
use crate::root::{Root, nonsense};
use tare_model::Missing;
use tare_model::survey::{Interrupt, LocalInterrupt, LocalKind};

/// Interrupts of the machine that are looked at.
const INTERRUPTS_MAX: usize = 1024;

/// All of them.
#[derive(Clone)]
pub(super) struct Interrupts {
    pub devices: Vec<Interrupt>,
    pub local: Vec<LocalInterrupt>,
}

pub(super) fn read(root: &Root) -> Result<Interrupts, Missing> {
    let text = root.text("/proc/interrupts")?;
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus = columns.filter(|column| column.starts_with("CPU")).count();
    if cpus == 0 {
        return Err(nonsense("/proc/interrupts".as_ref(), &text));
    }
    let mut all = Interrupts { devices: Vec::new(), local: Vec::new() };
    for line in lines.filter_map(|line| Line::read(line, cpus)) {
        match (line.id.parse(), line.local()) {
            (Ok(id), None) if all.devices.len() < INTERRUPTS_MAX => all.devices.push(Interrupt {
                id,
                name: line.name,
                cpus: affinity(root, id).into(),
                count: line.count,
            }),
            (Ok(_), None) => {}
            (_, kind) if all.local.len() < INTERRUPTS_MAX => all.local.push(LocalInterrupt {
                id: line.id.to_string(),
                kind: kind.unwrap_or(LocalKind::Other),
                name: line.name,
                count: line.count,
            }),
            _ => {}
        }
    }
    Ok(all)
}

fn affinity(root: &Root, id: u32) -> Result<tare_model::CpuSet, Missing> {
    files::cpus(root, &format!("/proc/irq/{id}/effective_affinity_list"))
        .and_then(|cpus| if cpus.is_empty() { Err(Missing::new("not set")) } else { Ok(cpus) })
        .or_else(|_| files::cpus(root, &format!("/proc/irq/{id}/smp_affinity_list")))
}

/// ` 36:  0  2210870 PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0`, `LOC:  90  80  Local timer interrupts`
struct Line<'a> {
    id: &'a str,
    count: u64,
    /// The controller, for those with numbers.
    chip: &'a str,
    name: String,
}

impl Line<'_> {
    fn read(line: &str, cpus: usize) -> Option<Line<'_>> {
        let (id, rest) = line.trim_start().split_once(':')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let counts: Vec<u64> = fields.iter().take(cpus).map_while(|field| field.parse().ok()).collect();
        if id.is_empty() || counts.is_empty() {
            return None;
        }
        let words = &fields[counts.len()..];
        let count = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let numbered = id.bytes().all(|byte| byte.is_ascii_digit());
        let name = if numbered { &words[before_name(words)..] } else { words };
        Some(Line { id, count, chip: words.first().copied().unwrap_or_default(), name: name.join(" ") })
    }

    /// What it is for, if it is no device's.
    fn local(&self) -> Option<LocalKind> {
        let of_id = match self.id {
            "LOC" | "HVS" | "CLK" | "BCT" => Some(LocalKind::Timer),
            "RES" | "CAL" | "TLB" | "IWI" | "DBL" | "EXC" | "EMS" => Some(LocalKind::Ipi),
            id if id.starts_with("IPI") => Some(LocalKind::Ipi),
            _ => None,
        };
        let second = |kind: &str| self.chip.ends_with(kind);
        let words = || self.name.split([' ', '-', '_']).map(str::to_ascii_lowercase);
        let is_timer = words().any(|word| {
            ["timer", "vtimer", "ptimer", "tick0", "hpet"]
                .contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()))
                || word.starts_with("hpet")
        });
        let is_counter = words().any(|word| word == "pmu" || word == "pmuv3");
        match () {
            () if of_id.is_some() => of_id,
            () if second("-ipi") || self.chip.contains("IPI") || self.name.starts_with("IPI") => {
                Some(LocalKind::Ipi)
            }
            () if is_timer => Some(LocalKind::Timer),
            () if is_counter || second("-virq") => Some(LocalKind::Other),
            () if self.chip == "xen-percpu" && !self.name.is_empty() => Some(LocalKind::Ipi),
            () => None,
        }
    }
}

/// How many words stand before the name: a controller, a number there, and how it is triggered, as far as they are
/// known.
fn before_name(words: &[&str]) -> usize {
    let trigger = ["Level", "Edge", "None"];
    if let Some(at) = words.iter().take(5).position(|word| trigger.contains(word)) {
        return (at + 1).min(words.len());
    }
    let first = words.first().copied().unwrap_or_default();
    let is_whole =
        ["-edge", "-fasteoi", "-level", "-virq", "-ipi", "-event"].iter().any(|end| first.ends_with(end));
    let wanted = if is_whole { 1 } else { 2 };
    // A device without a driver has no name.
    if words.len() > wanted { wanted } else { words.len().saturating_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_behind_what_every_controller_tells() {
        for (line, name, local) in [
            (" 36: 0 22 PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0", "virtio1-req.0", None),
            ("  0: 40 0 IO-APIC 2-edge timer", "timer", Some(LocalKind::Timer)),
            ("  0: 40 0 IO-APIC-edge timer", "timer", Some(LocalKind::Timer)),
            (" 25: 1 2 PCI-MSI-edge eth0-TxRx-0", "eth0-TxRx-0", None),
            (" 11: 10 20 GICv3 30 Level arch_timer", "arch_timer", Some(LocalKind::Timer)),
            (" 12: 0 0 GICv3 27 Level kvm guest vtimer", "kvm guest vtimer", Some(LocalKind::Timer)),
            (" 14: 3 4 GICv3 23 Level arm-pmu", "arm-pmu", Some(LocalKind::Other)),
            (" 60: 5 7 ITS-MSI 524288 Edge nvme0q0", "nvme0q0", None),
            ("  5: 9 9 RISC-V INTC 5 Edge riscv-timer", "riscv-timer", Some(LocalKind::Timer)),
            (" 10: 9 9 SiFive PLIC 10 Edge ttyS0", "ttyS0", None),
            (" 16: 5 4 XIVE-IPI 0 Edge IPI-0", "IPI-0", Some(LocalKind::Ipi)),
            (" 48: 1 0 xen-percpu -virq timer0", "timer0", Some(LocalKind::Timer)),
            (" 49: 1 0 xen-percpu -ipi resched0", "resched0", Some(LocalKind::Ipi)),
            (" 49: 1 0 xen-percpu-ipi resched0", "resched0", Some(LocalKind::Ipi)),
            (" 48: 1 0 xen-percpu-virq timer0", "timer0", Some(LocalKind::Timer)),
            (" 71: 2 0 xen-dyn -event vif1.0-q0-tx", "vif1.0-q0-tx", None),
            (" 71: 2 0 xen-dyn-event eth0", "eth0", None),
            ("  3: 4 2 vio virtio0-input", "virtio0-input", None),
            ("LOC: 9 8 Local timer interrupts", "Local timer interrupts", Some(LocalKind::Timer)),
            ("RES: 9 8 Rescheduling interrupts", "Rescheduling interrupts", Some(LocalKind::Ipi)),
            ("IPI1: 7 6 Function call interrupts", "Function call interrupts", Some(LocalKind::Ipi)),
            ("CLK: 1 1 [EXT] Clock Comparator", "[EXT] Clock Comparator", Some(LocalKind::Timer)),
        ] {
            let line = Line::read(line, 2).unwrap();
            assert_eq!((line.name.as_str(), line.local()), (name, local), "{} {}", line.id, line.chip);
        }
        for nothing in ["", ":", "x", "Err:", "9: a b"] {
            assert!(Line::read(nothing, 2).is_none(), "{nothing}");
        }
        assert_eq!(Line::read("ERR: 3", 2).map(|line| line.count), Some(3));
    }
}
