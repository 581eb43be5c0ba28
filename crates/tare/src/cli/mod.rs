//! The arguments. Parsing only validates what can be judged from the text alone; nothing happens here.

pub mod calibrate;
pub mod ceiling;
pub mod choice;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod flame;
pub mod gate;
pub mod help;
pub mod load;
pub mod output;
pub mod plan;
pub mod probe;
pub mod run;
pub mod scale;
pub mod schema;
pub mod serve;
pub mod steady;
pub mod sweep;
pub mod traffic;
pub mod tune;
pub mod values;
pub mod why;

use choice::ChoiceArgs;
use clap::{Args, Parser, Subcommand};
use output::OutputArgs;
use std::path::PathBuf;

/// Measure the program, not the machine.
///
/// tare measures the gross figure (requests per second, or seconds per run), accounts for the tare (what the
/// machine, the layout and the load generator took) and reports the net: what the program costs and could do here.
#[derive(Debug, Parser)]
#[command(name = "tare", version, long_version = crate::version::LONG, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  tare run http://127.0.0.1:8080/            measure the server that answers there
  tare run -- ./program --its --arguments    measure a program that runs and ends
  tare run                                   measure the built-in server: what this machine can do
  tare run --sut './server --port 8080' http://127.0.0.1:8080/
  tare run --load 'wrk -t4 -c500 -d20s http://127.0.0.1:8080/'
  tare compare --sut './old {port}' --sut './new {port}' /    which of two servers is faster
  tare gate new.tare --history main.jsonl    is it worse than the branch was, for CI
  tare doctor                                what this machine will do to a measurement
  tare calibrate                             how often tare is right on this machine
  tare show last.tare                        print a result again
  tare why before.tare after.tare            which part of the difference between two runs is what
  tare report last.tare -o last.html         a result as a page
  tare explain cpu-quota-throttled           what a bottleneck means, and what to do

