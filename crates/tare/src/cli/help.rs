//! Help: one screen with `-h`, a line for each option with `--help`, everything with `tare help COMMAND`, concepts with `tare help TOPIC`.
//!
//! The texts are those of the arguments: the first paragraph is the line, what follows is for `tare help COMMAND`. Here stands which of
//! them most people need.

use super::Cli;
use clap::{Arg, Command, CommandFactory};

/// How much of a command's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What most people need, on one screen: `-h`.
    Screen,
    /// A line for each option: `--help`.
    All,
    /// Every option explained: `tare help COMMAND`.
    Explained,
}

/// Concepts and long tables, each a file whose first line is its title.
pub const TOPICS: &[(&str, &str)] = &[
    ("sut", include_str!("topics/sut.txt")),
    ("programs", include_str!("topics/programs.txt")),
    ("generators", include_str!("topics/generators.txt")),
    ("pacing", include_str!("topics/pacing.txt")),
    ("requests", include_str!("topics/requests.txt")),
    ("templates", include_str!("topics/templates.txt")),
    ("tls", include_str!("topics/tls.txt")),
    ("trials", include_str!("topics/trials.txt")),
    ("placement", include_str!("topics/placement.txt")),
    ("settings", include_str!("topics/settings.txt")),
    ("result", include_str!("topics/result.txt")),
    ("confirm", include_str!("topics/confirm.txt")),
    ("stacks", include_str!("topics/stacks.txt")),
    ("conditions", include_str!("topics/conditions.txt")),
    ("plans", include_str!("topics/plans.txt")),
    ("bodies", include_str!("topics/bodies.txt")),
    ("output", include_str!("topics/output.txt")),
    ("records", include_str!("topics/records.txt")),
    ("formats", include_str!("topics/formats.txt")),
    ("values", include_str!("topics/values.txt")),
    ("exit-codes", include_str!("topics/exit-codes.txt")),
    ("environment", include_str!("topics/environment.txt")),
    ("privileges", include_str!("topics/privileges.txt")),
];

/// The commands, by what a person wants.
const GROUPS: &[(&str, &[&str])] = &[
    ("Measure", &["run", "load", "probe", "serve", "steady"]),
    ("Compare", &["compare", "gate", "plan", "scale", "why"]),
    ("Read a result", &["show", "explain", "report", "export", "flame", "schema"]),
    ("Know the machine", &["doctor", "ceiling", "tune", "calibrate", "recover"]),
    ("Use tare", &["help", "man", "completions"]),
];

/// What is on the screen of a command, by the ids of its options (those that every command has come by themselves), and its topics.
struct Screen {
    command: &'static str,
    options: &'static [&'static str],
    topics: &'static [&'static str],
}

/// A command that is not here has few options, and all are shown.
const SCREENS: &[Screen] = &[
    Screen {
        command: "run",
        options: &["start", "load", "connections", "rate", "duration", "precision", "record", "json"],
        topics: &["sut", "programs", "trials", "result"],
    },
    Screen {
        command: "load",
        options: &[
            "threads",
            "connections",
            "duration",
            "rate",
            "steps",
            "find",
            "fail_if",
            "latency",
            "json",
        ],
        topics: &["pacing", "requests", "templates", "tls"],
    },
    Screen {
        command: "compare",
        options: &["suts", "commands", "budget", "precision", "fail_if", "connections", "sut_cpus", "output"],
        topics: &["conditions", "sut", "requests"],
    },
    Screen {
        command: "gate",
        options: &["sut", "command", "against_build", "history", "baseline", "keep", "fail_if"],
        topics: &["conditions", "records", "exit-codes"],
    },
    Screen {
        command: "scale",
        options: &["connections", "cpus", "n", "instances", "budget", "start", "from", "json"],
        topics: &["sut", "programs", "formats"],
    },
    Screen {
        command: "probe",
        options: &["probe", "state", "via", "rate", "rounds", "window", "timeout", "json"],
        topics: &["exit-codes", "output"],
    },
    Screen { command: "plan", options: &["set", "factor", "dry_run", "output", "json"], topics: &["plans"] },
    Screen {
        command: "serve",
        options: &[
            "listen",
            "root",
            "threads",
            "cpus",
            "arch",
            "backend",
            "max_connections",
            "busy_poll",
            "metrics",
            "access_log",
        ],
        topics: &["bodies", "values"],
    },
    Screen {
        command: "doctor",
        options: &["all", "no_probes", "topology", "capture", "root", "json", "html"],
        topics: &["placement", "privileges"],
    },
    Screen {
        command: "tune",
        options: &[
            "apply",
            "restore",
            "dry_run",
            "status",
            "max_frequency",
            "min_frequency",
            "thp",
            "irqs_off",
            "quota",
        ],
        topics: &["values", "privileges"],
    },
    Screen {
        command: "calibrate",
        options: &["list", "only", "repeats", "comparisons", "zoo", "budget", "output", "records", "json"],
        topics: &["result", "privileges"],
    },
    Screen {
        command: "flame",
        options: &[
            "output",
            "role",
            "off_cpu",
            "by_thread",
            "folded",
            "import",
            "export_pprof",
            "export_firefox",
        ],
        topics: &["stacks"],
    },
    Screen {
        command: "show",
        options: &["benchmark", "metric", "meter_regex", "json", "html"],
        topics: &["result", "records", "formats", "output"],
    },
    Screen { command: "export", options: &["format", "output"], topics: &["formats", "records"] },
    Screen { command: "why", options: &["output", "json"], topics: &["result", "records"] },
    Screen { command: "explain", options: &["json"], topics: &["result", "confirm"] },
    Screen { command: "schema", options: &[], topics: &["output"] },
    Screen { command: "report", options: &["output"], topics: &["records", "output"] },
];

