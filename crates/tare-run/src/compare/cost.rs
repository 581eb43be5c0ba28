//! CPU time of a server's processes.

use tare_machine::{Root, procs};
use tare_sys::time::process_cpu_ns;

/// CPU time of all of them; `None` where one has gone or one has come: what that took nobody knows.
pub(super) fn cpu_ns(pids: &[u32]) -> Option<u64> {
    let root = Root::live();
    let is_new = |child: u32| !pids.contains(&child);
    if pids.is_empty() || pids.iter().any(|pid| procs::children(&root, *pid).into_iter().any(is_new)) {
        return None;
    }
    pids.iter().map(|pid| process_cpu_ns(*pid)).sum::<Result<u64, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_gone_has_no_time() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id();
        assert!(cpu_ns(&[pid]).is_some());
        assert_eq!(cpu_ns(&[]), None);
        assert_eq!(cpu_ns(&[pid, 0x3fff_fff0]), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(cpu_ns(&[pid]), None);
    }
}
