//! `tare tune`: from arguments to settings and back.

mod show;

use super::recover::{self, NOT_ALL_PUT_BACK};
use crate::cli::tune::TuneArgs;
use crate::failure::{Ended, Failure};
use crate::terminal;
use anyhow::anyhow;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_machine::journal::{self, Journal, RUN_VARIABLE, Report};
use tare_machine::settings::{self, Applied, ClockWanted, Lock, Planned, TuneError, Wanted};
use tare_report::Style;
use tare_sys::process::{self, Signal};

/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;
/// How long a command has to end when it is asked to, until it is made to.
const UNTIL_KILLED: Duration = Duration::from_secs(5);
/// How often it is checked whether the command has ended.
const POLL: Duration = Duration::from_millis(5);

/// Does what the mode says.
pub fn tune(args: &TuneArgs, style: Style) -> Ended {
    super::check_output(&args.exports)?;
    let root = args.root.as_deref().map_or_else(|| Ok(Root::live()), root_at)?;
    let named = args.settings.wanted();
    let none_is_named = named == Wanted::default();
    let wanted = if none_is_named || args.settings.defaults {
        named.clone().or(Wanted::still())
    } else {
        named.clone()
    };
    let mode = &args.mode;
    if mode.systemd {
        return systemd(&root, &named);
    }
    let only_looks = mode.dry_run || !(mode.apply || mode.restore || mode.status || none_is_named);
    if only_looks {
        return show::plan(&root, &named, &wanted, &args.exports, style);
    }
    if mode.apply {
        return apply(args, &root, &named, &wanted);
    }
    let is_clean = recover::first();
    if mode.restore { restore(args.force, is_clean) } else { show::status(&root, &args.exports, style) }
}

/// A made-up machine, by the one name that it has everywhere: what is applied there is put back from another folder too.
fn root_at(dir: &Path) -> Result<Root, Failure> {
    match dir.canonicalize() {
        Ok(whole) if whole.is_dir() => Ok(Root::at(whole)),
        _ => Err(Failure::usage(anyhow!(
            "there is no folder {} (hint: name one with proc and sys in it)",
            dir.display()
        ))),
    }
}

/// What can be applied of what is wanted. A setting that was named and is not here is an error; a default one is said.
fn possible(root: &Root, named: &Wanted, wanted: &Wanted) -> Result<Vec<Planned>, Failure> {
    let plan = settings::plan(root, wanted);
    let named: Vec<&str> = settings::plan(root, named).iter().map(|planned| planned.setting.name()).collect();
    let (mut possible, mut not_here) = (Vec::new(), show::NotHere::default());
    for planned in plan {
        match &planned.change {
            Ok(_) => possible.push(planned),
            Err(missing) => {
                let setting = planned.setting.name();
                if named.contains(&setting) {
                    return Err(Failure::usage(TuneError::Missing { setting, missing: missing.clone() }));
                }
                not_here.add(setting, missing);
            }
        }
    }
    not_here.lines().iter().for_each(|line| terminal::say(line));
    Ok(possible)
}

fn apply(args: &TuneArgs, root: &Root, named: &Wanted, wanted: &Wanted) -> Ended {
    let dir = super::state_dir()?;
    // Before anything is read: what another tare has applied, or a killed one has left, is not what was there.
    let lock = Lock::take(&dir).map_err(Failure::usage)?;
    recover::say(&journal::recover_holding(&lock, &dir, &Root::live()));
    let plan = possible(root, named, wanted)?;
    // From here on a signal is a wish to end, not the end: what is applied is put back first.
    let signals = Signals::catch()?;
    let journal = Journal::create(&dir, &Root::live()).map_err(Failure::usage)?;
    let (end, way_back) = match settings::apply(&journal, lock, root, &plan, &|| ()) {
        Ok(applied) => {
            show::applied(&plan, &applied);
            under(applied, &args.command, &journal, &signals)
        }
        Err(error) => {
            let way_back = WayBack::after(error.is_undone());
            (Err(failure(error)), way_back)
        }
    };
    if way_back == WayBack::Done {
        journal.finish().map_err(Failure::underway)?;
    }
    end
}

/// Whether the journal is still needed to put something back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WayBack {
    Needed,
    Done,
}

impl WayBack {
    fn after(is_undone: bool) -> WayBack {
        if is_undone { WayBack::Done } else { WayBack::Needed }
    }
}

