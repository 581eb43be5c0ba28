//! Reading a record back.

use crate::error::{READ, StoreError};
use crate::header::Header;
use crate::layout::{SAMPLES_MAX, TABLES, checksum, journal_of};
use crate::old::{self, Part};
use crate::stacks;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use tare_model::Record;
use tare_model::observation::{Column, Sample};
use tare_model::outcome::Warning;
use tare_model::pack;
use tare_model::stacks::Stacks;
use tare_model::trial::Trial;

/// How long to wait for a run that is just committing a trial.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Reads a record: all trials that were committed, in order. A record that was never finished gets the notice
/// `record-unfinished`.
///
/// Only read access is needed, unless a killed run left its last commit half done: then that is undone first.
///
/// # Errors
/// The file is absent, not ours, cut short, damaged or of a later layout.
pub fn read(path: &Path) -> Result<Record, StoreError> {
    let header = Header::read(path)?;
    // SQLite looks for the journal beside the file itself, not beside a link to it.
    let path = std::fs::canonicalize(path).map_err(|error| StoreError::io(path, READ, &error))?;
    let interrupted = journal_of(&path).exists();
    let (have_bytes, want_bytes) = (length(&path)?, header.promised_bytes());
    if have_bytes < want_bytes && !interrupted {
        return Err(StoreError::CutShort { path, have_bytes, want_bytes });
    }
    let access =
        if interrupted { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let reader = open(&path, access).map_err(|error| StoreError::sqlite(&path, READ, &error))?;
    let has_old_words = header.has_old_words();
    Reader { connection: reader, path: &path, has_old_words, samples_left: SAMPLES_MAX }.record()
}

fn length(path: &Path) -> Result<u64, StoreError> {
    std::fs::metadata(path).map(|file| file.len()).map_err(|error| StoreError::io(path, READ, &error))
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_WAIT)?;
    // Nothing that a foreign hand put into the schema is run, and no cell is trusted about its size.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // One snapshot for all that follows, also while a run goes on.
    connection.execute_batch("BEGIN")?;
    Ok(connection)
}

struct Reader<'a> {
    connection: Connection,
    path: &'a Path,
    has_old_words: bool,
    samples_left: u64,
}

