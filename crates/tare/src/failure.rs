//! Failures and their exit codes: 1 a check failed, 2 usage, 3 SUT or generator, 4 not valid, 130 interrupted.

use crate::cli::help;
use crate::terminal;
use clap::error::{ContextKind, ContextValue};
use std::process::ExitCode;
use tare_run::LabError;

/// Exit code of bad usage or input.
const USAGE: u8 = 2;
/// Exit code of a server, program or generator that failed underway.
pub const SUT_FAILED: u8 = 3;
/// Exit code of a result that is not valid.
pub const NOT_VALID: u8 = 4;

/// A failure with its exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

/// What a command ends with: an exit code of its own, or a failure that is printed in one place.
pub type Ended = Result<ExitCode, Failure>;

impl Failure {
    /// Bad usage or input: nothing was started.
    pub fn usage(error: impl Into<anyhow::Error>) -> Self {
        Failure { code: USAGE, error: error.into() }
    }

    /// The SUT, the generator or this machine failed underway.
    pub fn underway(error: impl Into<anyhow::Error>) -> Self {
        Failure { code: SUT_FAILED, error: error.into() }
    }

    /// Prints one line (and what a dead SUT printed last) and gives the exit code.
    pub fn print(self) -> ExitCode {
        // What a file or a SUT said may hold what moves a cursor; a SUT may have said more than one line.
        let shown = in_one_line(&self.error).replace(|c: char| c.is_control() && c != '\n', "?");
        let shown = match self.code == USAGE && !shown.contains("hint: ") {
            true => format!("{shown} ({})", help_hint()),
            false => shown,
        };
        terminal::say(&format!("tare: {shown}"));
        ExitCode::from(self.code)
    }
}

/// The error and its causes; one that a text before it tells already is left out.
fn in_one_line(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |line, cause| match cause.to_string() {
        reported if line.contains(&reported) => line,
        first if line.is_empty() => first,
        next => format!("{line}: {next}"),
    })
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let code = match &error {
            LabError::Usage { .. } => USAGE,
            // The journal is opened before anything is started.
            LabError::State(_) => USAGE,
            LabError::Store(_) | LabError::Sut { .. } | LabError::Load { .. } | LabError::Observe(_) => {
                SUT_FAILED
            }
            LabError::Interrupted => 130,
        };
        Failure { code, error: error.into() }
    }
}

/// What was typed after `tare`.
pub fn words() -> Vec<String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Where the arguments of the command that was typed are explained.
fn help_hint() -> String {
    match help::named(&words()) {
        Some(name) => {
            format!("hint: 'tare {name} -h' shows the main options, 'tare help {name}' explains all")
        }
        None => "hint: 'tare help' lists all commands".to_owned(),
    }
}

/// clap's own errors in our form: the version to standard output, anything else one line and code 2.
pub fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe (`tare --version | head`) is no failure.
        error.print().ok();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        terminal::say(help::FIRST_STEPS);
        return ExitCode::from(USAGE);
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("bad arguments").trim_start_matches("error: ");
    // A list ("the following required arguments were not provided:") goes on below its first line.
    let rest: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(|line| line.trim_start_matches("tip: "))
        .filter(|line| !misleads(line, error))
        .collect();
    let detail = match rest.is_empty() {
        true => String::new(),
        false if first.ends_with(':') => format!(" {}", rest.join(" ")),
        false => format!("; {}", rest.join("; ")),
    };
    let detail = match error.get(ContextKind::InvalidArg) {
        // The word before it was taken for the URL.
        Some(ContextValue::String(word)) if word.contains("://") => {
            format!(
                "{detail}; one URL stands there already: what belongs to an option may need a '=', as in --stacks=99"
            )
        }
        _ => detail,
    };
    let hint = match error.kind() {
        // What a value must be stands in the text.
        _ if text.contains("hint: ") => String::new(),
        clap::error::ErrorKind::InvalidSubcommand => format!(" (hint: {})", no_command_hint(error)),
        clap::error::ErrorKind::UnknownArgument => match meant_program() {
            Some(program) => format!(" (hint: a program is measured by: tare run -- {program})"),
            None => format!(" ({})", help_hint()),
        },
        _ => format!(" ({})", help_hint()),
    };
    terminal::say(&format!("tare: {first}{detail}{hint}"));
    ExitCode::from(USAGE)
}

/// The command line behind `tare run PROGRAM -x …`, where `PROGRAM` is one and no URL.
fn meant_program() -> Option<String> {
    let words = words();
    let ("run", [program, ..]) = words.split_first().map(|(command, rest)| (command.as_str(), rest))? else {
        return None;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = || std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    (!program.starts_with('-') && !program.contains("://") && is_program())
        .then(|| shell_words::join(&words[1..]))
}

/// Whether a tip of clap's is none: to put an unknown option behind `--` would run it as a program, and what is called similar may not be.
fn misleads(tip: &str, error: &clap::Error) -> bool {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.trim_start_matches('-')),
        _ => None,
    };
    let far = || {
        let both = word(ContextKind::InvalidArg).zip(word(ContextKind::SuggestedArg));
        both.is_some_and(|(typed, known)| !help::are_alike(typed, known))
    };
    tip.starts_with("to pass '") || (tip.starts_with("a similar argument") && far())
}

/// What to type where a URL or a file stands in the place of a command.
fn no_command_hint(error: &clap::Error) -> String {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.as_str(),
        _ => "",
    };
    let is_file = || std::path::Path::new(word).is_file();
    match word {
        url if url.contains("://") => format!("'tare run {url}' measures a server"),
        record if record.ends_with(".tare") && is_file() => format!("'tare show {record}' shows a record"),
        program if program.contains('/') && is_file() => {
            format!("'tare run -- {program}' measures a program")
        }
        _ => "'tare help' lists all commands".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};
    use tare_server::ServerError;

    #[test]
    fn a_cause_is_named_once() {
        let source = Error::from(ErrorKind::AddrInUse);
        let error = anyhow::Error::from(ServerError::Listen { address: ([127, 0, 0, 1], 80).into(), source });
        let line = in_one_line(&error.context("nothing is served"));
        let reported = "nothing is served: cannot listen on 127.0.0.1:80: address in use (hint:";
        assert!(line.starts_with(reported) && line.matches("address in use").count() == 1, "{line}");
        let plain = anyhow::Error::from(Error::from(ErrorKind::NotFound)).context("cannot write x");
        assert_eq!(in_one_line(&plain), "cannot write x: entity not found");
    }
}
