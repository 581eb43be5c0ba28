//! That help is as long as it may be, complete, and can be typed.

use super::*;
use clap::Parser;

const SCREEN_LINES_MAX: usize = 24;
const ALL_LINES_MAX: usize = 120;

fn names() -> Vec<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

#[test]
fn every_command_is_in_one_group_and_no_topic_has_its_name() {
    let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    grouped.sort_unstable();
    let mut all = names();
    all.sort_unstable();
    assert_eq!(grouped, all);
    assert!(TOPICS.iter().all(|(name, _)| !grouped.contains(name)));
    assert!(FIRST.iter().all(|name| grouped.contains(name)));
    for (at, (name, _)) in TOPICS.iter().enumerate() {
        assert!(TOPICS[..at].iter().all(|(other, _)| other != name), "{name} stands there twice");
    }
}

#[test]
fn screens_are_of_what_there_is() {
    let mut cli = built();
    for screen in SCREENS {
        let command = cli.find_subcommand_mut(screen.command).unwrap();
        for id in screen.options {
            let known = command.get_arguments().any(|argument| argument.get_id() == id);
            assert!(known, "{} has no {id}", screen.command);
        }
        for name in screen.topics {
            assert!(topic(name).is_some(), "{}: there is no topic {name}", screen.command);
        }
    }
}

#[test]
fn each_help_is_as_long_as_it_may_be_and_has_every_option() {
    for name in names() {
        let of = |extent| of_command(&name, extent).unwrap();
        let (screen, all, explained) = (of(Extent::Screen), of(Extent::All), of(Extent::Explained));
        assert!(
            screen.lines().count() <= SCREEN_LINES_MAX,
            "{name} -h: {}\n{screen}",
            screen.lines().count()
        );
        assert!(all.lines().count() <= ALL_LINES_MAX, "{name} --help: {}", all.lines().count());
        for line in screen.lines().chain(all.lines()) {
            assert!(line.chars().count() <= WIDTH, "{name}: {line:?}");
        }
        let cli = built();
        let command = cli.find_subcommand(&name).unwrap();
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let shown = argument.to_string();
            let line = all.lines().find(|line| line.starts_with("  ") && line.contains(&shown));
            let line = line.unwrap_or_else(|| panic!("{name} --help has no {shown}"));
            let text = line.split(&shown).nth(1).unwrap_or_default().trim();
            assert!(text.len() > 3 && !text.ends_with('.'), "{name}: {line:?}");
            assert!(explained.contains(&shown), "tare help {name} has no {shown}");
        }
        for general in ["--color", "--verbose", "--help"] {
            let texts = [&screen, &all, &explained];
            assert!(texts.iter().all(|text| text.contains(general)), "{name}: {general}");
        }
        assert!(all.contains("Examples:") && screen.contains("Examples:"), "{name} has no example");
    }
}

#[test]
fn the_lists_fit() {
    let (first, all) = (first_screen(), overview());
    assert!(first.lines().count() <= SCREEN_LINES_MAX && all.lines().count() <= ALL_LINES_MAX);
    for line in first.lines().chain(all.lines()).chain(FIRST_STEPS.lines()) {
        assert!(line.chars().count() <= WIDTH, "{line:?}");
    }
    for name in names().iter().map(String::as_str).chain(TOPICS.iter().map(|(name, _)| *name)) {
        assert!(all.contains(&format!("\n  {name} ")), "{name}");
    }
}

#[test]
fn topics_have_a_title_and_fit() {
    for (name, text) in TOPICS {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default();
        assert!((10..=84).contains(&title.chars().count()) && !title.ends_with('.'), "{name}: {title:?}");
        assert_eq!(lines.next(), Some(""), "{name}");
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{name}");
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH && !line.ends_with(' '), "{name}: {line:?}");
        }
    }
}

#[test]
fn the_nearest_name_is_found() {
    for (word, meant) in [
        ("trails", Some("trials")),
        ("exit", Some("exit-codes")),
        ("plam", Some("plan")),
        ("env", Some("environment")),
        ("xyzzy", None),
    ] {
        assert_eq!(nearest(word).as_deref(), meant, "{word}");
    }
}

#[test]
fn the_extent_is_that_of_the_option_and_the_command_the_first_one() {
    let of = |line: &str| asked(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let known = |name, extent| of_command(name, extent).unwrap();
    assert_eq!(of("run -h"), known("run", Extent::Screen));
    assert_eq!(of("--color never load --help"), known("load", Extent::All));
    assert_eq!(of("run -h -- sort --help"), known("run", Extent::Screen));
    assert_eq!((of("-h"), of("--help")), (first_screen(), overview()));
}

/// The words of a command line, as a shell splits it.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut word) = (Vec::new(), None, None::<String>);
    for letter in line.chars() {
        match (letter, quote) {
            (' ', None) => words.extend(word.take()),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(end)) if letter == end => quote = None,
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// What is typed of a line: behind it stands what it gives, or another program.
fn typed(line: &str) -> &str {
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(end)) if letter == end => quote = None,
            (' ', None) if ["  ", " | ", " && ", " > "].iter().any(|end| line[at..].starts_with(end)) => {
                return &line[..at];
            }
            _ => {}
        }
    }
    line
}

/// Every command line in an example or a topic is one that tare takes.
#[test]
fn examples_can_be_typed() {
    let cli = built();
    let after = |command: &Command| command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut texts: Vec<(String, String)> =
        cli.get_subcommands().map(|command| (command.get_name().to_owned(), after(command))).collect();
    texts.push(("tare".to_owned(), after(&cli)));
    texts.push(("tare alone".to_owned(), FIRST_STEPS.to_owned()));
    texts.extend(TOPICS.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
    let mut seen = 0;
    for (name, text) in texts {
        let whole_lines = text.replace("\\\n            ", "");
        let indented = whole_lines.lines().filter_map(|line| line.strip_prefix("  "));
        for line in indented
            .map(|line| line.split_once("| tare ").map_or(line, |(before, _)| &line[before.len() + 2..]))
        {
            if !line.starts_with("tare ") {
                continue;
            }
            seen += 1;
            let line = typed(line).replace(" PID", " 4711");
            if let Err(error) = Cli::try_parse_from(words_of(&line))
                && error.kind() != clap::error::ErrorKind::DisplayHelp
            {
                panic!("{name}: {line:?}: {error}");
            }
        }
    }
    assert!(seen > 80, "{seen}");
}
