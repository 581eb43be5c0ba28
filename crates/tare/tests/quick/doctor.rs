//! `tare doctor` on machines of others and on this one, with quotas that are set for real.

use crate::support::schema;
use crate::support::{Quota, Tare};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tare-machine/tests/fixtures")
}

fn checks(result: &Value) -> &Vec<Value> {
    result["checks"].as_array().unwrap()
}

/// `level id: found`, and what it does where that matters, a line each: what a reader would take in.
fn findings(result: &Value) -> String {
    let line = |check: &Value| {
        let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
        let effect =
            if ["bad", "warn"].contains(&text("level").as_str()) { text("effect") } else { String::new() };
        let effect = if effect.is_empty() { effect } else { format!("\n         so: {effect}") };
        format!("{:<4} {}: {}{effect}\n", text("level"), text("id"), text("found"))
    };
    checks(result).iter().map(line).collect()
}

#[test]
fn machines_of_others() {
    let machines = [
        ("firecracker", 0),
        ("laptop-11800h-wsl2", 1),
        ("hygon-64", 1),
        ("kunpeng-920", 0),
        ("container-parent-quota", 1),
        ("container-v1", 1),
        ("cgroup-hybrid", 1),
    ];
    for (machine, expected) in machines {
        let root = fixtures().join(machine);
        let (result, code) = Tare::new().json(&["doctor", "--json", "--root", root.to_str().unwrap()]);
        insta::assert_snapshot!(machine, findings(&result));
        assert_eq!(code, expected, "{machine}");
        assert!(result["topology"]["threads"].is_number() && result["probes"]["missing"].is_string());
    }
}

#[test]
fn one_screen() {
    for machine in ["laptop-11800h-wsl2", "hygon-64", "firecracker"] {
        let root = fixtures().join(machine);
        let output = Tare::new()
            .command()
            .args(["doctor", "--root", root.to_str().unwrap()])
            .env("COLUMNS", "120")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= 120), "{text}");
        assert!(text.lines().count() <= 75, "{} lines\n{text}", text.lines().count());
        assert!(output.stderr.is_empty());
        insta::assert_snapshot!(format!("screen-{machine}"), text);
    }
}

/// A quota of this machine, on the group itself and on its parent: found from inside, with what it does.
#[test]
fn a_real_quota_is_found() {
    let quota = Quota::of_30_percent();
    let groups = [quota.group(false), quota.group(true)];
    for group in &groups {
        let tare = Tare::new();
        // The shell moves itself; what it becomes is inside from its beginning.
        let script = r#"echo $$ > "$1/cgroup.procs" && exec "$2" doctor --no-probes --json"#;
        let output = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(group)
            .arg(env!("CARGO_BIN_EXE_tare"))
            .env("TARE_STATE_DIR", tare.state.path())
            .output()
            .unwrap();
        let result: Value = schema::read(&["doctor"], &output.stdout);
        let quotas: Vec<&Value> = checks(&result)
            .iter()
            .filter(|check| check["id"] == "cpu-quota" && check["level"] == "bad")
            .collect();
        assert_eq!(quotas.len(), 1, "{}", findings(&result));
        let name = groups[0].file_name().unwrap().to_str().unwrap();
        let found = quotas[0]["found"].as_str().unwrap();
        assert!(found.contains(name) && found.contains("30 % of one CPU over 100 ms"), "{found}");
        assert!(!found.contains("inner"), "it is the parent's: {found}");
        let effect = quotas[0]["effect"].as_str().unwrap();
        assert!(effect.contains("after 30 ms of work everything stops for 70 ms"), "{effect}");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// Twice `tare doctor` on this machine: whatever else it says, the level is one of four, and what is missing is no ok.
#[test]
fn this_machine() {
    let (result, code) = Tare::new().json(&["doctor", "--json", "-q"]);
    assert!(code == 0 || code == 1);
    assert!(result["probes"]["took_ns"].is_number() && result["survey"]["company"]["window_ns"].is_number());
    for check in checks(&result) {
        let (level, found) = (check["level"].as_str().unwrap(), check["found"].as_str().unwrap());
        assert!(["ok", "note", "warn", "bad"].contains(&level) && !found.is_empty());
        assert!(!(level == "ok" && found.contains("missing")), "{check}");
    }
    let probed = ["wake-up", "lost-time", "clock-audit", "syscall"];
    for id in probed {
        assert!(checks(&result).iter().any(|check| check["id"] == id), "no {id}: {}", findings(&result));
    }
}

#[test]
fn every_setting_and_check_that_is_named_is_there() {
    let ids: Vec<&str> = tare_machine::doctor::ids().map(|(_, id)| id).collect();
    let settings: Vec<&str> = tare_machine::settings::SETTINGS.iter().map(|setting| setting.name()).collect();
    let mut named = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let root = entry.unwrap().path();
        if !root.is_dir() {
            continue;
        }
        let (result, _) = Tare::new().json(&["doctor", "--json", "--root", root.to_str().unwrap()]);
        for id in checks(&result).iter().map(|check| check["id"].as_str().unwrap()) {
            assert!(ids.contains(&id), "{id} is in no topic's list");
        }
        for setting in checks(&result).iter().filter_map(|check| check["setting"].as_str()) {
            assert!(settings.contains(&setting), "{setting}");
            named += 1;
        }
    }
    assert!(named > 10);
}

#[test]
fn there_and_back_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("here.tar.gz");
    let tare = Tare::new();
    let packed = tare.run(&["doctor", "--capture", file.to_str().unwrap()]);
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let (there, _) = tare.json(&["doctor", "--json", "--root", file.to_str().unwrap()]);
    let (here, _) = tare.json(&["doctor", "--json", "--no-probes"]);
    for area in ["processor", "limits", "clocksources"] {
        assert_eq!(there["survey"][area], here["survey"][area], "{area}");
    }
    assert_eq!(there["survey"]["machine"]["cpus"], here["survey"]["machine"]["cpus"]);
    assert_eq!(there["topology"]["threads"], here["topology"]["threads"]);
}

