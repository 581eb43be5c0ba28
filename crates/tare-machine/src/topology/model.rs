//! What a processor is called. x86 and LoongArch have a name; elsewhere the name is in numbers, or in the device tree.

use super::cpuinfo::field;
use super::midr;
use crate::root::Root;
use tare_model::Missing;

/// Machines of IBM's mainframes by their type, and the processor in them.
const MAINFRAMES: &[(&str, &str)] = &[
    ("2064", "z900"),
    ("2066", "z800"),
    ("2084", "z990"),
    ("2086", "z890"),
    ("2094", "z9 EC"),
    ("2096", "z9 BC"),
    ("2097", "z10 EC"),
    ("2098", "z10 BC"),
    ("2817", "z196"),
    ("2818", "z114"),
    ("2827", "zEC12"),
    ("2828", "zBC12"),
    ("2964", "z13"),
    ("2965", "z13s"),
    ("3906", "z14"),
    ("3907", "z14 ZR1"),
    ("8561", "z15"),
    ("8562", "z15 T02"),
    ("3931", "z16"),
    ("3932", "z16 A02"),
    ("9175", "z17"),
];

/// The processor's own name; several, joined by ` + `, where its cores are of several designs.
///
/// # Errors
/// Why it is not known.
pub(crate) fn read(root: &Root) -> Result<String, Missing> {
    let text = root.text("/proc/cpuinfo")?;
    let known = |key: &str| field(&text, key).map(str::to_string);
    // ARM first: its kernels print "ARMv8 Processor rev 0" for a model to 32-bit programs.
    designs(&text)
        .or_else(|| known("model name"))
        .or_else(|| known("Model Name"))
        .or_else(|| mainframe(&text))
        .or_else(|| risc_v(root, &text))
        .or_else(|| power(&text))
        .or_else(|| known("cpu model"))
        .ok_or_else(|| Missing::new("/proc/cpuinfo names no model"))
}

/// Once each, those of the lowest CPUs first.
fn designs(text: &str) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for design in midr::of_cpuinfo(text).values() {
        let name = design.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.join(" + "))
}

/// `processor 0: version = FF,  identification = 2733E8,  machine = 2964`
fn mainframe(text: &str) -> Option<String> {
    field(text, "vendor_id").filter(|vendor| *vendor == "IBM/S390")?;
    let line = text.lines().find(|line| line.starts_with("processor "))?;
    let kind = line.split_once("machine = ")?.1.trim();
    let name = MAINFRAMES.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name);
    let is_number = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_number.then(|| name.map_or_else(|| format!("IBM/S390 {kind}"), |name| format!("IBM {name} ({kind})")))
}

/// `POWER9 (architected), altivec supported`
fn power(text: &str) -> Option<String> {
    let cpu = field(text, "cpu")?;
    let name = cpu.split(',').next().unwrap_or(cpu).trim();
    (!name.is_empty()).then(|| name.to_string())
}

/// The core's design, else the numbers of its maker; a maker of number 0 is nobody.
fn risc_v(root: &Root, text: &str) -> Option<String> {
    if field(text, "isa").is_none() && field(text, "hart").is_none() {
        return None;
    }
    let design = field(text, "uarch").map(str::to_string).filter(|name| name != "unknown");
    let of_tree = || {
        let properties = ["/proc/device-tree", "/sys/firmware/devicetree/base"]
            .map(|dir| format!("{dir}/cpus/cpu@0/compatible"));
        let text = properties.iter().find_map(|path| root.text(path).ok())?;
        let names = text.split('\0').map(str::trim);
        let is_name = |name: &&str| name.contains(',') && name.bytes().all(|byte| byte.is_ascii_graphic());
        names.clone().find(is_name).map(str::to_string)
    };
    let numbers = || {
        let number =
            |key: &str| field(text, key).filter(|number| number.starts_with("0x") && *number != "0x0");
        Some(format!("RISC-V mvendorid {} marchid {}", number("mvendorid")?, number("marchid")?))
    };
    design.or_else(of_tree).or_else(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_names_on_every_architecture() {
        let name = |text: &str| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("proc")).unwrap();
            std::fs::write(dir.path().join("proc/cpuinfo"), text).unwrap();
            read(&Root::at(dir.path())).unwrap_or_else(|missing| format!("missing: {}", missing.why))
        };
        let arm = |cpu: u32, part: &str| {
            format!("processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
        };
        let phone = [arm(0, "0xd05"), arm(1, "0xd05"), arm(2, "0xd0d")].concat();
        let s390 =
            "vendor_id       : IBM/S390\nprocessor 0: version = FF,  identification = 2733E8,  machine = ";
        let cases = [
            (arm(0, "0xd0c"), "Neoverse-N1"),
            (phone, "Cortex-A55 + Cortex-A77"),
            (format!("model name\t: ARMv8 Processor rev 3 (v8l)\n{}", arm(0, "0xd08")), "Cortex-A72"),
            (format!("{s390}2964\n"), "IBM z13 (2964)"),
            (format!("{s390}1234\n"), "IBM/S390 1234"),
            (
                "processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\n".into(),
                "POWER9 (architected)",
            ),
            (
                "processor\t: 0\nhart\t: 1\nisa\t: rv64imafdc\nuarch\t: sifive,u74-mc\n".into(),
                "sifive,u74-mc",
            ),
            (
                "hart: 0\nisa: rv64gc\nmvendorid\t: 0x5b7\nmarchid\t: 0x8000000009140d00\n".into(),
                "RISC-V mvendorid 0x5b7 marchid 0x8000000009140d00",
            ),
            (
                "hart: 0\nisa: rv64gc\nmvendorid: 0x0\nmarchid: 0x0\n".into(),
                "missing: /proc/cpuinfo names no model",
            ),
            (
                "Model Name\t\t: Loongson-3A5000-HV\nCPU Family\t: Loongson-64bit\n".into(),
                "Loongson-3A5000-HV",
            ),
            (
                "model name\t: AMD EPYC 7763 64-Core Processor\ncpu\t: 1\n".into(),
                "AMD EPYC 7763 64-Core Processor",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(name(&text), wanted, "{text}");
        }
    }
}
