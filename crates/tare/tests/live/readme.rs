//! Every command of README.md and of the pages in docs/ runs as it stands there: in an empty folder for each page, against a
//! server on the port that it names.

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
const COMMANDS_MIN: usize = 60;

/// The lines of `sh` blocks, continued lines joined, comments left out.
fn commands(page: &Page) -> Vec<String> {
    let mut commands = Vec::new();
    let mut whole = String::new();
    for line in page.lines().iter().filter(|line| line.block == Some("sh")) {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
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

/// Where the commands of a page run.
struct Place {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
    server: Option<Server>,
}

impl Place {
    fn new() -> Self {
        Place { folder: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap(), server: None }
    }

    fn shell(&self, line: &str) -> Command {
        let binaries = Path::new(env!("CARGO_BIN_EXE_tare")).parent().unwrap();
        let path = format!("{}:{}:/usr/sbin", binaries.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path()).stdin(Stdio::null());
        shell.env("PATH", path).env("TARE_STATE_DIR", self.state.path());
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
        let is_measured = output.status.code() == Some(UNQUOTABLE) && !line.starts_with("tare show");
        assert!(is_measured || output.status.success(), "{command}: {}\n{reported}\n{said}", output.status);
        is_measured.then(|| format!("{command}: {reported}\n{said}"))
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
fn every_command_runs() {
    let _alone = alone();
    let (mut ran, mut unquotable) = (0, Vec::new());
    for page in std::iter::once(Page::read("README.md")).chain(pages::of_docs()) {
        let mut place = Place::new();
        let is_run = |command: &String| command != TEST_COMMAND && !command.starts_with("cargo install");
        for command in commands(&page).iter().filter(|command| is_run(command)) {
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
