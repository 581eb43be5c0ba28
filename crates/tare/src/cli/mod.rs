//! The arguments. Parsing only validates what can be judged from the text alone; nothing happens here.

pub mod calibrate;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod flame;
pub mod gate;
pub mod load;
pub mod output;
pub mod plan;
pub mod run;
pub mod schema;
pub mod serve;
pub mod steady;
pub mod traffic;
pub mod tune;
pub mod values;
pub mod why;

use clap::{Args, Parser, Subcommand};
use output::OutputArgs;
use std::path::PathBuf;

/// Measure the program, not the machine.
///
/// tare measures the gross figure (requests per second, or seconds per run), accounts for the tare (what the
/// machine, the layout and the load generator took) and reports the net: what the program costs and could do here.
#[derive(Debug, Parser)]
#[command(name = "tare", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  tare run                                   measure the built-in server, to see what this machine can do
  tare run http://127.0.0.1:8080/            measure the server that answers there
  tare run --sut './server --port 8080' http://127.0.0.1:8080/
  tare run --load 'wrk -t4 -c500 -d20s http://127.0.0.1:8080/'
  tare run -- ./program --its --arguments    measure a program that runs and ends
  tare compare --sut './old {port}' --sut './new {port}' /    which of two servers is faster
  tare gate new.tare --history main.jsonl    is it worse than the branch was, for CI
  tare doctor                                what this machine will do to a measurement
  tare calibrate                             how often tare is right on this machine
  tare show last.tare                        print a result again
  tare why before.tare after.tare            which part of the difference between two runs is what
  tare report last.tare -o last.html         the same as a page
  tare explain cpu-quota-throttled           what a bottleneck means, and what to do

Exit codes: 0 done; 1 a check that was asked for failed; 2 bad usage or input, nothing started;
3 the system under test or the generator failed; 4 the result is not valid; 130 interrupted.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = false)]
    pub color: ColorChoice,
    /// Print how the result is reached: who is measured and why, who runs where, which causes hold; twice: what every rule saw, and
    /// what could not be read. TARE_LOG=TOPIC=LEVEL chooses: sut, placement, rules, readings; info, debug.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure a server or a program.
    Run(Box<run::RunArgs>),
    /// Tell which of several servers is faster, on a machine that cannot be trusted.
    Compare(Box<compare::CompareArgs>),
    /// Tell whether what a branch does now is worse than it was: for CI.
    Gate(gate::GateArgs),
    /// Measure the cells of a plan file in blocks, and tell whether what it expects held.
    Plan(plan::PlanArgs),
    /// Make load and tell what came back, as wrk does.
    Load(Box<load::LoadArgs>),
    /// Print the result of a record again.
    Show(ShowArgs),
    /// Explain one run, or which part of the difference between two is what.
    Why(why::WhyArgs),
    /// List the causes that can hold a figure where it is, or print what is known about one.
    Explain(explain::ExplainArgs),
    /// Write a record as one self-contained HTML page.
    Report(ReportArgs),
    /// Draw which code ran, or where threads waited, from a record made with `tare run --stacks`.
    Flame(flame::FlameArgs),
    /// Run the built-in HTTP server: the reference server, and a server of files.
    ///
    /// Serves until SIGINT or SIGTERM, then answers every request that has arrived, says what each listener was
    /// given, and ends; a second signal ends it at once.
    Serve(Box<serve::ServeArgs>),
    /// Examine the machine: what it will do to a measurement, and what to do about it.
    ///
    /// Reads what the kernel tells (clock, quotas of every group up to the root, ticks, SMT, NUMA, memory, interrupts,
    /// the hypervisor), watches for a second who else uses CPU, and probes for three more what no file tells: the
    /// effective clock, wake-ups, lost time, the clocks against each other. No setting is changed.
    Doctor(doctor::DoctorArgs),
    /// Find from where on a series of times or rates is steady.
    ///
    /// For anybody's series, not only tare's own: iterations of a benchmark, seconds of a load test.
    Steady(steady::SteadyArgs),
    /// Inject known causes and see whether they are found; writes the calibration report of this machine.
    Calibrate(calibrate::CalibrateArgs),
    /// Hold the machine still while something is measured, and always put it back.
    Tune(Box<tune::TuneArgs>),
    /// Stop and restore what killed runs of tare left behind.
    Recover,
    /// Print the JSON schema of what a command prints with --json.
    Schema(schema::SchemaArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// `tare show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The record; without it, the newest one made without -o.
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `tare report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The record; without it, the newest one made without -o.
    pub file: Option<PathBuf>,
    /// The page to write; by default the record's name with .html, in the current folder. `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_option_of_serve_says_what_it_is_good_for() {
        let mut cli = Cli::command();
        let serve = cli.find_subcommand_mut("serve").unwrap();
        for argument in serve.get_arguments().filter(|a| a.get_id() != "help" && a.get_id() != "color") {
            let help = argument.get_long_help().or(argument.get_help()).unwrap_or_default().to_string();
            assert!(help.len() > 40, "--{}: {help:?}", argument.get_id());
        }
        let help = serve.render_long_help().to_string();
        for architecture in tare_server::architecture::ARCHITECTURES {
            assert!(help.contains(architecture.name()), "{}", architecture.name());
        }
    }
}
