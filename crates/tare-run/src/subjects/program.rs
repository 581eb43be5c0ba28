//! A program that ends: which words are executed, for each combination of its parameters.

use crate::error::LabError;
use crate::own_program;
use crate::request::{CommandRequest, Parameter};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Commands that parameters may multiply to.
const COMMANDS_MAX: usize = 10_000;

/// Programs to run, in order: what they are called, and the words that are executed.
pub(crate) struct Programs {
    /// The commands with their parameters filled in.
    pub variants: Vec<Vec<String>>,
    /// What is executed of each.
    pub words: Vec<Vec<String>>,
}

/// The programs of a request; an error where one of them cannot be run.
pub(crate) fn programs(request: &CommandRequest) -> Result<Programs, LabError> {
    let variants = expand(&request.command, &request.parameters)?;
    let words = variants.iter().map(|words| program(words, request)).collect::<Result<Vec<_>, _>>()?;
    words.iter().try_for_each(|words| find_program(&words[0]).map(drop))?;
    Ok(Programs { variants, words })
}

/// The command with every combination of parameter values filled in.
fn expand(command: &[String], parameters: &[Parameter]) -> Result<Vec<Vec<String>>, LabError> {
    let mut variants = vec![command.to_vec()];
    for parameter in parameters {
        let placeholder = format!("{{{}}}", parameter.name);
        if !command.iter().any(|word| word.contains(&placeholder)) {
            return Err(LabError::usage(
                format!("the command does not contain {placeholder}"),
                "write the parameter's name between braces where its value belongs",
            ));
        }
        if variants.len().saturating_mul(parameter.values.len()) > COMMANDS_MAX {
            return Err(LabError::usage(
                format!("more than {COMMANDS_MAX} combinations of parameters"),
                "give fewer values",
            ));
        }
        variants = variants
            .iter()
            .flat_map(|words| {
                let fill =
                    |value: &String| words.iter().map(|word| word.replace(&placeholder, value)).collect();
                parameter.values.iter().map(fill).collect::<Vec<Vec<String>>>()
            })
            .collect();
    }
    Ok(variants)
}

/// The words that are executed: through the shell, or the program itself.
fn program(words: &[String], request: &CommandRequest) -> Result<Vec<String>, LabError> {
    match (&request.shell, words) {
        (Some(shell), words) => {
            let mut through = shell_words::split(shell).map_err(|error| {
                LabError::usage(format!("--shell: {error}"), "close each quote that is opened")
            })?;
            through.extend(["-c".to_string(), words.join(" ")]);
            Ok(through)
        }
        (None, [line]) => words_of(line),
        (None, words) => Ok(words.to_vec()),
    }
}

/// The words of a command line, one at least.
pub(crate) fn words_of(line: &str) -> Result<Vec<String>, LabError> {
    let words = shell_words::split(line)
        .map_err(|error| LabError::usage(format!("'{line}': {error}"), "close each quote that is opened"))?;
    match words.is_empty() {
        true => Err(LabError::usage("the command is empty", "name a program and its arguments")),
        false => Ok(words),
    }
}

/// Where a program is; an error when the shell would say "not found": better before anything has started than at the first run.
pub(crate) fn find_program(name: &str) -> Result<PathBuf, LabError> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = own_program::found_by(name);
    let found = match file.contains('/') {
        true => Some(PathBuf::from(file)).filter(is_program),
        false => std::env::split_paths(&path).map(|folder| folder.join(&file)).find(is_program),
    };
    found.ok_or_else(|| {
        LabError::usage(
            format!("there is no program '{name}'"),
            "check its name and that it may be executed; 'command -v NAME' shows what a shell finds",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn fills_in_every_combination() {
        let parameter = |name: &str, values: &[&str]| Parameter {
            name: name.into(),
            values: values.iter().map(|value| value.to_string()).collect(),
        };
        let parameters = [parameter("a", &["1", "2"]), parameter("b", &["x", "y"])];
        let variants = expand(&words("run {a} {b}{a}"), &parameters).unwrap();
        let lines: Vec<String> = variants.iter().map(|words| words.join(" ")).collect();
        assert_eq!(lines, ["run 1 x1", "run 1 y1", "run 2 x2", "run 2 y2"]);
        assert!(matches!(expand(&words("run"), &parameters), Err(LabError::Usage { .. })));
        let many: Vec<String> = (0..200).map(|value| value.to_string()).collect();
        let parameters = ["a", "b"].map(|name| Parameter { name: name.into(), values: many.clone() });
        assert!(matches!(expand(&words("run {a} {b}"), &parameters), Err(LabError::Usage { .. })));
    }
}
