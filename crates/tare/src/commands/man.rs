//! `tare man`: the manual pages, made of the same texts as the help.

use crate::cli::Cli;
use crate::failure::{Ended, Failure};
use crate::{terminal, version};
use anyhow::Context;
use clap::builder::{Resettable, StyledStr};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Longest line that is a heading of what is below it.
const HEADING_CHARS_MAX: usize = 24;
const EXIT_CODES: &str = "Exit codes: ";

/// Prints the main page, or writes all of them to a folder.
pub fn man(dir: Option<&Path>) -> Ended {
    let pages = pages().map_err(Failure::underway)?;
    match dir {
        None => terminal::print(&pages[0].text).map_err(Failure::underway)?,
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot make {}", dir.display()))
                .map_err(Failure::usage)?;
            pages.iter().try_for_each(|page| super::write(&dir.join(&page.file), &page.text))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Page {
    file: String,
    text: String,
}

/// `tare.1`, then one of each subcommand.
fn pages() -> io::Result<Vec<Page>> {
    let mut tare = Cli::command();
    tare.build();
    let commands = tare.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once(&tare).chain(commands).map(|command| page(command, &tare)).collect()
}

fn page(command: &Command, tare: &Command) -> io::Result<Page> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let below = command.get_after_long_help().or_else(|| command.get_after_help()).map(StyledStr::to_string);
    let shown = command
        .clone()
        .override_usage(usage)
        .version(Resettable::Reset)
        .long_version(Resettable::Reset)
        .after_help(Resettable::Reset)
        .after_long_help(Resettable::Reset);
    // An empty word would let the next one take its place.
    let date = version::COMMIT.split(['(', ')']).nth(1).unwrap_or(" ");
    let man = Man::new(shown).date(date).source(format!("tare {}", version::SHORT)).manual("tare");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let mut more = Roff::new();
    sections(&mut more, &below.unwrap_or_default());
    see_also(&mut more, command, tare);
    let more = more.render();
    // What it begins with stands at the beginning already.
    let is_twice = |line: &&str| line.starts_with(".ie ") || line.starts_with(".el ");
    let more = more.lines().skip_while(is_twice).map(|line| format!("{line}\n"));
    let text = String::from_utf8_lossy(&text).into_owned() + &more.collect::<String>();
    Ok(Page { file: man.get_filename(), text })
}

/// What stands below the options in a help: headings, examples with two spaces before them, and sentences.
fn sections(roff: &mut Roff, text: &str) {
    let mut below = Below { roff, within: Within::Nothing, as_it_is: false, after_blank: false };
    let mut exit_codes = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_heading = line.chars().count() <= HEADING_CHARS_MAX
            && lines.peek().is_some_and(|next| next.starts_with("  "));
        if line.trim().is_empty() {
            below.after_blank = true;
        } else if let Some(example) = line.strip_prefix("  ") {
            below.example(example);
        } else if let Some(codes) = line.strip_prefix(EXIT_CODES) {
            let rest = std::iter::from_fn(|| lines.next_if(|next| !next.trim().is_empty()));
            exit_codes = Some(rest.fold(codes.to_owned(), |all, next| format!("{all} {}", next.trim())));
        } else if let Some(name) = line.strip_suffix(':').filter(|_| is_heading) {
            below.heading(&name.to_uppercase(), Within::Heading);
        } else {
            below.sentence(line);
        }
    }
    below.end_examples();
    if let Some(codes) = exit_codes {
        exit_status(roff, &codes);
    }
}

#[derive(PartialEq)]
enum Within {
    Nothing,
    Heading,
    Notes,
}

struct Below<'r> {
    roff: &'r mut Roff,
    within: Within,
    /// Lines are not filled.
    as_it_is: bool,
    after_blank: bool,
}

