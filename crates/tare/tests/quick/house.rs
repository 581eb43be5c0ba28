//! House rules that a program can check: who may depend on whom, where `unsafe` and printing are allowed, what
//! never gets in. A rule that cannot be checked here stands in ARCHITECTURE.md only.

mod arrows;
mod circles;
mod made_up;
mod tokens;
mod tree;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates and what each may use, as in ARCHITECTURE.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("tare-sys", &[]),
    ("tare-http", &[]),
    ("tare-stats", &[]),
    ("tare-model", &["stats"]),
    ("tare-store", &["model"]),
    ("tare-formats", &["model"]),
    ("tare-explain", &["model", "stats"]),
    ("tare-machine", &["sys", "stats", "model"]),
    ("tare-server", &["sys", "http"]),
    ("tare-load", &["sys", "http", "stats", "model"]),
    ("tare-observe", &["sys", "machine", "model"]),
    (
        "tare-run",
        &[
            "sys", "http", "stats", "model", "store", "formats", "explain", "machine", "server", "load",
            "observe",
        ],
    ),
    ("tare-report", &["model", "stats"]),
    (
        "tare",
        &[
            "sys", "http", "stats", "model", "store", "formats", "explain", "machine", "server", "load",
            "observe", "run", "report",
        ],
    ),
];

/// Folders of a crate, and which of its other folders each may use.
const ARROWS: &[(&str, arrows::Folders)] = &[("tare-explain", EXPLAIN), ("tare-run", RUN)];

const EXPLAIN: arrows::Folders = &[
    ("accounting/raw", &[]),
    ("accounting/reconcile", &["accounting/raw"]),
    ("accounting/attribute", &["accounting/raw", "accounting/reconcile"]),
    ("accounting/close", &["accounting/raw", "accounting/reconcile", "accounting/attribute"]),
    ("capacity", &["accounting"]),
    ("timeline", &["accounting", "capacity"]),
    ("probing", &[]),
    ("bottlenecks", &["accounting", "capacity", "timeline"]),
    ("outcome", &["accounting", "capacity", "timeline", "bottlenecks"]),
    ("contrast", &["accounting", "capacity", "bottlenecks", "outcome"]),
];

const RUN: arrows::Folders = &[
    ("error", &[]),
    ("ask", &["error"]),
    ("duration", &[]),
    ("progress", &[]),
    ("records", &["error"]),
    ("recovery", &[]),
    ("own_program", &[]),
    ("arrivals", &[]),
    ("process", &["error", "own_program", "arrivals"]),
    ("blocks", &[]),
    ("request", &[]),
    ("levels", &["request"]),
    ("place", &["error", "request"]),
    ("plan", &["error", "request", "levels"]),
    ("ports", &["error"]),
    ("generate", &["error", "ask", "progress"]),
    ("probe", &["error", "progress", "recovery", "process", "blocks"]),
    ("enough", &[]),
    ("written", &[]),
    ("in_step", &["error"]),
    ("running", &["error", "progress", "records", "recovery", "process", "enough", "written", "in_step"]),
    ("left_behind", &["error", "process", "running"]),
    ("treatment", &["error", "recovery", "running"]),
    (
        "subjects",
        &["error", "ask", "progress", "own_program", "process", "request", "place", "plan", "running"],
    ),
    ("timed", &["error", "own_program", "arrivals", "process", "running", "subjects"]),
    ("start_up", &["error", "process", "request", "running", "subjects", "timed"]),
    ("identity", &["request", "subjects"]),
    (
        "loads",
        &[
            "error",
            "progress",
            "process",
            "blocks",
            "request",
            "levels",
            "plan",
            "generate",
            "running",
            "left_behind",
            "subjects",
            "timed",
            "start_up",
        ],
    ),
    ("reference_level", &["error", "own_program", "running", "loads"]),
    ("bounds", &["own_program", "running", "subjects"]),
    ("ceiling", &["error", "progress", "process", "blocks", "place", "running", "subjects", "bounds"]),
    ("meters", &["error", "loads"]),
    ("driven", &["error", "progress", "running", "loads", "meters"]),
    (
        "programs",
        &[
            "error", "blocks", "request", "plan", "running", "subjects", "timed", "start_up", "identity",
            "loads", "driven", "bounds",
        ],
    ),
    ("confirm", &["error", "progress", "generate", "running", "subjects", "loads"]),
    (
        "session",
        &[
            "error",
            "progress",
            "blocks",
            "request",
            "place",
            "plan",
            "running",
            "subjects",
            "identity",
            "loads",
            "reference_level",
            "bounds",
            "driven",
            "programs",
            "confirm",
        ],
    ),
    (
        "compare",
        &[
            "error",
            "progress",
            "process",
            "blocks",
            "request",
            "levels",
            "place",
            "plan",
            "ports",
            "generate",
            "running",
            "treatment",
            "subjects",
            "timed",
            "loads",
        ],
    ),
    (
        "study",
        &[
            "error",
            "duration",
            "progress",
            "recovery",
            "process",
            "blocks",
            "request",
            "running",
            "treatment",
            "subjects",
            "session",
            "compare",
        ],
    ),
    (
        "scale",
        &[
            "error", "progress", "blocks", "ports", "records", "request", "in_step", "running", "session",
            "study",
        ],
    ),
    (
        "calibrate",
        &[
            "error", "progress", "recovery", "process", "blocks", "request", "running", "ports", "subjects",
            "session", "compare", "study",
        ],
    ),
];

