//! The survey of a machine: here, on trees of others, and on files that are not what they should be.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use tare_machine::Root;
use tare_machine::facts::{Reach, survey};
use tare_machine::root::Found;
use tare_model::survey::Survey;

const FILES_ONLY: Reach = Reach { company: None, windows: false };

/// What readers read on this machine and on all machines of the fixtures: so that the tests below spoil whatever
/// is read, and not what somebody remembered to list. They are the same for all tests and cases, and found once.
static FILES_THAT_ARE_READ: LazyLock<BTreeMap<PathBuf, Vec<u8>>> = LazyLock::new(files_that_are_read);

fn files_that_are_read() -> BTreeMap<PathBuf, Vec<u8>> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let trees = std::fs::read_dir(fixtures).unwrap().map(|entry| Root::at(entry.unwrap().path()));
    let made: Vec<_> = crate::machines::made().collect();
    let trees = trees.chain(made.iter().map(|tree| Root::at(&tree.dir)));
    let mut files = BTreeMap::new();
    for root in [Root::live()].into_iter().chain(trees) {
        let (root, seen) = root.recording();
        survey(&root, FILES_ONLY);
        let seen = seen.lock().unwrap();
        let read = seen.iter().filter_map(|(path, found)| match found {
            Found::File(bytes) => Some((path.clone(), bytes.clone())),
            _ => None,
        });
        files.extend(read);
    }
    files
}

fn tree(
    files: &BTreeMap<PathBuf, Vec<u8>>,
    content: impl Fn(&Path, &[u8]) -> Vec<u8>,
) -> (tempfile::TempDir, Root) {
    // Thousands of files a hundred times: in memory where that can be had.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let root = Root::at(dir.path());
    for (path, bytes) in files {
        let file = root.path(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content(path, bytes)).unwrap();
    }
    (dir, root)
}

/// Every value that was measured, with its place in the survey. What is an object of readings is not a value itself.
fn measured(survey: &Survey) -> Vec<String> {
    fn walk(at: String, value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) if fields.contains_key("missing") => {}
            serde_json::Value::Object(fields) if fields.contains_key("not_applicable") => {}
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| walk(format!("{at}/{name}"), value, found));
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|value| walk(format!("{at}/*"), value, found))
            }
            value => found.push(format!("{at} = {value}")),
        }
    }
    let mut found = Vec::new();
    walk(String::new(), &serde_json::to_value(survey).unwrap(), &mut found);
    found
}

/// What is a number or a name taken from a name in the tree, and what is said in place of nothing.
fn named_by_the_tree(entry: &str) -> bool {
    let names =
        ["/name = ", "/id = ", "/cpu = ", "/path = ", "/size_bytes = ", "/kind = \"", "/kernel = \"\""];
    names.iter().any(|name| entry.contains(name))
}

#[test]
fn this_machine_is_surveyed() {
    let reach = Reach { company: Some(Duration::from_millis(50)), windows: false };
    let survey = survey(&Root::live(), reach);
    assert!(survey.processor.features.value().is_some_and(|features| !features.is_empty()));
    assert!(survey.groups.allowed_cpus.value().is_some_and(|cpus| !cpus.is_empty()));
    assert!(survey.limits.open_files.value().is_some());
    let interfaces = survey.network.interfaces.value().unwrap();
    assert!(interfaces.iter().any(|interface| interface.name == "lo"), "{interfaces:?}");
    let company = survey.company.value().unwrap();
    assert!(company.window_ns >= 50_000_000 && company.busy_cpus.value().is_some());
    // What is written is what is read back.
    let text = serde_json::to_string(&survey).unwrap();
    assert_eq!(serde_json::from_str::<Survey>(&text).unwrap(), survey);
}

