//! Which processes are in a control group.

use crate::root::Root;
use crate::{mounts, procs};
use std::collections::BTreeSet;

/// Most groups of one name that are listed in an error.
const LISTED_MAX: usize = 5;

/// Why no processes are known.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoMembers {
    /// Nobody is in it, or there is no such group.
    #[error("no process is in the control group {0}")]
    Empty(String),
    /// Every process is in it.
    #[error("every process of this machine is in the root group")]
    Root,
    /// Several groups have this name.
    #[error("{0} is the name of several control groups: {1}")]
    Ambiguous(String, String),
    /// Processes cannot be listed.
    #[error("processes cannot be listed: {0}")]
    Unreadable(String),
}

/// The processes in `group` or in a group below it, ascending, in whichever tree has it.
///
/// `group` is a path as in `/proc/PID/cgroup` (`/system.slice/nginx.service`), a folder below a mount of control groups, or the
/// name of one group wherever it stands (`nginx.service`).
///
/// # Errors
/// [`NoMembers`].
pub fn group_members(root: &Root, group: &str) -> Result<Vec<u32>, NoMembers> {
    let wanted = Wanted::of(root, group)?;
    let all = procs::all(root).map_err(|missing| NoMembers::Unreadable(missing.why))?;
    let (mut pids, mut groups) = (Vec::new(), BTreeSet::new());
    // Who has ended is in no group that it could be measured in.
    for pid in all.into_iter().filter(|process| process.state != 'Z').map(|process| process.id) {
        let text = root.text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        // `4:memory:/path`; a path may have colons.
        let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        let found: Vec<&str> = paths.filter_map(|path| wanted.group_of(path)).collect();
        if !found.is_empty() {
            pids.push(pid);
            groups.extend(found.into_iter().map(String::from));
        }
    }
    match groups.len() {
        0 => Err(NoMembers::Empty(group.to_owned())),
        1 => {
            pids.sort_unstable();
            Ok(pids)
        }
        _ => {
            let listed: Vec<String> = groups.into_iter().take(LISTED_MAX).collect();
            Err(NoMembers::Ambiguous(group.to_owned(), listed.join(", ")))
        }
    }
}

enum Wanted {
    Path(String),
    Name(String),
}

impl Wanted {
    fn of(root: &Root, group: &str) -> Result<Wanted, NoMembers> {
        let group = group.trim_end_matches('/');
        if group.is_empty() {
            return Err(NoMembers::Root);
        }
        if !group.contains('/') {
            return Ok(Wanted::Name(group.to_owned()));
        }
        let mounts = mounts::read(root).unwrap_or_default();
        let trees = mounts.iter().filter(|mount| matches!(mount.kind.as_str(), "cgroup" | "cgroup2"));
        // Trees lie in each other's folders: the innermost has it.
        let below = trees.filter_map(|tree| {
            let rest = group.strip_prefix(tree.target.as_str())?;
            (rest.is_empty() || rest.starts_with('/'))
                .then(|| (tree.target.len(), tree.top.trim_end_matches('/'), rest))
        });
        match below.max_by_key(|(length, ..)| *length) {
            Some((_, "", "")) => Err(NoMembers::Root),
            Some((_, top, rest)) => Ok(Wanted::Path(format!("{top}{rest}"))),
            None => Ok(Wanted::Path(format!("/{}", group.trim_start_matches('/')))),
        }
    }

    /// The group that was asked for, where `path` is in it.
    fn group_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self {
            Wanted::Path(wanted) => {
                let rest = path.strip_prefix(wanted.as_str())?;
                (rest.is_empty() || rest.starts_with('/')).then(|| &path[..wanted.len()])
            }
            Wanted::Name(name) => {
                let mut end = 0;
                path.split('/').find_map(|part| {
                    end += part.len() + 1;
                    (part == name).then(|| &path[..end - 1])
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "proc/self/mountinfo",
            "30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
             31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             32 30 0:28 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
        );
        for (pid, state, groups) in [
            (1, 'S', "2:cpu:/\n0::/init.scope\n"),
            (10, 'S', "2:cpu:/system.slice/web.service\n0::/system.slice/web.service\n"),
            (11, 'S', "2:cpu:/system.slice/web.service/worker:1\n0::/system.slice/web.service\n"),
            (12, 'Z', "0::/system.slice/web.service\n"),
            (13, 'S', "0::/system.slice/web.service2\n"),
            (20, 'S', "0::/user.slice/a/app.service\n"),
            (21, 'S', "0::/user.slice/b/app.service\n"),
            (30, 'S', "2:cpu:/docker/abc/inner\n0::/\n"),
        ] {
            write(
                &format!("proc/{pid}/stat"),
                &format!("{pid} (p) {state} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0"),
            );
            write(&format!("proc/{pid}/cgroup"), groups);
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_group_is_named_by_its_path_its_folder_or_its_name() {
        let (_dir, root) = tree();
        let members = |group: &str| group_members(&root, group);
        for group in [
            "/system.slice/web.service",
            "system.slice/web.service/",
            "web.service",
            "/sys/fs/cgroup/unified/system.slice/web.service",
        ] {
            assert_eq!(members(group), Ok(vec![10, 11]), "{group}");
        }
        assert_eq!(members("worker:1"), Ok(vec![11]));
        // Of a container's tree only a part is mounted.
        assert_eq!(members("/sys/fs/cgroup/cpu/inner"), Ok(vec![30]));
        assert_eq!(members("/sys/fs/cgroup/cpu"), Ok(vec![30]));
    }

    #[test]
    fn what_names_no_group_of_its_own_is_refused() {
        let (_dir, root) = tree();
        let refused = |group: &str| group_members(&root, group).unwrap_err();
        assert_eq!(refused("web"), NoMembers::Empty("web".into()));
        assert_eq!(refused("/"), NoMembers::Root);
        assert_eq!(refused("/sys/fs/cgroup/unified"), NoMembers::Root);
        let both = "/user.slice/a/app.service, /user.slice/b/app.service";
        assert_eq!(refused("app.service"), NoMembers::Ambiguous("app.service".into(), both.into()));
    }
}
