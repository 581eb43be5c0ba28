//! The `.tare` file: what is written is read, and nothing else is ever taken for it.

use crate::support::{machine, plan, record, trial, trial_with_stacks, write};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tare_model::Record;
use tare_model::outcome::Warning;
use tare_model::trial::Trial;
use tare_store::{StoreError, Writer, read};

/// The names in a directory, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// One clear line with a hint, about this file.
fn assert_clear(error: &StoreError, path: &Path) {
    let line = error.to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(line.contains(name) && !line.contains('\n') && line.len() < 700, "{line}");
    assert!(!error.hint().is_empty() && !error.hint().contains('\n'));
}

#[test]
fn a_record_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tare");
    let wanted = record(3, 40);
    write(&path, &wanted);
    assert_eq!(read(&path).unwrap(), wanted);
    assert_eq!(names(folder.path()), ["a.tare"], "one file, nothing beside it");
}

/// The layout that a file says it has.
fn layout(path: &Path) -> i32 {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// These trials, and no notices.
fn of(trials: Vec<Trial>) -> Record {
    Record { notices: Vec::new(), trials, ..record(0, 0) }
}

#[test]
fn stacks_come_back_and_only_files_with_stacks_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, with) = (folder.path().join("plain.tare"), folder.path().join("stacks.tare"));
    write(&plain, &record(2, 10));
    assert_eq!(layout(&plain), 3);
    let trials = vec![trial(0, 10), trial_with_stacks(1), trial(2, 10), trial_with_stacks(3)];
    let wanted = of(trials);
    write(&with, &wanted);
    assert_eq!(layout(&with), 4);
    assert_eq!(read(&with).unwrap(), wanted);
    let connection = rusqlite::Connection::open(&with).unwrap();
    connection.execute("DELETE FROM stacks WHERE trial_seq = 3", []).unwrap();
    drop(connection);
    assert!(read(&with).unwrap_err().to_string().contains("lacks its stacks"));
}

#[test]
fn a_profile_comes_back_apart_from_the_trials() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.tare");
    let window = |seq: u32| *trial_with_stacks(seq).observation.stacks.unwrap();
    let wanted = Record { profile: vec![window(1), window(2)], ..record(2, 10) };
    write(&path, &wanted);
    assert_eq!(layout(&path), 5);
    assert_eq!(read(&path).unwrap(), wanted);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE profile SET checksum = checksum + 1 WHERE \"window\" = 1", []).unwrap();
    drop(connection);
    assert!(read(&path).unwrap_err().to_string().contains("a window of the profile"));
}

#[test]
fn every_appended_trial_is_there_before_the_run_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.tare");
    let mut writer = Writer::create(&path, &machine(), &plan()).unwrap();
    for seq in 0..3 {
        writer.append(&trial(seq, 10)).unwrap();
        assert_eq!(names(folder.path()), ["killed.tare"]);
        let seen = read(&path).unwrap();
        assert_eq!(seen.trials.len(), seq as usize + 1);
        assert_eq!(seen.notices.last().unwrap().id, "record-unfinished");
    }
    assert!(writer.append(&trial(1, 10)).is_err(), "two trials cannot have one place");
    assert_eq!(read(&path).unwrap().trials.len(), 3);
}

#[test]
fn a_commit_that_was_cut_off_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.tare");
    let journal = folder.path().join("cut.tare-journal");
    let wanted = record(2, 40);
    write(&path, &wanted);
    // A commit that reached the file but whose journal was never deleted, as kill -9 leaves it. The cache is
    // one page small, so that changed pages go to the file before the commit.
    let (torn, torn_journal) = {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN").unwrap();
        connection.execute("UPDATE \"column\" SET samples = zeroblob(3000)", []).unwrap();
        connection.execute("DELETE FROM trial", []).unwrap();
        (fs::read(&path).unwrap(), fs::read(&journal).unwrap())
    };
    let sound = fs::read(&path).unwrap();
    assert_ne!(torn, sound, "the test must tear something");
    fs::write(&path, torn).unwrap();
    fs::write(&journal, torn_journal).unwrap();
    assert_eq!(read(&path).unwrap(), wanted);
    assert_eq!(names(folder.path()), ["cut.tare"]);
}

#[test]
fn cut_short_at_any_byte_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.tare");
    write(&path, &record(2, 120));
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let whole = file.metadata().unwrap().len();
    for length in (0..whole).rev() {
        file.set_len(length).unwrap();
        match read(&path) {
            Err(error @ (StoreError::CutShort { .. } | StoreError::NotARecord { .. })) => {
                assert_clear(&error, &path);
            }
            other => panic!("cut at {length} of {whole}: {other:?}"),
        }
    }
}

