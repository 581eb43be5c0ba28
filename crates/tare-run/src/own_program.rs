//! The word `tare` in a command that is started: this very program, also where it is not on the PATH or another version is.
//!
//! The word is replaced, and the PATH left alone. A folder put in front of it would change the environment of what is measured: its
//! length moves the stack, records keep it and `tare why` compares it, and a killed run would leave the folder behind. What a
//! command starts in its turn, a script say, finds its own `tare` by the PATH as before.

use std::path::{Path, PathBuf};

/// The word.
const NAME: &str = "tare";
/// Programs whose `-c` takes a line of words.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// Where this program is; `None` where it has another name (a test, or somebody's program that this library is in), or has been
/// deleted since it was started.
fn here() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?;
    // A command line is text: a path that is none is not put into it.
    (path.file_name()? == NAME && path.is_file() && path.to_str().is_some()).then_some(path)
}

/// Which build of a program it is, in words: another one may cost another time for everything.
pub fn build(program: &Path) -> String {
    let about = std::fs::metadata(program).ok();
    let modified = about.as_ref().and_then(|about| about.modified().ok());
    let modified_ns =
        modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).map(|at| at.as_nanos());
    format!("build of {:?} bytes at {modified_ns:?}", about.map(|about| about.len()))
}

/// What a program is found by: its name, or for `tare` where this one is.
pub fn found_by(name: &str) -> String {
    let own = (name == NAME).then(here).flatten();
    own.map_or_else(|| name.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// The words that are executed, with `tare` replaced where it is the program, or the first word of a shell's line.
pub fn replaced(words: &[String]) -> Vec<String> {
    here().map_or_else(|| words.to_vec(), |path| with(words, &path.to_string_lossy()))
}

fn with(words: &[String], path: &str) -> Vec<String> {
    match words {
        [program, rest @ ..] if program == NAME => {
            std::iter::once(path).chain(rest.iter().map(String::as_str)).map(str::to_owned).collect()
        }
        [shell, before @ .., option, line] if option == "-c" && is_shell(shell) => {
            let through = std::iter::once(shell).chain(before).chain([option]).cloned();
            through.chain([in_line(line, path)]).collect()
        }
        _ => words.to_vec(),
    }
}

fn is_shell(program: &str) -> bool {
    program.rsplit('/').next().is_some_and(|name| SHELLS.contains(&name))
}

fn in_line(line: &str, path: &str) -> String {
    let ends =
        |rest: &&str| rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || ";&|<>".contains(c));
    let line = line.trim_start();
    // `exec` leaves the shell no process of its own, and the word after it is the program.
    let (before, program) = match line.strip_prefix("exec ") {
        Some(program) => ("exec ", program.trim_start()),
        None => ("", line),
    };
    match program.strip_prefix(NAME).filter(ends) {
        Some(rest) => format!("{before}{}{rest}", shell_words::quote(path)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_replaced_and_no_other() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            with(&words, "/my tools/tare").join("|")
        };
        for (words, executed) in [
            (&["tare", "serve", "tare"][..], "/my tools/tare|serve|tare"),
            (&["sh", "-c", "tare serve --root tare"], "sh|-c|'/my tools/tare' serve --root tare"),
            (&["/bin/bash", "-c", " tare; tare"], "/bin/bash|-c|'/my tools/tare'; tare"),
            (&["sh", "-c", "tare"], "sh|-c|'/my tools/tare'"),
            (&["sh", "-c", "exec tare serve"], "sh|-c|exec '/my tools/tare' serve"),
            (&["sh", "-c", "tare>out"], "sh|-c|'/my tools/tare'>out"),
            (&["bash", "-e", "-c", "tare serve"], "bash|-e|-c|'/my tools/tare' serve"),
            (&["sh", "-c", "tare-old serve"], "sh|-c|tare-old serve"),
            (&["sh", "-c", "./tare serve"], "sh|-c|./tare serve"),
            (&["sh", "-c", "cd x && tare serve"], "sh|-c|cd x && tare serve"),
            (&["python3", "-c", "tare = 1"], "python3|-c|tare = 1"),
            (&["./tare", "serve"], "./tare|serve"),
            (&[], ""),
        ] {
            assert_eq!(of(words), executed);
        }
    }

    #[test]
    fn another_program_with_this_library_is_not_tare() {
        let words = ["tare".to_owned(), "serve".to_owned()];
        assert_eq!((replaced(&words), found_by("tare")), (words.to_vec(), "tare".to_owned()));
    }
}
