//! `tare tune` on a made-up machine and on this one: applied, held, killed, put back.

use crate::support::{Tare, alive, children, eventually};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What of a machine is applied here.
const FILES: &[(&str, &str)] = &[
    ("proc/version", "Linux version 6.12.0\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "performance powersave\n"),
];
const GOVERNOR: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
const SOMAXCONN: &str = "proc/sys/net/core/somaxconn";

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in FILES {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Machine(dir)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn value(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap().trim_end().to_string()
    }
}

fn said(output: &std::process::Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).join("")
}

#[test]
fn applied_stands_until_it_is_restored() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let apply = tare.run(&["tune", "--apply", "--root", machine.path()]);
    assert!(apply.status.success(), "{}", said(&apply));
    assert_eq!(machine.value(GOVERNOR), "performance");
    assert_eq!(machine.value("sys/devices/system/cpu/intel_pstate/no_turbo"), "1");
    assert_eq!(machine.value(SOMAXCONN), "128", "only what was asked for");
    // What cleans up after killed runs leaves it alone; so does a second time.
    assert!(said(&tare.run(&["recover"])).contains("nothing was left behind"));
    assert!(said(&tare.run(&["tune", "--apply", "--root", machine.path()])).contains("stands so already"));
    let (status, code) = tare.json(&["tune", "--status", "--json", "--root", machine.path()]);
    assert_eq!((code, &status["applied"][0]["state"]), (0, &"standing".into()), "{status:#}");
    let governor =
        status["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == "governor").unwrap();
    assert_eq!(governor["now"], "performance");
    assert!(said(&tare.run(&["tune", "--root", machine.path()])).contains("powersave → performance"));
    let restored = tare.run(&["tune", "--restore"]);
    assert!(
        restored.status.success() && said(&restored).contains("is 'powersave' again"),
        "{}",
        said(&restored)
    );
    assert_eq!(machine.value(GOVERNOR), "powersave");
    assert_eq!(machine.value("sys/devices/system/cpu/intel_pstate/no_turbo"), "0");
    assert!(said(&tare.run(&["tune", "--restore"])).contains("nothing is applied"));
}

#[test]
fn nothing_is_changed_without_apply() {
    let (tare, machine) = (Tare::new(), Machine::new());
    for mode in
        [&["--dry-run"][..], &["--status"], &["--systemd"], &["--restore"], &[], &["--somaxconn", "9"]]
    {
        let output = tare.run(&[&["tune", "--root", machine.path()], mode].concat());
        assert!(output.status.success(), "{mode:?}: {}", said(&output));
        assert_eq!((machine.value(GOVERNOR), machine.value(SOMAXCONN)), ("powersave".into(), "128".into()));
    }
    let (plan, _) = tare.json(&["tune", "--dry-run", "--json", "--root", machine.path(), "--somaxconn", "9"]);
    assert_eq!(plan["settings"][0]["steps"][0]["before"], "128");
    assert_eq!(plan["settings"][0]["steps"][0]["wanted"], "9");
}

#[test]
fn bad_arguments_start_nothing() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let cases: &[&[&str]] = &[
        &["--apply", "--restore"],
        &["--force"],
        &["--apply", "--force"],
        &["--status", "--", "true"],
        &["--apply", "--quota", "50%"],
        &["--apply", "--port-range", "9-1"],
        &["--apply", "--huge-pages", "2GB"],
        &["--apply", "--governor", "fastest"],
        &["--apply", "--irqs-off", "0"],
        &["--apply", "--somaxconn", "200", "--max-frequency", "3GHz"],
        &["--apply", "--", "/no/such/program"],
        &["--status", "--root", "/no/such/folder"],
    ];
    for case in cases {
        let mut arguments = vec!["tune"];
        if !case.contains(&"--root") {
            arguments.extend(["--root", machine.path()]);
        }
        arguments.extend(*case);
        let output = tare.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{case:?}: {}", said(&output));
        assert_eq!((machine.value(GOVERNOR), machine.value(SOMAXCONN)), ("powersave".into(), "128".into()));
    }
    assert!(said(&tare.run(&["recover"])).contains("nothing was left behind"));
}

