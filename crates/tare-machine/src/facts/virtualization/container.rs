//! Containers: by the marks that their engines leave.

use crate::facts::files;
use crate::mounts::{self, Mount};
use crate::root::Root;

/// What kind of container this is, where it is one.
pub(in crate::facts) fn kind(root: &Root) -> Option<String> {
    let mounts = mounts::read(root).unwrap_or_default();
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    let environ = root.text("/proc/1/environ").unwrap_or_default();
    // Before the engines: a pod's containers are made by one of them.
    if is_pod(root, &mounts, &groups, &environ) {
        return Some("kubernetes".to_string());
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    if let Some((_, kind)) = marks.iter().find(|(mark, _)| root.exists(mark)) {
        return Some((*kind).to_string());
    }
    // systemd writes the kind down for all to read; a container's first process carries it.
    // WSL2 says it of itself, and is a machine.
    let is_container = |kind: &str| kind != "wsl";
    let noted = files::word(root, "/run/systemd/container").ok().filter(|kind| is_container(kind));
    let carried = || {
        let mut kinds = environ.split('\0').filter_map(|entry| entry.strip_prefix("container="));
        let kind = kinds.next().filter(|kind| is_container(kind))?;
        Some(if kind.is_empty() { "container" } else { kind }.to_string())
    };
    noted.or_else(carried).or_else(|| by_group(&groups).or_else(|| by_files(&mounts)).map(str::to_string))
}

/// What the kubelet gives to every pod: a place for the last message, and mostly an account.
fn is_pod(root: &Root, mounts: &[Mount], groups: &str, environ: &str) -> bool {
    const GIVEN: [&str; 3] = [
        "/dev/termination-log",
        "/run/secrets/kubernetes.io/serviceaccount",
        "/var/run/secrets/kubernetes.io/serviceaccount",
    ];
    mounts.iter().any(|mount| GIVEN.contains(&mount.target.as_str()))
        || GIVEN.iter().any(|path| root.exists(path))
        || paths(groups).flat_map(|path| path.split(['/', '-', '.'])).any(|part| part == "kubepods")
        || environ.split('\0').any(|entry| entry.starts_with("KUBERNETES_SERVICE_HOST="))
}

/// `4:cpu:/a/b`: the last.
fn paths(groups: &str) -> impl Iterator<Item = &str> {
    groups.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

/// Seen where the container has no namespace of control groups.
fn by_group(groups: &str) -> Option<&'static str> {
    let in_one = |dir: &str, scope: &str| {
        paths(groups).any(|path| {
            path.split('/').any(|part| part == dir || (part.starts_with(scope) && part.ends_with(".scope")))
                || path.split('/').any(|part| part.starts_with("lxc.payload") && dir == "lxc")
        })
    };
    let engines = [
        ("docker", "docker-", "docker"),
        ("libpod_parent", "libpod-", "podman"),
        ("lxc", "lxc-", "lxc"),
        ("containerd", "cri-containerd-", "containerd"),
    ];
    engines.iter().find(|(dir, scope, _)| in_one(dir, scope)).map(|(.., kind)| *kind)
}

/// Where the layers of the root file system lie.
fn by_files(mounts: &[Mount]) -> Option<&'static str> {
    let top = mounts.iter().find(|mount| mount.target == "/" && mount.kind == "overlay")?;
    let engines = [("containerd", "containerd"), ("/docker/", "docker"), ("/containers/storage", "podman")];
    engines.iter().find(|(mark, _)| top.options.contains(mark)).map(|(_, kind)| *kind)
}
