//! `tare flame`: call stacks as a drawing, as text, and for other tools.

use crate::cli::flame::FlameArgs;
use crate::failure::Ended;
use crate::failure::Failure;
use crate::terminal;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_model::stacks::Stacks;
use tare_report::flame::{self, Choice};

/// Longest text that is imported, bytes.
const IMPORT_BYTES_MAX: u64 = 1 << 30;

/// Draws, prints or exports.
pub fn flame(args: &FlameArgs) -> Ended {
    let choice = Choice { role: args.role.into(), off_cpu: args.off_cpu, by_thread: args.by_thread };
    let (path, stacks) = match &args.import {
        Some(path) => (path.clone(), imported(path)?),
        None => of_file(args.file.as_deref())?,
    };
    let after = args.after.as_deref().map(|path| of_file(Some(path))).transpose()?;
    if let Some(file) = &args.export_pprof {
        write_bytes(file, &flame::pprof(&stacks, &choice).map_err(Failure::usage)?)?;
    }
    if let Some(file) = &args.export_firefox {
        super::write(file, &flame::firefox(&stacks, &choice).map_err(Failure::usage)?)?;
    }
    if args.folded {
        let text = match &after {
            Some((_, after)) => flame::folded_difference(&stacks, after, &choice),
            None => flame::folded(&stacks, &choice),
        };
        terminal::print(&text.map_err(Failure::usage)?).map_err(Failure::underway)?;
    }
    let exported = args.export_pprof.is_some() || args.export_firefox.is_some();
    if args.folded || (exported && args.output.is_none()) {
        return Ok(ExitCode::SUCCESS);
    }
    let drawn = match &after {
        Some((other, after)) => flame::difference(&stacks, after, &choice, [&name(&path), &name(other)]),
        None => flame::svg(&stacks, &choice, &name(&path)),
    };
    let output = args.output.clone().unwrap_or_else(|| {
        let stem = path.file_stem().filter(|stem| *stem != "-").unwrap_or_else(|| "flame".as_ref());
        PathBuf::from(stem).with_extension("svg")
    });
    super::write(&output, &drawn.map_err(Failure::usage)?)?;
    if output != Path::new("-") {
        let reported = after.as_ref().map_or(&stacks, |(_, after)| after);
        let facts = flame::facts(reported, &choice).map_err(Failure::usage)?;
        terminal::say(&format!("tare: wrote {} ({facts})", output.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn of_file(file: Option<&Path>) -> Result<(PathBuf, Stacks), Failure> {
    let (path, record) = super::read_record(file)?;
    let stacks = flame::of_record(&record).map_err(Failure::usage)?;
    Ok((path, stacks))
}

fn imported(path: &Path) -> Result<Stacks, Failure> {
    let reading = || -> std::io::Result<String> {
        let mut bytes = Vec::new();
        if path == Path::new("-") {
            std::io::stdin().lock().take(IMPORT_BYTES_MAX).read_to_end(&mut bytes)?;
        } else {
            std::fs::File::open(path)?.take(IMPORT_BYTES_MAX).read_to_end(&mut bytes)?;
        }
        // A name that is no text spoils no other.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = reading().map_err(|error| super::unreadable(path, &error))?;
    flame::import(&text).map_err(Failure::usage)
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| super::unwritable(path, &error))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
