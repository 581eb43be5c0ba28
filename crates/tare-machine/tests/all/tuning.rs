//! Settings are applied, held and put back; what goes wrong is undone and said.

use crate::support::{Act, everything, machine, possible, run, value, values};
use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tare_machine::journal::{Journal, recover, recover_holding, restore, tunings};
use tare_machine::settings::{Lock, LockError, MemoryWanted, NetworkWanted, TuneError, Wanted, apply, plan};
use tare_machine::{Root, facts};
use tare_model::tuning::State;

fn journal(dir: &Path) -> Journal {
    Journal::create(dir, &Root::live()).unwrap()
}

fn lock(dir: &Path) -> Lock {
    Lock::take(dir).unwrap()
}

fn nothing() {}

/// The only journal in a folder.
fn journal_file(dir: &Path) -> PathBuf {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|end| end == "journal")).unwrap()
}

fn edit(path: &Path, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text);
    std::fs::write(path, changed).unwrap();
}

#[test]
fn turned_held_and_put_back() {
    let (_dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let plan = plan(&root, &everything());
    let before = values(&root, &plan);
    let journal = journal(state.path());
    let applied = apply(&journal, lock(state.path()), &root, &plan, &nothing).unwrap();
    assert_eq!(applied.len(), before.len());
    for step in plan.iter().flat_map(|planned| &planned.change.as_ref().unwrap().steps) {
        assert_eq!(value(&root.path(&step.path)), step.wanted);
    }
    let [held] = &tunings(state.path(), &Root::live())[..] else { panic!("one") };
    assert_eq!(
        (held.state, held.by.pid, held.settings.len()),
        (State::Held, std::process::id(), before.len())
    );
    assert_eq!(recover(state.path(), &Root::live()), Default::default(), "its owner lives");
    let report = applied.restore();
    assert_eq!((report.put_back.len(), report.is_clean(), report.notes.len()), (before.len(), true, 0));
    // In the reverse order: the last applied is the first put back.
    assert_eq!(report.put_back[0].setting, "quota");
    assert_eq!(values(&root, &plan), before);
    // Dropping does it as well.
    drop(apply(&journal, lock(state.path()), &root, &plan, &nothing).unwrap());
    assert_eq!(values(&root, &plan), before);
    journal.finish().unwrap();
}

/// With SMT off the kernel keeps the policies of CPUs that are off, and refuses what is written to them.
#[test]
fn policies_of_cpus_that_are_off_are_left_alone() {
    let (dir, root) = machine();
    let before = values(&root, &plan(&root, &everything()));
    std::fs::create_dir(dir.path().join("sys/devices/system/cpu/cpufreq/policy5")).unwrap();
    assert_eq!(values(&root, &plan(&root, &everything())), before);
}

#[test]
fn one_that_fails_undoes_those_before_it() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let plan = plan(&root, &everything());
    let before = values(&root, &plan);
    let quota = dir.path().join("sys/fs/cgroup/web/cpu.max");
    let journal = journal(state.path());
    // The group goes when the first setting is being applied.
    let is_there = Cell::new(true);
    let remove = || {
        if is_there.take() {
            std::fs::remove_file(&quota).unwrap();
        }
    };
    let error = apply(&journal, lock(state.path()), &root, &plan, &remove).unwrap_err();
    let text = error.to_string();
    assert!(error.is_undone(), "{text}");
    assert!(matches!(error, TuneError::Refused { setting: "quota", .. }), "{text}");
    assert!(text.contains("are as they were") && text.contains("hint"), "{text}");
    std::fs::write(&quota, "max 100000\n").unwrap();
    assert_eq!(values(&root, &plan), before);
    assert!(tunings(state.path(), &Root::live()).is_empty());
}

#[test]
fn what_is_missing_is_said_and_nothing_is_turned() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    std::fs::remove_file(dir.path().join("proc/sys/net/core/somaxconn")).unwrap();
    let plan = plan(&root, &everything());
    let before = std::fs::read_to_string(dir.path().join("proc/sys/vm/nr_hugepages")).unwrap();
    let journal = journal(state.path());
    let error = apply(&journal, lock(state.path()), &root, &plan, &nothing).unwrap_err();
    assert!(matches!(error, TuneError::Missing { setting: "somaxconn", .. }), "{error}");
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert_eq!(std::fs::read_to_string(dir.path().join("proc/sys/vm/nr_hugepages")).unwrap(), before);
}

