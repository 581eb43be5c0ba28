//! `tare schema`: the JSON schema of what a command prints with `--json`.

use crate::cli::schema::SchemaArgs;
use crate::failure::{Ended, Failure};
use crate::terminal;
use anyhow::anyhow;
use std::process::ExitCode;
use tare_model::schema::{self, OUTPUTS, Output};

/// Prints one schema, or the names of all.
pub fn schema(args: &SchemaArgs) -> Ended {
    let text = match &args.name {
        None => &OUTPUTS.iter().map(line).collect::<String>(),
        Some(name) => schema::find(name).ok_or_else(|| unknown(name))?.text,
    };
    terminal::print(text).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}

fn line(output: &Output) -> String {
    format!("{:<16} tare {}\n", output.name, output.printed_by)
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = OUTPUTS.iter().map(|output| output.name).collect();
    Failure::usage(anyhow!("there is no schema '{name}' (hint: there are {})", names.join(", ")))
}
