//! `kill -9` at every point while settings are applied, stand and are put back: the next start restores every value.

use crate::support::{Act, be_killed, everything, machine, possible, run, values};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_machine::Root;
use tare_machine::journal::{recover, restore, tunings};
use tare_machine::settings::{ClockWanted, Group, MemoryWanted, NetworkWanted, QuotaWanted, Wanted};
use tare_model::tuning::State;

/// Effects of one act, at most: far more than any here has.
const EFFECTS_MAX: u32 = 500;

fn wanted(name: &str) -> Wanted {
    match name.strip_prefix("real:") {
        None if name == "few" => Wanted {
            network: NetworkWanted { somaxconn: Some(4096), ..NetworkWanted::default() },
            memory: MemoryWanted { thp: Some("never".into()), ..MemoryWanted::default() },
            clock: ClockWanted { boost: Some(false), ..ClockWanted::default() },
            ..Wanted::default()
        },
        None => everything(),
        Some(group) => Wanted {
            network: NetworkWanted {
                somaxconn: Some(1234),
                port_range: Some((2000, 50_001)),
                ..NetworkWanted::default()
            },
            autogroup: Some(false),
            memory: MemoryWanted {
                thp: Some("never".into()),
                huge_pages_bytes: Some(4 << 20),
                ..MemoryWanted::default()
            },
            irqs_off: vec![0],
            base_slice_ns: Some(5_000_000),
            quota: Some(QuotaWanted { group: Group::At(group.to_string()), cpus: Some(0.5) }),
            ..Wanted::default()
        },
    }
}

/// Not a test of its own: what [`run`] starts.
#[test]
fn child() {
    be_killed(wanted);
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "journal")).collect()
}

/// Kills at every effect of every act, and has the next start restore.
fn killed_everywhere(root: &Root, name: &str) {
    let dir = root.path("/");
    let state = tempfile::tempdir().unwrap();
    let live = Root::live();
    let plan = possible(root, &wanted(name));
    let before = values(root, &plan);
    let as_before = |what: &str| assert_eq!(values(root, &plan), before, "{what}");
    let applied = || values(root, &plan).iter().filter(|(path, value)| before[*path] != **value).count();
    let mut most_applied = 0;
    for act in [Act::Hold, Act::Keep] {
        let ended_at = (1..EFFECTS_MAX).find(|&die_at| {
            let has_ended = run(act, name, &dir, state.path(), die_at);
            most_applied = most_applied.max(applied());
            let stands = tunings(state.path(), &live).iter().any(|tuning| tuning.state == State::Standing);
            let recovery = recover(state.path(), &live);
            assert!(recovery.settings.is_clean() && recovery.failed.is_empty(), "{recovery:?}");
            if stands {
                assert_eq!(applied(), before.len(), "what stands is left alone by those who only clean up");
                assert!(restore(state.path(), &live, false, &|| ()).unwrap().is_clean());
            }
            as_before(&format!("{act:?} killed after effect {die_at}"));
            assert_eq!(files(state.path()), Vec::<PathBuf>::new());
            has_ended
        });
        // Each setting is noted and applied at least.
        assert!(ended_at.unwrap() as usize > 2 * before.len(), "{act:?} had {ended_at:?} effects");
    }
    assert_eq!(most_applied, before.len(), "every setting was applied at some point");

    let ended_at = (1..EFFECTS_MAX).find(|&die_at| {
        assert!(run(Act::Keep, name, &dir, state.path(), EFFECTS_MAX));
        assert_eq!(applied(), before.len());
        let has_ended = run(Act::Restore, name, &dir, state.path(), die_at);
        // Once it has begun, anybody finishes it.
        assert!(recover(state.path(), &live).settings.is_clean());
        as_before(&format!("restoring killed after effect {die_at}"));
        assert_eq!(files(state.path()), Vec::<PathBuf>::new());
        has_ended
    });
    assert!(ended_at.unwrap() as usize > 2 * before.len());
}

#[test]
fn at_every_step_on_a_made_up_machine() {
    let (_dir, root) = machine();
    killed_everywhere(&root, "all");
}

/// A group with a quota that can be applied; goes with its end.
struct OwnGroup(PathBuf);

impl Drop for OwnGroup {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).ok();
    }
}

/// In a network namespace of its own, where the limits of the network are nobody else's.
#[test]
fn at_every_step_on_this_machine() {
    if std::env::var_os("KILLED_OWN_NETWORK").is_none() {
        let output = Command::new("unshare")
            .args(["--net", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "killed::at_every_step_on_this_machine", "--nocapture"])
            .env("KILLED_OWN_NETWORK", "1")
            .output()
            .expect("the tests need unshare (util-linux) and root");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it has another name");
        return;
    }
    let v1 = Path::new("/sys/fs/cgroup/cpu");
    let mount = if v1.join("cgroup.procs").exists() { v1 } else { Path::new("/sys/fs/cgroup") };
    let group = OwnGroup(mount.join(format!("tare-killed-{}", std::process::id())));
    std::fs::create_dir(&group.0).expect("the tests need root and a writable cpu controller");
    let name = format!("real:/{}", group.0.file_name().unwrap().to_str().unwrap());
    let applied = possible(&Root::live(), &wanted(&name));
    let names: Vec<&str> = applied.iter().map(|planned| planned.setting.name()).collect();
    assert!(["somaxconn", "port-range", "quota"].iter().all(|name| names.contains(name)), "{names:?}");
    killed_everywhere(&Root::live(), &name);
}

#[test]
fn a_journal_cut_at_every_byte_restores_what_it_tells_of() {
    let (dir, root) = machine();
    // A thousand recoveries, each synced: in memory where that can be had.
    let memory = Path::new("/dev/shm");
    let state = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let plan = possible(&root, &wanted("few"));
    let before = values(&root, &plan);
    let effects = 2 * before.len() as u32 + 1;
    assert!(!run(Act::Hold, "few", dir.path(), state.path(), effects), "killed once it held all");
    let after = values(&root, &plan);
    let [path] = &files(state.path())[..] else { panic!("one journal") };
    let bytes = std::fs::read(path).unwrap();
    let lines_before = |cut: usize| bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
    let order: Vec<PathBuf> = plan
        .iter()
        .flat_map(|p| &p.change.as_ref().unwrap().steps)
        .map(|step| root.path(&step.path))
        .collect();
    for cut in 0..=bytes.len() {
        std::fs::write(path, &bytes[..cut]).unwrap();
        // It may be a new one: nobody else may write there.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        // The first line is the owner's; each whole one after it may have been acted on.
        let may_be_turned = lines_before(cut).saturating_sub(1).min(order.len());
        for (at, setting) in order.iter().enumerate() {
            let values: &BTreeMap<PathBuf, String> = if at < may_be_turned { &after } else { &before };
            std::fs::write(setting, format!("{}\n", values[setting])).unwrap();
        }
        let recovery = recover(state.path(), &Root::live());
        assert!(recovery.settings.is_clean(), "cut at {cut}: {recovery:?}");
        assert_eq!(values(&root, &plan), before, "cut at {cut}");
        assert!(!path.exists(), "cut at {cut}");
    }
}
