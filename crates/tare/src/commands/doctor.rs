//! `tare doctor`: the machine surveyed, probed and judged.

use crate::cli::doctor::DoctorArgs;
use crate::failure::{Ended, Failure};
use crate::{progress, terminal};
use anyhow::anyhow;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tare_machine::capture::{self, Captured};
use tare_machine::doctor::{Examined, examine};
use tare_machine::facts::{Reach, survey};
use tare_machine::fit::Room;
use tare_machine::placement::Ask;
use tare_machine::{Root, placement, probes, topology};
use tare_model::Reading;
use tare_model::check::{Check, Examination, Level};
use tare_model::placement::Policy;
use tare_model::probes::Probes;
use tare_model::survey::{Quota, Survey};
use tare_report::{Style, doctor as report};
use tare_run::LabError;
use tare_run::progress::Event;

/// Exit code when something is bad.
const BAD: u8 = 1;
/// CPU time is counted in hundredths of a second: a window of a second is good to 1 % of a CPU, a short one to 8 %.
const WINDOW: Duration = Duration::from_secs(1);
const SHORT_WINDOW: Duration = Duration::from_millis(120);

/// Examines and prints.
pub fn doctor(args: &DoctorArgs, style: Style) -> Ended {
    if let Some(path) = &args.capture {
        return pack(path, args.quiet);
    }
    super::check_output(&args.exports)?;
    // What an archive was unpacked to goes away with `captured`: not with a process that is killed meanwhile.
    let interrupted = args.root.is_some().then(super::interrupt_flag).transpose()?;
    let captured = args.root.as_deref().map(Captured::open).transpose().map_err(Failure::usage)?;
    if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
        return Err(LabError::Interrupted.into());
    }
    let root = captured.as_ref().map_or_else(Root::live, |captured| captured.root().clone());
    if let Some(policy) = args.topology {
        return draw(&root, policy);
    }
    let probing = !args.no_probes && root.is_live();
    let mut shown = progress::display(args.quiet || !probing);
    if probing {
        shown.show(Event::Step("looking at the machine".into()));
    }
    let window = if probing { WINDOW } else { SHORT_WINDOW };
    let survey = survey(&root, Reach { company: Some(window), windows: probing });
    let topology = topology::read(&root, None);
    let probes = match probing {
        true => Reading::Measured(probe(&root, &survey, shown.as_mut())),
        false if root.is_live() => Reading::missing("not asked for (--no-probes)"),
        false => Reading::missing("a captured machine cannot be probed"),
    };
    drop(shown);
    let calibration = super::calibrate::calibration_report(&root);
    let checks = examine(&Examined {
        survey: &survey,
        topology: &topology,
        probes: probes.value(),
        calibration: &calibration,
        now_unix_s: tare_sys::time::wall_s(),
    });
    let code = exit_code(&checks);
    let [shown, page] = [args.all, true].map(|everything| report::report(&checks, everything));
    let json = report::json(&Examination { checks, topology, survey, probes }).map_err(Failure::underway)?;
    super::emit_report(&shown, &page, &json, &args.exports, style)?;
    Ok(code)
}

/// The machine, and a plan for half of its cores, or for what a quota leaves of them.
fn draw(root: &Root, policy: Policy) -> Ended {
    let survey = survey(root, Reach { company: None, windows: false });
    let topology = topology::read(root, None);
    let quota = survey.groups.cpu.value().into_iter().flatten().filter_map(|group| group.quota.value());
    let quota_cpus = quota.map(Quota::cpus).reduce(f64::min);
    let plan =
        placement::plan(&topology, &Ask { policy, quota_cpus, ..Ask::default() }).map_err(Failure::usage)?;
    let room = Room::of(&survey, plan.sut.len() as u32);
    let text = tare_report::topology::draw(&topology, &plan, &room.environment());
    terminal::print(&text).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}

fn exit_code(checks: &[Check]) -> ExitCode {
    match checks.iter().any(|check| check.level == Level::Bad) {
        true => ExitCode::from(BAD),
        false => ExitCode::SUCCESS,
    }
}

fn probe(root: &Root, survey: &Survey, shown: &mut dyn tare_run::progress::Progress) -> Probes {
    let options = probes::Options::default();
    let total_s = options.duration_ns as f64 / 1e9;
    shown.show(Event::Expected { total_s });
    probes::run(root, &survey.machine.cpus, &options, &mut |step| {
        let phase = format!("probing: {}", step.probe);
        shown.show(Event::Live { elapsed_s: step.done_ratio * total_s, rate_hz: None, phase });
    })
}

fn pack(path: &Path, quiet: bool) -> Ended {
    if path == Path::new("-") {
        let stdout = std::io::stdout();
        if stdout.is_terminal() {
            return Err(Failure::usage(anyhow!(
                "an archive is nothing for a terminal (hint: name a file, or '> FILE')"
            )));
        }
        capture::pack_to(&Root::live(), stdout.lock()).map_err(Failure::underway)?;
        return Ok(ExitCode::SUCCESS);
    }
    super::check_writable(path)?;
    capture::pack(&Root::live(), path).map_err(Failure::usage)?;
    if !quiet {
        terminal::say(&format!("tare: wrote {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
