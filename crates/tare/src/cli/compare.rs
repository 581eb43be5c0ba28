//! `tare compare`.

use super::choice::ChoiceArgs;
use super::output::OutputArgs;
use super::traffic::TrafficArgs;
use super::values::{self, CpuList};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_model::comparison::Figure;
use tare_model::condition::Condition;

/// `tare compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare compare --sut './old --port {port}' --sut './new --port {port}' /plaintext
  tare compare --command 'gzip -k -c FILE' --command 'zstd -c FILE'
  tare compare --command './old.test -test.bench=.' --command './new.test -test.bench=.'
  tare compare base.tare new.tare                    records of tare run, as far as they show
  tare compare old.txt new.txt --fail-if-worse 5%    results of 'go test -bench', hyperfine, JMH, …
  tare compare --sut './server --port {port}' /json /fast-json    two pages of one program
  tare compare --sut embedded --sut './server {port}' /plaintext /   a page for each
  tare compare /plaintext '/spin?ns=200'             the built-in server
  tare compare --set-b thp=always -- ./program       one program, with a setting and without
  tare compare --fail-if 'net < -2%' --fail-if 'p99 > 5%' --sut … --sut … /")]
pub struct CompareArgs {
    /// What to ask for: a path or URL for all, or one for each.
    ///
    /// A path, or http://127.0.0.1:{port}/path; one for all, or one for each program [default: / (embedded: /plaintext)]. Or records of
    /// `tare run`, each held against the first. Or two files of results of another tool ('tare help formats'), or several a side with commas
    /// between them (old-1.txt,old-2.txt): each is of launches of its own.
    #[arg(value_name = "URL|FILE")]
    pub urls: Vec<String>,
    /// Start this server, with a port in place of {port}.
    ///
    /// Through sh; `embedded` is the built-in one. The first is what others are held against; one alone is asked for two URLs
    /// [default: embedded].
    #[arg(long = "sut", value_name = "COMMAND", help_heading = "Servers")]
    pub suts: Vec<String>,
    /// Run this command again and again instead of asking a server.
    ///
    /// Without a shell; the first is what others are held against. Results of a benchmark that they print ('tare help formats') are
    /// compared, too, metric by metric.
    #[arg(long = "command", value_name = "COMMAND", help_heading = "Commands", conflicts_with_all = ["suts", "urls", "load_cpus", "start_timeout", "warmup", "cold"])]
    #[arg(conflicts_with_all = super::traffic::ALL)]
    pub commands: Vec<String>,
    /// Hold all on these CPUs [default: half of the cores].
    ///
    /// All servers, or commands [default: half of the cores; commands: wherever they want to be].
    #[arg(long, value_name = "LIST", value_parser = values::cpu_list, help_heading = "Servers")]
    pub sut_cpus: Option<CpuList>,
    /// How long each server may take to answer [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, help_heading = "Servers")]
    pub start_timeout: Option<Duration>,
    /// Hold the generators on these CPUs [default: others].
    ///
    /// [default: other physical cores than the servers', where there are any]
    #[arg(long, value_name = "LIST", value_parser = values::cpu_list, help_heading = "Servers")]
    pub load_cpus: Option<CpuList>,

    #[command(flatten)]
    pub design: DesignArgs,
    #[command(flatten)]
    pub traffic: TrafficArgs,

    #[command(flatten)]
    pub treated: TreatedArgs,
    #[command(flatten)]
    pub chosen: ChoiceArgs,
    #[command(flatten)]
    pub exports: OutputArgs,
    /// Keep the result, with every launch, as JSON in this file.
    ///
    /// From the first launch on.
    #[arg(short, long, value_name = "FILE.json", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

impl CompareArgs {
    /// The commands that are compared; with settings one is both A and B.
    pub fn all_commands(&self) -> Vec<String> {
        let program = (!self.treated.program.is_empty()).then(|| shell_words::join(&self.treated.program));
        let mut all: Vec<String> = self.commands.iter().cloned().chain(program).collect();
        if let (true, [one]) = (self.treated.is_given(), all.as_slice()) {
            all.push(one.clone());
        }
        all
    }

    /// Whether records are compared, which nothing is measured for.
    pub fn are_records(&self) -> bool {
        let is_path_of_url =
            |url: &str| url.contains("://") || (url.starts_with('/') && !Path::new(url).exists());
        let is_one = |url: &str| Path::new(url).exists() || !url.contains(',');
        let is_record = |url: &String| url.ends_with(".tare") && !is_path_of_url(url) && is_one(url);
        self.suts.is_empty() && self.urls.len() > 1 && self.urls.iter().all(is_record)
    }