#[test]
fn a_process_that_uses_cpu_is_company() {
    let mut busy = std::process::Command::new("yes").stdout(std::process::Stdio::null()).spawn().unwrap();
    let name = || std::fs::read_to_string(format!("/proc/{}/comm", busy.id())).unwrap_or_default();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let mut found = false;
    // On a machine where everything is busy it may get no tick in one window.
    while !found && std::time::Instant::now() < deadline {
        let survey =
            survey(&Root::live(), Reach { company: Some(Duration::from_millis(300)), windows: false });
        let company = survey.company.value().unwrap().clone();
        found = company.processes.iter().any(|process| process.pid == busy.id() && process.cpus > 0.0);
        assert!(!company.processes.iter().any(|process| process.pid == std::process::id()));
    }
    assert!(found, "{}", name());
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn nothing_there_is_nothing_measured() {
    let dir = tempfile::tempdir().unwrap();
    let found = measured(&survey(&Root::at(dir.path()), FILES_ONLY));
    let found: Vec<_> = found.iter().filter(|entry| !named_by_the_tree(entry)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn empty_files_are_missing() {
    let files = &*FILES_THAT_ARE_READ;
    assert!(files.len() > 100, "only {} files are read", files.len());
    let (_dir, root) = tree(files, |_, _| Vec::new());
    let survey = survey(&root, FILES_ONLY);
    let found: Vec<_> = measured(&survey).into_iter().filter(|entry| !named_by_the_tree(entry)).collect();
    // Lists of CPUs are empty files where there are none; a line-by-line file has no lines.
    let empty = |entry: &&String| !entry.ends_with("= \"\"");
    let found: Vec<_> = found.iter().filter(empty).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn directories_in_place_of_files_are_missing() {
    let files = &*FILES_THAT_ARE_READ;
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    files.keys().for_each(|path| std::fs::create_dir_all(root.path(path)).unwrap());
    let found = measured(&survey(&root, FILES_ONLY));
    let found: Vec<_> = found.iter().filter(|entry| !named_by_the_tree(entry)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn what_may_not_be_read_says_so() {
    // Root may read anything: what a reader makes of a refusal is judged on the error itself.
    let refusal = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let missing = tare_machine::root::unreadable(Path::new("/proc/x"), &refusal);
    assert_eq!(
        (missing.why.as_str(), missing.remedy.as_str()),
        ("/proc/x may not be read", "run tare as root")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Nonsense: no text of any form, in every file at once.
    #[test]
    fn nonsense_is_missing(bytes in "[\u{1}-\u{8}#$%&;<>?@^`~\u{e4}]{1,60}") {
        let files = &*FILES_THAT_ARE_READ;
        let (_dir, root) = tree(files, |_, _| bytes.clone().into_bytes());
        let found = measured(&survey(&root, FILES_ONLY));
        let found: Vec<_> = found.iter().filter(|entry| !named_by_the_tree(entry)).collect();
        prop_assert!(found.is_empty(), "{found:#?}");
    }

    /// One file after another cut off, doubled, or with its digits made enormous or negative: never a panic.
    #[test]
    fn a_spoilt_file_never_panics(seed in any::<u64>()) {
        let files = &*FILES_THAT_ARE_READ;
        let mut state = seed;
        let mut next = move || { state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1); state >> 33 };
        let spoilt: BTreeMap<PathBuf, Vec<u8>> = files.iter().map(|(path, bytes)| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let text = match next() % 5 {
                0 => text.chars().take(next() as usize % (text.len() + 1)).collect(),
                1 => text.repeat(2),
                2 => text.replace(|c: char| c.is_ascii_digit(), "99999"),
                3 => text.replace(' ', " -"),
                _ => text,
            };
            (path.clone(), text.into_bytes())
        }).collect();
        let (_dir, root) = tree(&spoilt, |_, bytes| bytes.to_vec());
        let survey = survey(&root, FILES_ONLY);
        let text = serde_json::to_string(&survey).unwrap();
        prop_assert!(serde_json::from_str::<Survey>(&text).is_ok());
    }
}

/// What changes from one reading to the next, and what a captured tree does not hold.
fn fixed(survey: &Survey) -> Vec<String> {
    let moving = [
        "/memory/available_bytes",
        "/memory/cached_bytes",
        "/memory/swap_used",
        "/memory/thp_bytes",
        "/memory/pressure",
        "/host/steal_share",
        "/host/uptime_ns",
        "/network/time_wait",
        "/network/interrupts/*/count",
        "/network/local_interrupts/*/count",
        "/network/irqbalance",
        "/network/conntrack_count",
        "/dropped",
        "/offloads",
        "/used_bytes",
        "/throttl",
        "/access/root",
        "/machine/pmu",
        "/readable",
        "/celsius",
        "/current_hz",
        "/page_cache_bytes",
        "/free",
    ];
    measured(survey).into_iter().filter(|entry| !moving.iter().any(|part| entry.contains(part))).collect()
}

#[test]
fn a_captured_machine_is_the_same_machine() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.tar.gz");
    tare_machine::capture::pack(&Root::live(), &file).unwrap();
    assert!(std::fs::metadata(&file).unwrap().len() < 1 << 20);
    let captured = tare_machine::capture::Captured::open(&file).unwrap();
    let (here, there) = (survey(&Root::live(), FILES_ONLY), survey(captured.root(), FILES_ONLY));
    assert_eq!(fixed(&here), fixed(&there));
    let topology = |root: &Root| tare_machine::topology::read(root, None);
    assert_eq!(
        serde_json::to_value(topology(&Root::live())).unwrap()["caches"],
        serde_json::to_value(topology(captured.root())).unwrap()["caches"]
    );
    assert!(
        !captured.root().path("/proc/2").exists() && captured.root().numbers("/proc").unwrap().len() <= 1
    );
}