/// What stays within a folder: others see the last stage of accounting, and the values that it is made of.
const WITHIN: &[(&str, &str, &[&str])] =
    &[("tare-explain", "accounting", &["Raw", "Reconciled", "Attributed"])];

/// Longest file of code, in lines; the reason for an exception stands beside it.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().unwrap() != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(root()).unwrap().to_path_buf(), text));
            }
        }
    }
    assert!(files.len() > 30, "the search for sources found only {} files", files.len());
    files
}

/// Lines of code without comments, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The readers of records and journals of 0.1.0, and such files. mdBook gives its own file its name and its table.
const KEEPS_OLD_WORDS: &[&str] = &[
    "docs/book.toml",
    "crates/tare-store/src/old",
    "crates/tare-store/tests/fixtures/0.1.0",
    "crates/tare-machine/src/journal/lines.rs",
    "crates/tare-machine/tests/journals/0.1.0",
];

/// Every text in these files and folders, fixtures and snapshots too.
fn texts(places: &[&str]) -> Vec<(PathBuf, String)> {
    let mut texts = Vec::new();
    let mut open: Vec<PathBuf> = places.iter().map(|place| root().join(place)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("target")));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            texts.push((path.strip_prefix(root()).unwrap().to_path_buf(), text));
        }
    }
    texts.sort_unstable();
    texts
}

#[test]
fn each_thing_has_the_word_of_its_field() {
    let mut found = String::new();
    for (path, text) in texts(&[
        "crates",
        "docs",
        "examples",
        "packaging",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "action.yml",
    ]) {
        if is_a_check(&path) || KEEPS_OLD_WORDS.iter().any(|kept| path.to_string_lossy().starts_with(kept)) {
            continue;
        }
        let path = path.display().to_string();
        for (line, old, instead) in words::found(&text) {
            found.push_str(&format!("{path}:{line}: '{old}', now {instead}\n"));
        }
        for (_, old, instead) in words::found(&path) {
            found.push_str(&format!("{path} (its name): '{old}', now {instead}\n"));
        }
    }
    assert!(found.is_empty(), "{} places have words that went away:\n{found}", found.lines().count());
}

/// These checks name what they forbid.
fn is_a_check(path: &Path) -> bool {
    path.starts_with("crates/tare/tests/quick/house") || path.ends_with("quick/house.rs")
}

fn crate_of(path: &Path) -> String {
    path.components().nth(1).unwrap().as_os_str().to_string_lossy().into_owned()
}

#[test]
fn crates_use_only_what_they_may() {
    let mut seen = BTreeSet::new();
    for (name, may_use) in MAY_USE {
        let manifest = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap();
        let used: BTreeSet<&str> = dependencies
            .lines()
            .filter_map(|line| line.split(['.', ' ', '=']).next()?.strip_prefix("tare-"))
            .collect();
        let may_use: BTreeSet<&str> = may_use.iter().copied().collect();
        assert!(used.is_subset(&may_use), "{name} uses {:?}", used.difference(&may_use).collect::<Vec<_>>());
        seen.insert(name.to_string());
    }
    let there: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(there, seen, "a crate is missing in the table or in the workspace");
}

/// The files that a crate's library, programs and tests begin with.
fn beginnings(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, only) in
        [("src", Some("lib.rs")), ("src", Some("main.rs")), ("src/bin", None), ("tests", None)]
    {
        let folder = format!("crates/{name}/{folder}");
        let Ok(entries) = std::fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.unwrap().file_name().into_string().unwrap();
            let inside = format!("{folder}/{entry}/main.rs");
            if only.is_none_or(|only| only == entry) && entry.ends_with(".rs") {
                found.push(format!("{folder}/{entry}"));
            } else if only.is_none() && root().join(&inside).exists() {
                found.push(inside);
            }
        }
    }
    found
}

