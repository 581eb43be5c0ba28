//! The programs that take part, by content, call and environment. Nothing is run or asked: files are read.

mod elf;
mod secrets;

use crate::Root;
use crate::root::unreadable;
use ring::digest::{Context, SHA256, digest};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tare_model::identity::{Program, Runtime, Setting};
use tare_model::observation::Role;
use tare_model::{Missing, Reading, hexadecimal};

/// Programs that are kept by name, at most: a server of many is known by its first.
const PROGRAMS_MAX: usize = 16;
/// Processes that are looked at, at most.
const PROCESSES_MAX: usize = 256;
/// A larger file is not hashed: a second of reading is more than may be spent at the start.
const HASHED_BYTES_MAX: u64 = 256 << 20;
/// Words and variables that are kept of one program, at most.
const SETTINGS_MAX: usize = 512;
/// Notes of ELF files stand at their beginning.
const HEAD_BYTES: usize = 64 << 10;

/// The programs that processes run, each once for each way in which it was called. Processes that are gone are left
/// out.
pub fn of_processes(root: &Root, role: Role, pids: &[u32]) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for pid in pids.iter().take(PROCESSES_MAX).filter(|pid| root.exists(format!("/proc/{pid}/cmdline"))) {
        let link = PathBuf::from(format!("/proc/{pid}/exe"));
        let path: Reading<String> = std::fs::read_link(root.path(&link))
            .map(|target| target.to_string_lossy().into_owned())
            .map_err(|error| unreadable(&link, &error))
            .into();
        let arguments = arguments(root, *pid);
        if let Some(known) =
            programs.iter_mut().find(|program| program.path == path && program.arguments == arguments)
        {
            known.processes += 1;
            known.pids.push(*pid);
        } else if programs.len() < PROGRAMS_MAX {
            let mut content = Content::read(root.file(&link), &link);
            content.runtime = content.runtime.or_else(|| embedded(root, *pid));
            let environment = environment(root, *pid);
            programs.push(content.called(role, &[*pid], path, arguments, environment));
        }
    }
    programs
}

/// The interpreter that a process brought along as a library: that of uWSGI, of Phusion Passenger, of a server with plug-ins.
fn embedded(root: &Root, pid: u32) -> Option<Runtime> {
    let maps = root.text(format!("/proc/{pid}/maps")).ok()?;
    let libraries =
        [("libpython", Runtime::Python), ("libruby", Runtime::Ruby), ("libnode.so", Runtime::Node)];
    let file = |line: &'_ str| line.split_ascii_whitespace().nth(5)?.rsplit('/').next().map(str::to_owned);
    // Python's build without a lock is `libpython3.13t.so`.
    let has_lock = |name: &String| !name.split(".so").next().is_some_and(|name| name.ends_with('t'));
    let found = |name: String| libraries.into_iter().find(|(library, _)| name.starts_with(library));
    maps.lines().filter_map(file).filter(has_lock).find_map(found).map(|(_, runtime)| runtime)
}

