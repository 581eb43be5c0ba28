//! The processor beyond its name.

use super::{files, resctrl};
use crate::root::Root;
use tare_model::survey::{Mitigation, Processor};
use tare_model::{Missing, Reading};

const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";

pub(super) fn read(root: &Root) -> Processor {
    let cpuinfo = root.text("/proc/cpuinfo");
    let field = |keys: &[&str]| -> Result<String, Missing> {
        let text = cpuinfo.as_ref().map_err(Missing::clone)?;
        let value = keys.iter().find_map(|key| {
            let line = text.lines().find(|line| line.split(':').next().map(str::trim) == Some(key))?;
            let value = line.split_once(':')?.1.trim();
            (!value.is_empty()).then(|| value.to_string())
        });
        value.ok_or_else(|| Missing::new(format!("/proc/cpuinfo has no {}", keys[0])))
    };
    let features = field(&["flags", "Features", "features", "isa"]);
    Processor {
        vendor: field(&["vendor_id", "CPU implementer", "vendor"]).into(),
        microcode: field(&["microcode"]).into(),
        features: features.map(|text| text.split_ascii_whitespace().map(str::to_string).collect()).into(),
        smt: smt(root),
        cache_parts: resctrl::read(root).into(),
        mitigations: mitigations(root).into(),
    }
}

fn smt(root: &Root) -> Reading<bool> {
    match files::word(root, "/sys/devices/system/cpu/smt/control").as_deref() {
        Ok("on") => Reading::Measured(true),
        Ok("off" | "forceoff") => Reading::Measured(false),
        Ok(word @ ("notsupported" | "notimplemented")) => {
            Reading::NotApplicable { not_applicable: format!("this machine has no SMT to switch ({word})") }
        }
        Ok(word) => Reading::missing(format!("smt/control holds {word:?}")),
        Err(missing) => Reading::Missing(missing.clone()),
    }
}

fn mitigations(root: &Root) -> Result<Vec<Mitigation>, Missing> {
    let names = root.names(VULNERABILITIES)?;
    let state = |name: &str| {
        let path = format!("{VULNERABILITIES}/{name}");
        let text = root.text(&path)?;
        let known = ["Not affected", "Vulnerable", "Mitigation", "KVM", "Unknown", "Processor vulnerable"];
        let text = text.trim();
        match known.iter().any(|start| text.starts_with(start)) {
            true => Ok(text.to_string()),
            false => Err(crate::root::nonsense(path.as_ref(), text)),
        }
    };
    Ok(names.into_iter().map(|name| Mitigation { state: state(&name).into(), name }).collect())
}