Exit codes: 0 done; 1 a check that was asked for failed; 2 bad usage or input, nothing started;
3 the system under test or the generator failed; 4 the result is not valid; 130 interrupted.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours: auto, always or never.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Print how the result is reached; -vv prints all of it.
    ///
    /// Who is measured and why, who runs where, which causes hold; twice: what every rule saw, and what could not be read.
    /// TARE_LOG=TOPIC=LEVEL chooses: sut, placement, rules, readings; info, debug.
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
    ///
    /// Reports gross (what was measured), the tare by part (what machine, layout and load generator took), net (what the program costs
    /// and could do here), and what was the bottleneck, with its evidence and what to do. 'tare help result' explains these words.
    ///
    /// Without a URL the built-in server is measured; with one the server that answers there; with --sut one that is started; after --
    /// a program. 'tare help sut' has all ways to name a server, 'tare help programs' those of programs, 'tare help generators' other
    /// load generators, 'tare help trials' how long it takes.
    ///
    /// Exit codes: 0 done; 2 bad usage, nothing started; 3 the server, the program or the generator failed; 4 the result is not valid;
    /// 130 interrupted.
    Run(Box<run::RunArgs>),
    /// Tell which of several servers is faster, on any machine.
    ///
    /// Also on a machine that cannot be trusted. Every launch starts all programs afresh, the first one twice (the second time as an A/A
    /// control: what differs between it and itself is none of the programs'), and loads them interleaved, 1 ms each, within the same
    /// window, so that the machine's drift meets all alike. Servers whose runtime compiles are loaded until they are warm before
    /// anything is counted.
    ///
    /// Launches go on until the intervals of throughput and of the CPU time of a request are as narrow as --precision asks, or the budget
    /// is used up. Intervals hold for all figures together in 95 of 100 comparisons, whenever one ends.
    ///
    /// Commands (--command) are run interleaved instead, the first as two, and compared by time, CPU time and the
    /// results of a benchmark that they print. Of records of 'tare run' each is held against the first, as far as they show.
    ///
    /// Exit codes: 0 done, whatever differs; 1 a --fail-if or --fail-if-worse was proven; 3 a server failed; 4 what was answered were
    /// errors, a --fail-if could not be judged, or a setting could not be applied.
    Compare(Box<compare::CompareArgs>),
    /// Tell whether a branch is worse than it was: for CI.
    ///
    /// Best are both builds, measured here (--against). Every launch starts both afresh, the old one twice, and loads them interleaved;
    /// what the old one differs by from itself is not counted as a difference. It takes --budget at most, and less once enough is known.
    /// 'tare compare' does the same with more arguments.
    ///
    /// Without the old build: two records know what trials of a run differ by, not what each launch changes. A history knows that after 5
    /// runs: its intervals are those in which one more run of the same program would lie; where its level has changed it counts from
    /// there on, and says since which run.
    ///
    /// Net and the CPU time of a request are taken in units of tare's own server where both records measured it interleaved with the program
    /// ('tare run' does, unless it is switched off): what the machine does to both is then not in them, and machines of other kinds can
    /// be compared. Throughput and latencies are compared on machines of one kind only.
    ///
    /// The first line says how large a loss must be to be found. Where that is more than a condition asks for, there is a warning.
    ///
    /// Of two files of results of another tool, and of what --command prints, every metric is judged (--fail-if-worse).
    ///
    /// Exit codes: 0 nothing was proven, or the history is too short yet; 1 a condition was proven; 2 a file cannot be read, or holds
    /// something else; 3 a build failed; 4 a result is not valid, a condition could not be judged, or, with --strict, could not have
    /// been shown.
    Gate(gate::GateArgs),
    /// Measure the cells of a plan file, and check what it expects.
    ///
    /// The cells are measured in blocks: each once in each block, on a fresh launch, in an order drawn at random. The result says of each
    /// expectation whether it held. 'tare help plans' shows a plan with every key, and the figures of which something can be expected.
    ///
    /// Exit code 1: an expectation did not hold.
    Plan(plan::PlanArgs),
    /// Find how a figure grows with one factor: the law, the peak, the knee.
    ///
    /// Of levels of one factor (connections, threads, CPUs …) and the figure at each it says which law fits: a straight line, Amdahl's law,
    /// the universal scalability law or a line with a break; how much of the work is done by one at a time (contention), what every pair
    /// costs (coherency), and where more brings nothing. Each with an interval that holds the truth in 95 of 100 sweeps. What lies outside
    /// of the levels is not said.
    ///
    /// Any server, program and load that 'tare run' takes is measured, each level once in each block on a fresh launch, in an order drawn at
    /// random. Each level says where its time went, and what took its efficiency: CPUs that there are no more of, a quota, locks, others on
    /// its CPUs, more CPU time for the same work. With --from nothing is measured: the figures are those of a file.
    ///
    /// Exit codes: 0 done; 2 bad usage; 3 the server, the program or the generator failed; 4 no level is valid; 130 interrupted (what was
    /// done is shown).
    Scale(Box<scale::ScaleArgs>),
    /// Tell which of several servers is slow under load.
    ///
    /// Each probe asks one server at a small fixed rate, while the load goes through its states: each state once in each round, in an order
    /// drawn at random. The table has the response time of each probe in each state, how many times as long that is as in the first state
    /// of the same round, and intervals that hold all together.
    ///
    /// A service is slower for the sake of what it calls, if that takes so much longer that it explains half of it or more; for the sake of
    /// the network, if a connection (tcp://) does; for its own, if neither can. Otherwise the result says what is missing: a path that
    /// does not call the database, how often an answer calls it, more rounds.
    ///
    /// Exit codes: 0 done, whatever was found; 2 bad usage, nothing started; 3 a probe was not answered at the beginning, or a state of
    /// load failed (all else was measured); 130 interrupted (what was done is shown).
    Probe(Box<probe::ProbeArgs>),
    /// Make load and report what came back, as wrk does.
    ///
    /// Rate, latency, errors. Flags mean what they mean in wrk and wrk2. 'tare help pacing' explains closed and open loops, 'tare help
    /// requests' what is sent, 'tare help tls' https.
    ///
    /// Exit codes: 0 done; 1 a --fail-if is so; 2 usage; 3 the server or the generator failed; 4 the result is not valid, or a --fail-if
    /// has no figure; 130 interrupted.
    Load(Box<load::LoadArgs>),
    /// Print the result of a record again, or the results of another tool.
    ///
    /// A record is explained again from the raw counters in the file: a newer tare may explain more of it.
    ///
    /// Of another tool's output or file of results it prints every metric with its interval, what it did not understand, and what this tool gets
    /// wrong. 'tare help formats' lists the tools. The tool is recognised by the content.
    Show(ShowArgs),
    /// Explain one run, or why two runs differ.
    ///
    /// Of two runs: which part of the difference is what. The rate of requests is X = b · f / C, with b CPUs busy, f their clock and C the
    /// cycles of a request. So ln(B/A) is exactly the sum of what became of b (its CPU entitlement, and each loss out of it: no work,
    /// throttled, preempted …), of the clock and of the cost. A part of +0.10 made B about 10 % faster.
    ///
    /// The intervals hold all together: one that has 0 in it may be chance, one that has not is a change. They know what trials differ by,
    /// not what runs do: for a small difference, measure A and B again one after the other, or with 'tare compare'.
    ///
    /// Of results of another tool it says what differs, and not why.
    ///
    /// Exit codes: 0 when there is an account, however small the difference; 2 when a file cannot be read or the two cannot be compared.
    Why(why::WhyArgs),
    /// List the causes, or print what is known about one.
    ///
    /// Causes are what 'tare run' names as the bottleneck or as a finding: what can hold a figure where it is.
    Explain(explain::ExplainArgs),
    /// Write a record, or another tool's results, as one HTML page.
    Report(ReportArgs),
    /// Write a result in the format of another tool.
    ///
    /// Of a record, or of another tool's results: every sample where the format has room for them, else the estimates. What the format
    /// cannot hold is said on standard error.
    Export(export::ExportArgs),
    /// Draw which code ran, or where threads waited.
    ///
    /// From a record of a server; 'tare run --stacks' keeps more of them. 'tare help stacks' says how stacks are sampled, and what that needs.
    Flame(flame::FlameArgs),
    /// Run the built-in HTTP server.
    ///
    /// It is the reference server, and a server of files. Without --root it serves test bodies, as /plaintext and /spin?ns=N: 'tare help
    /// bodies' lists them.
    ///
    /// Serves until SIGINT or SIGTERM, then answers every request that has arrived, says what each listener was
    /// given, and ends; a second signal ends it at once.
    Serve(Box<serve::ServeArgs>),
    /// Examine the machine: what it will do to a measurement.
    ///
    /// And what to do about it. Reads what the kernel tells (clock, quotas of every group up to the root, ticks, SMT, NUMA, memory,
    /// interrupts, the hypervisor), watches for a second who else uses CPU, and probes for three more what no file tells: the
    /// effective clock, wake-ups, lost time, the clocks against each other. No setting is changed.
    ///
    /// A group's quota, a battery, a clock that runs too fast or a slow clocksource is bad: exit code 1. Else 0; what could not be examined
    /// is said, and is never fine.
    Doctor(doctor::DoctorArgs),
    /// Find from where on a series of times or rates is steady.
    ///
    /// For anybody's series, not only tare's own: iterations of a benchmark, seconds of a load test.
    ///
    /// How it is decided: values far from all those around them are left out; change points of mean and variance (PELT, the penalty at the
    /// knee) cut the rest; the last segment reaches back over all segments whose mean may be within 5 % of its own (95 % interval) and
    /// is within 20 %. Up to five values in all (of 120: three) may be off it for a moment. A series that reaches that level in its
    /// last sixth is not steady.
    ///
    /// What it is from that level on (where there is none: as a whole) is its state: steady; drifting, where it moves on by more than 5 %,
    /// and as fast in half the length of the series; bimodal, where it alternates between two levels more than 5 % apart (Hartigan's dip);
    /// else never steady. Only the first has a start and one level; of two levels both are said.
    Steady(steady::SteadyArgs),
    /// Inject known causes, and see whether they are found.
    ///
    /// Each run puts one cause up for real around the built-in server (a quota, a busy neighbour, too many threads, a lock, …), measures as
    /// 'tare run' does, and takes it down. A run is right if the bottleneck, or the first finding beside it, is what was injected; one
    /// with nothing injected, if nothing is found but its bottleneck (the server's CPU or the generator). Losses below 3 % limit nothing
    /// and count as notes. The order is drawn at random. What there is when it is interrupted is kept; after kill -9, 'tare recover'
    /// takes down what was up.
    ///
    /// Then the built-in server is compared with itself, as 'tare compare' does, 10 s each: in how many comparisons any figure was called
    /// different (they do not change the exit code, few show little), and the smallest true change of throughput that one shows. The spread
    /// of net is that of the runs in which the server and its requests are the same: none, quota, parent-quota, neighbour.
    ///
    /// The calibration report of this machine is kept, and 'tare doctor' shows it; one of some causes only does not take the place of a
    /// whole one.
    ///
    /// Exit codes: 0 at least 95 % of the runs were right, and no undisturbed one raised an alarm; 1 not so; 2 bad usage; 130 interrupted
    /// (what was done is kept).
    Calibrate(calibrate::CalibrateArgs),
    /// Measure what this machine can do at most.
    ///
    /// System calls, wake-ups, switches, pipes, events; requests, connections, packets and bytes over loopback; bandwidth and latency of
    /// memory; a core's arithmetic, hash and cipher; the disk; the reference server. Each is sampled once in each round, in an order
    /// drawn at random, so that a bad moment of the host meets all alike: its ceiling is the median of the rounds, with a 95 % interval
    /// of that median.
    ///
    /// It is kept until the machine is started anew. 'tare run' then says its share of the tightest ceiling whose conditions match: "94 % of
    /// what this loopback can carry". A figure above a ceiling is a warning, one above the speed of the network card is not valid.
    ///
    /// Load goes to loopback alone. The disk gets 65 MiB below --dir. Its files have no name, so that nothing is left.
    /// On btrfs, F2FS, ZFS and file systems that are not known one of 1 MiB has a name: after kill -9 the next run there removes it.
    ///
    /// Exit codes: 0 done, whatever could not be measured; 2 bad usage, nothing started; 130 interrupted (nothing is kept).
    Ceiling(ceiling::CeilingArgs),
    /// Hold the machine still while something is measured.
    ///
    /// And always put it back. Without a mode nothing is changed: it shows the values of the settings, or, with settings named, what --apply
    /// would do.
    ///
    /// --apply alone holds what changes while a measurement runs and takes nothing from the program but chance: the governor
    /// to performance (the clock does not wait for load), boost off (it lasts until the CPU gets warm or other cores
    /// wake), automatic NUMA balancing off (it unmaps and moves memory meanwhile). Huge pages, the slice, queues and ports
    /// change what the program itself costs: they are applied only when named. With settings named, only those are applied;
    /// --defaults adds the three.
    ///
    /// What was there before is on disk before anything is changed. A tare that is killed (kill -9) while it applies settings, or while
    /// COMMAND runs under them, is undone by the next 'tare run', 'load', 'doctor', 'tune' (but --dry-run, --systemd) or 'recover': that
    /// also kills COMMAND. With -- COMMAND the exit code is COMMAND's own.
    Tune(Box<tune::TuneArgs>),
    /// Stop and restore what killed runs of tare left behind.
    ///
    /// 'tare run', 'load', 'doctor' and 'tune' do it first, by themselves. Exit code 1: not all could be put back.
    #[command(after_help = "Examples:
  tare recover")]
    Recover,
    /// Print the JSON schema of what a command prints with --json.
    Schema(schema::SchemaArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "Examples:
  tare completions bash > /etc/bash_completion.d/tare
  tare completions zsh > ~/.zfunc/_tare
  tare completions fish > ~/.config/fish/completions/tare.fish")]
    Completions {
        /// Which shell: bash, elvish, fish, powershell or zsh.
        shell: clap_complete::Shell,
    },
    /// Explain a command or a topic.
    ///
    /// Without a name all commands and topics are listed. Of a command every option is explained: 'tare COMMAND -h' has those that most
    /// people need, 'tare COMMAND --help' a line for each.
    #[command(after_help = "Examples:
  tare help                   all commands and topics
  tare help run               every option of tare run, explained
  tare help exit-codes        a topic")]
    Help {
        /// A command or a topic; without it, all are listed.
        name: Option<String>,
    },
    /// Print the manual page of tare, or write those of all commands to a folder.
    #[command(after_help = "Examples:
  tare man | man -l -         read it
  tare man --dir man1         tare.1, and a page for each command")]
    Man {
        /// Write tare.1 and a page for each command to this folder.
        ///
        /// It is made if it is not there.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// `tare show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare show                   the newest run that was made without -o
  tare show last.tare
  tare show bench.txt         what 'go test -bench' printed
  tare show bench.txt --benchmark Sort --metric ns/op
  tare show last.tare --json | jq '.verdict'
  hyperfine --export-json - 'sleep 0.1' | tare show -")]
pub struct ShowArgs {
    /// The record, or another tool's results [default: the newest record].
    ///
    /// [default: the newest record that was made without -o]. `-` is standard input, for results of another tool.
    pub file: Option<PathBuf>,
    /// Read the figures of any text by this regular expression.
    ///
    /// Each match is a sample. Groups by name: `value` (needed), `unit`, `benchmark`, `name`, `launch`:
    /// 'took (?P<value>[0-9.]+) (?P<unit>ms)'.
    #[arg(long, value_name = "PATTERN", requires = "file")]
    pub meter_regex: Option<String>,
    #[command(flatten)]
    pub chosen: ChoiceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `tare report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare report last.tare       writes last.html
  tare report last.tare -o page.html")]
pub struct ReportArgs {
    /// The record, or another tool's results [default: the newest record].
    ///
    /// [default: the newest record that was made without -o]. `-` is standard input, for results of another tool.
    pub file: Option<PathBuf>,
    /// The page to write [default: the record's name.html].
    ///
    /// In the current folder, where none is named. `-` is standard output.
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
