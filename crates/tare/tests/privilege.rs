//! An ordinary user is told what can be known, and of the rest why not and how to allow it.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so

mod support;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{alone, answers, eventually, free_port, number, terminate};
use tare_record::Record;

/// `nobody`, everywhere.
const ORDINARY: &str = "65534";

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

    /// The program as an ordinary user, or as root.
    fn command(&self, as_root: bool) -> Command {
        let mut command = Command::new(if as_root { "env" } else { "setpriv" });
        if !as_root {
            let user = [format!("--reuid={ORDINARY}"), format!("--regid={ORDINARY}")];
            command.args(user).args(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
        }
        command.arg(self.program()).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("TARE_STATE_DIR", self.dir.path().join(if as_root { "root" } else { "user" }));
        command
    }

    fn serve(&self, as_root: bool) -> Server {
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let mut command = self.command(as_root);
        command.args(["serve", "--listen", &address, "--threads", "1"]).stdout(Stdio::null());
        let server = Server { child: command.stderr(Stdio::null()).spawn().unwrap(), address };
        eventually("the server answers", || answers(([127, 0, 0, 1], port).into()));
        server
    }

    /// Weighs as an ordinary user; the result and the record.
    fn weigh(&self, server: &Server) -> (Value, Record) {
        let record = self.dir.path().join("record.tare");
        let url = format!("http://{}/plaintext", server.address);
        let arguments =
            ["run", "--json", "-q", "--no-levels", "-w", "300ms", "--trials", "2", "-d", "1s", "-o"];
        let mut command = self.command(false);
        let output = command.args(arguments).arg(&record).arg(&url).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{:?}: {told}", output.status);
        let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
        (result, read(&record))
    }
}

fn read(path: &Path) -> Record {
    tare_record::store::read(path).unwrap()
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

/// Whoever is refused something is told how to be allowed it.
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
    let server = place.serve(false);
    let (result, record) = place.weigh(&server);
    assert!(number(&result, "/gross/value") > 0.0);
    assert!(number(&result, "/ledger/sut/run_s") > 0.0, "its own threads may be read");
    assert!(number(&result, "/requests/cpu_ns_per_request/sut") > 0.0);
    assert_ne!(result["limit"], Value::Null);
    // What is not there says why; cycles stand in where the clock is known.
    for figure in ["ipc", "instructions_per_request"] {
        let figure = &result["ledger"]["sut"]["execution"][figure];
        assert!(
            figure.is_number() || figure["missing"].as_str().is_some_and(|why| !why.is_empty()),
            "{figure}"
        );
    }
    every_refusal_has_a_remedy(&record);
}

#[test]
fn somebody_elses_server_is_weighed_from_outside() {
    let _alone = alone();
    let place = Place::new();
    let server = place.serve(true);
    let (result, record) = place.weigh(&server);
    assert!(number(&result, "/gross/value") > 0.0);
    assert_eq!(result["ledger"]["sut"], Value::Null);
    assert!(number(&result, "/ledger/load/run_s") > 0.0, "the generator's side of the books");
    let unseen = result["warnings"].as_array().unwrap().iter().find(|warning| warning["id"] == "sut-unseen");
    let unseen = unseen.unwrap_or_else(|| panic!("{:#}", result["warnings"]));
    assert!(unseen["text"].as_str().unwrap().contains("root"), "{unseen:#}");
    assert!(result["net"]["missing"].is_string(), "{:#}", result["net"]);
    every_refusal_has_a_remedy(&record);
}
