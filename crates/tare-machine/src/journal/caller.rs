//! What is written down of the process that keeps a journal.

use std::path::PathBuf;

/// How this process was called, for whoever has to wait for it.
pub(super) fn command_line() -> String {
    const CHARACTERS_MAX: usize = 200;
    let mut words = std::env::args_os();
    let program = words.next().map(PathBuf::from).unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ").chars().take(CHARACTERS_MAX).collect()
}

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