    /// What is no file of a side that has one: several with commas between them were meant.
    pub fn missing_file(&self) -> Option<&Path> {
        let sides = self.urls.iter().filter(|url| !url.contains("://") && url.contains(','));
        sides.map(|side| files_of(side)).find_map(|files| {
            let is_one = files.iter().any(|path| path.is_file());
            files.into_iter().find(|path| is_one && !path.is_file())
        })
    }

    /// Whether files of results of another tool are compared.
    pub fn are_results(&self) -> bool {
        let is_file = |url: &String| !url.contains("://") && files_of(url).iter().all(|path| path.is_file());
        self.suts.is_empty() && self.urls.len() > 1 && !self.are_records() && self.urls.iter().all(is_file)
    }
}

/// The files of one side of a comparison: one, or several with commas between them.
pub fn files_of(side: &str) -> Vec<&Path> {
    match Path::new(side).exists() {
        true => vec![Path::new(side)],
        false => side.split(',').map(Path::new).collect(),
    }
}

/// Settings that the arms differ by.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
pub struct TreatedArgs {
    /// Run A with this setting, as thp=never; repeatable.
    ///
    /// As --set-b, for A.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set_a: Vec<String>,
    /// Run B with this setting: the same program, once with it.
    ///
    /// A setting of `tare tune` by the name of its option (thp=never, governor=performance, base-slice=3ms …), hugepages=auto, placement=POLICY,
    /// or a variable of the environment in capitals (GLIBC_TUNABLES=…). What is for the whole machine is applied before each start of B and
    /// put back after its end. 'tare help settings' explains it; may be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set_b: Vec<String>,
    /// The program that A and B are; instead of --command.
    #[arg(last = true, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, conflicts_with_all = ["suts", "urls", "commands"])]
    pub program: Vec<String>,
}

impl TreatedArgs {
    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        !self.set_a.is_empty() || !self.set_b.is_empty()
    }
}

/// How long and how well.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct DesignArgs {
    /// Take no longer than this.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::positive_duration)]
    pub budget: Duration,
    /// End as soon as the intervals are as narrow: ± this.
    ///
    /// Those of throughput and of the CPU time of a request; of commands those of both times, and of all metrics that they print as the
    /// results of a benchmark.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = values::percent)]
    pub precision: f64,
    /// Differences up to this do not matter.
    ///
    /// `no difference` is then said.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = values::percent)]
    pub margin: f64,
    /// Exit code 1 once this is proven, as 'net < -2%'; repeatable.
    ///
    /// Proven means that its whole interval is beyond it; may be given several times. Figures: throughput, net, cpu_per_request, p50, p90,
    /// p99, p99.9 (where every launch has 10,000 answers of each server); of commands: time, cpu_time.
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    pub fail_if: Vec<Condition>,
    /// Of benchmarks' results: exit code 1 where one is worse by more.
    ///
    /// Of two files of results, or of commands that print results; one metric or several. Proven means that its whole interval is beyond
    /// it; the intervals of all metrics hold together. Of a rate, 100 % worse is half of it. Exit code 4 where a metric could not be
    /// judged.
    #[arg(long, value_name = "PERCENT", value_parser = values::worse)]
    pub fail_if_worse: Option<f64>,
    /// Counted load in a launch, all together [default: 600ms].
    ///
    /// Of all servers together; of commands: runs interleaved for so long at least [default: 600ms; servers, where the budget has room for
    /// 40 launches: then as long as the first ones show to tell most].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub window: Option<Duration>,
    /// Load each launch so long before it counts [default: 200ms].
    ///
    /// [default: 200ms; a server whose runtime compiles while it runs (Node, a JVM, .NET, …) until a request costs no less any more, and
    /// for three tenths of the budget at most].
    #[arg(short, long, value_name = "TIME", value_parser = values::positive_duration)]
    pub warmup: Option<Duration>,
    /// Compare starts: count a launch warm or not.
    ///
    /// It is counted from its first fifth of a second of load on.
    #[arg(long, conflicts_with = "warmup")]
    pub cold: bool,
    /// Seed of all orders [default: another one each time].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

fn condition(text: &str) -> Result<Condition, String> {
    Condition::of(text, Figure::all())
}
