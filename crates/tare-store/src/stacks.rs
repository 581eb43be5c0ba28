//! Stacks on disk: one row for each trial that has any, as deflated JSON.

use crate::error::{StoreError, WRITE};
use crate::layout::{LAYOUT_STACKS, checksum};
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
    let sum = checksum(&[packed, &seq.to_le_bytes()]);
    transaction
        .execute("INSERT INTO stacks (trial_seq, json, checksum) VALUES (?, ?, ?)", params![seq, packed, sum])
        .map(drop)
}
