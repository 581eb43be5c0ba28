//! An ordinary user learns what can be known, and why the rest is not, and how to allow it.

use crate::support::{alone, answers, eventually, free_port, number, terminate};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tare_model::Record;
use tare_model::metric::Subject;
use tare_model::metrics::cpus;

/// `nobody`, everywhere.
const ORDINARY: &str = "65534";

/// As whom something is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// As whoever the tests are.
    Root,
    /// An ordinary user.
    Nobody,
    /// The owner of everything who may do nothing else: no kernel counters, no tracepoints.
    Powerless,
}

/// A folder that an ordinary user can work in, with the program under test.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let place = Place { dir };
        std::fs::copy(env!("CARGO_BIN_EXE_tare"), place.program()).unwrap();
        std::fs::set_permissions(place.program(), std::fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("tare")
    }

    fn command(&self, who: Who) -> Command {
        let mut command = Command::new(if who == Who::Root { "env" } else { "unshare" });
        if who != Who::Root {
            // In mounts of its own, where nothing is mounted that lists tracepoints.
            let hide =
                "for at in tracing debug; do mount -t tmpfs none /sys/kernel/$at || exit; done; exec \"$@\"";
            command.args([
                "--mount",
                "sh",
                "-c",
                hide,
                "sh",
                "setpriv",
                "--inh-caps=-all",
                "--bounding-set=-all",
            ]);
        }
        if who == Who::Nobody {
            let user = [format!("--reuid={ORDINARY}"), format!("--regid={ORDINARY}")];
            command.args(user).arg("--clear-groups");
        }
        command.arg(self.program()).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("TARE_STATE_DIR", self.dir.path().join(format!("{who:?}")));
        command
    }

    fn serve(&self, who: Who) -> Server {
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let mut command = self.command(who);
        command.args(["serve", "--listen", &address, "--threads", "1"]).stdout(Stdio::null());
        let server = Server { child: command.stderr(Stdio::null()).spawn().unwrap(), address };
        eventually("the server answers", || answers(([127, 0, 0, 1], port).into()));
        server
    }

    /// Measures a server; the result and the record, which is kept as `record.tare`.
    fn measure(&self, who: Who, server: &Server, further: &[&str]) -> (Value, Record) {
        let record = self.record();
        let url = format!("http://{}/plaintext", server.address);
        let arguments =
            ["run", "--json", "-q", "--no-levels", "-w", "300ms", "--trials", "2", "-d", "1s", "-o"];
        let mut command = self.command(who);
        let output = command.args(arguments).arg(&record).args(further).arg(&url).output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        // A busy machine can open the accounting; the result is there all the same.
        assert!(matches!(output.status.code(), Some(0 | 4)), "{:?}: {reported}", output.status);
        let result =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {reported}"));
        (result, read(&record))
    }

    fn record(&self) -> PathBuf {
        self.dir.path().join("record.tare")
    }

    /// An ordinary user is shown the record of a server that was seen, and why it is as it is.
    fn explains(&self, result: &Value) {
        let (shown, why) = (self.reported(&["show"]), self.reported(&["why"]));
        assert!(
            shown.contains(result["bottleneck"].as_str().unwrap()) && shown.contains("Threads"),
            "{shown}"
        );
        assert!(why.contains("Where each second of its CPUs went"), "{why}");
    }

    /// What an ordinary user learns of the record.
    fn reported(&self, arguments: &[&str]) -> String {
        let output = self.command(Who::Nobody).args(arguments).arg(self.record()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 4)), "{arguments:?}: {:?}: {error}", output.status);
        // As one line, however wide the terminal is.
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn read(path: &Path) -> Record {
    tare_store::read(path).unwrap()
}

struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        terminate(&mut self.child);
    }
}

/// A refusal says how to be allowed it.
fn every_refusal_has_a_remedy(record: &Record) {
    for absence in record.trials.iter().flat_map(|trial| &trial.observation.absences) {
        let reason = &absence.reason;
        let is_refusal =
            ["not permitted", "may not", "denied", "refuse"].iter().any(|word| reason.why.contains(word));
        assert!(!reason.why.is_empty(), "{absence:?}");
        assert!(!is_refusal || !reason.remedy.is_empty(), "{absence:?}");
    }
}

#[test]
fn ones_own_server_is_explained() {
    let _alone = alone();
    let place = Place::new();
    let server = place.serve(Who::Nobody);
    let (result, record) = place.measure(Who::Nobody, &server, &[]);
    assert!(number(&result, "/gross/value") > 0.0);
    assert!(number(&result, "/accounting/sut/run_s") > 0.0, "its own threads may be read");
    assert!(number(&result, "/requests/cpu_ns_per_request/sut") > 0.0);
    assert_ne!(result["bottleneck"], Value::Null);
    // What is not there says why; cycles stand in where the clock is known.
    for figure in ["ipc", "instructions_per_request"] {
        let figure = &result["accounting"]["sut"]["execution"][figure];
        assert!(
            figure.is_number() || figure["missing"].as_str().is_some_and(|why| !why.is_empty()),
            "{figure}"
        );
    }
    every_refusal_has_a_remedy(&record);
    place.explains(&result);
}

