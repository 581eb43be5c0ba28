//! A file that is replaced whole or not at all.

use std::io::Write;
use std::path::Path;

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
