//! A subject as it stands: its folder with its files, its processes, a session with it.

use super::data::{Pair, Subject};
use crate::calibrate::ground::{Ground, refused, until};
use crate::error::LabError;
use crate::process::{Launch, Output, Started};
use crate::running::Session;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_model::Record;

/// How long a subject may take to be prepared, for a build or a database that is made.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);
/// How long it may take until it listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(20);
/// How long a session may take.
const SESSION_WITHIN: Duration = Duration::from_secs(120);
/// How long it may take to say whether it is installed.
const INSTALLED_WITHIN: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_millis(200);
/// How many connections a session has where the pair does not say.
const CONNECTIONS: &str = "16";
/// What every session has, before what the pair says.
const USUAL: [&str; 2] = ["run", "-q"];
/// What a short session has as well: the bottleneck needs neither.
const SHORT: [&str; 2] = ["--no-levels", "--no-reference"];

/// What of a subject is not installed, and how to install it; `None`: all is there.
pub(super) fn missing(subject: &Subject, ground: &Ground<'_>) -> Result<Option<String>, LabError> {
    for need in &subject.needs {
        if let Err(failed) = shell("a check of what is installed", need, INSTALLED_WITHIN, ground) {
            let LabError::State(_) = failed else { return Err(failed) };
            return Ok(Some(format!("'{need}' failed; install it with: {}", subject.install)));
        }
    }
    Ok(None)
}

/// A subject that is prepared, in a folder of its own that goes with it.
pub(super) struct Prepared<'s> {
    subject: &'s Subject,
    folder: Folder,
    port: u16,
    backend: u16,
    /// Its sessions are as long as those of `tare run` are by themselves.
    is_long: bool,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

