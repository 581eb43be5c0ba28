//! A file that is read whole, and replaced whole or not at all.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// What is there as JSON, of at most so many bytes; the default where no file is.
pub(crate) fn read<T: Default + serde::de::DeserializeOwned>(
    path: &Path,
    bytes_max: u64,
) -> std::io::Result<T> {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map_err(std::io::Error::other)
}

/// Puts a value there as JSON.
pub(crate) fn replace(path: &Path, value: &impl serde::Serialize) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::other)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tare-part");
    let beside = path.with_file_name(name);
    let put = || {
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&beside, path)
    };
    put().inspect_err(|_| _ = std::fs::remove_file(&beside))
}
