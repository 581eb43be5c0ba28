//! The kernel's two spellings of a set of CPUs, and where its files are.

use crate::root::{Root, nonsense};
use tare_model::{CpuSet, Missing};

pub(super) const CPU_DIR: &str = "/sys/devices/system/cpu";
pub(super) const NODE_DIR: &str = "/sys/devices/system/node";

/// A file in list format (`0-3,8`); an empty one is an empty set.
pub(super) fn list(root: &Root, path: &str) -> Result<CpuSet, Missing> {
    let text = root.text(path)?;
    CpuSet::from_list(&text).ok_or_else(|| nonsense(path.as_ref(), &text))
}

/// A file in mask format.
pub(super) fn mask(root: &Root, path: &str) -> Result<CpuSet, Missing> {
    let text = root.text(path)?;
    CpuSet::from_mask(&text).ok_or_else(|| nonsense(path.as_ref(), &text))
}

/// The first of these that is there, in either spelling: kernels before 2.6.26 have masks alone. `names` are pairs
/// of mask and list.
pub(super) fn set(root: &Root, dir: &str, names: &[(&str, &str)]) -> Result<CpuSet, Missing> {
    for (mask_name, list_name) in names {
        let (mask_path, list_path) = (format!("{dir}/{mask_name}"), format!("{dir}/{list_name}"));
        if root.exists(&mask_path) {
            return mask(root, &mask_path).or_else(|missing| list(root, &list_path).map_err(|_| missing));
        }
        if root.exists(&list_path) {
            return list(root, &list_path);
        }
    }
    let names: Vec<&str> = names.iter().map(|(_, list)| *list).collect();
    Err(Missing::new(format!("{dir} has no {}", names.join(" or "))))
}

/// `nohz_full`: kernels built for it that do not use it write `(null)`.
pub(super) fn nohz_full(root: &Root) -> Result<CpuSet, Missing> {
    let path = format!("{CPU_DIR}/nohz_full");
    let text = root.text(&path)?;
    match text.trim() {
        "(null)" => Ok(CpuSet::new()),
        _ => list(root, &path),
    }
}