/// The commands on the first screen, and how many of the examples.
const FIRST: &[&str] = &["run", "compare", "gate", "plan", "load", "doctor", "tune", "why", "explain"];
const FIRST_EXAMPLES: usize = 2;
/// Examples on the screen of a command.
const SCREEN_EXAMPLES: usize = 3;
/// Options that are longer begin their text further to the right.
const OPTION_CHARS: usize = 28;
/// Width of what is wrapped here.
const WIDTH: usize = 100;
/// The heading of what every command has.
const GENERAL: &str = "Every command";
/// Less alike than this, a word is another word and no slip.
const ALIKE_MIN: f64 = 0.8;

/// What to do first, for who has typed `tare` alone.
pub const FIRST_STEPS: &str = "\
tare measures a server or a program, and names its bottleneck with the evidence.

To begin:
  tare doctor                        what this machine will do to a measurement, and what to do
  tare run http://127.0.0.1:8080/    the server that answers there: where its time goes
  tare run -- ./program              a program that runs and ends
  tare run                           the built-in server, where there is none to measure yet

Help:
  tare -h                            the main commands, on one screen
  tare run -h                        the main options of a command
  tare help                          all commands and topics";

/// What was asked for with `-h` or `--help` among these words.
pub fn asked(words: &[String]) -> String {
    let is_all = words.iter().take_while(|word| *word != "--").any(|word| word == "--help");
    let extent = if is_all { Extent::All } else { Extent::Screen };
    match (named(words).and_then(|name| of_command(&name, extent)), extent) {
        (Some(text), _) => text,
        (None, Extent::Screen) => first_screen(),
        (None, _) => overview(),
    }
}

/// The command that stands among these words.
pub fn named(words: &[String]) -> Option<String> {
    let cli = Cli::command();
    words.iter().find(|word| cli.find_subcommand(word).is_some()).cloned()
}

/// Help of a command; `None`: there is none of that name.
pub fn of_command(name: &str, extent: Extent) -> Option<String> {
    let mut cli = built();
    let command = cli.find_subcommand_mut(name)?;
    Some(match extent {
        Extent::Screen => screen(command),
        Extent::All => all(command),
        Extent::Explained => explained(command.clone()),
    })
}

/// The text of a topic.
pub fn topic(name: &str) -> Option<&'static str> {
    TOPICS.iter().find(|(topic, _)| *topic == name).map(|(_, text)| *text)
}

/// Whether somebody who typed one word may have meant the other.
pub fn are_alike(typed: &str, known: &str) -> bool {
    strsim::jaro_winkler(typed, known) >= ALIKE_MIN
}