#[test]
fn what_is_not_a_record_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "SQLite is mentioned here. ".repeat(50)).unwrap();
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    for path in [&text, &other] {
        let before = fs::read(path).unwrap();
        for error in [read(path).unwrap_err(), Writer::create(path, &machine(), &plan()).unwrap_err()] {
            assert!(matches!(error, StoreError::NotARecord { .. }), "{error}");
            assert_clear(&error, path);
        }
        assert_eq!(fs::read(path).unwrap(), before);
    }
    let absent = folder.path().join("absent.tare");
    assert!(matches!(read(&absent), Err(StoreError::Absent { .. })));
    for odd in [folder.path(), Path::new("/dev/null")] {
        assert!(matches!(read(odd), Err(StoreError::NotAFile { .. })));
        let refused = Writer::create(odd, &machine(), &plan());
        assert!(matches!(refused, Err(StoreError::NotAFile { .. })));
    }
    let nowhere = folder.path().join("no/such/folder.tare");
    let error = Writer::create(&nowhere, &machine(), &plan()).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert_clear(&error, &nowhere);
    assert_eq!(names(folder.path()), ["notes.txt", "other.db"]);
}

#[test]
fn an_earlier_record_is_replaced_also_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("again.tare");
    let link = folder.path().join("latest.tare");
    fs::write(&path, "").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    // The old record's half-done commit must not be rolled back into the new one.
    for (place, trials) in [(&path, 2), (&link, 1), (&path, 3)] {
        let wanted = record(trials, 20);
        fs::write(folder.path().join("again.tare-journal"), [0; 512]).unwrap();
        write(place, &wanted);
        assert_eq!(read(&link).unwrap(), wanted);
        assert_eq!(names(folder.path()), ["again.tare", "latest.tare"]);
    }
}

#[test]
fn a_schema_that_is_not_ours_is_never_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trap.tare");
    write(&path, &record(1, 10));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "DROP TABLE notice; CREATE VIEW notice AS WITH RECURSIVE n(i) AS \
             (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, '' AS json, 0 AS checksum FROM n",
        )
        .unwrap();
    drop(connection);
    let error = read(&path).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn a_later_layout_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.tare");
    write(&path, &record(1, 10));
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 77).unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 77, .. }), "{error}");
    assert_clear(&error, &path);
}

/// Five minutes of a busy server on sixteen CPUs as the observers that are always there see it, so that an hour is twelve of it.
#[test]
fn an_hour_of_sixteen_threads_is_small() {
    const FIVE_MINUTES_SAMPLES: u64 = 20 * 60 * 5;
    const FIVE_MINUTES_SLICES: u64 = 10 * 60 * 5;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hour.tare");
    let trials = vec![crate::support::busy_trial(FIVE_MINUTES_SAMPLES, FIVE_MINUTES_SLICES)];
    let wanted = of(trials);
    write(&path, &wanted);
    let hour_bytes = fs::metadata(&path).unwrap().len() * 12;
    println!("an hour of 16 threads: {:.1} MB", hour_bytes as f64 / 1e6);
    assert!(hour_bytes < 60_000_000, "an hour would be {hour_bytes} bytes");
    assert_eq!(read(&path).unwrap(), wanted);
}

#[test]
fn notices_travel_with_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notices.tare");
    let warning = Warning {
        id: "clock-unreadable".into(),
        text: "no\nclock".into(),
        hint: "'; DROP TABLE trial".into(),
    };
    let mut writer = Writer::create(&path, &machine(), &plan()).unwrap();
    writer.notice(&warning).unwrap();
    assert!(writer.path().ends_with("notices.tare"));
    writer.finish().unwrap();
    assert_eq!(read(&path).unwrap().notices, [warning]);
}

/// A record with and without stacks, and the bytes of its file.
static WHOLE: LazyLock<(Record, Vec<u8>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.tare");
    let mut whole = record(2, 30);
    whole.trials.push(trial_with_stacks(2));
    write(&path, &whole);
    (whole, fs::read(&path).unwrap())
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A flipped bit is found, or it was where nothing is kept.
    #[test]
    fn flipped_bits_never_change_what_is_read(flips in prop::collection::vec((0.0..1.0, 0u8..8), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flip.tare");
        let (wanted, mut bytes) = (&WHOLE.0, WHOLE.1.clone());
        for (place, bit) in flips {
            let at = (place * bytes.len() as f64) as usize;
            bytes[at] ^= 1 << bit;
        }
        fs::write(&path, &bytes).unwrap();
        match read(&path) {
            Ok(seen) => {
                // Only the mark of a finished run may go unseen: its page may lose the row.
                prop_assert_eq!((&seen.trials, &seen.plan), (&wanted.trials, &wanted.plan));
            }
            Err(error) => assert_clear(&error, &path),
        }
    }
}
