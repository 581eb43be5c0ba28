//! What a reader without root's rights is refused, and how it can be allowed.

use crate::observed::refused;
use std::io;
use tare_machine::{Root, procs};
use tare_model::Missing;

const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// A kernel counter that could not be opened.
pub(crate) fn perf(what: &str, error: &io::Error) -> Missing {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Missing::with_remedy(
            format!("{what}: not permitted"),
            "run tare as root or with CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1",
        ),
        Some(libc::ENOSYS) => Missing::new(format!("{what}: this kernel has no perf_event_open")),
        _ => refused(what, error),
    }
}

/// The list of tracepoints could not be read.
pub(crate) fn tracefs(error: &io::Error) -> Missing {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Missing::with_remedy(
            "the kernel's tracepoints (tracefs) may not be listed",
            "run tare as root, or let this user read /sys/kernel/tracing (mount -t tracefs -o mode=755 none /sys/kernel/tracing)",
        ),
        _ => refused("tracefs", error),
    }
}

/// What a thread is doing in the kernel may not be asked.
pub(crate) fn syscalls(root: &Root) -> Missing {
    let what = "what threads wait for (/proc/PID/task/TID/syscall) may not be read";
    match root.value::<u32>(YAMA).unwrap_or(0) {
        0 => Missing::with_remedy(what, "run tare as root, or as the server's own user"),
        scope @ (1 | 2) => Missing::with_remedy(
            format!("{what}: Yama refuses it (kernel.yama.ptrace_scope is {scope})"),
            "run tare as root, or as the server's user with sysctl kernel.yama.ptrace_scope=0",
        ),
        scope => Missing::with_remedy(
            format!("{what}: Yama refuses it to everybody (kernel.yama.ptrace_scope is {scope})"),
            "boot with a lower kernel.yama.ptrace_scope: this one stays until then",
        ),
    }
}

/// Why none of the SUT's processes can be seen.
pub(crate) fn unseen(root: &Root) -> Missing {
    match procs::hidden(root) {
        true => Missing::with_remedy(
            "the SUT's processes are gone, or hidden from this user (/proc is mounted with hidepid)",
            "run tare as root or as the server's user, or mount -o remount,hidepid=0 /proc",
        ),
        false => Missing::new("the SUT's processes are gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn yama_is_named_with_what_undoes_it() {
        let remedy = |scope: &str| {
            let (_dir, root) = machine(&[("proc/sys/kernel/yama/ptrace_scope", scope)]);
            syscalls(&root).remedy
        };
        assert!(remedy("0\n").contains("as the server's own user"));
        assert!(remedy("1\n").contains("ptrace_scope=0"));
        assert!(remedy("3\n").contains("boot"));
        let (_dir, root) = machine(&[]);
        assert!(syscalls(&root).remedy.contains("as the server's own user"));
    }

    #[test]
    fn hidden_processes_are_distinguished_from_ended_ones() {
        let proc = |options: &str| format!("proc /proc proc rw,nosuid{options} 0 0\n");
        for (options, hides) in
            [("", false), (",hidepid=0", false), (",hidepid=2", true), (",hidepid=invisible,gid=9", true)]
        {
            let (_dir, root) = machine(&[("proc/self/mounts", &proc(options))]);
            assert_eq!(unseen(&root).remedy.contains("hidepid=0"), hides, "{options}");
        }
    }

    #[test]
    fn refusals_tell_how_to_allow() {
        for code in [libc::EACCES, libc::EPERM] {
            let error = io::Error::from_raw_os_error(code);
            assert!(perf("counting", &error).remedy.contains("perf_event_paranoid"));
            assert!(tracefs(&error).remedy.contains("tracefs"));
        }
        assert!(
            perf("counting", &io::Error::from_raw_os_error(libc::ENOSYS)).why.contains("no perf_event_open")
        );
    }
}