/// The command or topic that is most like a word that is neither.
pub fn nearest(word: &str) -> Option<String> {
    let cli = Cli::command();
    let commands = cli.get_subcommands().map(Command::get_name);
    let names: Vec<&str> = commands.chain(TOPICS.iter().map(|(name, _)| *name)).collect();
    let holds = names.iter().find(|name| word.len() > 2 && (name.contains(word) || word.contains(*name)));
    let alike = names.iter().map(|name| (strsim::jaro_winkler(word, name), name));
    let nearest = alike.filter(|(alike, _)| *alike >= ALIKE_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
    holds.or(nearest.map(|(_, name)| name)).map(|name| (*name).to_owned())
}

/// All commands and topics: `tare help`, `tare --help`.
pub fn overview() -> String {
    let mut cli = built();
    let about = cli.get_long_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{}\n\n{}\n", wrapped(&about), cli.render_usage());
    for (heading, names) in GROUPS {
        text += &format!("\n{heading}:\n{}", commands(&cli, names));
    }
    text += "\nTopics:\n";
    for (name, topic) in TOPICS {
        text += &format!("  {name:<13}{}\n", topic.lines().next().unwrap_or_default());
    }
    text += &format!("\nOptions:\n{}", options(cli.get_arguments()));
    let examples = cli.get_after_help().map(ToString::to_string).unwrap_or_default();
    text + &format!(
        "\n{examples}\n\n'tare COMMAND -h' shows main options, 'tare help COMMAND' explains all, 'tare help TOPIC' a topic\n"
    )
}

/// The main commands: `tare -h`.
fn first_screen() -> String {
    let mut cli = built();
    format!(
        "{}\n\n{}\n\n{}\n{}\n{}\n--help lists all commands and topics; 'tare help NAME' explains a command or a topic\n",
        about(&cli),
        cli.render_usage(),
        commands(&cli, FIRST),
        options(cli.get_arguments()),
        examples(&cli, FIRST_EXAMPLES)
    )
}

/// With the options that every command has, and texts of its own where clap's would lead elsewhere.
fn built() -> Command {
    let mut cli = Cli::command();
    cli.build();
    cli
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn screen(command: &mut Command) -> String {
    let name = command.get_name().to_owned();
    let usage = command.render_usage();
    let main = SCREENS.iter().find(|screen| screen.command == name).map(|screen| screen.options);
    let chosen: Vec<&Arg> = match main {
        Some(ids) => ids
            .iter()
            .filter_map(|id| command.get_arguments().find(|argument| argument.get_id() == id))
            .collect(),
        None => command
            .get_arguments()
            .filter(|argument| !argument.is_positional() && !is_general(argument))
            .collect(),
    };
    let general = command.get_arguments().filter(|argument| is_general(argument));
    let shown = command.get_positionals().chain(chosen).chain(general);
    format!(
        "{}\n\n{usage}\n\n{}\n{}\n--help lists all; 'tare help {name}' explains all{}\n",
        about(command),
        options(shown),
        examples(command, SCREEN_EXAMPLES),
        topics(&name)
    )
}

fn all(command: &mut Command) -> String {
    let name = command.get_name().to_owned();
    let usage = command.render_usage();
    let mut text = format!("{}\n\n{usage}\n", about(command));
    let mut headings: Vec<&str> = Vec::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let heading = heading(argument);
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // What has no heading of its own comes first, what every command has comes last.
    headings.sort_by_key(|heading| match *heading {
        "Arguments" => 0,
        "Options" => 1,
        GENERAL => 3,
        _ => 2,
    });
    for wanted in headings {
        let under = command.get_arguments().filter(|argument| heading(argument) == wanted);
        text += &format!("\n{wanted}:\n{}", options(under));
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    text + &format!("\n{examples}\n\n'tare help {name}' explains every option{}\n", topics(&name))
}

fn explained(command: Command) -> String {
    let topics = topics(command.get_name());
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut command = command
        .after_help(format!("{examples}\n\n'tare help' lists all commands and topics{topics}"))
        .mut_args(|argument| match is_general(&argument) {
            true => argument.help_heading(GENERAL),
            false => argument,
        });
    command.render_long_help().to_string() + "\n"
}

/// `; 'tare help TOPIC': sut, trials`.
fn topics(command: &str) -> String {
    let of = SCREENS.iter().find(|screen| screen.command == command).map_or(&[][..], |screen| screen.topics);
    if of.is_empty() { String::new() } else { format!("; 'tare help TOPIC': {}", of.join(", ")) }
}

/// What every command has.
fn is_general(argument: &Arg) -> bool {
    argument.is_global_set() || ["help", "version"].iter().any(|id| argument.get_id() == id)
}

fn heading(argument: &Arg) -> &str {
    match argument.get_help_heading() {
        _ if is_general(argument) => GENERAL,
        Some(heading) => heading,
        None if argument.is_positional() => "Arguments",
        None => "Options",
    }
}

/// The first so many examples, under their heading.
fn examples(command: &Command, count: usize) -> String {
    let all = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    all.lines().take(1 + count).take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

fn commands(cli: &Command, names: &[&str]) -> String {
    let known = names.iter().filter_map(|name| cli.find_subcommand(name));
    known.map(|command| format!("  {:<13}{}\n", command.get_name(), about(command))).collect()
}

/// A line for each, unless it is hidden.
fn options<'c>(arguments: impl Iterator<Item = &'c Arg>) -> String {
    arguments.filter(|argument| !argument.is_hide_set()).map(line).collect()
}

/// `  -c, --connections <N>     Open connections [default: 64]`.
fn line(argument: &Arg) -> String {
    let name = match (argument.get_short(), argument.is_positional()) {
        _ if argument.get_id() == "help" => "-h, --help".to_owned(),
        (_, true) => argument.to_string(),
        (Some(short), _) => format!("-{short}, {argument}"),
        (None, _) => format!("    {argument}"),
    };
    let text = match argument.get_id().as_str() {
        "help" => "This screen (-h), or a line for each option (--help)".to_owned(),
        _ => argument.get_help().map(ToString::to_string).unwrap_or_default(),
    };
    let defaults: Vec<_> = match argument.get_action().takes_values() && !argument.is_hide_default_value_set()
    {
        true => argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect(),
        false => Vec::new(),
    };
    let default =
        if defaults.is_empty() { String::new() } else { format!(" [default: {}]", defaults.join(" ")) };
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let alias = if aliases.is_empty() { String::new() } else { format!(" [or --{}]", aliases.join(", --")) };
    let gap = OPTION_CHARS.saturating_sub(name.chars().count()).max(2);
    format!("  {name}{:gap$}{text}{default}{alias}\n", "")
}

/// Paragraphs, wrapped.
fn wrapped(text: &str) -> String {
    let paragraph = |text: &str| {
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join("\n")
    };
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
