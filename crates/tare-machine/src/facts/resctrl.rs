//! Parts of caches that groups of programs are held to (Intel's CAT, AMD's QoS), where the file system for it is mounted.

use crate::mounts;
use crate::root::Root;
use tare_model::Missing;
use tare_model::survey::CachePart;

/// Groups that are looked at: processors have some 16.
const GROUPS_MAX: usize = 256;
/// What lies beside the groups.
const NO_GROUPS: [&str; 3] = ["info", "mon_data", "mon_groups"];

pub(super) fn read(root: &Root) -> Result<Vec<CachePart>, Missing> {
    let mounts = mounts::read(root)?;
    let mount = mounts.iter().find(|mount| mount.kind == "resctrl");
    let dir = mount.map(|mount| mount.target.clone()).ok_or_else(|| {
        Missing::with_remedy("resctrl is not mounted", "mount -t resctrl resctrl /sys/fs/resctrl, as root")
    })?;
    let names = root.names(&dir)?.into_iter().filter(|name| !NO_GROUPS.contains(&name.as_str()));
    let groups = names.filter(|name| root.is_dir(format!("{dir}/{name}"))).take(GROUPS_MAX);
    let mut all = Vec::new();
    for group in std::iter::once(String::new()).chain(groups) {
        let text = root.text(format!("{dir}/{group}/schemata"))?;
        all.extend(text.lines().filter_map(|line| parts(root, &dir, &group, line)).flatten());
    }
    Ok(all)
}

/// `L3:0=7ff;1=00f`; bandwidths (`MB:`) are no caches.
fn parts(root: &Root, dir: &str, group: &str, line: &str) -> Option<Vec<CachePart>> {
    let (cache, domains) = line.trim().split_once(':')?;
    if !cache.starts_with('L') {
        return None;
    }
    let mask = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let whole = mask(&root.text(format!("{dir}/info/{cache}/cbm_mask")).ok()?)?.count_ones();
    let part = |domain: &str| {
        let (id, ways) = domain.split_once('=')?;
        let ratio = f64::from(mask(ways)?.count_ones()) / f64::from(whole.max(1));
        let valid = (0.0..=1.0).contains(&ratio) && whole > 0;
        valid.then_some(CachePart {
            group: group.to_string(),
            cache: cache.to_string(),
            id: id.trim().parse().ok()?,
            ratio,
        })
    };
    domains.split(';').map(part).collect()
}