impl Below<'_> {
    fn heading(&mut self, name: &str, within: Within) {
        self.end_examples();
        self.roff.control("SH", [name]);
        (self.within, self.after_blank) = (within, false);
    }

    fn example(&mut self, line: &str) {
        if self.within == Within::Nothing {
            self.heading("NOTES", Within::Notes);
        }
        if !self.as_it_is {
            self.roff.control("PP", []).control("RS", ["4"]).control("nf", []);
        } else if self.after_blank {
            self.roff.text([roman("")]);
        }
        self.roff.text([roman(line)]);
        (self.as_it_is, self.after_blank) = (true, false);
    }

    fn sentence(&mut self, line: &str) {
        if self.within == Within::Nothing || self.within == Within::Heading && self.after_blank {
            self.heading("NOTES", Within::Notes);
        } else if self.end_examples() || self.after_blank {
            self.roff.control("PP", []);
        }
        self.roff.text([roman(line)]);
        self.after_blank = false;
    }

    /// Whether there were some.
    fn end_examples(&mut self) -> bool {
        if self.as_it_is {
            self.roff.control("fi", []).control("RE", []);
        }
        std::mem::take(&mut self.as_it_is)
    }
}

/// `0 done; 1 a check failed`.
fn exit_status(roff: &mut Roff, codes: &str) {
    roff.control("SH", ["EXIT STATUS"]);
    for item in codes.trim_end_matches('.').split("; ") {
        match item.split_once(' ').filter(|(code, _)| code.parse::<u8>().is_ok()) {
            Some((code, meaning)) => {
                roff.control("TP", []).text([bold(code)]).text([roman(meaning)]);
            }
            None => {
                roff.text([roman(item)]);
            }
        }
    }
}

fn see_also(roff: &mut Roff, command: &Command, tare: &Command) {
    roff.control("SH", ["SEE ALSO"]);
    let others = tare.get_subcommands().filter(|other| !other.is_hide_set());
    let names =
        std::iter::once("tare".to_owned()).chain(others.map(|other| format!("tare-{}", other.get_name())));
    let itself = command.get_display_name().unwrap_or_else(|| command.get_name());
    let others: Vec<String> = names.filter(|name| name != itself).map(|name| format!("{name}(1)")).collect();
    roff.text([roman(others.join(", "))]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let mut roff = Roff::new();
        sections(&mut roff, text);
        roff.to_roff()
    }

    #[test]
    fn every_command_has_a_page_of_its_own() {
        let pages = pages().unwrap();
        let names: Vec<String> = Cli::command()
            .get_subcommands()
            .map(|command| format!("tare-{}.1", command.get_name()))
            .collect();
        assert!(names.len() > 15 && pages.len() == names.len() + 1, "{names:?}");
        assert_eq!(pages[0].file, "tare.1");
        for name in &names {
            let page = &pages.iter().find(|page| page.file == *name).unwrap().text;
            let command = name.trim_end_matches(".1").replacen('-', " ", 1);
            assert_eq!((page.matches(".TH ").count(), page.matches(".ie ").count()), (1, 1), "{page}");
            assert!(page.contains(&format!("\n.SH SYNOPSIS\n\\fB{command}\\fR")), "{page}");
            assert!(page.contains("\n.SH \"SEE ALSO\"\ntare(1), "), "{page}");
        }
    }

    #[test]
    fn examples_keep_their_lines_and_exit_codes_are_a_list() {
        let examples = of(
            "Examples:\n  tare a   one\n  tare b   two\n\nA note of\ntwo lines.\n\nExit codes: 0 done; 1 a\ncheck failed.",
        );
        let wanted = ".SH EXAMPLES\n.PP\n.RS 4\n.nf\ntare a   one\ntare b   two\n.fi\n.RE\n.SH NOTES\nA note of\ntwo lines.\n\
                      .SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\ndone\n.TP\n\\fB1\\fR\na check failed\n";
        assert_eq!(examples, wanted);
        let plan = of("A plan, all of whose keys may be left out:\n\n  a = 1\n\n  b = 2\nMore.");
        let wanted = ".SH NOTES\nA plan, all of whose keys may be left out:\n.PP\n.RS 4\n.nf\na = 1\n\nb = 2\n.fi\n.RE\n.PP\nMore.\n";
        assert_eq!(plan, wanted);
        assert_eq!(of(""), "");
    }
}
