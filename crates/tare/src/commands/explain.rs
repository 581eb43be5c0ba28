//! `tare explain`: what a cause means, and what to do.

use crate::cli::explain::ExplainArgs;
use crate::failure::{Ended, Failure};
use anyhow::anyhow;
use std::process::ExitCode;
use tare_explain::bottlenecks;
use tare_model::cause_page::CausePage;
use tare_model::outcome::TareCause;
use tare_report::{Style, cause_page};

/// Less alike than this, a word is another word and no slip.
const ALIKE_MIN: f64 = 0.8;

/// Lists the causes, or prints the page of one.
pub fn explain(args: &ExplainArgs, style: Style) -> Ended {
    let pages: Vec<CausePage> = bottlenecks::all().iter().map(|bottleneck| bottleneck.to_page()).collect();
    super::check_output(&args.exports)?;
    let (shown, json) = match &args.cause {
        None => (cause_page::list(&pages), cause_page::json(&pages)),
        Some(id) => {
            let page = pages.iter().find(|page| page.cause.id() == *id).ok_or_else(|| unknown(id, &pages))?;
            (cause_page::report(page), cause_page::json(page))
        }
    };
    let json = json.map_err(Failure::underway)?;
    super::emit_report(&shown, &shown, &json, &args.exports, style)?;
    Ok(ExitCode::SUCCESS)
}

fn unknown(id: &str, pages: &[CausePage]) -> Failure {
    let hint = match meant(id, pages).as_slice() {
        [] if is_part(id) => "it is a part of the tare: see 'tare help result'".to_owned(),
        [] => "'tare explain' lists them".to_owned(),
        ids => format!("did you mean '{}'?", ids.join("' or '")),
    };
    Failure::usage(anyhow!("there is no cause '{id}' (hint: {hint})"))
}

/// Whether this is the name of a row of the weight.
fn is_part(id: &str) -> bool {
    serde_json::from_value::<TareCause>(id.into()).is_ok()
}

/// The causes that have the word in them; where none has, the one that is most like it.
fn meant(word: &str, pages: &[CausePage]) -> Vec<String> {
    let word = word.to_lowercase().replace(['_', ' '], "-");
    let ids = || pages.iter().map(|page| page.cause.id());
    let with: Vec<String> = ids().filter(|id| word.len() > 2 && id.contains(&word)).collect();
    if !with.is_empty() {
        return with;
    }
    let alike = ids().map(|id| (strsim::jaro_winkler(&word, &id), id));
    let nearest = alike.filter(|(alike, _)| *alike >= ALIKE_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map(|(_, id)| id).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    fn pages() -> Vec<CausePage> {
        bottlenecks::all().iter().map(|bottleneck| bottleneck.to_page()).collect()
    }

    #[test]
    fn slips_and_parts_of_ids_are_recognised() {
        let pages = pages();
        for (word, meant_by_it) in [
            ("server-cpu-bund", "server-cpu-bound"),
            ("Server_CPU_bound", "server-cpu-bound"),
            ("quota", "cpu-quota-throttled"),
            ("lock", "lock-contended"),
            ("thorttled", ""),
            ("x", ""),
        ] {
            let found = meant(word, &pages);
            let expected =
                meant_by_it.is_empty() && found.is_empty() || found.iter().any(|id| id == meant_by_it);
            assert!(expected, "{word}: {found:?}");
        }
    }

    /// Every `tare …` in a page is a command that there is, with options that it has.
    #[test]
    fn commands_in_pages_exist() {
        let cli = Cli::command();
        let mut seen = 0;
        for page in pages() {
            let lists = [&page.looks_the_same_but_is_not, &page.what_to_do, &page.how_to_confirm];
            for text in lists.into_iter().flatten().chain(&page.what_it_means).chain(&page.evidence) {
                for quoted in text.split('`').skip(1).step_by(2).filter_map(|text| text.strip_prefix("tare "))
                {
                    let mut words = quoted.split_whitespace();
                    let name = words.next().unwrap_or_default();
                    let command = cli.find_subcommand(name);
                    let command =
                        command.unwrap_or_else(|| panic!("{:?}: no command '{quoted}'", page.cause));
                    // What follows is another program's.
                    for option in words.take_while(|word| *word != "--").filter(|word| word.starts_with("--"))
                    {
                        let long = option.trim_start_matches("--");
                        let known = command.get_arguments().any(|argument| argument.get_long() == Some(long));
                        assert!(known, "{:?}: '{quoted}' has no {option}", page.cause);
                    }
                    seen += 1;
                }
            }
        }
        assert!(seen > 40, "{seen}");
    }
}
