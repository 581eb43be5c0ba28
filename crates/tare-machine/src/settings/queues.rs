//! Which CPUs work off what a queue of a network device brings (RPS, RFS), and which CPUs send by which queue (XPS).
//!
//! `Documentation/networking/scaling.rst` of Linux. Loopback has one queue of each kind: RPS and RFS act on it, XPS does not.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::facts;
use crate::root::{Root, nonsense};
use crate::value::{self, Step};
use std::path::PathBuf;
use tare_model::{CpuSet, Missing};

const DEVICES: &str = "/sys/class/net";
const FLOWS: &str = "/proc/sys/net/core/rps_sock_flow_entries";
/// Most devices, and queues of one, that are read.
const DEVICES_MAX: usize = 1024;
const QUEUES_MAX: usize = 4096;
/// Most flows: the kernel takes more, and some bytes of memory for each.
const FLOWS_MAX: u32 = 1 << 23;
/// Digits of a word of a mask, as the kernel writes it.
const WORD_DIGITS: usize = 8;

/// A file of a queue, and what stands there.
struct Queue {
    path: PathBuf,
    shown: String,
}

/// A device with the files of its queues, in the order of their numbers.
struct Device {
    queues: Vec<Queue>,
}

/// The devices whose queues of a kind (`rx`, `tx`) have a file of this name that can be read; a device with one send queue refuses to say.
fn devices(root: &Root, kind: &str, file: &str) -> Result<Vec<Device>, Missing> {
    let mut devices = Vec::new();
    for name in root.names(DEVICES)?.into_iter().take(DEVICES_MAX) {
        let folder = format!("{DEVICES}/{name}/queues");
        let names = root.names(&folder).unwrap_or_default();
        let number = |name: &String| name.strip_prefix(kind)?.strip_prefix('-')?.parse::<u32>().ok();
        let mut numbers: Vec<u32> = names.iter().filter_map(number).take(QUEUES_MAX).collect();
        numbers.sort_unstable();
        let mut queues = Vec::new();
        for number in numbers {
            let path = PathBuf::from(format!("{folder}/{kind}-{number}/{file}"));
            if root.text(&path).is_ok() {
                queues.push(Queue { shown: value::read(root, &path)?, path });
            }
        }
        if !queues.is_empty() {
            devices.push(Device { queues });
        }
    }
    Ok(devices)
}

impl Queue {
    fn cpus(&self) -> Result<CpuSet, Missing> {
        CpuSet::from_mask(&self.shown).ok_or_else(|| nonsense(&self.path, &self.shown))
    }

    /// The step to these CPUs, written as wide as what stands there.
    fn to(&self, cpus: &CpuSet) -> Result<Option<Step>, Missing> {
        self.cpus()?;
        let wanted = mask(cpus, &self.shown).ok_or_else(|| {
            Missing::new(format!(
                "{} has no place for CPUs {cpus}: it holds {}",
                self.path.display(),
                self.shown
            ))
        })?;
        Ok(Step::change(&self.path, &self.shown, wanted))
    }
}

/// A mask of CPUs with as many digits as `shown` has; `None` where they do not suffice.
fn mask(cpus: &CpuSet, shown: &str) -> Option<String> {
    let digits = shown.bytes().filter(u8::is_ascii_hexdigit).count();
    let digit = |place: usize| {
        let bits = (0..4u32).filter(|bit| cpus.contains(4 * place as u32 + bit)).map(|bit| 1u32 << bit);
        char::from_digit(bits.sum(), 16)
    };
    if cpus.iter().any(|cpu| cpu as usize >= 4 * digits) {
        return None;
    }
    let mut text = String::with_capacity(shown.len());
    for place in (0..digits).rev() {
        text.push(digit(place)?);
        if place > 0 && place % WORD_DIGITS == 0 {
            text.push(',');
        }
    }
    Some(text)
}

/// What stands there, in words: which CPUs are named, in how many queues.
fn in_words(devices: &[Device]) -> Result<String, Missing> {
    let queues: Vec<&Queue> = devices.iter().flat_map(|device| &device.queues).collect();
    let sets = queues.iter().map(|queue| queue.cpus()).collect::<Result<Vec<_>, _>>()?;
    let named = sets.iter().filter(|set| !set.is_empty()).count();
    let all = sets.iter().fold(CpuSet::new(), |all, set| all.or(set));
    Ok(match named {
        0 => "off".to_owned(),
        _ => format!("CPUs {all} in {named} of {} queues", queues.len()),
    })
}

fn check_online(root: &Root, cpus: &[u32]) -> Result<CpuSet, Missing> {
    let online: CpuSet = facts::online_cpus(root)?.into_iter().collect();
    match cpus.iter().find(|cpu| !online.contains(**cpu)) {
        Some(cpu) => Err(Missing::with_remedy(
            format!("there is no CPU {cpu} here"),
            format!("online are {online}; 'off' names none"),
        )),
        None => Ok(cpus.iter().copied().collect()),
    }
}

/// Receive packet steering: the CPUs that what a device received is handed to.
#[derive(Debug)]
pub(super) struct Rps;

