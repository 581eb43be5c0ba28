//! What is found out about a session's machine and programs comes back from its record.

use tare_machine::facts::{self, Reach};
use tare_machine::{Root, identity};
use tare_model::identity::Identity;
use tare_model::observation::Role;
use tare_model::plan::{CommandWorkload, Plan, Workload};
use tare_store::{Writer, read};

#[test]
fn an_identity_comes_back_from_the_record_and_older_records_have_none() {
    let survey = facts::survey(&Root::live(), Reach { company: None, windows: false });
    let programs = identity::of_processes(&Root::live(), Role::Sut, &[std::process::id()]);
    let identity = Identity { tare: "0.1.0".to_owned(), survey, programs };
    let workload = Workload::Command(CommandWorkload {
        commands: vec!["sort".to_owned()],
        runs: 1,
        warmup: 0,
        shell: None,
        interleaved: false,
        start_up: None,
    });
    let plan = Plan {
        argv: Vec::new(),
        started_unix_s: 0,
        workload,
        sut_cpus: Vec::new(),
        load_cpus: Vec::new(),
        ref_clock_hz: None,
        stopping: None,
        bounds: tare_model::ceiling::KnownBounds::default(),
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tare");
    let mut writer = Writer::create(&path, &identity.survey.machine, &plan).unwrap();
    assert!(read(&path).unwrap().identity.is_none());
    writer.identify(&identity).unwrap();
    writer.finish().unwrap();
    assert_eq!(*read(&path).unwrap().identity.unwrap(), identity);
}
