//! Help: as long as a screen or a page, everything in it, and what is typed wrongly leads to it.

use std::process::{Command, Output};

/// Lines of a screen, and of a list of all options.
const SCREEN_LINES_MAX: usize = 24;
const ALL_LINES_MAX: usize = 120;
const COLUMNS: usize = 100;
/// Nobody else's journals.
const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/help");

fn tare(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
    command
        .args(words)
        .env("COLUMNS", COLUMNS.to_string())
        .env_remove("TARE_LOG")
        .env("TARE_STATE_DIR", STATE)
        .output()
        .unwrap()
}

/// What is printed to standard output, with nothing beside it.
fn printed(words: &[&str]) -> String {
    let output = tare(words);
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Names that `tare help` lists, and whether they are topics.
fn listed() -> Vec<(String, bool)> {
    let (mut names, mut topics) = (Vec::new(), false);
    for line in printed(&["help"]).lines() {
        topics |= line == "Topics:";
        if line == "Options:" {
            break;
        }
        let name = line.strip_prefix("  ").and_then(|line| line.split_once("  "));
        names.extend(name.map(|(name, _)| (name.to_owned(), topics)));
    }
    names
}

fn commands() -> Vec<String> {
    listed().into_iter().filter(|(_, topic)| !topic).map(|(name, _)| name).collect()
}

#[test]
fn every_command_has_a_screen_a_list_and_an_explanation() {
    let commands = commands();
    assert!(commands.len() >= 19 && commands.iter().any(|name| name == "run"), "{commands:?}");
    for name in &commands {
        let (screen, all) = (printed(&[name, "-h"]), printed(&[name, "--help"]));
        assert!(screen.lines().count() <= SCREEN_LINES_MAX, "tare {name} -h:\n{screen}");
        assert!(all.lines().count() <= ALL_LINES_MAX, "tare {name} --help has {} lines", all.lines().count());
        for line in screen.lines().chain(all.lines()) {
            assert!(line.chars().count() <= COLUMNS, "{name}: {line:?}");
        }
        let explained = printed(&["help", name]);
        let options =
            all.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
        for option in options
            .filter(|option| all.contains(&format!("    {option}")) || all.contains(&format!(", {option}")))
        {
            assert!(explained.contains(option), "tare help {name} has no {option}");
        }
        for text in [&screen, &all, &explained] {
            assert!(
                text.contains("--color") && text.contains("--verbose") && text.contains("tare help"),
                "{name}:\n{text}"
            );
        }
        assert!(screen.contains("--help lists all") && screen.contains("  tare "), "{screen}");
    }
}

/// What a shell completes is in `--help`, but for what is there to be refused with a reason.
#[test]
fn every_option_is_listed() {
    let hidden = ["script", "precision", "budget"];
    let script = printed(&["completions", "fish"]);
    let mut seen = 0;
    for name in commands() {
        let all = printed(&[&name, "--help"]);
        let of_command = format!("__fish_tare_using_subcommand {name}\"");
        for line in script.lines().filter(|line| line.contains(&of_command)) {
            let Some(option) = line.split(" -l ").nth(1).and_then(|rest| rest.split(' ').next()) else {
                continue;
            };
            // The other name of --trials.
            let is_known = all.contains(&format!("--{option}")) || name == "load" && hidden.contains(&option);
            assert!(is_known, "tare {name} --help has no --{option}");
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn every_topic_is_printed() {
    let topics: Vec<String> =
        listed().into_iter().filter(|(_, topic)| *topic).map(|(name, _)| name).collect();
    assert!(topics.len() >= 15, "{topics:?}");
    for name in &topics {
        let text = printed(&["help", name]);
        assert!(
            text.lines().count() > 8 && text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{name}"
        );
    }
    assert_eq!(printed(&["help", "Exit_Codes"]), printed(&["help", "exit-codes"]));
}

#[test]
fn a_name_that_is_none_is_refused_with_the_nearest() {
    for (word, meant) in [("trails", "'trials'"), ("exit", "'exit-codes'"), ("xyzzy", "'tare help'")] {
        let output = tare(&["help", word]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.contains("hint: ") && said.contains(meant), "{said}");
        assert!(said.lines().count() == 1 && output.stdout.is_empty(), "{said}");
    }
}

#[test]
fn tare_alone_says_what_to_do_first() {
    let output = tare(&[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    for named in ["tare run", "tare doctor", "tare help", "tare -h"] {
        assert!(said.contains(named), "{named}: {said}");
    }
    assert!(said.lines().count() <= SCREEN_LINES_MAX, "{said}");
}

#[test]
fn the_lists_of_all_fit() {
    let (first, all) = (printed(&["-h"]), printed(&["--help"]));
    assert!(first.lines().count() <= SCREEN_LINES_MAX && all.lines().count() <= ALL_LINES_MAX, "{first}");
    assert_eq!(all, printed(&["help"]));
}

/// Whatever is typed wrongly: one line, which says what to try.
#[test]
fn every_error_has_a_hint() {
    for words in [
        &["rum"][..],
        &["run", "--no-such-option"],
        &["run", "--trials", "none"],
        &["run", "--load-cpus", "3-1"],
        &["run", "-q", "--", "/no/such/program"],
        &["load", "-q", "-H", "none", "http://127.0.0.1:1/"],
        &["show", "/no/such.tare"],
        &["why", "/no/such.tare"],
        &["report", "/proc/version"],
        &["plan", "/no/such.toml"],
        &["steady", "/no/such.txt"],
        &["explain", "xyzzy"],
        &["schema", "xyzzy"],
        &["flame", "--import", "/no/such.txt"],
        &["gate", "new.tare"],
        &["doctor", "--root", "/no/such"],
        &["tune", "--root", "/no/such"],
    ] {
        let output = tare(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.lines().count() == 1 && said.starts_with("tare: "), "{words:?}: {said}");
        assert_eq!(said.matches("hint: ").count(), 1, "{words:?}: {said}");
    }
}