#[test]
fn two_at_once_know_of_each_other() {
    let (_dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let (first, second) = (journal(state.path()), journal(state.path()));
    let somaxconn = plan(
        &root,
        &Wanted {
            network: NetworkWanted { somaxconn: Some(4096), ..NetworkWanted::default() },
            ..Wanted::default()
        },
    );
    let applied = apply(&first, lock(state.path()), &root, &somaxconn, &nothing).unwrap();
    let error = Lock::take(state.path()).unwrap_err();
    let LockError::Held(holder) = &error else { panic!("{error}") };
    assert_eq!(holder.pid, std::process::id());
    assert!(error.to_string().contains("hint: wait for its end"), "{error}");
    assert!(matches!(restore(state.path(), &Root::live(), false, &nothing), Err(LockError::Held(_))));
    assert!(applied.restore().is_clean());
    drop(apply(&second, lock(state.path()), &root, &somaxconn, &nothing).unwrap());
}

#[test]
fn what_somebody_else_set_meanwhile_is_left_and_said_until_it_is_forced() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let plan = plan(&root, &everything());
    let before = values(&root, &plan);
    assert!(run(Act::Keep, "all", dir.path(), state.path(), 1000));
    let governor = dir.path().join("sys/devices/system/cpu/cpufreq/policy0/scaling_governor");
    std::fs::write(&governor, "ondemand\n").unwrap();
    // Heat has lowered the highest clock: that is nobody's doing.
    let highest = dir.path().join("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq");
    std::fs::write(&highest, "1700000\n").unwrap();
    for _ in 0..2 {
        let report = restore(state.path(), &Root::live(), false, &nothing).unwrap();
        let [changed] = &report.changed[..] else { panic!("{report:?}") };
        assert_eq!(
            (&*changed.before, &*changed.applied, &*changed.now),
            ("powersave", "performance", "ondemand")
        );
        assert!(!report.is_clean() && value(&governor) == "ondemand" && value(&highest) == "4600000");
        assert_eq!(recover(state.path(), &Root::live()), Default::default(), "it waits to be asked");
    }
    let report = restore(state.path(), &Root::live(), true, &nothing).unwrap();
    assert_eq!((report.put_back.len(), report.is_clean()), (1, true));
    assert_eq!(values(&root, &plan), before);
    assert!(restore(state.path(), &Root::live(), true, &nothing).unwrap().is_empty());
}

#[test]
fn standing_ones_are_put_back_the_newest_first() {
    let (_dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let wanted = |limit| Wanted {
        network: NetworkWanted { somaxconn: Some(limit), ..NetworkWanted::default() },
        ..Wanted::default()
    };
    let path = root.path("/proc/sys/net/core/somaxconn");
    for limit in [1000, 2000, 3000] {
        let (journal, lock) = (journal(state.path()), lock(state.path()));
        apply(&journal, lock, &root, &plan(&root, &wanted(limit)), &nothing).unwrap().keep().unwrap();
        assert_eq!(value(&path), limit.to_string());
    }
    let stand: Vec<State> = tunings(state.path(), &Root::live()).iter().map(|tuning| tuning.state).collect();
    assert_eq!(stand, [State::Standing; 3]);
    let report = restore(state.path(), &Root::live(), false, &nothing).unwrap();
    let put_back: Vec<&str> = report.put_back.iter().map(|setting| setting.value.as_str()).collect();
    assert_eq!(put_back, ["2000", "1000", "128"]);
    assert_eq!(value(&path), "128");
}

#[test]
fn a_reboot_has_undone_everything() {
    let boot = facts::boot_id(&Root::live()).unwrap();
    for (act, effects) in [(Act::Keep, 1000), (Act::Hold, 7)] {
        let (dir, root) = machine();
        let state = tempfile::tempdir().unwrap();
        run(act, "all", dir.path(), state.path(), effects);
        let applied = values(&root, &possible(&root, &everything()));
        let path = journal_file(state.path());
        let text = std::fs::read_to_string(&path).unwrap().replace(&boot, "another-boot");
        std::fs::write(&path, text).unwrap();
        assert!(tunings(state.path(), &Root::live()).is_empty());
        let recovery = recover(state.path(), &Root::live());
        assert!(recovery.settings.rebooted > 0 && recovery.settings.put_back.is_empty(), "{recovery:?}");
        assert_eq!(values(&root, &possible(&root, &everything())), applied, "nothing was touched");
        assert!(restore(state.path(), &Root::live(), false, &nothing).unwrap().is_empty());
    }
}

#[test]
fn the_way_back_leads_to_what_stands_when_it_is_turned() {
    let (_dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let somaxconn = plan(
        &root,
        &Wanted {
            network: NetworkWanted { somaxconn: Some(4096), ..NetworkWanted::default() },
            ..Wanted::default()
        },
    );
    // The plan was made while somebody had it at 128.
    std::fs::write(root.path("/proc/sys/net/core/somaxconn"), "1000\n").unwrap();
    let journal = journal(state.path());
    let applied = apply(&journal, lock(state.path()), &root, &somaxconn, &nothing).unwrap();
    assert!(applied.restore().is_clean());
    assert_eq!(value(&root.path("/proc/sys/net/core/somaxconn")), "1000");
}

#[test]
fn what_a_killed_one_left_is_put_back_under_the_lock_of_the_next() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let before = values(&root, &plan(&root, &everything()));
    assert!(!run(Act::Hold, "all", dir.path(), state.path(), 9));
    let lock = lock(state.path());
    let held = recover(state.path(), &Root::live());
    assert!(!held.is_clean() && held.failed.is_empty(), "somebody else holds the settings: {held:?}");
    assert!(recover_holding(&lock, state.path(), &Root::live()).is_clean());
    assert_eq!(values(&root, &plan(&root, &everything())), before);
}

#[test]
fn what_was_refused_is_not_in_the_journal() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let irq = dir.path().join("proc/irq/17/smp_affinity_list");
    let journal = journal(state.path());
    let (plan, effects) = (plan(&root, &everything()), Cell::new(0));
    let remove = || {
        if effects.replace(1) == 0 {
            std::fs::remove_file(&irq).unwrap();
        }
    };
    let applied = apply(&journal, lock(state.path()), &root, &plan, &remove).unwrap();
    assert!(applied.notes().iter().any(|note| note.contains("/proc/irq/17") && note.contains("stays")));
    let [held] = &tunings(state.path(), &Root::live())[..] else { panic!("one") };
    assert_eq!(held.settings.len(), applied.len());
    assert!(held.settings.iter().all(|setting| setting.path != irq));
    assert!(applied.restore().is_clean());
}