/// The program that a command line names, before it runs; found as `execvp` finds it, with this process's environment
/// and what is added to it.
pub fn of_command(role: Role, words: &[String], added: &[(String, String)]) -> Program {
    let name = words.first().map(String::as_str).unwrap_or_default();
    let found = find(name).ok_or_else(|| Missing::new(format!("there is no program '{name}'")));
    let mut environment: Vec<(String, String)> = std::env::vars_os()
        .map(|(key, value)| (key.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect();
    environment.extend(added.iter().cloned());
    let arguments = Reading::Measured(kept_words(words.iter().map(String::as_str)));
    let environment = Reading::Measured(kept_variables(environment));
    let (path, content) = match found {
        Ok(file) => {
            (Reading::Measured(file.to_string_lossy().into_owned()), Content::read(File::open(&file), &file))
        }
        Err(missing) => (Reading::Missing(missing.clone()), Content::missing(&missing)),
    };
    content.called(role, &[], path, arguments, environment)
}

fn find(name: &str) -> Option<PathBuf> {
    let file = |path: PathBuf| std::fs::canonicalize(path).ok().filter(|path| path.is_file());
    if name.contains('/') {
        return file(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find_map(|folder| file(folder.join(name)))
}

/// What the file itself tells.
struct Content {
    size_bytes: Reading<u64>,
    build_id: Reading<String>,
    sha256: Reading<String>,
    runtime: Option<Runtime>,
}

impl Content {
    /// Of a file; `named` is how messages call it.
    fn read(file: io::Result<File>, named: &Path) -> Content {
        let opened = file.and_then(|opened| {
            let length = opened.metadata()?.len();
            Ok((opened, length))
        });
        match opened.map_err(|error| unreadable(named, &error)) {
            Err(missing) => Content::missing(&missing),
            Ok((opened, length)) => {
                let (head, sum) = read_whole(opened, length);
                Content {
                    size_bytes: Reading::Measured(length),
                    build_id: named_by_linker(&head),
                    sha256: sum.unwrap_or_else(|error| Reading::Missing(unreadable(named, &error))),
                    runtime: elf::is_go(&head).then_some(Runtime::Go),
                }
            }
        }
    }

    fn missing(why: &Missing) -> Content {
        Content {
            size_bytes: Reading::Missing(why.clone()),
            build_id: Reading::Missing(why.clone()),
            sha256: Reading::Missing(why.clone()),
            runtime: None,
        }
    }

    fn called(
        self,
        role: Role,
        pids: &[u32],
        path: Reading<String>,
        arguments: Reading<Vec<Setting>>,
        environment: Reading<BTreeMap<String, Setting>>,
    ) -> Program {
        let Content { size_bytes, build_id, sha256, runtime } = self;
        let (processes, pids) = (pids.len().try_into().unwrap_or(u32::MAX), pids.to_vec());
        Program { role, processes, pids, path, size_bytes, build_id, sha256, runtime, arguments, environment }
    }
}

fn named_by_linker(head: &[u8]) -> Reading<String> {
    match elf::build_id(head) {
        Some(id) => Reading::Measured(hexadecimal(id)),
        None => Reading::NotApplicable { not_applicable: "its linker wrote no build id".to_owned() },
    }
}

/// The beginning of a file, and the hash of all of it.
fn read_whole(mut file: File, length: u64) -> (Vec<u8>, io::Result<Reading<String>>) {
    let mut head = Vec::new();
    if length > HASHED_BYTES_MAX {
        file.take(HEAD_BYTES as u64).read_to_end(&mut head).ok();
        let why =
            format!("it has more than {} MiB: length and build id tell it apart", HASHED_BYTES_MAX >> 20);
        return (head, Ok(Reading::missing(why)));
    }
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; HEAD_BYTES];
    // A file that grows meanwhile is not read for ever.
    let mut left = HASHED_BYTES_MAX;
    let hashed = loop {
        match file.read(&mut buffer) {
            Ok(0) => break Ok(Reading::Measured(hexadecimal(context.finish().as_ref()))),
            Ok(read) => {
                let bytes = buffer.get(..read).unwrap_or_default();
                if head.is_empty() {
                    head = bytes.to_vec();
                }
                context.update(bytes);
                left = left.saturating_sub(read as u64);
                if left == 0 {
                    break Ok(Reading::missing("it grew while it was read"));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    (head, hashed)
}

fn arguments(root: &Root, pid: u32) -> Reading<Vec<Setting>> {
    let text = root.bytes(format!("/proc/{pid}/cmdline"));
    text.map(|bytes| kept_words(entries(&bytes).iter().map(String::as_str))).into()
}

fn environment(root: &Root, pid: u32) -> Reading<BTreeMap<String, Setting>> {
    let text = root.bytes(format!("/proc/{pid}/environ"));
    let pairs = |bytes: Vec<u8>| -> Vec<(String, String)> {
        let split =
            |entry: &String| entry.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        entries(&bytes).iter().filter_map(split).collect()
    };
    text.map(|bytes| kept_variables(pairs(bytes))).into()
}

/// What stands between NUL bytes; empty words within count, those at the end are padding.
fn entries(bytes: &[u8]) -> Vec<String> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let bytes = bytes.get(..end).unwrap_or_default();
    let entries = bytes.split(|byte| *byte == 0).take(SETTINGS_MAX);
    entries.map(|entry| String::from_utf8_lossy(entry).into_owned()).filter(|_| end > 0).collect()
}

fn kept_words<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Setting> {
    let mut kept = Vec::new();
    let mut before = "";
    for word in words.take(SETTINGS_MAX) {
        kept.push(hide_if(secrets::in_word(before, word), word));
        before = word;
    }
    kept
}

fn kept_variables(pairs: Vec<(String, String)>) -> BTreeMap<String, Setting> {
    let named = pairs.into_iter().filter(|(name, _)| secrets::is_a_name(name)).take(SETTINGS_MAX);
    named
        .map(|(name, value)| {
            let secret = secrets::in_variable(&name, &value);
            (name, hide_if(secret, &value))
        })
        .collect()
}

fn hide_if(secret: bool, value: &str) -> Setting {
    if !secret && value.len() <= secrets::CLEAR_BYTES_MAX {
        return Setting::Clear(value.to_owned());
    }
    let sum = digest(&SHA256, value.as_bytes());
    Setting::Hidden { hidden: hexadecimal(sum.as_ref().get(..2).unwrap_or_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known_by_its_content() {
        let programs =
            of_processes(&Root::live(), Role::Sut, &[std::process::id(), std::process::id(), u32::MAX]);
        let [program] = programs.as_slice() else { panic!("{programs:?}") };
        assert_eq!(program.processes, 2);
        let own = std::env::current_exe().unwrap();
        assert_eq!(program.path.value().map(PathBuf::from), Some(own.clone()));
        let printed = std::process::Command::new("sha256sum").arg(&own).output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(program.sha256.value().map(String::as_str), printed.split(' ').next());
        assert_eq!(program.size_bytes.value(), Some(&own.metadata().unwrap().len()));
        let noted = std::process::Command::new("readelf").arg("-n").arg(&own).output();
        if let (Ok(noted), Some(id)) = (noted, program.build_id.value()) {
            assert!(String::from_utf8_lossy(&noted.stdout).contains(id.as_str()), "{id}");
        }
        assert!(program.arguments.value().is_some_and(|words| !words.is_empty()));
        assert!(program.environment.value().is_some_and(|all| all.contains_key("PATH")));
    }

    #[test]
    fn a_command_is_looked_up_as_it_will_be() {
        let words = ["sort", "--password", "hunter2"].map(String::from);
        let program = of_command(
            Role::Sut,
            &words,
            &[("GOMAXPROCS", "2"), ("API_KEY", "abc")].map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        assert!(program.path.value().is_some_and(|path| path.starts_with('/')), "{program:?}");
        assert!(program.sha256.value().is_some_and(|sum| sum.len() == 64));
        let arguments = program.arguments.value().unwrap();
        assert_eq!(arguments[1], Setting::Clear("--password".to_owned()));
        assert!(matches!(&arguments[2], Setting::Hidden { hidden } if hidden.len() == 4), "{arguments:?}");
        let environment = program.environment.value().unwrap();
        assert_eq!(environment["GOMAXPROCS"], Setting::Clear("2".to_owned()));
        assert!(matches!(environment["API_KEY"], Setting::Hidden { .. }));
        let none = of_command(Role::Sut, &["/no/such/program".to_owned()], &[]);
        assert!(none.path.value().is_none() && none.sha256.value().is_none());
    }

    #[test]
    fn an_interpreter_that_is_a_library_is_found() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/7")).unwrap();
        let of = |library: &str| {
            let line =
                format!("7f0000000000-7f0000400000 r-xp 00000000 fe:00 1234  /usr/lib/x86_64/{library}\n");
            std::fs::write(
                dir.path().join("proc/7/maps"),
                format!("7ffd-7ffe rw-p 0 00:00 0 [stack]\n{line}"),
            )
            .unwrap();
            embedded(&Root::at(dir.path()), 7)
        };
        assert_eq!(of("libpython3.11.so.1.0"), Some(Runtime::Python));
        assert_eq!(of("libruby-3.1.so.3.1"), Some(Runtime::Ruby));
        assert_eq!(of("libnode.so.108"), Some(Runtime::Node));
        // The build without a lock, and what is no interpreter.
        assert_eq!((of("libpython3.13t.so.1.0"), of("libc.so.6")), (None, None));
        assert_eq!(embedded(&Root::at(dir.path()), 8), None);
    }

    #[test]
    fn what_is_gone_or_odd_is_left_out_or_missing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/7")).unwrap();
        std::fs::write(dir.path().join("proc/7/cmdline"), b"a\0\0b\0\0\0").unwrap();
        std::fs::write(dir.path().join("proc/7/environ"), b"A=1\0junk\0=x\0B=\0").unwrap();
        // This machine has that file; the tree has not.
        std::os::unix::fs::symlink("/proc/self/exe", dir.path().join("proc/7/exe")).unwrap();
        let programs = of_processes(&Root::at(dir.path()), Role::Sut, &[7, 8]);
        let [program] = programs.as_slice() else { panic!("{programs:?}") };
        let clear = |text: &str| Setting::Clear(text.to_owned());
        assert_eq!(program.arguments.value(), Some(&vec![clear("a"), clear(""), clear("b")]));
        let wanted = BTreeMap::from([("A".to_owned(), clear("1")), ("B".to_owned(), clear(""))]);
        assert_eq!(program.environment.value(), Some(&wanted));
        assert_eq!(program.path.value().map(String::as_str), Some("/proc/self/exe"));
        assert!(program.size_bytes.value().is_none() && program.sha256.value().is_none());
    }
}