/// Looks stand in for what may not be traced; the rest is said to be missing, and how to allow it.
fn traced_as_far_as_it_goes(who: Who) {
    let place = Place::new();
    let server = place.serve(who);
    let (result, record) = place.measure(who, &server, &["--trace", "--stacks"]);
    let switches = &result["accounting"]["switches"];
    assert_eq!(switches["blocked_source"], "samples", "{switches:#}");
    assert!(number(&result, "/accounting/sut/blocked_s/event") >= 0.0);
    let refused = |missing: &Value, by: &str| {
        let has = |key: &str, word: &str| missing[key].as_str().is_some_and(|text| text.contains(word));
        assert!(has("missing", by) && has("remedy", "root"), "{missing:#}");
    };
    refused(&switches["not_traced"], "tracefs");
    let standing = |at: usize| &switches["hypotheses"][at];
    for at in [0, 2] {
        assert_eq!(standing(at)["standing"], "not-visible-here", "{:#}", standing(at));
        refused(&standing(at)["figure"], "tracefs");
    }
    assert!(standing(1)["figure"].is_number(), "shares of modes are open to all: {:#}", standing(1));
    refused(&result["requests"]["sut_wakeups_per_request"], "tracefs");
    let stacks = record.trials[0].observation.stacks.as_ref().unwrap();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim().parse::<i32>().unwrap() > 0 {
        let missing = stacks.on_cpu.clone().ok().unwrap_err();
        assert!(missing.remedy.contains("kernel.perf_event_paranoid"), "{missing:?}");
    }
    every_refusal_has_a_remedy(&record);
    place.explains(&result);
}

#[test]
fn an_ordinary_user_who_asks_for_more_learns_what_is_refused() {
    let _alone = alone();
    traced_as_far_as_it_goes(Who::Nobody);
}

#[test]
fn without_kernel_counters_and_tracepoints_the_rest_is_known() {
    let _alone = alone();
    traced_as_far_as_it_goes(Who::Powerless);
}

#[test]
fn somebody_elses_server_is_measured_from_outside() {
    let _alone = alone();
    let place = Place::new();
    let server = place.serve(Who::Root);
    let (result, record) = place.measure(Who::Nobody, &server, &[]);
    assert!(number(&result, "/gross/value") > 0.0);
    assert_eq!(result["accounting"]["sut"], Value::Null);
    assert!(number(&result, "/accounting/load/run_s") > 0.0, "the generator's side of the accounting");
    let unseen = result["warnings"].as_array().unwrap().iter().find(|warning| warning["id"] == "sut-unseen");
    let unseen = unseen.unwrap_or_else(|| panic!("{:#}", result["warnings"]));
    assert!(unseen["text"].as_str().unwrap().contains("root"), "{unseen:#}");
    assert!(result["net"]["missing"].is_string(), "{:#}", result["net"]);
    every_refusal_has_a_remedy(&record);
    let shown = place.reported(&["show"]);
    assert!(shown.contains("sut-unseen") && shown.contains("load generator"), "{shown}");
    let why = place.reported(&["why"]);
    assert!(why.contains("The load generator ran on"), "{why}");
}

/// Without the kernel's type information the idle task is not watched: then it is found out between windows what idle periods cost.
#[test]
fn where_the_idle_task_is_not_watched_idle_periods_are_sampled() {
    let _alone = alone();
    let place = Place::new();
    let record = place.dir.path().join("sampled.tare");
    let hide = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hide, "sh"]).arg(place.program());
    command.args(["run", "-q", "--no-levels", "--trials", "1", "-d", "1s", "-w", "500ms", "-c", "1", "-o"]);
    let output = command.arg(&record).env("TARE_STATE_DIR", place.dir.path().join("state")).output().unwrap();
    // A busy machine can open the accounting.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", String::from_utf8_lossy(&output.stderr));
    let observation = &tare_store::read(&record).unwrap().trials[0].observation;
    let cpu = Subject::Cpu(0);
    let why = observation.why_absent(&cpus::IDLE_TASK_NS, &cpu).why;
    assert!(why.contains("/sys/kernel/btf/vmlinux"), "{why}");
    assert!(observation.delta(&cpus::IDLE_EXITS, &cpu).value().is_some());
    let is_sampled = observation.column(&cpus::IDLE_EXIT_COST_NS, &cpu).is_some();
    let why = observation.why_absent(&cpus::IDLE_EXIT_COST_NS, &cpu).why;
    assert!(is_sampled || why.contains("hardly ever idle"), "{why}");
}
