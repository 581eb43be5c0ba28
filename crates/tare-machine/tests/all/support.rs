//! A made-up machine whose settings can be applied, and processes that are killed while they apply them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tare_machine::Root;
use tare_machine::journal::{Journal, restore};
use tare_machine::settings::{
    ClockWanted, Group, Lock, MemoryWanted, NetworkWanted, Planned, QuotaWanted, Wanted, apply, plan,
};
use tare_sys::process::{Signal, kill};

const FILES: &[(&str, &str)] = &[
    (
        "proc/meminfo",
        "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\nHugePages_Total: 4\nHugePages_Free: 4\nHugepagesize: 2048 kB\n",
    ),
    ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
    ("proc/irq/16/smp_affinity_list", "0-3\n"),
    ("proc/irq/17/smp_affinity_list", "1\n"),
    ("proc/sys/vm/nr_hugepages", "4\n"),
    ("proc/sys/kernel/numa_balancing", "1\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("proc/sys/net/core/busy_read", "0\n"),
    ("proc/sys/net/core/busy_poll", "0\n"),
    ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
    ("sys/class/net/lo/queues/rx-0/rps_cpus", "0\n"),
    ("sys/fs/cgroup/web/cpu.max", "max 100000\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/kernel/debug/sched/base_slice_ns", "3000000\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "performance powersave\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "4600000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "4600000\n"),
];

/// A machine with every setting that can be put back.
pub fn machine() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in FILES {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = Root::at(dir.path());
    (dir, root)
}

/// All of them applied.
pub fn everything() -> Wanted {
    Wanted {
        clock: ClockWanted {
            governor: Some("performance".into()),
            min_frequency_hz: Some(2_000_000_000),
            max_frequency_hz: Some(2_000_000_000),
            boost: Some(false),
        },
        memory: MemoryWanted {
            thp: Some("never".into()),
            numa_balancing: Some(false),
            drop_caches: false,
            huge_pages_bytes: Some(100 << 20),
        },
        base_slice_ns: Some(6_000_000),
        autogroup: Some(false),
        irqs_off: vec![0, 1],
        network: NetworkWanted {
            somaxconn: Some(4096),
            port_range: Some((1024, 65_535)),
            busy_poll_ns: Some(50_000),
            rps: Some(vec![0, 1]),
            ..NetworkWanted::default()
        },
        quota: Some(QuotaWanted { group: Group::At("/web".into()), cpus: Some(2.0) }),
    }
}

/// The settings of a plan, as real paths, with what stands there.
pub fn values(root: &Root, plan: &[Planned]) -> BTreeMap<PathBuf, String> {
    let steps = plan.iter().flat_map(|planned| &planned.change.as_ref().unwrap().steps);
    steps.map(|step| root.path(&step.path)).map(|path| (path.clone(), value(&path))).collect()
}

/// A made-up file loses the choices around `[madvise]` when it is written; the kernel's does not.
pub fn value(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or(text.trim_end()).to_string()
}

/// What a process does until it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Applies all, puts all back, ends.
    Hold,
    /// Applies all and lets it stand.
    Keep,
    /// Puts back what stands.
    Restore,
}

const ACTS: [(&str, Act); 3] = [("hold", Act::Hold), ("keep", Act::Keep), ("restore", Act::Restore)];

/// Runs `act` in a process of its own that kills itself with SIGKILL after its `die_at`th effect. Whether it got to
/// its end before. The test `killed::child` calls [`be_killed`].
pub fn run(act: Act, wanted: &str, root: &Path, state: &Path, die_at: u32) -> bool {
    let (name, _) = ACTS.into_iter().find(|(_, known)| *known == act).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child", "--test-threads=1"])
        .env("KILLED_ACT", name)
        .env("KILLED_WANTED", wanted)
        .env("KILLED_ROOT", root)
        .env("KILLED_STATE", state)
        .env("KILLED_AT", die_at.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let was_killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(was_killed || status.success(), "{act:?} failed at {die_at}: {status}");
    !was_killed
}

/// The other side of [`run`]; does nothing where nobody asked.
pub fn be_killed(wanted: impl Fn(&str) -> Wanted) {
    let Ok(act) = std::env::var("KILLED_ACT") else { return };
    let variable = |name: &str| std::env::var(name).unwrap();
    let (root, state) = (Root::at(variable("KILLED_ROOT")), PathBuf::from(variable("KILLED_STATE")));
    let effects_left = Cell::new(variable("KILLED_AT").parse::<u32>().unwrap());
    let after_each = || {
        effects_left.set(effects_left.get() - 1);
        if effects_left.get() == 0 {
            kill(std::process::id(), Signal::Kill).unwrap();
        }
    };
    let (_, act) = ACTS.into_iter().find(|(name, _)| *name == act).unwrap();
    if act == Act::Restore {
        assert!(restore(&state, &Root::live(), false, &after_each).unwrap().is_clean());
        return;
    }
    let journal = Journal::create(&state, &Root::live()).unwrap();
    let lock = Lock::take(&state).unwrap();
    let plan = possible(&root, &wanted(&variable("KILLED_WANTED")));
    let applied = apply(&journal, lock, &root, &plan, &after_each).unwrap();
    match act {
        Act::Keep => applied.keep().unwrap(),
        _ => {
            assert!(applied.restore().is_clean());
            journal.finish().unwrap();
            after_each();
        }
    }
}

/// What of it this machine has.
pub fn possible(root: &Root, wanted: &Wanted) -> Vec<Planned> {
    plan(root, wanted).into_iter().filter(|planned| planned.change.is_ok()).collect()
}