#[test]
fn a_capture_takes_the_place_of_a_file_or_goes_to_standard_output() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("here.tar.gz"), dir.path().join("link"));
    std::fs::write(&file, "older").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let tare = Tare::new();
    assert!(tare.run(&["doctor", "-q", "--capture", link.to_str().unwrap()]).status.success());
    assert!(link.is_symlink() && std::fs::read(&file).unwrap().starts_with(b"\x1f\x8b"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    let output = tare.command().args(["doctor", "--capture", "-"]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.starts_with(b"\x1f\x8b"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

/// A folder whose links lead to this machine's files, and a pipe: none of it is shown, and nothing waits.
#[test]
fn nothing_of_this_machine_is_shown_as_the_others() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("proc")).unwrap();
    let link = |from: &str, to: &str| std::os::unix::fs::symlink(to, dir.path().join(from)).unwrap();
    link("sys", "/sys");
    link("proc/sys", "/proc/sys");
    link("proc/meminfo", "/proc/meminfo");
    link("proc/stat", "../../../../../../../../proc/stat");
    let pipe = dir.path().join("proc/cpuinfo");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (result, code) = Tare::new().json(&["doctor", "--json", "--root", dir.path().to_str().unwrap()]);
    let reported: Vec<&Value> = checks(&result)
        .iter()
        .filter(|check| {
            check["level"] != "note" || !check["found"].as_str().unwrap().starts_with("missing: ")
        })
        .collect();
    assert!(reported.is_empty() && code == 0, "{reported:#?}");
    let output = Tare::new().run(&["doctor", "--root", dir.path().to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Too little could be read to judge: "), "{text}");
}

#[test]
fn what_cannot_be_opened_is_said_in_a_line() {
    for path in ["/no/such", "/proc/version", "/etc"] {
        let output = Tare::new().run(&["doctor", "--root", path]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(said.starts_with("tare: ") && said.lines().count() == 1 && said.contains(path), "{said}");
    }
}

/// All files of a tree, by path below it.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path.strip_prefix(dir).unwrap().to_path_buf(), bytes));
            }
        }
    }
    found
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]

    /// Digits of any size, lines twice, signs, halves: whatever stands in the files, checks are made, and say no nonsense.
    #[test]
    fn spoilt_machines_are_examined(seed in proptest::prelude::any::<u64>(), which in 0usize..3) {
        let machine = ["hygon-64", "container-v1", "laptop-11800h-wsl2"][which];
        let dir = tempfile::tempdir().unwrap();
        let mut state = seed;
        let mut next = move || { state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1); state >> 33 };
        for (path, bytes) in files(&fixtures().join(machine)) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let text = match next() % 6 {
                0 => text.replace(|c: char| c.is_ascii_digit(), "0"),
                1 => text.replace(|c: char| c.is_ascii_digit(), "9"),
                2 => text.replace(' ', " -"),
                3 => text.chars().take(next() as usize % (text.chars().count() + 1)).collect(),
                _ => text,
            };
            let file = dir.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let root = tare_machine::Root::at(dir.path());
        let reach = tare_machine::facts::Reach { company: None, windows: false };
        let survey = tare_machine::facts::survey(&root, reach);
        let topology = tare_machine::topology::read(&root, None);
        let calibration = tare_model::Reading::missing("never");
        let examined = tare_machine::doctor::Examined {
            survey: &survey,
            topology: &topology,
            probes: None,
            calibration: &calibration,
            now_unix_s: 0,
        };
        for check in tare_machine::doctor::examine(&examined) {
            let text = format!("{} {} {}", check.found, check.effect, check.fix);
            proptest::prop_assert!(!text.contains("NaN") && !text.contains(" inf"), "{}: {text}", check.id);
            proptest::prop_assert!(!check.found.is_empty());
            proptest::prop_assert!(check.level != tare_model::check::Level::Ok || !check.found.starts_with("missing"));
        }
    }
}
