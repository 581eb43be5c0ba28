//! What `tare --version` prints beside the number: the commit, the target, the features and the profile.
//!
//! It never fails: what is not known is `unknown`. It runs again when HEAD moves. Where the binary is one to keep (release, dist) it
//! also runs again when a source changes, so that `-modified` is right; in the dev profile all tests would then be compiled again with
//! each change, and `-modified` is of the time when HEAD last moved.
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

use std::env::{self, VarError};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What the binary is made of, in the words of git.
const SOURCES: [&str; 8] = [
    "crates/*/src/*",
    "crates/*/Cargo.toml",
    "crates/tare/build.rs",
    "docs/schema",
    "Cargo.toml",
    "Cargo.lock",
    ".cargo",
    "rust-toolchain.toml",
];

fn main() -> Result<(), VarError> {
    // Without any such line cargo would run it again with every file of the package.
    watch(Path::new("build.rs"));
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let is_kept = env::var("PROFILE")? != "debug";
    set("TARE_COMMIT", &commit(&root, is_kept).unwrap_or_else(|| "unknown".into()));
    let linked = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = linked.split(',').any(|feature| feature == "crt-static");
    set("TARE_TARGET", &format!("{}{}", env::var("TARGET")?, if is_static { " (static)" } else { "" }));
    set("TARE_FEATURES", &features(&["tls", "http2"]));
    set("TARE_PROFILE", &profile()?);
    Ok(())
}

fn set(name: &str, value: &str) {
    println!("cargo::rustc-env={name}={value}");
}

/// A path that is not there would count as changed each time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn features(known: &[&str]) -> String {
    let is_on = |name: &&&str| env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some();
    let on: Vec<&str> = known.iter().filter(is_on).copied().collect();
    if on.is_empty() { "none".into() } else { on.join(", ") }
}

/// The profile's own name: cargo says of each only whether it is like `debug` or like `release`, but builds it in a folder of its name.
fn profile() -> Result<String, VarError> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let folder = out.ancestors().find(|folder| folder.ends_with("build")).and_then(Path::parent);
    let name = folder.and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned);
    let name = name.map_or_else(|| env::var("PROFILE"), Ok)?;
    Ok(if name == "debug" { "dev".into() } else { name })
}

/// `9f52f6d1ab (2026-11-27)`, with `-modified` behind the hash where a source is not as it was committed.
fn commit(root: &Path, watch_sources: bool) -> Option<String> {
    // The package may lie within somebody else's repository.
    let top = PathBuf::from(line(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let hash = line(root, &["rev-parse", "--short=10", "HEAD"])?;
    let date = line(root, &["-c", "log.showSignature=false", "log", "-1", "--format=%cs", "HEAD"])?;
    let branch = line(root, &["symbolic-ref", "-q", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch].into_iter().filter(|name| !name.is_empty()) {
        let path = line(root, &["rev-parse", "--git-path", name])?;
        watch(&root.join(path));
    }
    if watch_sources {
        let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
        for of_crate in crates.map(|entry| entry.path()) {
            watch(&of_crate.join("src"));
            watch(&of_crate.join("Cargo.toml"));
        }
        SOURCES.iter().filter(|path| !path.contains('*')).for_each(|path| watch(&root.join(path)));
    }
    let same = git(root, &[&["diff", "--quiet", "HEAD", "--"][..], &SOURCES].concat())?.status.code()?;
    let mark = match same {
        0 => "",
        1 => "-modified",
        _ => return None,
    };
    Some(format!("{hash}{mark} ({date})"))
}

/// The one line that git prints; none where it fails.
fn line(root: &Path, args: &[&str]) -> Option<String> {
    let output = git(root, args).filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty() && !text.contains('\n')).then_some(text)
}

fn git(root: &Path, args: &[&str]) -> Option<Output> {
    let mut command = Command::new("git");
    // Set where a hook of git builds, for instance; a build takes no lock.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    command.arg("--no-optional-locks").arg("-C").arg(root).args(args).output().ok()
}
