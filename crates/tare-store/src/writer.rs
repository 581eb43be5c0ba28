//! Writing a record, trial by trial.

use crate::error::{StoreError, WRITE};
use crate::header::Header;
use crate::layout::{APPLICATION_ID, LAYOUT_PLAIN, SAMPLES_MAX, TABLES, checksum, journal_of};
use crate::stacks;
use rusqlite::{Connection, OpenFlags, Transaction, params};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tare_model::identity::Identity;
use tare_model::intervention::Intervention;
use tare_model::machine::MachineFacts;
use tare_model::observation::{Column, Observation};
use tare_model::outcome::Warning;
use tare_model::pack::packed;
use tare_model::plan::Plan;
use tare_model::stacks::Stacks;
use tare_model::trial::Trial;

/// Trials are forced onto the disk this often: what is waited for there lies between the runs of a short program, which then finds its
/// caches cold. A process that is killed loses no trial; a machine that loses its power may lose those since.
const FORCED_EVERY: Duration = Duration::from_secs(1);

/// A record that is being written.
#[derive(Debug)]
pub struct Writer {
    connection: Connection,
    /// Since when nothing was forced onto the disk.
    forced: Instant,
    path: PathBuf,
    samples: u64,
    has_stacks: bool,
    /// Windows of the profile so far.
    windows: u32,
}

impl Writer {
    /// Begins a record at `path`, with the machine and the plan on disk when it returns.
    ///
    /// The new file is made beside the old one and takes its place when it is whole, so that a failure here
    /// loses no earlier result. Only a `.tare` file or an empty file is replaced.
    ///
    /// # Errors
    /// The place cannot be written, or what is there is not a record.
    pub fn create(path: &Path, machine: &MachineFacts, plan: &Plan) -> Result<Writer, StoreError> {
        let path = resolve(path)?;
        let fresh = beside(&path);
        remove(&fresh)?;
        let made = begin(&fresh, machine, plan).and_then(|()| {
            // Before the new file has the name: an old journal would be rolled back into it.
            remove(&journal_of(&path))?;
            std::fs::rename(&fresh, &path).map_err(|error| StoreError::io(&path, WRITE, &error))
        });
        if let Err(error) = made {
            remove(&fresh).ok();
            return Err(error.at(path));
        }
        let connection = open(&path)?;
        Ok(Writer { connection, forced: Instant::now(), path, samples: 0, has_stacks: false, windows: 0 })
    }

    /// The file, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds who and what takes part; once, and on disk when this returns.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn identify(&mut self, identity: &Identity) -> Result<(), StoreError> {
        let json = json(&self.path, identity)?;
        self.put("identity", &json)
    }

    /// Adds what was tried on the bottleneck; once, and on disk when this returns.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn intervened(&mut self, tried: &Intervention) -> Result<(), StoreError> {
        let json = json(&self.path, tried)?;
        self.put("intervention", &json)
    }

    fn put(&self, key: &str, json: &str) -> Result<(), StoreError> {
        put_meta(&self.connection, key, json).map_err(|error| StoreError::sqlite(&self.path, WRITE, &error))
    }

    /// Adds a finished trial; it is in the file when this returns, and on disk after [`FORCED_EVERY`] at the latest where others follow.
    ///
    /// # Errors
    /// The disk refuses, or the record would pass [`SAMPLES_MAX`]; the trials before stay as they are.
    pub fn append(&mut self, trial: &Trial) -> Result<(), StoreError> {
        let columns = &trial.observation.columns;
        let samples =
            columns.iter().fold(self.samples, |sum, column| sum.saturating_add(column.samples.len() as u64));
        if samples > SAMPLES_MAX {
            return Err(StoreError::TooLarge { path: self.path.clone(), samples, max: SAMPLES_MAX });
        }
        let json = json(&self.path, &row(trial))?;
        let seen = trial.observation.stacks.as_deref();
        let packed = seen.map(|seen| stacks::pack(&self.path, seen)).transpose()?;
        let is_due = self.forced.elapsed() >= FORCED_EVERY;
        self.force(is_due)?;
        let written = self.connection.transaction().and_then(|transaction| {
            let numbers = [trial.seq, trial.level, columns.len() as u32];
            let sum = checksum(&[json.as_bytes(), &numbers.map(u32::to_le_bytes).concat()]);
            transaction
                .prepare_cached(
                    "INSERT INTO trial (seq, level, columns, json, checksum) VALUES (?, ?, ?, ?, ?)",
                )?
                .execute(params![numbers[0], numbers[1], numbers[2], json, sum])?;
            append_columns(&transaction, trial.seq, columns)?;
            if let Some(packed) = &packed {
                stacks::append(&transaction, trial.seq, packed, !self.has_stacks)?;
            }
            transaction.commit()
        });
        let written = written.map_err(|error| StoreError::sqlite(&self.path, WRITE, &error));
        self.force(true)?;
        written?;
        if is_due {
            self.forced = Instant::now();
        }
        self.has_stacks |= packed.is_some();
        self.samples = samples;
        Ok(())
    }

    /// Adds a window of the profile; it is on disk when this returns.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn profiled(&mut self, window: &Stacks) -> Result<(), StoreError> {
        let packed = stacks::pack(&self.path, window)?;
        let written = self.connection.transaction().and_then(|transaction| {
            stacks::append_window(&transaction, self.windows, &packed)?;
            transaction.commit()
        });
        written.map_err(|error| StoreError::sqlite(&self.path, WRITE, &error))?;
        self.windows += 1;
        Ok(())
    }

    /// Whether what is written from now on is forced onto the disk.
    fn force(&self, is_forced: bool) -> Result<(), StoreError> {
        force(&self.connection, is_forced).map_err(|error| StoreError::sqlite(&self.path, WRITE, &error))
    }

    /// Adds a warning of the run itself; it is on disk when this returns.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn notice(&mut self, warning: &Warning) -> Result<(), StoreError> {
        let json = json(&self.path, warning)?;
        self.connection
            .execute(
                "INSERT INTO notice (json, checksum) VALUES (?, ?)",
                params![json, checksum(&[json.as_bytes()])],
            )
            .map(drop)
            .map_err(|error| StoreError::sqlite(&self.path, WRITE, &error))
    }

    /// Marks the record as finished: without this a reader says that the run was cut off.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn finish(self) -> Result<(), StoreError> {
        let Writer { connection, path, .. } = self;
        put_meta(&connection, "end", "true")
            .and_then(|()| connection.close().map_err(|(_, error)| error))
            .map_err(|error| StoreError::sqlite(&path, WRITE, &error))
    }
}

