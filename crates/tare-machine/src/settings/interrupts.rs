//! Interrupts, away from the CPUs of what is measured.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::facts;
use crate::root::Root;
use crate::value::{self, Step};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tare_model::{CpuSet, Missing};

const IRQS: &str = "/proc/irq";
/// Most interrupts that are read.
const IRQS_MAX: usize = 16_384;

/// Which CPUs devices may interrupt.
#[derive(Debug)]
pub(super) struct IrqsOff;

/// An interrupt that can be moved, and where it may be served now.
struct Irq {
    path: PathBuf,
    list: String,
    cpus: CpuSet,
}

/// The interrupts that can be moved, and how many cannot: the kernel spreads the queues of some devices itself and
/// lets nobody write there.
fn movable(root: &Root) -> Result<(Vec<Irq>, usize), Missing> {
    let numbers = root.numbers(IRQS)?;
    let (mut irqs, mut fixed) = (Vec::new(), 0);
    for number in numbers.into_iter().take(IRQS_MAX) {
        let path = PathBuf::from(format!("{IRQS}/{number}/smp_affinity_list"));
        // An interrupt may be given back while this reads, and has no file then.
        let Ok(file) = std::fs::metadata(root.path(&path)) else { continue };
        if file.permissions().mode() & 0o222 == 0 {
            fixed += 1;
            continue;
        }
        let list = value::read(root, &path)?;
        let cpus = CpuSet::from_list(&list)
            .ok_or_else(|| Missing::new(format!("{} holds {list:?}", path.display())))?;
        irqs.push(Irq { path, list, cpus });
    }
    if irqs.is_empty() {
        return Err(Missing::with_remedy(
            "there is no interrupt here that can be moved",
            "in a virtual machine or a container: on the host",
        ));
    }
    Ok((irqs, fixed))
}

impl Setting for IrqsOff {
    fn name(&self) -> &'static str {
        "irqs-off"
    }

    fn about(&self) -> &'static str {
        "devices interrupt other CPUs than these"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let (irqs, fixed) = movable(root)?;
        let cpus = irqs.iter().fold(CpuSet::new(), |cpus, irq| cpus.or(&irq.cpus));
        Ok(format!("{} on CPUs {cpus}, {fixed} cannot be moved", irqs.len()))
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        (!wanted.irqs_off.is_empty()).then(|| away_from(root, &wanted.irqs_off))
    }
}

fn away_from(root: &Root, off: &[u32]) -> Result<Change, Missing> {
    let off = CpuSet::from(off);
    let others = facts::online_cpus(root)?.into_iter().collect::<CpuSet>().minus(&off);
    if others.is_empty() {
        return Err(Missing::new(format!(
            "no CPU would be left for interrupts: {off} are all that are online"
        )));
    }
    let (irqs, fixed) = movable(root)?;
    let steps = irqs.into_iter().map(|irq| {
        let stays = irq.cpus.and(&others);
        let on = if stays.is_empty() { &others } else { &stays };
        // A list may be written in more ways than one.
        if *on == irq.cpus {
            return None;
        }
        Step::change(irq.path, irq.list, on.to_string()).map(|step| Step { may_be_refused: true, ..step })
    });
    let mut change = Change::of(steps);
    if fixed > 0 {
        let stay =
            if fixed == 1 { "1 interrupt stays".to_string() } else { format!("{fixed} interrupts stay") };
        change.notes.push(format!("{stay}: the kernel spreads the queues of such devices itself"));
    }
    Ok(change)
}
