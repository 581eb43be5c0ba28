//! Where cpufreq's policies are: groups of CPUs that share a clock.

use crate::root::Root;
use crate::topology::online_cpus;

const CPU_DIR: &str = "/sys/devices/system/cpu";

/// The number and the folder of each policy that has a CPU online, ascending. The kernel keeps the others and answers
/// "busy" to whoever reads them: captured trees have empty folders in their place.
pub(crate) fn policies(root: &Root) -> Vec<(u32, String)> {
    let dir = format!("{CPU_DIR}/cpufreq");
    let mut folders: Vec<(u32, String)> = numbered(root, &dir, "policy")
        .into_iter()
        .map(|number| (number, format!("{dir}/policy{number}")))
        .collect();
    if folders.is_empty() {
        // Kernels before 4.3, and some captured trees, have them below the CPUs alone.
        folders = numbered(root, CPU_DIR, "cpu")
            .into_iter()
            .map(|cpu| (cpu, format!("{CPU_DIR}/cpu{cpu}/cpufreq")))
            .filter(|(_, folder)| root.exists(folder))
            .collect();
    }
    let online = online_cpus(root).ok();
    let is_on = |cpu: u32| online.as_ref().is_none_or(|online| online.contains(&cpu));
    folders.retain(|(number, folder)| match root.text(format!("{folder}/affected_cpus")) {
        // Those of its CPUs that are online.
        Ok(cpus) => !cpus.trim().is_empty(),
        // It has the number of one of its CPUs.
        Err(_) => match root.text(format!("{folder}/related_cpus")) {
            Ok(cpus) => cpus.split_ascii_whitespace().flat_map(str::parse).any(is_on),
            Err(_) => is_on(*number),
        },
    });
    folders
}

fn numbered(root: &Root, dir: &str, prefix: &str) -> Vec<u32> {
    let names = root.names(dir).unwrap_or_default();
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
