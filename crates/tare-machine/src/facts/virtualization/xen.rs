//! Xen, which tells its guests so in `/sys/hypervisor`.

use crate::root::Root;

/// Bit of the features that only the privileged domain has (`XENFEAT_dom0`).
const DOM0: u32 = 1 << 11;

/// `xen-dom0` for the domain that has the hardware, `xen` for a guest.
pub(super) fn kind(root: &Root) -> Option<&'static str> {
    let controls = root.text("/proc/xen/capabilities").is_ok_and(|text| text.contains("control_d"));
    let is_xen = root.text("/sys/hypervisor/type").is_ok_and(|kind| kind.trim() == "xen");
    if !is_xen && !controls {
        return None;
    }
    let features = root.text("/sys/hypervisor/properties/features").ok();
    let bits = features.and_then(|text| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    Some(if controls || bits.is_some_and(|bits| bits & DOM0 > 0) { "xen-dom0" } else { "xen" })
}
