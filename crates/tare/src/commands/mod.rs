//! One file per subcommand: from arguments to the crates that do the work, to an exit code.

mod builds;
pub mod calibrate;
pub mod ceiling;
pub mod compare;
mod compare_records;
mod compare_results;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod flame;
pub mod gate;
pub mod help;
mod judged;
pub mod load;
pub mod man;
pub mod plan;
pub mod probe;
pub mod recover;
pub mod report;
mod results;
pub mod run;
pub mod scale;
pub mod schema;
pub mod serve;
pub mod show;
pub mod steady;
mod sweep;
mod traffic;
mod treated;
pub mod tune;
pub mod why;
mod worse;
pub mod zoo;

use crate::cli::output::OutputArgs;
use crate::failure::Failure;
use crate::terminal;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use tare_model::Record;
use tare_model::outcome::Outcome;
use tare_report::{Report, Style};
use tare_run::Session;

/// Longest that is waited for who reads a pipe that the user named.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// Where a command that measures keeps its things, and what interrupts it.
fn session(record: Option<PathBuf>) -> Result<Session, Failure> {
    Ok(Session {
        record,
        state_dir: state_dir()?,
        records_dir: records_dir()?,
        interrupt: interrupt_flag()?,
        in_step: None,
    })
}

/// Where tare keeps the journals of what must be undone.
pub fn state_dir() -> Result<PathBuf, Failure> {
    match std::env::var_os("TARE_STATE_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => std::path::absolute(dir).map_err(Failure::usage),
        None => tare_machine::journal::default_dir().map_err(Failure::usage),
    }
}

/// Where records go that no file was named for; unlike journals, they outlive a reboot.
pub fn records_dir() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("TARE_STATE_DIR")
        .or_else(|| Some(set("XDG_STATE_HOME")?.join("tare")))
        .or_else(|| Some(set("HOME")?.join(".local/state/tare")));
    Ok(state.map_or_else(state_dir, Ok)?.join("records"))
}

/// The named record, or the newest of the default ones.
pub fn read_record(file: Option<&Path>) -> Result<(PathBuf, Record), Failure> {
    let newest = || {
        tare_run::records::newest(&records_dir()?).ok_or_else(|| {
            Failure::usage(anyhow::anyhow!(
                "there is no record yet (hint: name a FILE, or make one with 'tare run')"
            ))
        })
    };
    let path = file.map_or_else(newest, |path| Ok(path.to_path_buf()))?;
    let record = tare_store::read(&path)
        .map_err(|error| Failure::usage(anyhow::anyhow!("{error} (hint: {})", error.hint())))?;
    if file.is_none() {
        // Nothing else says which run it is.
        terminal::say(&format!("tare: {}: {}", path.display(), tare_report::origin(&record)));
    }
    Ok((path, record))
}

/// Prints and exports a result as the arguments ask.
pub fn emit(record: &Record, outcome: &Outcome, output: &OutputArgs, style: Style) -> Result<(), Failure> {
    if let Some(path) = &output.export_csv {
        write(path, &tare_report::csv(outcome))?;
    }
    if let Some(path) = &output.export_markdown {
        write(path, &tare_report::markdown(record, outcome))?;
    }
    if let Some(path) = &output.html {
        write(path, &tare_report::html(record, outcome))?;
    }
    let text = match output.json {
        _ if output.takes_stdout() => return Ok(()),
        true => tare_report::json(outcome).map_err(Failure::underway)?,
        false => tare_report::terminal(record, outcome, style),
    };
    terminal::print(&text).map_err(Failure::underway)
}

/// The same of a result that is laid out already, whose JSON form is there; `page`: as there is room for it on a page.
pub fn emit_report(
    report: &Report,
    page: &Report,
    json: &str,
    output: &OutputArgs,
    style: Style,
) -> Result<(), Failure> {
    if let Some(path) = &output.export_csv {
        write(path, &report.csv())?;
    }
    if let Some(path) = &output.export_markdown {
        write(path, &page.markdown())?;
    }
    if let Some(path) = &output.html {
        write(path, &page.html())?;
    }
    match output.json {
        _ if output.takes_stdout() => Ok(()),
        true => terminal::print(json).map_err(Failure::underway),
        false => terminal::print(&report.terminal(style)).map_err(Failure::underway),
    }
}

/// Finds out before anything is started that a result can be written to where it is to go.
pub fn check_output(output: &OutputArgs) -> Result<(), Failure> {
    output.files().try_for_each(check_writable)
}

/// Set by Ctrl-C and by a polite kill; whoever runs looks at it and cleans up.
pub fn interrupt_flag() -> Result<std::sync::Arc<std::sync::atomic::AtomicBool>, Failure> {
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, flag.clone()).map_err(Failure::underway)?;
    }
    Ok(flag)
}

/// Writes a file that the user named; `-` is standard output.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// The same of what may be no text.
pub fn write_bytes(path: &Path, content: &[u8]) -> Result<(), Failure> {
    if path == Path::new("-") {
        return terminal::print_bytes(content).map_err(Failure::underway);
    }
    let written = match is_pipe(path) {
        true => open_pipe(path, READ_WITHIN).and_then(|mut pipe| pipe.write_all(content)),
        false => std::fs::write(path, content),
    };
    written.map_err(|error| unwritable(path, &error))
}

/// A file that the user named to be written, and cannot be.
pub fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.to_string() {
        text if text.contains("hint: ") => "",
        _ => " (hint: name a file in a folder that is there and may be written)",
    };
    Failure::usage(anyhow::anyhow!("cannot write {}: {error}{hint}", path.display()))
}

/// A file that the user named to be read, and cannot be.
pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(anyhow::anyhow!(
        "cannot read {}: {error} (hint: check the name, and that it may be read)",
        path.display()
    ))
}

/// Finds out before anything is started that a file cannot be written. Leaves no file behind.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    // A pipe's reader would take the end of this look for the end of all.
    if path == Path::new("-") || is_pipe(path) {
        return Ok(());
    }
    let existed = path.exists();
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| unwritable(path, &error))?;
    if !existed {
        std::fs::remove_file(path).ok();
    }
    Ok(())
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Opens a pipe for writing, which waits for its reader. A thread that still waits when the time is over ends with this process.
fn open_pipe(path: &Path, longest: Duration) -> io::Result<File> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let path = path.to_path_buf();
    let open = move || drop(sender.send(File::create(path)));
    std::thread::Builder::new().name("tare-pipe".into()).spawn(open)?;
    receiver.recv_timeout(longest).unwrap_or_else(|_| {
        let why = format!(
            "it is a pipe, and nobody reads it (waited {} s; hint: start its reader first, or name a file)",
            longest.as_secs_f64()
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

/// Whether both names lead to one file.
fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(a).is_some() && real(a) == real(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_has_a_reader_or_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Neither waits.
        assert!(check_writable(&pipe).is_ok());
        let why = open_pipe(&pipe, Duration::from_millis(1)).unwrap_err().to_string();
        assert!(why.contains("nobody reads it") && why.contains("hint: "), "{why}");
        // Whoever still waits for a reader has one now, who reads nothing.
        drop(File::options().read(true).write(true).open(&pipe).unwrap());
        let read = folder.path().join("read");
        assert!(std::process::Command::new("mkfifo").arg(&read).status().unwrap().success());
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| std::fs::read_to_string(&read).unwrap());
            assert!(check_writable(&read).is_ok() && write(&read, "figures").is_ok());
            assert_eq!(reader.join().unwrap(), "figures");
        });
    }
}
