//! The documentation: four pages and a topic of help are what the program says, every link leads somewhere, and every page is listed.
//!
//! `TARE_WRITE_DOCS=1 cargo test -p tare --test quick docs` writes them anew (the topic is in the program after it is built again).

use crate::pages::{self, Page};
use crate::support::Tare;
use std::collections::BTreeMap;
use tare_explain::bottlenecks;
use tare_formats::export::EXPORTS;
use tare_model::cause_page::CausePage;

/// How wide a page of help is.
const COLUMNS: &str = "100";

const HEAD_OF_COMMANDS: &str = "# Command line

What each command says with `--help`. This page is generated; a test compares it with the program.
";

const HEAD_OF_TOPICS: &str = "# Topics

What `tare help TOPIC` says: ideas, and long tables such as the keys of plan files. This page is generated; a test compares it with the
program.
";

const HEAD_OF_CAUSES: &str = "# Causes

What `tare run` names as the bottleneck or as a finding. `tare explain CAUSE` prints the same. This page is generated;
a test compares it with the program.

| cause | in one line |
|---|---|
";

const HEAD_OF_FORMATS: &str = "# Formats of other tools

`tare show FILE` prints what a file of these holds, `tare compare OLD NEW` holds two of them against each other, and `tare export --format NAME`
writes a result for another tool. The tool is recognised by the content, never by the file's name. What each gets wrong is
printed beside its figures. Behind each name is a page with a command, an output and what is read of it. This page is generated; a test
compares it with the program.

| format | what the tool gets wrong |
|---|---|
";

const HEAD_OF_TOPIC: &str = "Results of other tools that are read, and formats that are written

  tare show bench.txt                  what 'go test -bench' printed, with intervals
  tare compare old.json new.json       two files of the same tool
  tare export --format bmf last.tare   a result for another tool

The tool is recognised by the content. '-' is standard input.

Read
";

/// Kinds of blocks in pages. Commands of the first two are run by `live/readme.rs`, in the second those behind a prompt.
const BLOCKS: [&str; 6] = ["sh", "console", "text", "json", "toml", "yaml"];

/// What begins like this in a text is a path of the source.
const SOURCES: [&str; 9] = [
    ".ci/",
    "bench/",
    "crates/",
    "docs/",
    "examples/",
    "packaging/",
    "plans/",
    "tests/run",
    "tests/records/",
];

/// Holds a generated page to what it should be.
pub(crate) fn is_kept(path: &str, made: &str) {
    let file = pages::root().join(path);
    if std::env::var_os("TARE_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "{path} is not what the program says (see the head of this test)");
}

/// What `tare … --help` prints; `None` where there is no such command.
fn help(command: Option<&str>) -> Option<String> {
    let mut tare = Tare::new().command();
    let output = tare.args(command).arg("--help").env("COLUMNS", COLUMNS).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    output.status.success().then(|| lines.join("\n"))
}

/// Each word that begins a line of the help of all, and has a help of its own.
fn commands(whole: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in whole.lines() {
        let word = line.strip_prefix("  ").and_then(|line| line.split(' ').next()).unwrap_or_default();
        let is_name = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase());
        if is_name && !found.iter().any(|(known, _)| known == word) {
            found.extend(help(Some(word)).map(|text| (word.to_owned(), text)));
        }
    }
    found
}

fn page_of_commands() -> String {
    let whole = help(None).unwrap();
    let mut page = HEAD_OF_COMMANDS.to_owned();
    let mut section = |title: &str, text: &str| {
        page.push_str(&format!("\n## {title}\n\n```text\n{text}\n```\n"));
    };
    section("tare", &whole);
    let all = commands(&whole);
    assert!(all.len() > 12, "{whole}");
    for (name, text) in &all {
        section(&format!("tare {name}"), text);
    }
    page
}

/// The names in the list of topics, in the help of all.
fn topics(whole: &str) -> Vec<&str> {
    let listed =
        whole.lines().skip_while(|line| *line != "Topics:").skip(1).take_while(|line| !line.is_empty());
    listed.filter_map(|line| line.split_whitespace().next()).collect()
}

