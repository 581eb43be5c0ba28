//! Stacks on disk, as deflated JSON: one row for each trial that has any, and one for each window of a profile in a table of their own.

use crate::error::{StoreError, WRITE};
use crate::layout::{LAYOUT_PROFILE, LAYOUT_STACKS, checksum};
use rusqlite::{Transaction, params};
use std::path::Path;
use tare_model::Missing;
use tare_model::pack;
use tare_model::stacks::Stacks;

/// Name and words of the table.
pub(super) const TABLE: (&str, &str) = (
    "stacks",
    "CREATE TABLE stacks (trial_seq INTEGER PRIMARY KEY, json BLOB NOT NULL, checksum INTEGER NOT NULL)",
);
/// All rows.
pub(super) const SELECT: &str = "SELECT trial_seq, json, checksum FROM stacks ORDER BY trial_seq";
/// Name and words of the table of a profile.
pub(super) const PROFILE: (&str, &str) = (
    "profile",
    "CREATE TABLE profile (\"window\" INTEGER PRIMARY KEY, json BLOB NOT NULL, checksum INTEGER NOT NULL)",
);
/// All its rows.
pub(super) const SELECT_PROFILE: &str = "SELECT \"window\", json, checksum FROM profile ORDER BY \"window\"";
/// Windows of a profile that are read, at most.
pub(super) const WINDOWS_MAX: usize = 100;
/// JSON of one trial's stacks at most: what the bounds of [`tare_model::stacks`] allow is far below.
const BYTES_MAX: u64 = 1 << 28;

/// What a trial's own row has in the place of its stacks.
pub(super) fn elsewhere() -> Stacks {
    Stacks::missing(Missing::new("in a row of its own"))
}

pub(super) fn pack(path: &Path, stacks: &Stacks) -> Result<Vec<u8>, StoreError> {
    let json = serde_json::to_vec(stacks).map_err(|error| StoreError::Refused {
        path: path.into(),
        action: WRITE,
        detail: format!("stacks have no JSON form: {error}"),
    })?;
    Ok(pack::deflate(&json))
}

/// The stacks that [`pack`] packed.
pub(super) fn unpack(packed: &[u8]) -> Option<Stacks> {
    let json = pack::inflate_to(packed, BYTES_MAX).ok()?;
    serde_json::from_slice(&json).ok().filter(Stacks::is_whole)
}

/// Adds a trial's row; the first one makes the table, and the file one that older readers do not know.
pub(super) fn append(
    transaction: &Transaction,
    seq: u32,
    packed: &[u8],
    first: bool,
) -> rusqlite::Result<()> {
    if first {
        transaction.execute(TABLE.1, [])?;
        transaction.pragma_update(None, "user_version", LAYOUT_STACKS)?;
    }
    insert(transaction, "INSERT INTO stacks (trial_seq, json, checksum) VALUES (?, ?, ?)", seq, packed)
}

/// Adds a window of the profile, likewise.
pub(super) fn append_window(transaction: &Transaction, window: u32, packed: &[u8]) -> rusqlite::Result<()> {
    if window == 0 {
        transaction.execute(PROFILE.1, [])?;
        transaction.pragma_update(None, "user_version", LAYOUT_PROFILE)?;
    }
    insert(transaction, "INSERT INTO profile (\"window\", json, checksum) VALUES (?, ?, ?)", window, packed)
}

fn insert(transaction: &Transaction, sql: &str, number: u32, packed: &[u8]) -> rusqlite::Result<()> {
    let sum = checksum(&[packed, &number.to_le_bytes()]);
    transaction.execute(sql, params![number, packed, sum]).map(drop)
}
