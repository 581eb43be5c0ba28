//! `tare probe`: from probes and states of load to which of several servers is the cause.

use crate::cli::probe::{ProbeArgs, ViaArg};
use crate::failure::{Ended, Failure};
use crate::progress;
use std::process::ExitCode;
use tare_model::probing::{Call, LoadState, ProbingPlan};
use tare_report::{Style, probing as report};
use tare_run::LabError;
use tare_run::probe::{self, ProbeRequest};

/// Measures, explains, prints.
pub fn probe(args: &ProbeArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    let request = request(args)?;
    let (state_dir, interrupt) = (super::state_dir()?, super::interrupt_flag()?);
    let mut progress = progress::display(args.quiet);
    let measured = probe::run(&request, &state_dir, &interrupt, progress.as_mut());
    drop(progress);
    let (run, end) = measured?;
    if !run.windows.is_empty() {
        let outcome = tare_explain::probing::explain(&run);
        let shown = report::report(&outcome);
        let json = report::json(&outcome).map_err(Failure::underway)?;
        super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    }
    end?;
    Ok(ExitCode::SUCCESS)
}

fn request(args: &ProbeArgs) -> Result<ProbeRequest, LabError> {
    let (probes, targets) = args.probe.iter().map(|arg| (arg.0.clone(), arg.1.clone())).unzip();
    let states = match args.state[..] {
        [] => vec![LoadState { name: "idle".into(), command: None, failed: None }],
        _ => args.state.clone(),
    };
    let plan = ProbingPlan {
        rate_hz: args.rate,
        window_s: args.window.as_secs_f64(),
        settle_s: args.settle.as_secs_f64(),
        timeout_s: args.timeout.as_secs_f64(),
        rounds: u32::try_from(args.rounds).unwrap_or(u32::MAX),
        // Half of the bits, so that the number can be typed again, and a double of JSON holds it.
        seed: args.seed.unwrap_or_else(|| tare_sys::time::realtime_ns() % (1 << 32)),
    };
    let mut request = ProbeRequest { probes, targets, states, plan };
    let via: Vec<(String, Vec<Call>)> =
        args.via.iter().map(|ViaArg(service, calls)| (service.clone(), calls.clone())).collect();
    request.call(&via)?;
    request.open_anew(&args.fresh)?;
    Ok(request)
}