impl Reader<'_> {
    fn record(mut self) -> Result<Record, StoreError> {
        let [has_stacks, has_profile] = self.check_tables()?;
        self.check_pages()?;
        let machine = self.meta("machine", Part::Machine)?;
        let plan = self.meta("plan", Part::Plan)?;
        let identity = self.meta_if_there("identity", Part::Identity)?;
        let intervention = self.meta_if_there("intervention", Part::Intervention)?;
        let mut trials = self.trials()?;
        let axes = self.axes()?;
        self.columns(&mut trials, &axes)?;
        for (trial, columns) in &trials {
            if trial.observation.columns.len() != *columns {
                return Err(self.damaged(format!("trial {} lacks columns", trial.seq)));
            }
        }
        if has_stacks {
            self.stacks(&mut trials)?;
        }
        if trials.iter().any(|(trial, _)| trial.observation.stacks.as_deref() == Some(&stacks::elsewhere())) {
            return Err(self.damaged("a trial lacks its stacks"));
        }
        let profile = if has_profile { self.profile()? } else { Vec::new() };
        let mut notices = self.notices()?;
        if !self.finished()? {
            notices.push(unfinished());
        }
        let trials = trials.into_iter().map(|(trial, _)| trial).collect();
        Ok(Record { machine, plan, trials, profile, notices, identity, intervention })
    }

    /// Whether there are a table of stacks and one of a profile beside those that every record has.
    fn check_tables(&self) -> Result<[bool; 2], StoreError> {
        let found: Vec<(String, String)> = self
            .rows("SELECT name, sql FROM sqlite_schema ORDER BY name LIMIT 9", |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let tables = || found.iter().map(|(name, sql)| (name.as_str(), sql.as_str()));
        let beside = [stacks::TABLE, stacks::PROFILE];
        let same = tables().filter(|table| !beside.contains(table)).eq(TABLES);
        if same {
            Ok(beside.map(|table| tables().any(|one| one == table)))
        } else {
            Err(self.damaged("its tables are not those of a record"))
        }
    }

    fn check_pages(&self) -> Result<(), StoreError> {
        let said: Vec<String> = self.rows("PRAGMA quick_check(1)", |row| row.get(0))?;
        match said.first() {
            Some(ok) if ok == "ok" => Ok(()),
            Some(fault) => Err(self.damaged(fault)),
            None => Err(self.damaged("its pages cannot be checked")),
        }
    }

    fn meta<T: DeserializeOwned>(&self, key: &str, part: Part) -> Result<T, StoreError> {
        self.meta_if_there(key, part)?.ok_or_else(|| self.damaged(format!("it has no {key}")))
    }

    fn meta_if_there<T: DeserializeOwned>(&self, key: &str, part: Part) -> Result<Option<T>, StoreError> {
        self.meta_row(key)?.map(|json| self.parse(&json, part, key)).transpose()
    }

    fn finished(&self) -> Result<bool, StoreError> {
        Ok(self.meta_row("end")?.is_some())
    }

    fn meta_row(&self, wanted: &str) -> Result<Option<String>, StoreError> {
        let rows: Vec<(String, String, i64)> = self
            .rows("SELECT \"key\", json, checksum FROM meta LIMIT 9", |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        for (key, json, sum) in rows {
            self.verify(sum, &[key.as_bytes(), json.as_bytes()], "meta")?;
            if key == wanted {
                return Ok(Some(json));
            }
        }
        Ok(None)
    }

    /// The trials without their columns, and how many columns each must get.
    fn trials(&self) -> Result<Vec<(Trial, usize)>, StoreError> {
        let rows: Vec<([u32; 3], String, i64)> = self
            .rows("SELECT seq, level, columns, json, checksum FROM trial ORDER BY seq", |row| {
                Ok(([row.get(0)?, row.get(1)?, row.get(2)?], row.get(3)?, row.get(4)?))
            })?;
        let mut trials = Vec::with_capacity(rows.len());
        for (numbers, json, sum) in rows {
            self.verify(sum, &[json.as_bytes(), &numbers.map(u32::to_le_bytes).concat()], "a trial")?;
            trials.push((self.parse(&json, Part::Trial, "a trial")?, numbers[2] as usize));
        }
        Ok(trials)
    }

    fn axes(&mut self) -> Result<HashMap<i64, Vec<i64>>, StoreError> {
        let rows: Vec<(i64, u32, Vec<u8>, i64)> = self
            .rows("SELECT id, trial_seq, stamps, checksum FROM axis ORDER BY id", |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        let mut axes = HashMap::with_capacity(rows.len());
        // Each axis belongs to a column at least, so the columns' bound is enough for both.
        let mut left = SAMPLES_MAX;
        for (id, seq, stamps, sum) in rows {
            self.verify(sum, &[&stamps, &seq.to_le_bytes()], "an axis")?;
            let stamps = pack::unpack_whole(&stamps, left).map_err(|_| self.damaged("an axis"))?;
            left -= stamps.len() as u64;
            axes.insert(id, stamps);
        }
        Ok(axes)
    }

    fn columns(
        &mut self,
        trials: &mut [(Trial, usize)],
        axes: &HashMap<i64, Vec<i64>>,
    ) -> Result<(), StoreError> {
        let places: HashMap<u32, usize> =
            trials.iter().enumerate().map(|(at, (trial, _))| (trial.seq, at)).collect();
        let connection = &self.connection;
        let sqlite = |error: rusqlite::Error| StoreError::sqlite(self.path, READ, &error);
        let mut statement = connection
            .prepare(
                "SELECT trial_seq, axis_id, metric, subject, samples, checksum FROM \"column\" ORDER BY id",
            )
            .map_err(sqlite)?;
        let mut rows = statement.query([]).map_err(sqlite)?;
        while let Some(row) = rows.next().map_err(sqlite)? {
            let get = || Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(5)?));
            let (seq, axis_id, metric, subject, sum): (u32, i64, String, String, i64) =
                get().map_err(sqlite)?;
            let packed = row.get_ref(4).and_then(|value| Ok(value.as_blob()?)).map_err(sqlite)?;
            let numbers = [&seq.to_le_bytes()[..], &axis_id.to_le_bytes()].concat();
            self.verify(sum, &[metric.as_bytes(), subject.as_bytes(), packed, &numbers], "a column")?;
            let values =
                pack::unpack_values(packed, self.samples_left).map_err(|_| self.damaged("a column"))?;
            let place = places.get(&seq).and_then(|&at| trials.get_mut(at));
            let (Some((trial, _)), Some(stamps)) = (place, axes.get(&axis_id)) else {
                return Err(self.damaged("a column belongs to no trial"));
            };
            if stamps.len() != values.len() {
                return Err(self.damaged("a column does not fit its axis"));
            }
            self.samples_left -= values.len() as u64;
            let samples = stamps.iter().zip(values);
            let samples = samples.map(|(at, value)| Sample { at_ns: at.cast_unsigned(), value }).collect();
            let subject = self.parse(&subject, Part::Subject, "a subject")?;
            trial.observation.columns.push(Column { metric: self.metric(metric), subject, samples });
        }
        Ok(())
    }

    fn stacks(&self, trials: &mut [(Trial, usize)]) -> Result<(), StoreError> {
        let rows: Vec<(u32, Vec<u8>, i64)> =
            self.rows(stacks::SELECT, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for (seq, packed, sum) in rows {
            self.verify(sum, &[&packed, &seq.to_le_bytes()], "stacks")?;
            let stacks = stacks::unpack(&packed).ok_or_else(|| self.damaged("stacks"))?;
            let trial = trials.iter_mut().find(|(trial, _)| trial.seq == seq);
            let (trial, _) = trial.ok_or_else(|| self.damaged("stacks belong to no trial"))?;
            trial.observation.stacks = Some(Box::new(stacks));
        }
        Ok(())
    }

    /// The windows of the profile.
    fn profile(&self) -> Result<Vec<Stacks>, StoreError> {
        let rows: Vec<(u32, Vec<u8>, i64)> =
            self.rows(stacks::SELECT_PROFILE, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        if rows.len() > stacks::WINDOWS_MAX {
            return Err(self.damaged("its profile has more windows than tare writes"));
        }
        let window = |(number, packed, sum): (u32, Vec<u8>, i64)| {
            self.verify(sum, &[&packed, &number.to_le_bytes()], "a window of the profile")?;
            stacks::unpack(&packed).ok_or_else(|| self.damaged("a window of the profile"))
        };
        rows.into_iter().map(window).collect()
    }

    fn notices(&self) -> Result<Vec<Warning>, StoreError> {
        let rows: Vec<(String, i64)> =
            self.rows("SELECT json, checksum FROM notice ORDER BY id", |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.iter()
            .map(|(json, sum)| {
                self.verify(*sum, &[json.as_bytes()], "a notice")?;
                self.parse(json, Part::Notice, "a notice")
            })
            .collect()
    }

    fn rows<T>(
        &self,
        query: &str,
        each: impl Fn(&rusqlite::Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = || self.connection.prepare(query)?.query_map([], each)?.collect::<rusqlite::Result<_>>();
        rows().map_err(|error| StoreError::sqlite(self.path, READ, &error))
    }

    fn verify(&self, sum: i64, fields: &[&[u8]], what: &str) -> Result<(), StoreError> {
        if sum == checksum(fields) {
            Ok(())
        } else {
            Err(self.damaged(format!("{what} is not what was written")))
        }
    }

    fn metric(&self, id: String) -> String {
        if self.has_old_words { old::metric(id) } else { id }
    }

    fn parse<T: DeserializeOwned>(&self, json: &str, part: Part, what: &str) -> Result<T, StoreError> {
        let read =
            if self.has_old_words { old::read(part, json.as_bytes()) } else { serde_json::from_str(json) };
        read.map_err(|error| self.damaged(format!("{what} cannot be understood: {error}")))
    }

    fn damaged(&self, detail: impl Into<String>) -> StoreError {
        StoreError::damaged(self.path, detail)
    }
}

/// What a reader must know of a run that never said it was done.
fn unfinished() -> Warning {
    Warning {
        id: "record-unfinished".into(),
        text: "the run did not finish: only the trials that ended are here".into(),
        hint: "run it again for the planned number of trials".into(),
    }
}
