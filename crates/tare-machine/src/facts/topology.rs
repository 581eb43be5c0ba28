//! CPUs and where each stands: package, core, node, siblings.

use crate::root::Root;
use tare_record::machine::CpuFacts;
use tare_record::{Missing, Reading};
use tare_sys::affinity::parse_list;

const CPU_DIR: &str = "/sys/devices/system/cpu";

/// Online CPUs, ascending.
///
/// # Errors
/// The list cannot be read.
pub fn online_cpus(root: &Root) -> Result<Vec<u32>, Missing> {
    let text = root.text(format!("{CPU_DIR}/online"))?;
    parse_list(&text).ok_or_else(|| Missing::new(format!("{CPU_DIR}/online holds {:?}", text.trim())))
}

pub(super) fn cpus(root: &Root) -> Vec<CpuFacts> {
    let nodes = nodes(root);
    let facts = |cpu: u32| {
        let topology = |file: &str| format!("{CPU_DIR}/cpu{cpu}/topology/{file}");
        let siblings = root.text(topology("thread_siblings_list")).and_then(|text| {
            // A list without the CPU itself would make it nobody's sibling.
            let list = parse_list(&text).filter(|list| list.contains(&cpu));
            list.ok_or_else(|| {
                Missing::new(format!("CPU {cpu}: thread_siblings_list holds {:?}", text.trim()))
            })
        });
        CpuFacts {
            cpu,
            package: root.value(topology("physical_package_id")).into(),
            core: root.value(topology("core_id")).into(),
            node: node_of(&nodes, cpu),
            siblings: siblings.into(),
        }
    };
    online_cpus(root).unwrap_or_default().into_iter().map(facts).collect()
}

/// Each NUMA node and its CPUs.
fn nodes(root: &Root) -> Result<Vec<(u32, Vec<u32>)>, Missing> {
    const DIR: &str = "/sys/devices/system/node";
    let number = |name: &String| name.strip_prefix("node")?.parse::<u32>().ok();
    let cpus = |node: u32| parse_list(&root.text(format!("{DIR}/node{node}/cpulist")).ok()?);
    let names = root.names(DIR)?;
    Ok(names.iter().filter_map(number).filter_map(|node| Some((node, cpus(node)?))).collect())
}

fn node_of(nodes: &Result<Vec<(u32, Vec<u32>)>, Missing>, cpu: u32) -> Reading<u32> {
    match nodes {
        Err(missing) => Reading::Missing(missing.clone()),
        Ok(nodes) => match nodes.iter().find(|(_, cpus)| cpus.contains(&cpu)) {
            Some((node, _)) => Reading::Measured(*node),
            None => Reading::missing(format!("no NUMA node lists CPU {cpu}")),
        },
    }
}

/// The processor's own name; on ARM, which has none, implementer and part.
pub(super) fn cpu_model(root: &Root) -> Result<String, Missing> {
    let text = root.text("/proc/cpuinfo")?;
    let field = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let value = line.split_once(':')?.1.trim();
        (!value.is_empty()).then(|| value.to_string())
    };
    field("model name")
        .or_else(|| Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?)))
        .ok_or_else(|| Missing::new("/proc/cpuinfo names no model"))
}
