//! Knobs are turned, held and put back; what goes wrong is undone and said.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use support::{Act, everything, machine, possible, run, value, values};
use tare_machine::journal::{Journal, State, recover, restore, tunings};
use tare_machine::knobs::{LockError, TuneError, Wanted, plan, turn};
use tare_machine::{Root, facts};

/// Not a test of its own: what [`run`] starts.
#[test]
fn child() {
    support::be_killed(|_| everything());
}

fn journal(dir: &Path) -> Journal {
    Journal::create(dir, &Root::live()).unwrap()
}

fn nothing() {}

#[test]
fn turned_held_and_put_back() {
    let (_dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let plan = plan(&root, &everything());
    let before = values(&root, &plan);
    let journal = journal(state.path());
    let turned = turn(&journal, &root, &plan, &nothing).unwrap();
    assert_eq!(turned.len(), before.len());
    for step in plan.iter().flat_map(|planned| &planned.course.as_ref().unwrap().steps) {
        assert_eq!(value(&root.path(&step.path)), step.wanted);
    }
    let [held] = &tunings(state.path(), &Root::live())[..] else { panic!("one") };
    assert_eq!(
        (held.state, held.by.pid, held.settings.len()),
        (State::Held, std::process::id(), before.len())
    );
    assert_eq!(recover(state.path(), &Root::live()), Default::default(), "its owner lives");
    let report = turned.restore();
    assert_eq!((report.put_back.len(), report.is_clean(), report.notes.len()), (before.len(), true, 0));
    // In the reverse order: the last turned is the first put back.
    assert_eq!(report.put_back[0].knob, "quota");
    assert_eq!(values(&root, &plan), before);
    // Dropping does it as well.
    drop(turn(&journal, &root, &plan, &nothing).unwrap());
    assert_eq!(values(&root, &plan), before);
    journal.finish().unwrap();
}

#[test]
fn one_that_fails_undoes_those_before_it() {
    let (dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let plan = plan(&root, &everything());
    let before = values(&root, &plan);
    let quota = dir.path().join("sys/fs/cgroup/web/cpu.max");
    // The group goes between looking and turning.
    std::fs::remove_file(&quota).unwrap();
    let journal = journal(state.path());
    let error = turn(&journal, &root, &plan, &nothing).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, TuneError::Refused { knob: "quota", .. }), "{text}");
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
    let error = turn(&journal, &root, &plan, &nothing).unwrap_err();
    assert!(matches!(error, TuneError::Missing { knob: "somaxconn", .. }), "{error}");
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert_eq!(std::fs::read_to_string(dir.path().join("proc/sys/vm/nr_hugepages")).unwrap(), before);
}

#[test]
fn two_at_once_are_told_of_each_other() {
    let (_dir, root) = machine();
    let state = tempfile::tempdir().unwrap();
    let (first, second) = (journal(state.path()), journal(state.path()));
    let somaxconn = plan(&root, &Wanted { somaxconn: Some(4096), ..Wanted::default() });
    let turned = turn(&first, &root, &somaxconn, &nothing).unwrap();
    let error = turn(&second, &root, &somaxconn, &nothing).unwrap_err();
    let TuneError::Lock(LockError::Held(holder)) = &error else { panic!("{error}") };
    assert_eq!(holder.pid, std::process::id());
    assert!(error.to_string().contains("hint: wait for its end"), "{error}");
    assert!(matches!(restore(state.path(), &Root::live(), false, &nothing), Err(LockError::Held(_))));
    assert!(turned.restore().is_clean());
    drop(turn(&second, &root, &somaxconn, &nothing).unwrap());
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
            (&*changed.before, &*changed.turned, &*changed.now),
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
    let wanted = |limit| Wanted { somaxconn: Some(limit), ..Wanted::default() };
    let path = root.path("/proc/sys/net/core/somaxconn");
    for limit in [1000, 2000, 3000] {
        turn(&journal(state.path()), &root, &plan(&root, &wanted(limit)), &nothing).unwrap().keep().unwrap();
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
        let turned = values(&root, &possible(&root, &everything()));
        let files = std::fs::read_dir(state.path()).unwrap().map(|file| file.unwrap().path());
        let path =
            files.into_iter().find(|path| path.extension().is_some_and(|end| end == "journal")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap().replace(&boot, "another-boot");
        std::fs::write(&path, text).unwrap();
        assert!(tunings(state.path(), &Root::live()).is_empty());
        let recovery = recover(state.path(), &Root::live());
        assert!(recovery.knobs.rebooted > 0 && recovery.knobs.put_back.is_empty(), "{recovery:?}");
        assert_eq!(values(&root, &possible(&root, &everything())), turned, "nothing was touched");
        assert!(restore(state.path(), &Root::live(), false, &nothing).unwrap().is_empty());
    }
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