/// The uses between the files of a crate.
fn uses_of(name: &str) -> circles::Uses {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).ok();
    let mut all = circles::Uses::new();
    for file in beginnings(name) {
        for (file, used) in circles::uses(&tree::read(&file, &read)) {
            let uses = all.entry(file).or_default();
            for (other, names) in used {
                uses.entry(other).or_default().extend(names);
            }
        }
    }
    all
}

#[test]
fn no_files_use_each_other() {
    let mut found = String::new();
    for (name, _) in MAY_USE {
        let uses = uses_of(name);
        for circle in circles::circles(&uses) {
            found.push_str(&circles::describe(&uses, &circle));
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn folders_use_only_what_they_may() {
    for (name, folders) in ARROWS {
        let source = format!("crates/{name}/src");
        let mut uses = uses_of(name);
        uses.retain(|file, _| file.starts_with(&source));
        let wrong = arrows::wrong(&uses, &source, folders);
        assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    }
    for (name, folder, names) in WITHIN {
        let inside = format!("crates/{name}/src/{folder}/");
        for (file, used) in uses_of(name).iter().filter(|(file, _)| !file.starts_with(&inside)) {
            let all =
                used.iter().filter(|(other, _)| other.starts_with(&inside)).flat_map(|(_, names)| names);
            let seen: Vec<&String> = all.filter(|used| names.contains(&used.as_str())).collect();
            assert!(seen.is_empty(), "{file} uses {seen:?}, which stays within {folder}");
        }
    }
}

#[test]
fn unsafe_only_in_sys_and_with_a_reason() {
    for (path, text) in sources() {
        for (line, code) in code(&text) {
            // 'unsafe-inline' is a word of its own.
            let has_unsafe = code
                .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
                .any(|word| word == "unsafe");
            // A test may stand in for the allocator; nothing else outside the one crate.
            let counting_allocator = path.components().any(|part| part.as_os_str() == "tests")
                && text.contains("impl GlobalAlloc for");
            assert!(
                !has_unsafe || crate_of(&path) == "tare-sys" || counting_allocator || is_a_check(&path),
                "{}:{line}: unsafe outside tare-sys",
                path.display()
            );
        }
        let manifest = root().join("crates").join(crate_of(&path)).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert!(
            inherits || crate_of(&path) == "tare-sys",
            "{} does not inherit the workspace's lints",
            crate_of(&path)
        );
    }
}

#[test]
fn only_the_command_line_prints_or_exits() {
    for (path, text) in sources() {
        if crate_of(&path) == "tare" || !path.components().any(|part| part.as_os_str() == "src") {
            continue;
        }
        let before_tests = text.split("#[cfg(test)]").next().unwrap();
        for (line, code) in code(before_tests) {
            for word in ["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!(", "process::exit("] {
                assert!(!code.contains(word), "{}:{line}: {word} outside the command line", path.display());
            }
        }
    }
}

#[test]
fn nothing_unfinished_and_no_giants() {
    for (path, text) in sources() {
        if is_a_check(&path) {
            continue;
        }
        for (line, code) in code(&text) {
            for word in ["todo!(", "unimplemented!(", "#[ignore"] {
                assert!(!code.contains(word), "{}:{line}: {word}", path.display());
            }
        }
        assert!(text.lines().count() <= LINES_MAX, "{} is over {LINES_MAX} lines", path.display());
    }
}

#[test]
fn dependencies_are_declared_once() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in MAY_USE {
        let manifest = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        for line in manifest.lines().filter(|line| line.contains("version = \"")) {
            *versions.entry(format!("{name}: {line}")).or_default() += 1;
        }
    }
    assert!(versions.is_empty(), "versions belong to [workspace.dependencies]: {versions:?}");
    assert!(workspace.contains("[workspace.dependencies]"));
}

#[test]
fn every_live_test_has_the_machine_for_itself() {
    for (path, text) in sources() {
        if path.components().any(|part| part.as_os_str() == "live") {
            let tests = text.matches("#[test]").count();
            let alone = text.matches("    let _alone = alone();").count();
            assert_eq!(tests, alone, "{}: each test begins with `let _alone = alone();`", path.display());
        }
    }
}