/// Where rights are missing nothing is started, as with other bad usage.
fn failure(error: TuneError) -> Failure {
    match &error {
        TuneError::Refused { source, .. } if source.kind() != ErrorKind::PermissionDenied => {
            Failure::underway(error)
        }
        _ if error.is_undone() => Failure::usage(error),
        _ => Failure::underway(error),
    }
}

/// What was applied is kept, or held while the command runs.
fn under(applied: Applied<'_>, words: &[String], journal: &Journal, signals: &Signals) -> (Ended, WayBack) {
    let is_interrupted = signals.any();
    if words.is_empty() && !is_interrupted {
        if applied.is_empty() {
            terminal::say("nothing was changed: there is nothing to put back");
            return (Ok(ExitCode::SUCCESS), WayBack::Done);
        }
        let count = applied.len();
        return match applied.keep() {
            Ok(()) => {
                let stand = tare_run::settings(count, "stands", "stand");
                terminal::say(&format!("{stand} until 'tare tune --restore'"));
                (Ok(ExitCode::SUCCESS), WayBack::Needed)
            }
            Err(error) => {
                let way_back = WayBack::after(error.is_undone());
                (Err(Failure::underway(error)), way_back)
            }
        };
    }
    let code = if is_interrupted { Ok(INTERRUPTED) } else { hold(words, journal, signals) };
    let report = applied.restore();
    for line in tare_run::reported(&report) {
        terminal::say(&line);
    }
    (code.map(ExitCode::from), WayBack::after(report.is_clean()))
}

/// Signals that ask to end.
struct Signals {
    /// Ctrl-C, and what counts as it.
    key: Arc<AtomicBool>,
    /// SIGTERM and SIGHUP.
    end: Arc<AtomicBool>,
}

impl Signals {
    fn catch() -> Result<Signals, Failure> {
        let caught = Signals { key: Arc::default(), end: Arc::default() };
        for (signal, flag) in [(SIGINT, &caught.key), (SIGTERM, &caught.end), (SIGHUP, &caught.end)] {
            signal_hook::flag::register(signal, flag.clone()).map_err(Failure::underway)?;
        }
        Ok(caught)
    }

    fn any(&self) -> bool {
        self.key.load(Ordering::Relaxed) || self.end.load(Ordering::Relaxed)
    }

    /// Whether the command has to be signalled. A key on our terminal reaches it too, and what it makes of it is its own
    /// affair: a shell goes on.
    fn are_for_us(&self) -> bool {
        self.end.load(Ordering::Relaxed) || (self.key.load(Ordering::Relaxed) && !has_terminal())
    }
}

/// Whether our process group has the terminal: `/proc/self/stat` has both after the name.
fn has_terminal() -> bool {
    let stat = Root::live().text("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    // state, parent, group, session, terminal, group that has the terminal.
    matches!(fields[..], [_, _, group, _, _, foreground, ..] if group == foreground)
}

/// Runs a command to its end, in the foreground, and gives its exit code.
fn hold(words: &[String], journal: &Journal, signals: &Signals) -> Result<u8, Failure> {
    let words = tare_run::own_program::replaced(words);
    let [program, arguments @ ..] = words.as_slice() else { return Ok(0) };
    let mut command = Command::new(program);
    command.args(arguments).env(RUN_VARIABLE, journal.run_id());
    journal.will_start(&words.join(" ")).map_err(Failure::underway)?;
    let pid = match process::spawn_in_foreground(&mut command) {
        Ok(child) => child.id(),
        Err(error) => {
            return Err(Failure::usage(anyhow!(
                "cannot start '{program}': {error} (hint: check its name, its path and that it may be executed)"
            )));
        }
    };
    journal.started(&Root::live(), pid).map_err(Failure::underway)?;
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(ended) = process::wait4(pid, false).map_err(Failure::underway)? {
            if let Some(since) = asked {
                end_rest(journal, since);
            }
            journal.stopped(pid).map_err(Failure::underway)?;
            let signal = ended.signal.map_or(1, |signal| 128 + signal);
            return Ok(u8::try_from(ended.exit_code.unwrap_or(signal)).unwrap_or(1));
        }
        if signals.are_for_us() {
            // Errors mean that it has ended just now.
            match asked {
                None => {
                    process::kill(pid, Signal::Term).ok();
                    asked = Some(Instant::now());
                }
                Some(since) if since.elapsed() > UNTIL_KILLED => {
                    process::kill(pid, Signal::Kill).ok();
                }
                Some(_) => {}
            }
        }
        std::thread::sleep(POLL);
    }
}

