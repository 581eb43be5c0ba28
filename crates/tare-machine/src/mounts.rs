//! What is mounted where.

use crate::root::Root;
use tare_model::Missing;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Which of its directories is the top of what is mounted: `/` unless it is a part.
    pub top: String,
    /// Where.
    pub target: String,
    /// `cgroup2`, `tracefs` …
    pub kind: String,
    /// Options of the file system, separated by commas (for cgroup v1, its controllers).
    pub options: String,
}

/// All mounts of this process's namespace.
///
/// # Errors
/// None of the files that list them can be read.
pub(crate) fn read(root: &Root) -> Result<Vec<Mount>, Missing> {
    if let Ok(text) = root.text("/proc/self/mountinfo") {
        return Ok(text.lines().filter_map(parse_info).collect());
    }
    // Captured trees may hold the older form only, which does not tell the top.
    let text =
        root.text("/proc/self/mounts").or_else(|missing| root.text("/proc/mounts").map_err(|_| missing))?;
    Ok(text.lines().filter_map(parse_mount).collect())
}

/// `32 31 0:29 /top /target rw,relatime shared:1 - cgroup cgroup rw,cpu`
fn parse_info(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    let kind = right.next()?.to_string();
    let options = right.nth(1).unwrap_or_default().to_string();
    Some(Mount { top: unescaped(left.get(3)?), target: unescaped(left.get(4)?), kind, options })
}

/// `cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0`
fn parse_mount(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(1);
    let target = unescaped(fields.next()?);
    let kind = fields.next()?.to_string();
    let options = fields.next()?.to_string();
    Some(Mount { top: "/".to_string(), target, kind, options })
}

fn unescaped(path: &str) -> String {
    path.replace("\\040", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_tell_the_same() {
        let info = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 master:1 - cgroup cgroup rw,cpu";
        let mount = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0";
        assert_eq!(parse_info(info), parse_mount(mount));
        let part = parse_info("1 2 0:3 /docker/7 /sys/fs/cgroup/my\\040cpu ro - cgroup x rw,cpu").unwrap();
        assert_eq!((part.top.as_str(), part.target.as_str()), ("/docker/7", "/sys/fs/cgroup/my cpu"));
        for bad in ["", " - ", "a b c", "a - b"] {
            assert_eq!(parse_info(bad), None, "{bad:?}");
        }
    }
}