#[test]
fn a_command_runs_under_it_and_its_exit_code_is_ours() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let file = machine.0.path().join(GOVERNOR);
    let script = format!("cat {}; exit 7", file.display());
    let output = tare.run(&["tune", "--apply", "--root", machine.path(), "--", "sh", "-c", &script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "performance\n");
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(machine.value(GOVERNOR), "powersave");
    let script = "kill -9 $$";
    let output = tare.run(&["tune", "--apply", "--root", machine.path(), "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(137));
    assert_eq!(machine.value(GOVERNOR), "powersave");
}

/// Holds the settings in a process of its own while it sleeps.
fn holding(tare: &Tare, machine: &Machine) -> std::process::Child {
    let child = tare
        .command()
        .args([
            "tune",
            "--apply",
            "--governor",
            "performance",
            "--root",
            machine.path(),
            "--",
            "sleep",
            "1000",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // In the background, also where the tests are run from a terminal: its keys are the command's.
        .process_group(0)
        .spawn()
        .unwrap();
    eventually("the command runs under the settings", || {
        machine.value(GOVERNOR) == "performance" && !children(child.id()).is_empty()
    });
    child
}

#[test]
fn a_signal_puts_everything_back() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (tare, machine) = (Tare::new(), Machine::new());
        let mut child = holding(&tare, &machine);
        let command = children(child.id());
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(128 + 15), "the command was asked to end");
        assert_eq!(machine.value(GOVERNOR), "powersave", "{signal}");
        assert!(command.iter().all(|pid| !alive(*pid)));
        assert!(said(&tare.run(&["recover"])).contains("nothing was left behind"));
    }
}

/// A shell ends when it is asked to, and tells nobody.
#[test]
fn what_a_shell_leaves_is_ended_too() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let arguments = ["tune", "--apply", "--governor", "performance", "--root", machine.path(), "--"];
    let mut command = tare.command();
    command.args(arguments).args(["sh", "-c", "sleep 1000; true"]).process_group(0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let grandchildren = || children(child.id()).into_iter().flat_map(children).collect::<Vec<u32>>();
    eventually("the shell has started its own", || !grandchildren().is_empty());
    let left = grandchildren();
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
    assert!(left.iter().all(|pid| !alive(*pid)), "{left:?}");
    assert_eq!(machine.value(GOVERNOR), "powersave");
}

#[test]
fn a_root_that_is_named_from_its_own_folder_is_put_back_from_another() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let mut apply = tare.command();
    apply.args(["tune", "--apply", "--somaxconn", "9", "--root", "."]).current_dir(machine.path());
    let apply = apply.output().unwrap();
    assert!(apply.status.success() && said(&apply).contains("1 setting stands"), "{}", said(&apply));
    let restored = tare.run(&["tune", "--restore"]);
    assert!(restored.status.success(), "{}", said(&restored));
    assert_eq!(machine.value(SOMAXCONN), "128");
}

#[test]
fn what_is_named_and_cannot_be_done_is_refused_in_the_plan_as_well() {
    let (tare, machine) = (Tare::new(), Machine::new());
    for mode in [&["--dry-run"][..], &["--apply"], &[]] {
        let arguments = ["tune", "--root", machine.path(), "--governor", "fastest"];
        let output = tare.run(&[&arguments, mode].concat());
        assert_eq!(output.status.code(), Some(2), "{mode:?}: {}", said(&output));
    }
    // What it would do of itself is no wish.
    assert!(tare.run(&["tune", "--dry-run", "--root", machine.path()]).status.success());
}

