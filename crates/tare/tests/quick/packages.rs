//! What is shipped: manual pages, what `--version` says, the packages and the action that installs them.

use crate::support::Tare;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The time of all files in the packages of a test.
const EPOCH: &str = "1800000000";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn out(output: Output) -> String {
    let [shown, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}: {shown}\n{said}", output.status);
    shown
}

fn run(program: &str, args: &[&str]) -> String {
    out(Command::new(program).args(args).output().unwrap())
}

fn names(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let (tare, folder) = (Tare::new(), tempfile::tempdir().unwrap());
    let pages = folder.path().join("deep/man1");
    out(tare.run(&["man", "--dir", pages.to_str().unwrap()]));
    let main = out(tare.run(&["man"]));
    assert_eq!(std::fs::read_to_string(pages.join("tare.1")).unwrap(), main);
    // The line below SEE ALSO has several of them.
    let of_one = main.lines().filter(|line| !line.contains(','));
    let listed = of_one.filter_map(|line| line.strip_suffix("(1)")?.strip_prefix("tare\\-"));
    let mut listed: BTreeSet<String> = listed.map(|name| format!("tare-{name}.1")).collect();
    assert!(
        ["tare-run.1", "tare-gate.1", "tare-man.1"].iter().all(|page| listed.contains(*page)),
        "{listed:?}"
    );
    listed.insert("tare.1".into());
    assert_eq!(names(&pages), listed);
    for name in &listed {
        let page = std::fs::read_to_string(pages.join(name)).unwrap();
        let title = name.trim_end_matches(".1");
        assert!(page.contains(&format!(".TH {title} 1 ")), "{page}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{name}: {section}");
        }
        // What a template of clap would leave, and the name that its generator has for all that stands below.
        for placeholder in
            ["{usage}", "{about", "{all-args}", "{bin}", "{name}", "{after-help}", "\n.SH EXTRA"]
        {
            assert!(!page.contains(placeholder), "{name}: {placeholder}");
        }
        let about = page.lines().skip_while(|line| *line != ".SH NAME").nth(1).unwrap();
        assert!(about.len() > title.len() + 20, "{about}");
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = tare.run(&["man", "--dir", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn the_version_says_which_build_it_is() {
    let tare = Tare::new();
    let number = concat!("tare ", env!("CARGO_PKG_VERSION"));
    assert_eq!(out(tare.run(&["-V"])), format!("{number}\n"));
    let long = out(tare.run(&["--version"]));
    let lines: Vec<&str> = long.lines().collect();
    let [first, commit, target, features, profile] = lines[..] else { panic!("{long}") };
    assert_eq!(first, number);
    let value = |line: &str, name: &str| {
        line.strip_prefix(&format!("{name}: ")).unwrap_or_else(|| panic!("{long}")).to_owned()
    };
    // Outside of a checkout nothing is known.
    let commit = value(commit, "commit");
    if commit != "unknown" {
        let (hash, date) = commit.split_once(' ').unwrap();
        let hash = hash.trim_end_matches("-modified");
        assert!(hash.len() >= 7 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{commit}");
        assert!(date.len() == "(2026-01-31)".len() && date.starts_with("(20"), "{commit}");
    }
    assert!(value(target, "target").starts_with(&format!("{}-", std::env::consts::ARCH)), "{long}");
    let features = value(features, "features");
    for (name, is_on) in [("tls", cfg!(feature = "tls")), ("http2", cfg!(feature = "http2"))] {
        assert_eq!(features.split(", ").any(|feature| feature == name), is_on, "{long}");
    }
    assert!(!value(profile, "profile").is_empty());
}

/// All scripts that are no test's own.
fn scripts() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["build", "check"].map(|name| root().join("packaging").join(name)).into();
    found.extend(
        names(&root().join("packaging/action")).iter().map(|name| root().join("packaging/action").join(name)),
    );
    found.extend(
        names(&root().join("examples")).iter().map(|name| root().join("examples").join(name).join("measure")),
    );
    found
}

#[test]
fn scripts_can_be_read_and_say_what_they_do() {
    let scripts = scripts();
    assert!(scripts.len() >= 8, "{scripts:?}");
    for script in &scripts {
        let path = script.to_str().unwrap();
        run("bash", &["-n", path]);
        let text = std::fs::read_to_string(script).unwrap();
        assert!(
            text.starts_with("#!/usr/bin/env bash\n# ") && text.contains("\nset -euo pipefail\n"),
            "{path}"
        );
    }
    for script in &scripts[..2] {
        let path = script.to_str().unwrap();
        let usage = run(path, &["--help"]);
        assert!(usage.starts_with("usage: packaging/"), "{usage}");
        assert_eq!(Command::new(path).arg("--no-such").output().unwrap().status.code(), Some(2));
    }
    run(root().join("packaging/parts").to_str().unwrap(), &["--help"]);
}

/// Packs a script in place of the binary, which takes a second.
fn pack(folder: &Path) -> PathBuf {
    let stub = folder.join("tare");
    std::fs::write(&stub, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_tare"))).unwrap();
    run("chmod", &["755", stub.to_str().unwrap()]);
    let dist = folder.join("dist");
    let mut build = Command::new(root().join("packaging/build"));
    build.args(["--target", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)]);
    build.arg("--binary").arg(&stub).arg("--out").arg(&dist);
    // What the tests were built of is here already.
    build.env("CARGO_NET_OFFLINE", "true").env("SOURCE_DATE_EPOCH", EPOCH);
    build.env("DEBFULLNAME", "A Maintainer").env("DEBEMAIL", "a@example.org");
    out(build.output().unwrap());
    dist
}

#[test]
fn packages_have_what_they_should_and_are_the_same_each_time() {
    let [folder, again] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let dist = pack(folder.path());
    let version = env!("CARGO_PKG_VERSION");
    let (arch, deb_arch) = match std::env::consts::ARCH {
        "aarch64" => ("aarch64", "arm64"),
        _ => ("x86_64", "amd64"),
    };
    let name = format!("tare-{version}-{arch}-unknown-linux-gnu");
    let deb = format!("tare_{version}_{deb_arch}.deb");
    let sbom = format!("tare-{version}.cdx.json");
    let wanted = [format!("{name}.tar.gz"), deb.clone(), sbom.clone(), "SHA256SUMS".into()];
    assert_eq!(names(&dist), BTreeSet::from(wanted));
    out(Command::new("sha256sum").args(["--quiet", "-c", "SHA256SUMS"]).current_dir(&dist).output().unwrap());
    debian_package(dist.join(deb).to_str().unwrap(), deb_arch, &folder.path().join("root"));
    archive(dist.join(format!("{name}.tar.gz")).to_str().unwrap(), &name);
    parts(&std::fs::read_to_string(dist.join(sbom)).unwrap());
    let sums = |dist: &Path| std::fs::read_to_string(dist.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&dist), sums(&pack(again.path())));
}

fn debian_package(deb: &str, arch: &str, unpacked: &Path) {
    for (field, wanted) in [
        ("Package", "tare"),
        ("Version", env!("CARGO_PKG_VERSION")),
        ("Architecture", arch),
        ("Maintainer", "A Maintainer <a@example.org>"),
        ("Section", "utils"),
        ("Priority", "optional"),
        // Nothing is linked to.
        ("Depends", ""),
    ] {
        assert_eq!(run("dpkg-deb", &["-f", deb, field]).trim_end(), wanted, "{field}");
    }
    assert!(run("dpkg-deb", &["-f", deb, "Installed-Size"]).trim().parse::<u32>().unwrap() > 100);
    assert!(run("dpkg-deb", &["-f", deb, "Description"]).lines().count() > 4);
    run("dpkg-deb", &["-R", deb, unpacked.to_str().unwrap()]);
    let sums = ["--quiet", "-c", "DEBIAN/md5sums"];
    out(Command::new("md5sum").args(sums).current_dir(unpacked).output().unwrap());
    let listed = run("dpkg-deb", &["-c", deb]);
    for path in [
        "usr/bin/tare",
        "usr/share/man/man1/tare.1.gz",
        "usr/share/man/man1/tare-gate.1.gz",
        "usr/share/bash-completion/completions/tare",
        "usr/share/zsh/vendor-completions/_tare",
        "usr/share/fish/vendor_completions.d/tare.fish",
        "usr/share/doc/tare/copyright",
        "usr/share/doc/tare/LIBRARIES.txt.gz",
    ] {
        let is_it = |line: &str| line.ends_with(&format!(" ./{path}")) && line.contains("root/root");
        assert!(listed.lines().any(is_it), "{path}: {listed}");
    }
}

fn archive(file: &str, name: &str) {
    let archived = run("tar", &["-tzf", file]);
    for file in [
        "tare",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "LIBRARIES.txt",
        "man/tare-run.1",
        "completions/_tare",
        "completions/tare.bash",
        "completions/tare.fish",
    ] {
        assert!(archived.lines().any(|line| line == format!("{name}/{file}")), "{archived}");
    }
}

/// The list of parts: what is linked has its licence and, where it was downloaded, its checksum.
fn parts(text: &str) {
    let list: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!((&list["bomFormat"], &list["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(list["metadata"]["timestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(list["metadata"]["component"]["name"], "tare");
    let components = list["components"].as_array().unwrap();
    let of = |name: &str| components.iter().find(|component| component["name"] == name);
    for (name, scope) in [("rustls", "required"), ("tare-run", "required"), ("serde_derive", "excluded")] {
        assert_eq!(of(name).unwrap_or_else(|| panic!("{name}"))["scope"], scope);
    }
    // A library of the tests alone.
    assert!(of("insta").is_none());
    for component in components {
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        assert_eq!(
            component["purl"].is_string(),
            component["hashes"][0]["content"].is_string(),
            "{component}"
        );
    }
}

/// `key:` lines that stand this deep.
fn keys(text: &str, after: &str, indent: usize) -> BTreeSet<String> {
    let below = text.lines().skip_while(|line| *line != after).skip(1);
    let within = below.take_while(|line| line.len() - line.trim_start().len() >= indent);
    let keys = within.filter(|line| line.len() - line.trim_start().len() == indent);
    keys.filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned())).collect()
}

#[test]
fn workflows_give_the_action_what_it_takes() {
    let action = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let inputs = keys(&action, "inputs:", 2);
    assert!(inputs.contains("sut") && inputs.contains("fail-if"), "{inputs:?}");
    for project in names(&root().join("examples")) {
        let file = root().join("examples").join(&project).join(".github/workflows/gate.yml");
        let workflow = std::fs::read_to_string(&file).unwrap();
        let step = workflow.split("uses: OWNER/tare@v").nth(1).unwrap();
        let version = step.split(' ').next().unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"), "{project}");
        let given = keys(step, "        with:", 10);
        assert!(given.len() == 5 && given.is_subset(&inputs), "{project}: {given:?}");
        let readme =
            std::fs::read_to_string(root().join("examples").join(&project).join("README.md")).unwrap();
        assert!(readme.lines().count() <= 30, "{project}");
    }
    for script in names(&root().join("packaging/action")) {
        assert!(action.contains(&format!("packaging/action/{script}\"'")), "{script}");
    }
}

#[test]
fn the_action_calls_the_gate_and_keeps_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("tare"), "#!/bin/sh\nfor word; do echo \"<$word>\"; done\nexit 1\n").unwrap();
    run("chmod", &["755", at("tare").to_str().unwrap()]);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut gate = Command::new(root().join("packaging/action/gate"));
    gate.env("PATH", path).env("RUNNER_TEMP", folder.path());
    gate.env("GITHUB_STEP_SUMMARY", at("summary")).env("GITHUB_OUTPUT", at("output"));
    gate.envs([("TARE_SUT", "./new {port}"), ("TARE_COMMAND", ""), ("TARE_AGAINST", "./old {port}")]);
    gate.envs([
        ("TARE_URL", "/x"),
        ("TARE_FAIL_IF", "net < -2%\n\np99 > 10%\n"),
        ("TARE_BUDGET", "60s"),
        ("TARE_ARGS", ""),
    ]);
    let called = out(gate.output().unwrap());
    let report = at("tare-gate.md");
    let wanted = [
        "<gate>",
        "<--against=./old {port}>",
        "<--budget=60s>",
        "<--export-markdown>",
        &format!("<{}>", report.display()),
        "<--sut=./new {port}>",
        "<--fail-if=net < -2%>",
        "<--fail-if=p99 > 10%>",
        "</x>",
    ];
    assert_eq!(called.lines().collect::<Vec<_>>(), wanted);
    let written = std::fs::read_to_string(at("output")).unwrap();
    assert_eq!(written, format!("exit-code=1\nmarkdown={}\n", report.display()));
    assert!(std::fs::read_to_string(at("summary")).unwrap().contains("exit code 1"));
}
