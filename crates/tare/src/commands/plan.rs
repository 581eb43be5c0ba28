//! `tare plan`: from a plan file to its cells to what became of what it expects.

use crate::cli::plan::PlanArgs;
use crate::failure::{Ended, Failure};
use crate::{progress, terminal};
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;
use tare_machine::Root;
use tare_machine::facts::{self, Reach};
use tare_model::study::Verdict;
use tare_model::treatment::TreatmentScope;
use tare_report::Style;
use tare_report::study as report;
use tare_run::LabError;
use tare_run::study::{self, Cell, Setup, Study};
use tare_run::treatment::{HugePages, Treatment};

/// Exit code where an expectation did not hold.
const DID_NOT_HOLD: u8 = 1;

/// Judges the plan, runs it, prints.
pub fn plan(args: &PlanArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    let study = study(args)?;
    let treatments = treatments(&study)?;
    if args.dry_run {
        terminal::print(&reported(&study)).map_err(Failure::underway)?;
        return Ok(ExitCode::SUCCESS);
    }
    let setup = Setup {
        session: super::session(None)?,
        records: args.output.clone(),
        argv: super::run::argv(),
        embedded_program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
        treatments,
    };
    let mut progress = progress::display(args.quiet);
    let studied = study::run(&study, &setup, progress.as_mut());
    drop(progress);
    let outcome = &studied.outcome;
    let measured = outcome.cells.iter().any(|cell| cell.blocks > 0);
    if measured {
        let shown = report::report(outcome);
        let json = report::json(outcome).map_err(Failure::underway)?;
        super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    }
    // A server that goes away between launches is found missing where a launch begins; something was started by then.
    studied.end.map_err(|error| match error {
        LabError::Usage { .. } if measured => Failure::underway(error),
        error => error.into(),
    })?;
    let mut judgements = outcome.cells.iter().flat_map(|cell| &cell.expectations);
    let failed = judgements.any(|judgement| judgement.verdict == Verdict::DidNotHold);
    Ok(if failed { ExitCode::from(DID_NOT_HOLD) } else { ExitCode::SUCCESS })
}

fn study(args: &PlanArgs) -> Result<Study, Failure> {
    let file = args.file.as_deref().map(|file| {
        let text = std::fs::read_to_string(file).map_err(|error| super::unreadable(file, &error))?;
        Ok((text, file.display().to_string()))
    });
    let flags = (study::as_plan(&args.set, &args.factor)?, "the command line".to_owned());
    let texts: Vec<(String, String)> = file.into_iter().chain([Ok(flags)]).collect::<Result<_, Failure>>()?;
    let texts: Vec<(&str, &str)> = texts.iter().map(|(text, file)| (text.as_str(), file.as_str())).collect();
    let plan = study::read(&texts)?;
    let machine = facts::survey(&Root::live(), Reach { company: None, windows: false }).machine;
    let online: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.cpu).collect();
    Ok(plan.resolve(&online)?)
}

/// What each cell is measured with: settings of the whole machine.
fn treatments(study: &Study) -> Result<Vec<Treatment>, Failure> {
    let of = |cell: &Cell| {
        let given = cell.settings.tuned.as_deref().unwrap_or_default();
        let treatment = super::treated::treatment(given)?;
        let own = treatment.given.iter().find(|given| given.scope == TreatmentScope::Process);
        match own {
            Some(own) => Err(anyhow!(
                "'{}' is for the program alone (hint: a variable goes before its command, as sut = \"env NAME=VALUE ./server\"; \
                 placement = \"spread\" is a key of its own; 'tare compare --set-b' has the others)",
                own.name
            )),
            None if treatment.huge_pages == Some(HugePages::Auto) => Err(anyhow!(
                "hugepages=auto needs a run that is looked at first (hint: give a number of pages; 'tare compare --set-b hugepages=auto' finds it)"
            )),
            None => Ok(treatment),
        }
    };
    let named =
        |cell: &Cell| of(cell).map_err(|error| Failure::usage(anyhow!("{}: set: {error}", cell.name)));
    study.cells.iter().map(named).collect()
}

/// What would be done.
fn reported(study: &Study) -> String {
    let name = if study.name.is_empty() { String::new() } else { format!("{}\n", study.name) };
    let until = study.precision.map_or(String::new(), |share| {
        format!(" at most, until throughput is known to ±{} %", (1e4 * share).round() / 100.0)
    });
    let mut text = format!(
        "{name}{} blocks of {} cells, about {:.0} s{until}\n",
        study.blocks,
        study.cells.len(),
        study.expected().as_secs_f64()
    );
    for (at, cell) in study.cells.iter().enumerate() {
        text += &format!("  {}", cell.name);
        if cell.baseline != at {
            text += &format!("  (against {})", study.cells[cell.baseline].name);
        }
        text.push('\n');
        for expected in &cell.expect {
            text += &format!("    expects {}\n", expected.text);
        }
    }
    for (name, cpus) in &study.left_out {
        text += &format!("  {name} is left out: it needs {cpus} CPUs\n");
    }
    text
}