fn page_of_topics() -> String {
    let whole = help(None).unwrap();
    let names = topics(&whole);
    assert!(names.len() > 20, "{whole}");
    let mut page = HEAD_OF_TOPICS.to_owned();
    for name in names {
        let output = Tare::new().command().args(["help", name]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        page.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", text.trim_end()));
    }
    page
}

fn page_of_causes() -> String {
    let causes: Vec<CausePage> = bottlenecks::all().iter().map(|bottleneck| bottleneck.to_page()).collect();
    let mut page = HEAD_OF_CAUSES.to_owned();
    for cause in &causes {
        page.push_str(&format!("| [`{0}`](#{0}) | {1} |\n", cause.cause.id(), cause.brief));
    }
    for cause in &causes {
        page.push_str(&section_of(cause));
    }
    page
}

/// Name, and what is wrong with it, of every format that is read.
pub(crate) fn formats() -> BTreeMap<&'static str, &'static [&'static str]> {
    let readers = tare_formats::readers().map(|reader| (reader.name, reader.gets_wrong));
    // A tool whose summary is known too has one row.
    let summaries = tare_formats::FORMATS.iter().map(|format| (format.name, format.gets_wrong));
    readers.chain(summaries).collect()
}

fn page_of_formats() -> String {
    let mut page = HEAD_OF_FORMATS.to_owned();
    for (name, wrong) in formats() {
        page.push_str(&format!("| [`{name}`](formats/{name}.md) | {} |\n", wrong.join("; ")));
    }
    page.push_str("\n## Formats that are written\n\n| format | what it holds |\n|---|---|\n");
    for export in EXPORTS {
        page.push_str(&format!("| `{}` | {} |\n", export.name, export.holds));
    }
    page
}

fn topic_of_formats() -> String {
    let mut topic = HEAD_OF_TOPIC.to_owned();
    let names: Vec<&str> = formats().into_keys().collect();
    topic.push_str(&filled(&names.join(", ")));
    topic.push_str("\nWritten\n");
    for export in EXPORTS {
        topic.push_str(&format!("  {}\n{}", export.name, filled(&format!("  {}", export.holds))));
    }
    topic
}

/// Words in lines that fit the screen, indented.
fn filled(text: &str) -> String {
    let indent = format!("  {}", " ".repeat(text.len() - text.trim_start().len()));
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if indent.len() + line.len() + word.len() < 98 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

fn section_of(cause: &CausePage) -> String {
    let mut section = format!("\n## `{}`\n\n{}. {}\n", cause.cause.id(), cause.title, cause.brief);
    let parts = [
        ("What it means", &cause.what_it_means),
        ("Evidence", &cause.evidence),
        ("Looks the same but is not", &cause.looks_the_same_but_is_not),
        ("What to do", &cause.what_to_do),
        ("How to confirm", &cause.how_to_confirm),
        ("Source", &cause.source),
    ];
    for (title, texts) in parts {
        section.push_str(&format!("\n**{title}**\n\n"));
        for text in texts {
            section.push_str(&format!("- {text}\n"));
        }
    }
    if !cause.injections.is_empty() {
        let names: Vec<String> =
            cause.injections.iter().map(|name| format!("`tare calibrate --only {name}`")).collect();
        section.push_str(&format!("\nTo see it happen: {}.\n", names.join(", ")));
    }
    section
}

#[test]
fn the_page_of_the_command_line_is_what_it_says() {
    is_kept("docs/reference/cli.md", &page_of_commands());
}

#[test]
fn the_page_of_the_topics_is_what_it_says() {
    is_kept("docs/reference/topics.md", &page_of_topics());
}

#[test]
fn the_page_of_the_causes_is_what_is_known_of_them() {
    is_kept("docs/reference/causes.md", &page_of_causes());
}

#[test]
fn the_page_of_the_formats_is_what_is_read_and_written() {
    is_kept("docs/reference/formats.md", &page_of_formats());
    is_kept("crates/tare/src/cli/topics/formats.txt", &topic_of_formats());
}

/// Every text that links are checked in.
fn all_pages() -> Vec<Page> {
    let of_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(Page::read);
    of_root.into_iter().chain(pages::of_docs()).collect()
}

/// What a line says, and its code: what stands between backticks.
fn prose_and_code(line: &str) -> (String, Vec<&str>) {
    let prose = line.split('`').step_by(2).collect();
    (prose, line.split('`').skip(1).step_by(2).collect())
}

/// Targets of the links in a line.
fn links(prose: &str) -> Vec<&str> {
    prose.split("](").skip(1).filter_map(|after| after.split_once(')')).map(|(target, _)| target).collect()
}

/// What headings are called in links, as mdBook and GitHub do it.
fn anchors(page: &Page) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in page.lines().iter().filter(|line| line.block.is_none() && line.text.starts_with('#')) {
        let title = line.text.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(*c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let before = found.iter().filter(|known| **known == anchor).count();
        found.extend((before > 0).then(|| format!("{anchor}-{before}")));
        found.push(anchor);
    }
    found
}

/// Where a link of a page leads, from the root: the file, and the place in it.
fn target(page: &Page, link: &str) -> (String, Option<String>) {
    let (file, place) = link.split_once('#').map_or((link, None), |(file, place)| (file, Some(place)));
    let mut path: Vec<&str> = page.path.split('/').collect();
    if !file.is_empty() {
        path.pop();
    }
    for part in file.split('/').filter(|part| !part.is_empty()) {
        match part {
            ".." => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    (path.join("/"), place.map(str::to_owned))
}

/// A file that is not there as it is called, or a place in it that is not; `None` where both are.
fn missing(page: &Page, link: &str) -> Option<String> {
    let (path, place) = target(page, link);
    if !pages::root().join(&path).exists() {
        return Some(format!("there is no {path}"));
    }
    let place = place.filter(|_| path.ends_with(".md"))?;
    let has = anchors(&Page::read(&path)).contains(&place);
    (!has).then(|| format!("{path} has no heading '{place}'"))
}

#[test]
fn every_link_leads_somewhere() {
    let (mut seen, mut wrong) = (0, String::new());
    for page in all_pages() {
        for line in page.lines().iter().filter(|line| line.block.is_none()) {
            let (prose, _) = prose_and_code(line.text);
            for link in links(&prose).into_iter().filter(|link| !link.contains("://")) {
                seen += 1;
                if let Some(what) = missing(&page, link) {
                    wrong.push_str(&format!("{}:{}: {what}\n", page.path, line.number));
                }
            }
        }
    }
    assert!(seen > 100 && wrong.is_empty(), "{seen} links\n{wrong}");
}

#[test]
fn every_path_in_a_text_is_there() {
    let (mut seen, mut wrong) = (0, String::new());
    for page in all_pages() {
        for line in page.lines().iter().filter(|line| line.block.is_none()) {
            let (_, code) = prose_and_code(line.text);
            for path in code.into_iter().filter(|text| is_path(text)) {
                seen += 1;
                let path = if path.starts_with("tare") { format!("crates/{path}") } else { path.to_owned() };
                if !pages::root().join(&path).exists() {
                    wrong.push_str(&format!("{}:{}: there is no {path}\n", page.path, line.number));
                }
            }
        }
    }
    assert!(seen > 100 && wrong.is_empty(), "{seen} paths\n{wrong}");
}

/// A path of the source; in `ARCHITECTURE.md` crates stand without their folder. What has other signs is a command or a pattern.
fn is_path(code: &str) -> bool {
    let is_crate = code.starts_with("tare") && (code.contains("/src/") || code.contains("/tests/"));
    let is_plain = code.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    (is_crate || SOURCES.iter().any(|source| code.starts_with(source))) && is_plain && !code.contains("NAME")
}

#[test]
fn every_block_is_of_a_kind_of_which_it_is_known_whether_it_runs() {
    let (mut prompts, mut wrong) = (0, String::new());
    for page in std::iter::once(Page::read("README.md")).chain(pages::of_docs()) {
        for line in page.lines() {
            match line.block {
                Some("console") => prompts += usize::from(line.text.contains("$ ")),
                Some(block) if !BLOCKS.contains(&block) => {
                    wrong.push_str(&format!("{}:{}: a block '{block}'\n", page.path, line.number));
                }
                _ => {}
            }
        }
    }
    assert!(prompts > 15 && wrong.is_empty(), "{prompts} prompts\n{wrong}");
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = Page::read("docs/SUMMARY.md");
    let listed: Vec<String> = summary
        .lines()
        .iter()
        .flat_map(|line| {
            links(line.text).into_iter().map(|link| target(&summary, link).0).collect::<Vec<_>>()
        })
        .collect();
    for page in pages::of_docs().iter().filter(|page| page.path != summary.path) {
        let times = listed.iter().filter(|path| **path == page.path).count();
        assert_eq!(times, 1, "{} in docs/SUMMARY.md", page.path);
    }
    assert!(listed.iter().all(|path| pages::root().join(path).is_file()), "{listed:#?}");
}

#[test]
fn headings_and_links_are_read_as_others_do() {
    let page = |text: &str| Page { path: "docs/how-to/a.md".into(), text: text.into() };
    let of = page("# One\n## What a history's line holds\n```sh\n# no heading\n```\n## `x-y` (z)\n## One\n");
    assert_eq!(anchors(&of), ["one", "what-a-historys-line-holds", "x-y-z", "one-1", "one"]);
    let (prose, code) = prose_and_code("a [`b`](../c.md#d) and `[no](link)`");
    assert_eq!((links(&prose), code), (vec!["../c.md#d"], vec!["b", "[no](link)"]));
    assert_eq!(target(&of, "../c.md#d"), ("docs/c.md".into(), Some("d".into())));
    assert_eq!(target(&of, "#d"), ("docs/how-to/a.md".into(), Some("d".into())));
    assert!(is_path("tests/run") && is_path("tare-run/src/plan.rs") && !is_path("tests/run fast"));
}

/// `tests/records/make TARE readme` makes the record, and `COLUMNS=100 tare show tests/records/readme.tare` prints the text.
#[test]
fn the_result_on_top_of_the_readme_is_that_of_its_record() {
    let readme = Page::read("README.md").text;
    let block = readme.split_once("\n```text\n").and_then(|(_, rest)| rest.split_once("\n```\n"));
    let (block, _) = block.expect("a text block");
    let record = format!("{}/../../tests/records/readme.tare", env!("CARGO_MANIFEST_DIR"));
    let mut tare = Tare::new().command();
    tare.args(["show", &record]).env("COLUMNS", COLUMNS).env("LC_ALL", "C.UTF-8");
    let output = tare.output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let begins = block.lines().map(str::trim_end).eq(lines.iter().copied().take(block.lines().count()));
    assert!(begins, "README has\n{block}\nand the record says\n{}", lines.join("\n"));
}