/// Ends what a command has left that was itself asked to end at `since`: a shell does not pass a signal on.
fn end_rest(journal: &Journal, since: Instant) {
    let mut reported = Vec::new();
    while since.elapsed() < 2 * UNTIL_KILLED {
        let left = journal.carriers(&Root::live());
        if left.is_empty() {
            return;
        }
        for pid in left {
            // Errors mean that it has ended just now.
            if since.elapsed() > UNTIL_KILLED {
                process::kill(pid, Signal::Kill).ok();
            } else if !reported.contains(&pid) {
                process::kill(pid, Signal::Term).ok();
                reported.push(pid);
            }
        }
        std::thread::sleep(4 * POLL);
    }
}

fn restore(force: bool, is_recovered: bool) -> Ended {
    let dir = super::state_dir()?;
    let report = journal::restore(&dir, &Root::live(), force, &|| ()).map_err(Failure::usage)?;
    print_restored(&report)?;
    Ok(if report.is_clean() && is_recovered { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_PUT_BACK) })
}

fn print_restored(report: &Report) -> Result<(), Failure> {
    let mut lines = tare_run::reported(report);
    if lines.is_empty() {
        lines.push("nothing is applied: there is nothing to put back".into());
    }
    terminal::print(&format!("{}\n", lines.join("\n"))).map_err(Failure::underway)
}

/// A unit for systemd; where it would have no effect, that is said in it and beside it.
fn systemd(root: &Root, named: &Wanted) -> Ended {
    let governor = || Wanted {
        clock: ClockWanted { governor: Some("performance".into()), ..ClockWanted::default() },
        ..Wanted::default()
    };
    let is_default = *named == Wanted::default();
    let wanted = if is_default { governor() } else { named.clone() };
    let program = std::env::current_exe().unwrap_or_else(|_| Path::new("/usr/local/bin/tare").to_path_buf());
    let mut warnings = String::new();
    for planned in settings::plan(root, &wanted) {
        if let Err(missing) = planned.change {
            let remedy =
                if missing.remedy.is_empty() { String::new() } else { format!("; {}", missing.remedy) };
            let warning = format!("no effect on {}: {}{remedy}", planned.setting.name(), missing.why);
            terminal::say(&warning);
            warnings += &format!("# Here: {warning}\n");
        }
    }
    let options =
        if is_default { "--governor performance".to_string() } else { options(std::env::args_os().skip(1)) };
    let program = quoted(&program.to_string_lossy());
    let unit = format!(
        "# /etc/systemd/system/tare-tune.service; then: systemctl enable --now tare-tune\n{warnings}\
         [Unit]\nDescription=Hold the machine still for measurements (tare tune)\nAfter=sysinit.target\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={program} tune --apply {options}\n\
         ExecStop={program} tune --restore\n\n[Install]\nWantedBy=multi-user.target\n"
    );
    terminal::print(&unit).map_err(Failure::underway)?;
    Ok(ExitCode::SUCCESS)
}

/// The settings as they were given, for a unit.
fn options(arguments: impl Iterator<Item = OsString>) -> String {
    let words = arguments.skip_while(|word| word != "tune").skip(1).filter(|word| word != "--systemd");
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A word of a command line in a unit, by the rules of systemd.service(5): `%` and `$` are doubled wherever they stand;
/// blanks, quotes, backslashes and a lone `;` mean something unless they are quoted.
fn quoted(word: &str) -> String {
    let word = word.replace('%', "%%").replace('$', "$$");
    let is_plain = |c: char| c.is_alphanumeric() || "%$-_=+./:,@~^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    let escaped = word.chars().fold(String::new(), |mut escaped, c| {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            c => escaped.push(c),
        }
        escaped
    });
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::{options, quoted};

    #[test]
    fn options_are_passed_on_to_the_unit() {
        let words = ["--color", "never", "tune", "--systemd", "--quota", "50%", "--cgroup", "/web"];
        assert_eq!(options(words.iter().map(Into::into)), "--quota 50%% --cgroup /web");
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        let cases = [
            ("/usr/bin/tare", "/usr/bin/tare"),
            ("/opt/my tools/tare", "\"/opt/my tools/tare\""),
            ("", "\"\""),
            (";", "\";\""),
            ("a\"b\\c'd", "\"a\\\"b\\\\c'd\""),
            ("$HOME 5%", "\"$$HOME 5%%\""),
            ("a\nb", "\"a\\nb\""),
        ];
        for (word, unit) in cases {
            assert_eq!(quoted(word), unit);
        }
    }
}
