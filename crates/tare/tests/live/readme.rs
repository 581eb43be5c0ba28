//! Every command of README.md and of the pages in docs/ runs: in an empty folder for each page, against a server on the port that it
//! names. Those of `sh` blocks run as they stand there, those behind a prompt in `console` blocks with shorter measurements.

use crate::pages::{self, Page};
use crate::support::{Server, alone, answers, eventually, terminate_group};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How the README runs tare on a fresh machine; here the binary that the tests built does.
const FROM_SOURCE: &str = "cargo run --release -p tare --";
const TEST_COMMAND: &str = "tests/run";
const PORT: u16 = 8080;
/// How a command ends that ran, and says that what it measured is not to be quoted; and what a page says of it that has such commands.
const UNQUOTABLE: i32 = 4;
const ANNOUNCED: &str = "exit code 4";
/// Fewer commands are not all of them.
const COMMANDS_MIN: usize = 100;

/// Commands behind a prompt that need more than one machine with what `tests/run` installs, by a word of each; and why.
const CANNOT: &[(&str, &str)] = &[
    ("server.example", "another host: tests have one in a network namespace (hosts.rs)"),
    ("scp ", "another host"),
    ("pgbench ", "PostgreSQL, as a service: what pgbench prints is tested from fixtures (tare-formats)"),
];

/// What makes a command behind a prompt shorter: how long it measures is not what is tested.
const SHORTER: &[(&str, &str)] = &[
    ("tare doctor", "tare doctor --no-probes"),
    ("tare compare --sut", "tare compare --budget 6s --sut"),
    ("--budget 2m", "--budget 12s"),
    ("tare compare --budget 10s", "tare compare --budget 5s"),
    ("tare scale --connections 1..64", "tare scale --budget 6s -d 300ms --blocks 2 --connections 1,4,16"),
    ("tare scale --instances", "tare scale --budget 2s --blocks 1 --instances"),
    ("tare ceiling", "tare ceiling --budget 3s"),
    ("-test.count=10", "-test.count=10 -test.benchtime=20ms"),
];
const SHORT_RUN: &str = "tare run -d 500ms --trials 2 -w 300ms --no-levels --no-reference ";
/// Where the output of a command goes to a program that `tests/run` does not install.
const FILTER: &str = " | jq ";

