//! What a file is made of.

/// Samples in one record at most: about two gigabytes in memory.
///
/// Stated on writing, so that whatever was written can be read.
pub const SAMPLES_MAX: u64 = 1 << 27;

/// `tare` in ASCII: tells our files from other SQLite databases.
pub(crate) const APPLICATION_ID: i32 = 0x7461_7265;

/// The latest layout with the words of 0.1.0 ([`crate::old`]).
pub(crate) const LAYOUT_OLD_WORDS: i32 = 2;
/// Layout of the tables without stacks.
pub(crate) const LAYOUT_PLAIN: i32 = 3;
/// Layout with stacks, which is only written where there are any.
pub(crate) const LAYOUT_STACKS: i32 = 4;
/// Layout with a profile, which is only written where there is one.
pub(crate) const LAYOUT_PROFILE: i32 = 5;
/// The latest layout that is known here; raised when an older reader could not read the file.
pub(crate) const LAYOUT_VERSION: i32 = LAYOUT_PROFILE;

/// Every table that is always there, by name and in the words that SQLite keeps: the reader accepts these, those of
/// [`crate::stacks`] and no others, so no view or trigger of a foreign file is ever run.
pub(crate) const TABLES: [(&str, &str); 5] = [
    (
        "axis",
        "CREATE TABLE axis (id INTEGER PRIMARY KEY, trial_seq INTEGER NOT NULL, stamps BLOB NOT NULL, checksum INTEGER NOT NULL)",
    ),
    (
        "column",
        "CREATE TABLE \"column\" (id INTEGER PRIMARY KEY, trial_seq INTEGER NOT NULL, axis_id INTEGER NOT NULL, metric TEXT NOT NULL, subject TEXT NOT NULL, samples BLOB NOT NULL, checksum INTEGER NOT NULL)",
    ),
    ("meta", "CREATE TABLE meta (\"key\" TEXT NOT NULL, json TEXT NOT NULL, checksum INTEGER NOT NULL)"),
    ("notice", "CREATE TABLE notice (id INTEGER PRIMARY KEY, json TEXT NOT NULL, checksum INTEGER NOT NULL)"),
    (
        "trial",
        "CREATE TABLE trial (seq INTEGER PRIMARY KEY, level INTEGER NOT NULL, columns INTEGER NOT NULL, json TEXT NOT NULL, checksum INTEGER NOT NULL)",
    ),
];

/// FNV-1a over fields, each ended by its length: any single changed byte changes the sum.
pub(crate) fn checksum(fields: &[&[u8]]) -> i64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut sum = OFFSET;
    for field in fields {
        for &byte in field.iter().chain(&(field.len() as u64).to_le_bytes()) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    sum.cast_signed()
}

/// The rollback journal that SQLite keeps beside a database while it commits.
pub(crate) fn journal_of(path: &std::path::Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}
