//! ARM's main identification register: who made a core, and which design it is.

use super::files::CPU_DIR;
use crate::root::Root;
use std::collections::BTreeMap;
use tare_model::CpuSet;

/// Maker and part number of a core; steppings of one design are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Design {
    maker: u32,
    part: u32,
}

/// Of each of these CPUs, as far as `/proc/cpuinfo` or the register itself tells.
pub(super) fn read(root: &Root, cpus: &CpuSet) -> BTreeMap<u32, Design> {
    let mut all = of_cpuinfo(&root.text("/proc/cpuinfo").unwrap_or_default());
    all.retain(|cpu, _| cpus.contains(*cpu));
    for cpu in cpus.iter().filter(|cpu| !all.contains_key(cpu)).collect::<Vec<_>>() {
        if let Some(design) = of_register(root, cpu) {
            all.insert(cpu, design);
        }
    }
    all
}

/// A block for each CPU that is online; kernels for old programs print one block in all, which tells of its own alone.
pub(super) fn of_cpuinfo(text: &str) -> BTreeMap<u32, Design> {
    let mut all = BTreeMap::new();
    let (mut cpu, mut maker) = (None, None);
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim() {
            "processor" => (cpu, maker) = (value.trim().parse().ok(), None),
            "CPU implementer" => maker = hexadecimal(value),
            "CPU part" => {
                if let (Some(cpu), Some(maker), Some(part)) = (cpu, maker, hexadecimal(value)) {
                    all.insert(cpu, Design { maker, part });
                }
            }
            _ => {}
        }
    }
    all
}

fn of_register(root: &Root, cpu: u32) -> Option<Design> {
    let text = root.text(format!("{CPU_DIR}/cpu{cpu}/regs/identification/midr_el1")).ok()?;
    let register = u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()?;
    let field = |from: u32, bits: u32| (register >> from) as u32 & ((1 << bits) - 1);
    Some(Design { maker: field(24, 8), part: field(4, 12) })
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

impl Design {
    /// `Cortex-A76`, `Neoverse-N1`; maker and part where no name is known.
    pub fn name(self) -> String {
        let known = NAMES.iter().find(|(maker, part, _)| (*maker, *part) == (self.maker, self.part));
        match known {
            Some((.., name)) => (*name).to_string(),
            None => format!("implementer {:#04x} part {:#05x}", self.maker, self.part),
        }
    }
}

/// What a design was made for, beside others of its time on one die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Size {
    /// To spare energy.
    Small,
    /// To be fast.
    Large,
    /// To be faster than the large ones beside it, at any price.
    Largest,
}

/// The size of a design of this name; `None` where it is not known.
pub(super) fn size(name: &str) -> Option<Size> {
    const SMALL: [&str; 10] = [
        "Cortex-A7",
        "Cortex-A32",
        "Cortex-A34",
        "Cortex-A35",
        "Cortex-A53",
        "Cortex-A55",
        "Cortex-A510",
        "Cortex-A520",
        "Kryo-3XX-Silver",
        "Kryo-4XX-Silver",
    ];
    let starts = |begin: &str| name.starts_with(begin);
    NAMES.iter().any(|(.., known)| *known == name).then(|| match () {
        () if SMALL.contains(&name) || starts("Icestorm") || starts("Blizzard") => Size::Small,
        () if starts("Cortex-X") => Size::Largest,
        () => Size::Large,
    })
}

/// Maker, part, name: as `lscpu` has them.
const NAMES: &[(u32, u32, &str)] = &[
    (0x41, 0xc07, "Cortex-A7"),
    (0x41, 0xc08, "Cortex-A8"),
    (0x41, 0xc09, "Cortex-A9"),
    (0x41, 0xc0d, "Cortex-A17"),
    (0x41, 0xc0e, "Cortex-A17"),
    (0x41, 0xc0f, "Cortex-A15"),
    (0x41, 0xd01, "Cortex-A32"),
    (0x41, 0xd02, "Cortex-A34"),
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd06, "Cortex-A65"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd0e, "Cortex-A76AE"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd43, "Cortex-A65AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4a, "Neoverse-E1"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4c, "Cortex-X1C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd83, "Neoverse-V3AE"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x43, 0x0a1, "ThunderX-88XX"),
    (0x43, 0x0af, "ThunderX2-99xx"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan-v110"),
    (0x48, 0xd02, "TaiShan-v120"),
    (0x48, 0xd40, "Cortex-A76"),
    (0x4e, 0x003, "Denver 2"),
    (0x4e, 0x004, "Carmel"),
    (0x50, 0x000, "X-Gene"),
    (0x51, 0x001, "Oryon"),
    (0x51, 0x800, "Falkor-V1/Kryo"),
    (0x51, 0x802, "Kryo-3XX-Gold"),
    (0x51, 0x803, "Kryo-3XX-Silver"),
    (0x51, 0x804, "Kryo-4XX-Gold"),
    (0x51, 0x805, "Kryo-4XX-Silver"),
    (0x51, 0xc00, "Falkor"),
    (0x53, 0x001, "exynos-m1"),
    (0x53, 0x002, "exynos-m3"),
    (0x53, 0x003, "exynos-m4"),
    (0x53, 0x004, "exynos-m5"),
    (0x61, 0x022, "Icestorm-M1"),
    (0x61, 0x023, "Firestorm-M1"),
    (0x61, 0x024, "Icestorm-M1-Pro"),
    (0x61, 0x025, "Firestorm-M1-Pro"),
    (0x61, 0x028, "Icestorm-M1-Max"),
    (0x61, 0x029, "Firestorm-M1-Max"),
    (0x61, 0x032, "Blizzard-M2"),
    (0x61, 0x033, "Avalanche-M2"),
    (0x6d, 0xd49, "Azure-Cobalt-100"),
    (0x70, 0x662, "FTC662"),
    (0x70, 0x663, "FTC663"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_tells_what_cpuinfo_tells() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sys/devices/system/cpu/cpu1/regs/identification");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("midr_el1"), "0x00000000413fd0c1\n").unwrap();
        let by_register = read(&Root::at(dir.path()), &CpuSet::first(2));
        let text =
            "processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor: x\nCPU part: 0x1\n";
        assert_eq!(by_register, of_cpuinfo(text));
        assert_eq!(by_register[&1].name(), "Neoverse-N1");
        assert_eq!(Design { maker: 0, part: 0x51 }.name(), "implementer 0x00 part 0x051");
    }
}