#[test]
fn a_recovery_that_left_something_says_so_in_its_exit_code() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let mut child = holding(&tare, &machine);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(machine.0.path().join(GOVERNOR), "ondemand\n").unwrap();
    let recover = tare.run(&["recover"]);
    assert_eq!(recover.status.code(), Some(1), "{}", said(&recover));
    assert!(said(&recover).contains("somebody else has set it"), "{}", said(&recover));
    assert!(tare.run(&["tune", "--restore", "--force"]).status.success());
    assert_eq!(
        (tare.run(&["recover"]).status.code(), machine.value(GOVERNOR)),
        (Some(0), "powersave".into())
    );
}

#[test]
fn a_second_tare_learns_who_holds_the_settings() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let mut child = holding(&tare, &machine);
    for mode in [&["--apply", "--somaxconn", "9"][..], &["--restore"]] {
        let output = tare.run(&[&["tune", "--root", machine.path()], mode].concat());
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("pid {}", child.id())) && text.contains("sleep 1000"), "{text}");
    }
    assert_eq!(machine.value(SOMAXCONN), "128");
    let (status, _) = tare.json(&["tune", "--status", "--json", "--root", machine.path()]);
    assert_eq!(status["applied"][0]["state"], "held");
    child.kill().unwrap();
    child.wait().unwrap();
    // Any next command puts it back.
    let output = tare.run(&["tune", "--root", machine.path()]);
    assert!(said(&output).contains("is 'powersave' again"), "{}", said(&output));
    assert_eq!(machine.value(GOVERNOR), "powersave");
}

#[test]
fn what_somebody_else_set_is_left_until_it_is_forced() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let governor = machine.0.path().join(GOVERNOR);
    let script = format!("echo ondemand > {}", governor.display());
    let output = tare.run(&["tune", "--apply", "--root", machine.path(), "--", "sh", "-c", &script]);
    assert!(said(&output).contains("somebody else has set it"), "{}", said(&output));
    let output = tare.run(&["tune", "--restore"]);
    assert_eq!((output.status.code(), machine.value(GOVERNOR)), (Some(1), "ondemand".into()));
    assert!(tare.run(&["tune", "--restore", "--force"]).status.success());
    assert_eq!(machine.value(GOVERNOR), "powersave");
}

#[test]
fn the_unit_for_systemd_holds_what_is_named_and_says_where_it_has_no_effect() {
    let (tare, machine) = (Tare::new(), Machine::new());
    let unit = tare.run(&["tune", "--systemd", "--root", machine.path()]);
    let text = String::from_utf8(unit.stdout).unwrap();
    assert!(
        text.contains("tune --apply --governor performance\n") && text.contains("tune --restore\n"),
        "{text}"
    );
    assert!(unit.stderr.is_empty());
    let wsl2 = concat!(env!("CARGO_MANIFEST_DIR"), "/../tare-machine/tests/fixtures/laptop-wsl2");
    let unit = tare.run(&["tune", "--systemd", "--root", wsl2]);
    assert!(unit.status.success());
    for text in [&unit.stdout, &unit.stderr].map(|bytes| String::from_utf8_lossy(bytes)) {
        assert!(text.contains("no effect on governor") && text.contains("powercfg"), "{text}");
    }
}

/// The real limits, in a network namespace of its own; `kill -9` while the command holds them.
#[test]
fn this_machine_is_as_it_was_after_a_kill() {
    let tare = Tare::new();
    let script = "set -e
        cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range >before
        tare tune --apply --somaxconn 4321 --port-range 2000-50001 -- sleep 1000 & holder=$!
        tries=0; until grep -q 4321 /proc/sys/net/core/somaxconn; do tries=$((tries+1)); test $tries -lt 500; sleep 0.02; done
        kill -9 $holder; wait $holder || true
        tare tune --status >/dev/null
        cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range >after
        cmp before after";
    let binaries: PathBuf = Path::new(env!("CARGO_BIN_EXE_tare")).parent().unwrap().into();
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", script])
        .current_dir(tare.state.path())
        .env("TARE_STATE_DIR", tare.state.path())
        .env("PATH", format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