#[test]
fn what_cannot_be_undone_is_not_done_where_it_has_no_use() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let file = dir.path().join("proc/sys/vm/drop_caches");
    std::fs::write(&file, "0\n").unwrap();
    std::fs::write(dir.path().join("proc/meminfo"), "Cached: 4096 kB\n").unwrap();
    let plan = plan(
        &root,
        &Wanted {
            memory: MemoryWanted { drop_caches: true, ..MemoryWanted::default() },
            ..Wanted::default()
        },
    );
    let journal = journal(state.path());
    let error = apply(&journal, lock(state.path()), &root, &plan, &nothing).unwrap_err();
    assert!(matches!(error, TuneError::Missing { setting: "drop-caches", .. }), "{error}");
    assert_eq!(value(&file), "0");
}

#[test]
fn a_setting_that_went_away_is_no_failure() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    assert!(run(Act::Keep, "all", dir.path(), state.path(), 1000));
    std::fs::remove_dir_all(dir.path().join("sys/fs/cgroup/web")).unwrap();
    let report = restore(state.path(), &Root::live(), false, &nothing).unwrap();
    assert!(report.is_clean() && report.notes.iter().any(|note| note.contains("is gone")), "{report:?}");
    assert_eq!(value(&root.path("/proc/sys/net/core/somaxconn")), "128");
}

#[test]
fn a_setting_that_cannot_be_seen_is_not_gone() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    assert!(run(Act::Keep, "all", dir.path(), state.path(), 1000));
    let (group, aside) = (dir.path().join("sys/fs/cgroup/web"), dir.path().join("aside"));
    std::fs::rename(&group, &aside).unwrap();
    let path = journal_file(state.path());
    let kind = tare_sys::filesystem::kind(dir.path()).unwrap();
    // The file system that it was on is not the one that is there now: it was unmounted.
    edit(&path, |text| text.replace(&format!("\"filesystem\":{kind}"), "\"filesystem\":1"));
    let is_kept = |why: &str| {
        let report = restore(state.path(), &Root::live(), false, &nothing).unwrap();
        assert!(report.failed.iter().any(|failed| failed.contains(why)), "{report:?}");
        assert!(!report.is_clean() && path.exists());
    };
    is_kept("not mounted here");
    // A way that leads nowhere.
    std::os::unix::fs::symlink("web", &group).unwrap();
    let report = recover(state.path(), &Root::live()).settings;
    assert!(report.failed.len() == 1 && report.failed[0].contains("cpu.max"), "{report:?}");
    assert!(path.exists());
    std::fs::remove_file(&group).unwrap();
    std::fs::rename(&aside, &group).unwrap();
    assert!(recover(state.path(), &Root::live()).is_clean());
    assert_eq!(value(&group.join("cpu.max")), "max 100000");
    assert_eq!(value(&root.path("/proc/sys/net/core/somaxconn")), "128");
}