/// What there must be in the folder of a page before its commands run, as a script of the shell. `$SOURCE` is the folder of the source.
const NEEDS: &[(&str, &str)] = &[
    (
        "docs/how-to/go.md",
        r#"cp "$SOURCE/examples/go/main.go" "$SOURCE/examples/go/go.mod" . && go build -buildvcs=false -o server . &&
        printf '#!/bin/sh\nexec ./server "$2"\n' > service && chmod +x service && cp service old && cp service new &&
        printf 'package main\n\nimport "testing"\n\nfunc BenchmarkHash(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\thash(100)\n\t}\n}\n' > main_test.go"#,
    ),
    (
        "docs/how-to/jvm.md",
        r#"sed 's/args.length != 1/args.length > 1/; s/parseInt(args\[0\])/parseInt(args.length > 0 ? args[0] : "8080")/' \
        "$SOURCE/examples/java/Server.java" > Server.java && javac Server.java && jar cfe server.jar Server Server.class &&
        cp server.jar old.jar && cp server.jar new.jar"#,
    ),
    ("docs/how-to/remote-host.md", r#"cp "$SOURCE/tests/records/nginx-undisturbed.tare" yesterday.tare"#),
    (
        "docs/reference/json.md",
        r#"cp "$SOURCE/tests/records/nginx-undisturbed.tare" a.tare && cp "$SOURCE/tests/records/nginx-quota.tare" b.tare"#,
    ),
];

/// The commands of a page, in its order: the lines of `sh` blocks, continued lines joined, comments left out; and of `console` blocks
/// those behind a prompt, made shorter.
fn commands(page: &Page) -> Vec<String> {
    let mut commands = Vec::new();
    let mut whole = String::new();
    for line in page.lines() {
        let text = line.text.trim();
        if line.block == Some("console") {
            commands.extend(prompted(text).filter(|command| can_run(command)).map(shortened));
        }
        if line.block != Some("sh") || text.is_empty() || text.starts_with('#') {
            continue;
        }
        whole.push_str(text.trim_end_matches('\\').trim());
        whole.push(' ');
        if !text.ends_with('\\') {
            commands.push(std::mem::take(&mut whole).trim().to_string());
        }
    }
    commands
}

/// What stands behind a prompt: `$ `, or the name of a host before it.
fn prompted(line: &str) -> Option<&str> {
    let (host, command) = line.split_once("$ ")?;
    host.chars().all(|letter| letter.is_ascii_lowercase()).then_some(command)
}

/// Whether one machine is enough.
fn can_run(command: &str) -> bool {
    !CANNOT.iter().any(|(word, _)| command.contains(word))
}

/// The same in a few seconds.
fn shortened(command: &str) -> String {
    let command = command.split(FILTER).next().unwrap_or(command).to_owned();
    let command = SHORTER.iter().fold(command, |command, (long, short)| command.replace(long, short));
    match command.contains("http://") {
        true => command.replacen("tare run ", SHORT_RUN, 1),
        false => command,
    }
}

/// Where the commands of a page run.
struct Place {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
    server: Option<Server>,
    /// Whether a measurement on the page was not to be quoted: its record is not, either.
    has_unquotable: bool,
}

impl Place {
    /// With what the page needs.
    fn of(page: &Page) -> Self {
        let [folder, state] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let place = Place { folder, state, server: None, has_unquotable: false };
        for (_, script) in NEEDS.iter().filter(|(path, _)| *path == page.path) {
            let begun = Instant::now();
            let output = place.shell(script).env("SOURCE", pages::root()).output().unwrap();
            println!("{:5.1} s  what {} needs", begun.elapsed().as_secs_f64(), page.path);
            assert!(output.status.success(), "{}: {}", page.path, String::from_utf8_lossy(&output.stderr));
        }
        place
    }

    fn shell(&self, line: &str) -> Command {
        let binaries = Path::new(env!("CARGO_BIN_EXE_tare")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}:/usr/local/go/bin:/usr/sbin", binaries.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path()).stdin(Stdio::null());
        shell.env("PATH", path).env("TARE_STATE_DIR", self.state.path());
        // What Go has compiled for other tests.
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
        shell.env("GOCACHE", kept).env("GOTOOLCHAIN", "local");
        shell
    }

    /// Runs a command; what it said, where that is not to be quoted.
    fn run(&mut self, command: &str) -> Option<String> {
        let line = command.replace(FROM_SOURCE, "tare");
        let serves = line.starts_with("tare serve");
        if serves || line.contains("--sut ") {
            self.server = None;
        } else if self.server.is_none() {
            self.server = Some(Server::nginx_at(PORT));
        }
        if serves {
            self.serve(&line);
            return None;
        }
        let begun = Instant::now();
        let output = self.shell(&line).output().unwrap();
        println!("{:5.1} s  {command}", begun.elapsed().as_secs_f64());
        let [reported, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        // What is shown again is no measurement: it may end so only after one of the page that did.
        let may_be = self.has_unquotable || !line.starts_with("tare show");
        let is_unquotable = may_be && output.status.code() == Some(UNQUOTABLE);
        assert!(is_unquotable || output.status.success(), "{command}: {}\n{reported}\n{said}", output.status);
        self.has_unquotable |= is_unquotable;
        is_unquotable.then(|| format!("{command}: {reported}\n{said}"))
    }

    /// A server runs until it is stopped, and the commands after it use its port.
    fn serve(&self, line: &str) {
        let mut child = self.shell(line).stdout(Stdio::null()).process_group(0).spawn().unwrap();
        let answered = std::panic::catch_unwind(|| {
            eventually("tare serve answers", || answers(([127, 0, 0, 1], PORT).into()));
        });
        terminate_group(&mut child);
        assert!(answered.is_ok(), "{line}");
    }
}

/// README.md and the pages in docs/.
fn all_pages() -> Vec<Page> {
    std::iter::once(Page::read("README.md")).chain(pages::of_docs()).collect()
}

#[test]
fn the_test_command_is_the_one_that_ci_runs() {
    let _alone = alone();
    let page = Page::read("README.md");
    let after = page.text.split("<!-- test-command -->").nth(1).expect("the README marks its test command");
    let command = after.lines().find(|line| !line.is_empty() && !line.starts_with("```")).unwrap();
    assert_eq!(command, TEST_COMMAND);
    assert!(commands(&page).contains(&command.to_string()));
    let ci = std::fs::read_to_string(pages::root().join(".ci/run")).unwrap();
    assert!(pages::root().join(command).is_file() && ci.contains("test-command"), "{ci}");
}

#[test]
fn every_exception_is_for_a_command_of_a_page() {
    let _alone = alone();
    let all = all_pages();
    let mut shown: Vec<&str> = Vec::new();
    for page in &all {
        let behind_prompts = page.lines().into_iter().filter(|line| line.block == Some("console"));
        shown.extend(behind_prompts.filter_map(|line| prompted(line.text)));
    }
    let words = CANNOT.iter().chain(SHORTER).map(|(word, _)| *word).chain([FILTER]);
    let is_shown = |word: &str| shown.iter().any(|command| command.contains(word));
    let unused: Vec<&str> = words.filter(|word| !is_shown(word)).collect();
    assert!(unused.is_empty(), "{unused:?}");
    for (path, _) in NEEDS {
        assert!(all.iter().any(|page| page.path == *path && !commands(page).is_empty()), "{path}");
    }
    // Only lines of `sh` blocks are joined.
    assert!(!shown.iter().any(|command| command.ends_with('\\')), "{shown:#?}");
}

#[test]
fn every_command_runs() {
    let _alone = alone();
    let (mut ran, mut unquotable) = (0, Vec::new());
    for page in all_pages() {
        let is_run = |command: &String| command != TEST_COMMAND && !command.starts_with("cargo install");
        let commands: Vec<String> = commands(&page).into_iter().filter(is_run).collect();
        if commands.is_empty() {
            continue;
        }
        let mut place = Place::of(&page);
        for command in &commands {
            ran += 1;
            if let Some(said) = place.run(command) {
                let path = &page.path;
                assert!(page.text.to_lowercase().contains(ANNOUNCED), "{path} has no {ANNOUNCED}: {said}");
                unquotable.push(said);
            }
        }
    }
    assert!(ran >= COMMANDS_MIN, "{ran}");
    // Whoever else uses the machine can spoil a measurement and not most of them.
    assert!(unquotable.len() * 4 <= ran, "{unquotable:#?}");
}
