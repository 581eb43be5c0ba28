//! What a killed run leaves behind is undone, and nothing else is touched.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_machine::journal::{Journal, RUN_VARIABLE, pin_tasks, recover};
use tare_machine::{Root, procs};
use tare_sys::affinity;

/// A process that is killed and reaped when the test is over.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleeper(run: &str) -> Reaped {
    let mut command = Command::new("sleep");
    Reaped(command.arg("1000").env(RUN_VARIABLE, run).stdout(Stdio::null()).spawn().unwrap())
}

fn is_running(pid: u32) -> bool {
    procs::stat(&Root::live(), pid).is_ok_and(|stat| stat.state != 'Z')
}

fn until(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    condition()
}

/// The only journal in a folder.
fn journal_file(dir: &Path) -> PathBuf {
    std::fs::read_dir(dir).unwrap().next().expect("no journal").unwrap().path()
}

/// Makes the journal that of somebody who is no more.
fn orphan(dir: &Path) {
    let path = journal_file(dir);
    let text = std::fs::read_to_string(&path).unwrap();
    let start = procs::stat(&Root::live(), std::process::id()).unwrap().start_ticks;
    let (owner, rest) = text.split_once('\n').unwrap();
    let owner = owner.replace(&format!("\"start_ticks\":{start}"), "\"start_ticks\":1");
    std::fs::write(&path, format!("{owner}\n{rest}")).unwrap();
}

#[test]
fn a_live_owner_keeps_what_it_has_and_a_dead_one_does_not() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Root::live());
    let journal = Journal::create(dir.path(), &root).unwrap();
    journal.will_start("sleep 1000").unwrap();
    let child = sleeper(journal.run_id());
    journal.started(&root, child.0.id()).unwrap();
    let bystander = sleeper("somebody-else");

    assert_eq!(recover(dir.path(), &root), Default::default());
    assert!(is_running(child.0.id()));

    orphan(dir.path());
    let recovery = recover(dir.path(), &root);
    assert_eq!(recovery.stopped.iter().map(|stopped| stopped.pid).collect::<Vec<_>>(), [child.0.id()]);
    assert!(recovery.failed.is_empty() && recovery.restored.is_empty(), "{recovery:?}");
    assert!(until(|| !is_running(child.0.id())));
    assert!(is_running(bystander.0.id()));
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
}

#[test]
fn one_that_was_started_but_not_yet_noted_is_found_by_its_mark() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Root::live());
    let journal = Journal::create(dir.path(), &root).unwrap();
    journal.will_start("sleep 1000").unwrap();
    let child = sleeper(journal.run_id());
    // The mark is in the environment once the program runs.
    let environ = format!("/proc/{}/environ", child.0.id());
    assert!(until(|| std::fs::read_to_string(&environ).is_ok_and(|text| text.contains(RUN_VARIABLE))));
    orphan(dir.path());
    let recovery = recover(dir.path(), &root);
    assert_eq!(recovery.stopped.len(), 1);
    assert!(until(|| !is_running(child.0.id())));
}

#[test]
fn threads_are_put_back_by_the_guard_or_by_the_next_start() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Root::live());
    let child = sleeper("x");
    let tid = child.0.id();
    let before = affinity::get(tid).unwrap();
    let journal = Journal::create(dir.path(), &root).unwrap();

    let pinned = pin_tasks(&journal, &root, &[tid], &before[..1]).unwrap();
    assert_eq!((pinned.len(), affinity::get(tid).unwrap()), (1, before[..1].to_vec()));
    drop(pinned);
    assert_eq!(affinity::get(tid).unwrap(), before);

    let pinned = pin_tasks(&journal, &root, &[tid], &before[..1]).unwrap();
    std::mem::forget(pinned);
    orphan(dir.path());
    let recovery = recover(dir.path(), &root);
    assert_eq!(recovery.restored.len(), 1);
    assert_eq!(affinity::get(tid).unwrap(), before);
    assert!(is_running(tid));
}

#[test]
fn a_pin_that_fails_half_way_undoes_what_it_did() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Root::live());
    let child = sleeper("x");
    let before = affinity::get(child.0.id()).unwrap();
    let journal = Journal::create(dir.path(), &root).unwrap();
    let error = pin_tasks(&journal, &root, &[child.0.id()], &[affinity::CPUS_MAX - 1]).unwrap_err();
    assert!(error.to_string().contains("cannot be pinned"), "{error}");
    assert_eq!(affinity::get(child.0.id()).unwrap(), before);
    assert!(pin_tasks(&journal, &root, &[u32::MAX - 7], &before).unwrap().is_empty());
}

#[test]
fn nothing_is_touched_after_a_reboot() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Root::live());
    let journal = Journal::create(dir.path(), &root).unwrap();
    journal.will_start("sleep 1000").unwrap();
    let child = sleeper(journal.run_id());
    journal.started(&root, child.0.id()).unwrap();
    orphan(dir.path());
    let path = journal_file(dir.path());
    let boot = tare_machine::facts::boot_id(&root).unwrap();
    let text = std::fs::read_to_string(&path).unwrap().replace(&boot, "another-boot");
    std::fs::write(&path, text).unwrap();
    assert_eq!(recover(dir.path(), &root), Default::default());
    assert!(is_running(child.0.id()) && !path.exists());
}

#[test]
fn a_journal_cut_anywhere_never_stops_anybody_else() {
    let (dir, root) = (tempfile::tempdir().unwrap(), Root::live());
    let journal = Journal::create(dir.path(), &root).unwrap();
    journal.will_start("sleep 1000").unwrap();
    let mut child = sleeper(journal.run_id());
    journal.started(&root, child.0.id()).unwrap();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    orphan(dir.path());
    let path = journal_file(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let bystander = sleeper("somebody-else");
    for cut in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        assert_eq!(recover(dir.path(), &root).stopped, vec![], "cut at {cut}");
    }
    std::fs::write(&path, b"\xff\x00 not a journal\n{}\n").unwrap();
    assert_eq!(recover(dir.path(), &root).stopped, vec![]);
    assert!(is_running(bystander.0.id()));
    assert_eq!(recover(&dir.path().join("nowhere"), &root), Default::default());
}

#[test]
fn a_finished_run_leaves_no_journal() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::create(&dir.path().join("deep/er"), &Root::live()).unwrap();
    journal.finish().unwrap();
    assert!(std::fs::read_dir(dir.path().join("deep/er")).unwrap().next().is_none());
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(Journal::create(&dir.path().join("file/below"), &Root::live()).is_err());
}