impl<'s> Prepared<'s> {
    /// Writes its files and prepares it.
    pub fn new(subject: &'s Subject, is_long: bool, ground: &Ground<'_>) -> Result<Prepared<'s>, LabError> {
        let path = std::env::temp_dir().join(format!("tare-zoo-{}-{}", std::process::id(), subject.name));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).map_err(|error| cannot(&path, &error))?;
        let [port, backend] = free_ports()?;
        let prepared = Prepared { subject, folder: Folder(path), port, backend, is_long };
        prepared.write_files(&Pair::default(), ground)?;
        for command in &subject.prepare {
            let command = prepared.filled(command, &Pair::default(), ground);
            shell(&format!("{} being prepared", subject.name), &command, PREPARED_WITHIN, ground)?;
        }
        Ok(prepared)
    }

    /// Starts it with a truth, runs a session, stops it.
    pub fn session(&self, pair: &Pair, ground: &Ground<'_>, session: &Session) -> Result<Record, LabError> {
        self.write_files(pair, ground)?;
        let _backend = match &pair.backend {
            Some(command) => {
                let words = self.shell_words(command, pair, ground);
                let cpus = self.cpus(&pair.backend_cpus, pair, ground)?;
                Some(self.started("a server behind it", words, cpus, Vec::new(), self.backend, ground)?)
            }
            None => None,
        };
        let quota = match pair.quota {
            Some(cpus) => {
                let group = ground.group("cpu")?;
                group.set_quota(cpus).map_err(refused)?;
                Some(group)
            }
            None => None,
        };
        let groups = quota.iter().map(|group| group.procs()).collect();
        let words = self.shell_words(&pair.start, pair, ground);
        let cpus = self.cpus(&pair.cpus, pair, ground)?;
        let mut server = self.started(&self.subject.name, words, cpus, groups, self.port, ground)?;
        let record = self.measured(pair, ground, session);
        // Before its group goes.
        server.stop();
        record
    }

    /// An ordinary session, as a user would hold it.
    fn measured(&self, pair: &Pair, ground: &Ground<'_>, session: &Session) -> Result<Record, LabError> {
        let no_record = || LabError::State("a session of the zoo needs a file for its record".into());
        let file = session.record.clone().ok_or_else(no_record)?;
        let text = |path: &Path| path.display().to_string();
        let own = [text(ground.program)].into_iter().chain(USUAL.map(String::from));
        let output = ["-o".to_owned(), text(&file)];
        let asked: Vec<String> = pair.run.iter().map(|word| self.filled(word, pair, ground)).collect();
        let is_there = |option: &str| asked.iter().any(|word| word == option);
        let mut rest: Vec<String> = Vec::new();
        if !is_there("--load-cpus") {
            rest.extend(["--load-cpus".to_owned(), ground.place.load_cpu.to_string()]);
        }
        if !self.is_long {
            let trials: &[&str] =
                if is_there("--load") { &["--trials", "2"] } else { &["--trials", "3", "-d", "1500ms"] };
            rest.extend(SHORT.iter().chain(trials).map(ToString::to_string));
        }
        let launch = Launch {
            what: "a session of the zoo",
            words: own.chain(output).chain(asked).chain(rest).collect(),
            cpus: Vec::new(),
            groups: Vec::new(),
            environment: vec![("TARE_STATE_DIR".to_owned(), text(&session.state_dir))],
            output: Output::KeepErrors,
        };
        let mut started = Started::launch(&launch, ground.journal)?;
        let end = until("a session", SESSION_WITHIN, ground, || started.has_ended());
        if end.is_err() {
            started.stop();
        }
        // It ends otherwise than with 0 where its figures are not to be quoted, and has a record all the same.
        let recorded = tare_store::read(&file);
        end?;
        recorded.map_err(|error| LabError::Load {
            what: format!("left no record ({}): {error}", started.exit_description()),
            last_output: started.output(),
        })
    }

    /// Starts a process, and waits until it listens.
    fn started(
        &self,
        what: &str,
        words: Vec<String>,
        cpus: Vec<u32>,
        groups: Vec<PathBuf>,
        port: u16,
        ground: &Ground<'_>,
    ) -> Result<Started, LabError> {
        let launch = Launch { what, words, cpus, groups, environment: Vec::new(), output: Output::Keep };
        let mut started = Started::launch(&launch, ground.journal)?;
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        let answers = || TcpStream::connect_timeout(&at, CONNECT_WITHIN).is_ok();
        let end = until(what, LISTENS_WITHIN, ground, || answers() || started.has_ended());
        if started.has_ended() {
            let what = format!("({what}) ended before it listened: {}", started.exit_description());
            return Err(LabError::Sut { what, last_output: started.output() });
        }
        end.map(|()| started)
    }

    fn write_files(&self, pair: &Pair, ground: &Ground<'_>) -> Result<(), LabError> {
        for (name, text) in &self.subject.files {
            let path = self.folder.0.join(self.filled(name, pair, ground));
            let text = self.filled(text, pair, ground);
            std::fs::write(&path, text).map_err(|error| cannot(&path, &error))?;
        }
        Ok(())
    }

    fn shell_words(&self, command: &str, pair: &Pair, ground: &Ground<'_>) -> Vec<String> {
        ["sh".to_owned(), "-c".to_owned(), self.filled(command, pair, ground)].to_vec()
    }

    fn cpus(&self, list: &str, pair: &Pair, ground: &Ground<'_>) -> Result<Vec<u32>, LabError> {
        let list = self.filled(list, pair, ground);
        let cpus = tare_model::CpuSet::from_list(&list);
        cpus.map(|cpus| cpus.to_vec()).ok_or_else(|| LabError::State(format!("'{list}' is no list of CPUs")))
    }

    /// A text with its placeholders filled in: those of the pair, then ours.
    fn filled(&self, text: &str, pair: &Pair, ground: &Ground<'_>) -> String {
        let of_pair = pair
            .set
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value));
        let (sut, load) = (ground.place.sut_cpu, ground.place.load_cpu);
        let ours = [
            ("@port@", self.port.to_string()),
            ("@backend@", self.backend.to_string()),
            ("@folder@", self.folder.0.display().to_string()),
            ("@truth@", pair.truth.clone()),
            ("@connections@", CONNECTIONS.to_owned()),
            ("@sut@", sut.to_string()),
            ("@load@", load.to_string()),
            ("@both@", format!("{},{}", sut.min(load), sut.max(load))),
        ];
        ours.iter().fold(of_pair, |text, (name, value)| text.replace(name, value))
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> LabError {
    LabError::State(format!("cannot write {}: {error}", path.display()))
}

/// Two ports that nobody has now.
fn free_ports() -> Result<[u16; 2], LabError> {
    let free = || {
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| Ok((listener.local_addr()?.port(), listener)))
    };
    let no_port = |error: std::io::Error| LabError::State(format!("no free port: {error}"));
    let ((port, _held), (backend, _also)) = (free().map_err(no_port)?, free().map_err(no_port)?);
    Ok([port, backend])
}

/// Runs a shell command to its end; [`LabError::State`] where it fails.
fn shell(what: &str, command: &str, within: Duration, ground: &Ground<'_>) -> Result<(), LabError> {
    let launch = Launch {
        what,
        words: ["sh", "-c", command].map(String::from).to_vec(),
        cpus: Vec::new(),
        groups: Vec::new(),
        environment: Vec::new(),
        output: Output::Keep,
    };
    let mut started = Started::launch(&launch, ground.journal)?;
    until(what, within, ground, || started.has_ended())?;
    if started.succeeded() {
        return Ok(());
    }
    let output = started.output();
    let last = output.trim().lines().last().unwrap_or_default().to_owned();
    Err(LabError::State(format!("'{command}' failed ({}): {last}", started.exit_description())))
}
