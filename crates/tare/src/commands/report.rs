//! `tare report`: one self-contained page.

use super::results;
use crate::cli::ReportArgs;
use crate::failure::Ended;
use crate::terminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tare_formats::Choice;
use tare_report::tool;

/// Writes the page beside the user, and says where.
pub fn report(args: &ReportArgs) -> Ended {
    let (path, page) = match args.file.as_deref().filter(|path| results::is_of_a_tool(path)) {
        Some(path) => (path.to_path_buf(), tool::report(&results::read(path, &Choice::default())?).html()),
        None => {
            let (path, record) = super::read_record(args.file.as_deref())?;
            let outcome = tare_explain::explain(&record);
            (path, tare_report::html(&record, &outcome))
        }
    };
    let output = match &args.output {
        Some(output) => output.clone(),
        None => {
            let stem = path.file_stem().filter(|stem| *stem != "-").unwrap_or_else(|| "report".as_ref());
            PathBuf::from(stem).with_extension("html")
        }
    };
    super::write(&output, &page)?;
    if output != Path::new("-") {
        terminal::say(&format!("tare: wrote {}", output.display()));
    }
    Ok(ExitCode::SUCCESS)
}