#[test]
fn a_damaged_journal_is_followed_as_far_as_it_can_be_read_and_kept() {
    for line in [0, 2] {
        let (dir, root) = machine();
        let state = tempfile::tempdir().unwrap();
        let plan = plan(&root, &everything());
        let before = values(&root, &plan);
        assert!(!run(Act::Hold, "all", dir.path(), state.path(), 2 * before.len() as u32 + 1));
        let path = journal_file(state.path());
        edit(&path, |text| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines[line] = "{\"entry\":\"of-a-later-version\"}";
            lines.join("\n") + "\n"
        });
        let recovery = recover(state.path(), &Root::live());
        let [failed] = &recovery.failed[..] else { panic!("{recovery:?}") };
        assert!(failed.contains(&format!("line {}", line + 1)) && failed.contains("hint"), "{failed}");
        let applied = values(&root, &plan).iter().filter(|(path, value)| before[*path] != **value).count();
        // Only the one in the line that cannot be read.
        assert_eq!(applied, usize::from(line > 0), "{recovery:?}");
        assert!(!path.exists() && path.with_extension("journal.damaged").exists());
        assert_eq!(recover(state.path(), &Root::live()), Default::default());
    }
}

/// Journals that tare 0.1.0 wrote: one of a run that was killed, one of settings that were to stay.
#[test]
fn what_the_first_release_applied_is_put_back() {
    let (dir, root) = machine();
    let live = Root::live();
    let before = values(&root, &plan(&root, &everything()));
    let journals = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals/0.1.0");
    for kind in ["killed", "standing"] {
        let state = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(journals.join(format!("{kind}.journal"))).unwrap();
        let text = text.replace("@ROOT@", dir.path().to_str().unwrap());
        let text = text.replace("@BOOT@", &tare_machine::facts::boot_id(&live).unwrap());
        let journal = state.path().join("19730-370906-0.journal");
        std::fs::write(&journal, text).unwrap();
        std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(0o600)).unwrap();
        for (file, value) in [
            ("proc/sys/net/core/somaxconn", "4096"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "never"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
            ("sys/fs/cgroup/web/cpu.max", "200000 100000"),
        ] {
            std::fs::write(dir.path().join(file), value).unwrap();
        }
        assert_eq!(tunings(state.path(), &live)[0].settings.len(), 4);
        let recovery = recover(state.path(), &live);
        assert!(recovery.is_clean(), "{recovery:?}");
        if kind == "standing" {
            assert_eq!(recovery, Default::default());
            assert!(restore(state.path(), &live, false, &|| ()).unwrap().is_clean());
        }
        assert_eq!(values(&root, &plan(&root, &everything())), before);
        assert!(!journal.exists());
    }
}

#[test]
fn a_journal_that_others_could_have_written_is_not_followed() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let before = values(&root, &plan(&root, &everything()));
    assert!(!run(Act::Hold, "all", dir.path(), state.path(), 9));
    let applied = values(&root, &plan(&root, &everything()));
    let path = journal_file(state.path());
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (what, open, closed) in [(state.path(), 0o777, 0o700), (&path, 0o666, 0o600)] {
        mode(what, open);
        let recovery = recover(state.path(), &Root::live());
        assert!(matches!(&recovery.failed[..], [why] if why.contains("others may write")), "{recovery:?}");
        assert_eq!(values(&root, &plan(&root, &everything())), applied);
        assert!(path.exists());
        mode(what, closed);
    }
    // Nobody waits for the other end of a pipe.
    let pipe = state.path().join("1-1-0.journal");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let recovery = recover(state.path(), &Root::live());
    assert!(matches!(&recovery.failed[..], [why] if why.contains("1-1-0.journal")), "{recovery:?}");
    assert_eq!(values(&root, &plan(&root, &everything())), before);
}

#[test]
fn nothing_but_settings_is_written() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let effects = 2 * values(&root, &plan(&root, &everything())).len() as u32 + 1;
    assert!(!run(Act::Hold, "all", dir.path(), state.path(), effects));
    let target = dir.path().join("etc/passwd");
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    std::fs::write(&target, "4096\n").unwrap();
    let path = journal_file(state.path());
    for planted in ["etc/passwd", "proc/../etc/passwd"] {
        edit(&path, |text| text.replace("proc/sys/net/core/somaxconn", planted));
        let report = recover(state.path(), &Root::live()).settings;
        assert!(report.failed.iter().any(|failed| failed.contains("is no setting")), "{report:?}");
        assert_eq!(value(&target), "4096");
        edit(&path, |text| text.replace(planted, "proc/sys/net/core/somaxconn"));
    }
    assert!(recover(state.path(), &Root::live()).is_clean());
    assert_eq!(value(&root.path("/proc/sys/net/core/somaxconn")), "128");
}