/// Columns that were read together share their stamps: each distinct axis is stored once.
fn append_columns(transaction: &Transaction, seq: u32, columns: &[Column]) -> rusqlite::Result<()> {
    let mut axes: HashMap<Vec<u8>, i64> = HashMap::new();
    let mut add_axis =
        transaction.prepare_cached("INSERT INTO axis (trial_seq, stamps, checksum) VALUES (?, ?, ?)")?;
    let mut add_column = transaction.prepare_cached(
        "INSERT INTO \"column\" (trial_seq, axis_id, metric, subject, samples, checksum) VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for Column { metric, subject, samples } in columns {
        let (stamps, packed) = packed(samples);
        let axis_id = match axes.entry(stamps) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let sum = checksum(&[new.key(), &seq.to_le_bytes()]);
                let id = add_axis.insert(params![seq, new.key(), sum])?;
                *new.insert(id)
            }
        };
        let subject = serde_json::to_string(subject)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let numbers = [&seq.to_le_bytes()[..], &axis_id.to_le_bytes()].concat();
        let sum = checksum(&[metric.as_bytes(), subject.as_bytes(), &packed, &numbers]);
        add_column.execute(params![seq, axis_id, metric, subject, packed, sum])?;
    }
    Ok(())
}

/// The trial as its own row holds it, without what has rows of its own. Every field is named, so that a new one cannot be
/// forgotten here.
fn row(trial: &Trial) -> Trial {
    let seen = &trial.observation;
    Trial {
        seq: trial.seq,
        level: trial.level,
        sample: trial.sample.clone(),
        report: trial.report.clone(),
        observation: Observation {
            begin_ns: seen.begin_ns,
            end_ns: seen.end_ns,
            tasks: seen.tasks.clone(),
            idle: seen.idle.clone(),
            sut_groups: seen.sut_groups.clone(),
            sut_group_is_own: seen.sut_group_is_own,
            columns: Vec::new(),
            absences: seen.absences.clone(),
            stacks: seen.stacks.as_ref().map(|_| Box::new(stacks::elsewhere())),
            schedule: seen.schedule.clone(),
            ended: seen.ended.clone(),
            downstream: seen.downstream.clone(),
        },
    }
}

/// Makes the tables and writes what is known before the first trial.
fn begin(path: &Path, machine: &MachineFacts, plan: &Plan) -> Result<(), StoreError> {
    let rows = [("machine", json(path, machine)?), ("plan", json(path, plan)?)];
    let mut connection = open(path)?;
    let made = connection.transaction().and_then(|transaction| {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", LAYOUT_PLAIN)?;
        for (_, table) in TABLES {
            transaction.execute(table, [])?;
        }
        for (key, json) in &rows {
            put_meta(&transaction, key, json)?;
        }
        transaction.commit()
    });
    made.and_then(|()| connection.close().map_err(|(_, error)| error))
        .map_err(|error| StoreError::sqlite(path, WRITE, &error))
}

fn put_meta(connection: &Connection, key: &str, json: &str) -> rusqlite::Result<()> {
    let sum = checksum(&[key.as_bytes(), json.as_bytes()]);
    connection
        .execute("INSERT INTO meta (\"key\", json, checksum) VALUES (?, ?, ?)", params![key, json, sum])?;
    Ok(())
}

/// A connection for writing: one file between commits, each commit on the disk before it returns.
fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.pragma_update(None, "journal_mode", "DELETE")?;
        force(&connection, true)?;
        Ok(connection)
    };
    opened().map_err(|error| StoreError::sqlite(path, WRITE, &error))
}

fn force(connection: &Connection, is_forced: bool) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", if is_forced { "FULL" } else { "OFF" })
}

/// The path with links resolved, if what is there may be replaced or nothing is.
fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let path = match std::fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(path.into()),
        Err(error) => return Err(StoreError::io(path, WRITE, &error)),
    };
    match Header::read(&path) {
        // Whatever its state, it is one of ours, or nothing at all is in it.
        Ok(_) | Err(StoreError::Newer { .. } | StoreError::Damaged { .. }) => Ok(path),
        Err(StoreError::NotARecord { .. }) if std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) => {
            Ok(path)
        }
        Err(error) => Err(error),
    }
}

/// The name under which a record is made, in the same directory so that it can be renamed.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    name.into()
}

/// Removes a file that may be absent.
fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io(path, WRITE, &error))
        }
        _ => Ok(()),
    }
}

fn json<T: serde::Serialize>(path: &Path, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Refused {
        path: path.into(),
        action: WRITE,
        detail: format!("a value has no JSON form: {error}"),
    })
}
