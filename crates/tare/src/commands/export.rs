//! `tare export`: a result in another tool's format.

use super::results;
use crate::cli::export::ExportArgs;
use crate::failure::{Ended, Failure};
use crate::terminal;
use anyhow::anyhow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_formats::export::EXPORTS;
use tare_model::tool::ToolMetrics;

/// Reads, converts and writes; what the format cannot hold is said.
pub fn export(args: &ExportArgs) -> Ended {
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from("-"));
    let format = EXPORTS.iter().find(|export| export.name == args.format);
    let format = format.ok_or_else(|| Failure::usage(anyhow!("there is no format '{}'", args.format)))?;
    let exported = format.write(&metrics(args)?);
    if output == Path::new("-") && exported.content.contains(&0) && io::stdout().is_terminal() {
        return Err(Failure::usage(anyhow!("{} is no text (hint: -o FILE, or '> FILE')", args.format)));
    }
    super::write_bytes(&output, &exported.content)?;
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (metric, why) in &exported.left_out {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, metrics)) => metrics.push(metric),
            None => reasons.push((why, vec![metric])),
        }
    }
    for (why, metrics) in reasons {
        terminal::say(&format!("tare: not in it: {}: {why}", metrics.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn metrics(args: &ExportArgs) -> Result<ToolMetrics, Failure> {
    let file = args.file.as_deref();
    let choice = args.chosen.choice();
    if let Some(path) = file.filter(|path| results::is_of_a_tool(path)) {
        return results::read(path, &choice);
    }
    let (_, record) = super::read_record(file)?;
    let mut metrics = tare_explain::tool::of_outcome(&record.plan, &tare_explain::explain(&record));
    choice.keep(&mut metrics).map_err(|why| Failure::usage(anyhow!("{why}")))?;
    Ok(metrics)
}