fn received(root: &Root) -> Result<Vec<Device>, Missing> {
    let devices = devices(root, "rx", "rps_cpus")?;
    match devices.is_empty() {
        true => Err(Missing::with_remedy(
            "no network device here has a receive queue that says where its packets go",
            "in a container: on its host (the kernel needs CONFIG_RPS)",
        )),
        false => Ok(devices),
    }
}

impl Setting for Rps {
    fn name(&self) -> &'static str {
        "rps"
    }

    fn about(&self) -> &'static str {
        "CPUs that received packets are handed to, of all network devices, loopback among them; off: the CPU that got them"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        in_words(&received(root)?)
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let cpus = wanted.network.rps.as_deref()?;
        Some(received(root).and_then(|devices| {
            let cpus = check_online(root, cpus)?;
            let queues = devices.iter().flat_map(|device| &device.queues);
            let steps = queues.map(|queue| queue.to(&cpus)).collect::<Result<Vec<_>, _>>()?;
            Ok(Change::of(steps))
        }))
    }
}

/// Receive flow steering: packets are handed to the CPU that their reader ran on.
#[derive(Debug)]
pub(super) struct RpsFlows;

impl Setting for RpsFlows {
    fn name(&self) -> &'static str {
        "rps-flows"
    }

    fn about(&self) -> &'static str {
        "flows whose packets are handed to the CPU that their reader runs on (RFS); 0: none"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        flow_entries(root).map(|entries| entries.to_string())
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let flows = wanted.network.rps_flows?;
        Some(flow_entries(root).and_then(|before| flow_steps(root, before, flows)))
    }
}

fn flow_entries(root: &Root) -> Result<u64, Missing> {
    match root.exists(FLOWS) {
        true => value::number(root, FLOWS),
        false => Err(Missing::with_remedy(
            format!("{FLOWS} is not there"),
            "in a container: on its host (the kernel needs CONFIG_RPS)",
        )),
    }
}

/// The table of all flows, and its part of each queue: as many entries for all queues of a device together. The kernel takes powers of two.
fn flow_steps(root: &Root, before: u64, flows: u32) -> Result<Change, Missing> {
    let entries = if flows == 0 { 0 } else { u64::from(flows.min(FLOWS_MAX)).next_power_of_two() };
    let mut steps = vec![Step::change(FLOWS, before.to_string(), entries.to_string())];
    for device in devices(root, "rx", "rps_flow_cnt")? {
        let each = match entries {
            0 => 0,
            entries => entries.div_ceil(device.queues.len() as u64).next_power_of_two(),
        };
        for queue in &device.queues {
            let before = value::number(root, &queue.path)?;
            steps.push(Step::change(&queue.path, before.to_string(), each.to_string()));
        }
    }
    Ok(Change::of(steps))
}

/// Transmit packet steering: the CPUs that send by a queue.
#[derive(Debug)]
pub(super) struct Xps;

fn sending(root: &Root) -> Result<Vec<Device>, Missing> {
    let devices = devices(root, "tx", "xps_cpus")?;
    match devices.is_empty() {
        true => Err(Missing::with_remedy(
            "no network device here has more than one send queue: there is nothing to choose between",
            "on a machine whose network card has several (ls /sys/class/net/*/queues)",
        )),
        false => Ok(devices),
    }
}

impl Setting for Xps {
    fn name(&self) -> &'static str {
        "xps"
    }

    fn about(&self) -> &'static str {
        "CPUs that send by queues of their own, of devices with several: the first CPU by the first queue, and so on"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        in_words(&sending(root)?)
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let cpus = wanted.network.xps.as_deref()?;
        Some(sending(root).and_then(|devices| {
            let cpus = check_online(root, cpus)?.to_vec();
            let mut steps = Vec::new();
            for device in &devices {
                let count = device.queues.len();
                for (nth, queue) in device.queues.iter().enumerate() {
                    let own: CpuSet = cpus.iter().copied().skip(nth).step_by(count).collect();
                    steps.push(queue.to(&own)?);
                }
            }
            let note = "no counter shows which queue sent: that it is in use follows from the files alone"
                .to_owned();
            Ok(Change { notes: vec![note], ..Change::of(steps) })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mask_is_written_as_the_kernel_shows_it() {
        let cpus = |list: &str| CpuSet::from_list(list).unwrap();
        assert_eq!(mask(&cpus("0-1"), "0").as_deref(), Some("3"));
        assert_eq!(mask(&cpus("0,33"), "00,00000000").as_deref(), Some("02,00000001"));
        assert_eq!(mask(&cpus(""), "ff").as_deref(), Some("00"));
        assert_eq!(mask(&cpus("4"), "0"), None);
        assert_eq!(mask(&cpus("0"), ""), None);
    }

    proptest! {
        #[test]
        fn a_mask_is_read_as_it_was_written(cpus in proptest::collection::btree_set(0u32..128, 0..20)) {
            let set: CpuSet = cpus.into_iter().collect();
            let text = mask(&set, "00000000,00000000,00000000,00000000").unwrap();
            prop_assert_eq!(CpuSet::from_mask(&text), Some(set));
        }
    }
}
