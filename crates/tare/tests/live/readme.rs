//! Every command of the README runs as it stands there, against a server on the port that it names.

use crate::support::{Server, alone, eventually};
use std::path::Path;
use std::process::{Command, Stdio};

/// How the README runs tare on a fresh machine; here the binary that the tests built does.
const FROM_SOURCE: &str = "cargo run --release -p tare --";
const TEST_COMMAND: &str = "tests/run";
const PORT: u16 = 8080;
/// How a command ends that ran, and says that what it measured is not to be quoted.
const UNQUOTABLE: i32 = 4;

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap()
}

/// The lines of ```sh blocks, continued lines joined, comments and the test command left out.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    let mut whole = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = line == "```sh";
        } else if in_block && !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            whole.push_str(line.trim_end_matches('\\').trim());
            whole.push(' ');
            if !line.ends_with('\\') {
                commands.push(std::mem::take(&mut whole).trim().to_string());
            }
        }
    }
    commands
}

#[test]
fn the_test_command_is_the_one_that_ci_runs() {
    let _alone = alone();
    let text = readme();
    let after = text.split("<!-- test-command -->").nth(1).expect("the README marks its test command");
    let command = after.lines().find(|line| !line.is_empty() && !line.starts_with("```")).unwrap();
    assert_eq!(command, TEST_COMMAND);
    assert!(commands(&text).contains(&command.to_string()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ci = std::fs::read_to_string(root.join(".ci/run")).unwrap();
    assert!(root.join(command).is_file() && ci.contains("test-command"), "{ci}");
}

#[test]
fn every_command_runs() {
    let _alone = alone();
    let text = readme();
    let commands: Vec<String> =
        commands(&text).into_iter().filter(|command| command != TEST_COMMAND).collect();
    assert!(commands.len() >= 8, "{commands:#?}");
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_tare")).parent().unwrap();
    let path = format!("{}:{}:/usr/sbin", binaries.display(), std::env::var("PATH").unwrap());
    let (mut server, mut unquotable) = (None, Vec::new());
    for command in &commands {
        // `tare serve` runs until it is stopped and the commands after it use its port.
        let line = command.replace(FROM_SOURCE, "tare");
        if line.starts_with("cargo install") {
            continue;
        }
        let serves = line.starts_with("tare serve");
        let starts_its_own = line.contains("--sut ");
        if serves || starts_its_own {
            server = None;
        } else if server.is_none() {
            server = Some(Server::nginx_at(PORT));
        }
        let shell = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", &line]).current_dir(folder.path()).stdin(Stdio::null());
            shell.env("PATH", &path).env("TARE_STATE_DIR", state.path());
            shell
        };
        if serves {
            let mut child = shell().stdout(Stdio::null()).process_group_leader().spawn().unwrap();
            let answered = std::panic::catch_unwind(|| {
                eventually("tare serve answers", || crate::support::answers(([127, 0, 0, 1], PORT).into()));
            });
            crate::support::terminate_group(&mut child);
            assert!(answered.is_ok(), "{command}");
            continue;
        }
        let begun = std::time::Instant::now();
        let output = shell().output().unwrap();
        println!("{:5.1} s  {command}", begun.elapsed().as_secs_f64());
        let [reported, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let is_measured = output.status.code() == Some(UNQUOTABLE);
        assert!(is_measured || output.status.success(), "{command}: {}\n{reported}\n{said}", output.status);
        unquotable.extend(is_measured.then(|| format!("{command}: {reported}\n{said}")));
    }
    // Whoever else uses the machine can spoil a measurement and not most of them.
    assert!(unquotable.len() * 4 <= commands.len(), "{unquotable:#?}");
}

/// A process group of its own, so that `sh` and what it started end together.
trait Leader {
    fn process_group_leader(&mut self) -> &mut Self;
}

impl Leader for Command {
    fn process_group_leader(&mut self) -> &mut Self {
        std::os::unix::process::CommandExt::process_group(self, 0)
    }
}
