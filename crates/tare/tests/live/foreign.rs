//! Somebody else's generator gets the same accounting as the SUT, checked against an instrument that is not ours.

use crate::support::{Server, Tare, alone, descendants, eventually, number};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tare_model::metric::Subject;
use tare_model::metrics::tasks;
use tare_model::observation::{Observation, Role, Sample};
use tare_sys::time::monotonic_ns;

#[test]
fn somebody_elses_generator_gets_the_same_accounting_as_pidstat_shows() {
    let _alone = alone();
    // Costs so much less than wrk that it is not full when that is, on any machine.
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrk.tare");
    let load = format!("wrk -t8 -c64 -d13s {url}");
    let tare = Tare::new();
    let mut command = tare.command();
    command.args([
        "run",
        "-q",
        "--json",
        "--no-levels",
        "--trials",
        "1",
        "--load-cpus",
        "1",
        "--load",
        &load,
    ]);
    let child = command.arg("-o").arg(&path).arg(&url).stdout(Stdio::piped()).spawn().unwrap();
    let wrk = std::cell::Cell::new(0);
    eventually("wrk runs", || {
        let found = descendants(child.id()).into_iter().find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "wrk")
        });
        wrk.set(found.unwrap_or(0));
        found.is_some()
    });
    // Its rows come up to a tenth of a second after it looked, on CPUs as full as these: a per cent of ten seconds.
    let (theirs, seconds) = pidstat_switches(wrk.get(), 10);
    let output = child.wait_with_output().unwrap();
    let result: serde_json::Value = crate::support::schema::read(&["run"], &output.stdout);
    let threads = crate::support::threads_of(&result, "load");
    assert!(threads.iter().any(|thread| thread["name"] == "wrk"));

    // wrk's rate of switches moves by a factor of three within a run, so both are read over the same seconds.
    let record = tare_store::read(&path).unwrap();
    let observation = &record.trials[0].observation;
    let ours = switches_of(observation, &seconds);
    let ratio = ours / theirs;
    println!("switches of wrk: tare {ours:.1}/s, pidstat {theirs:.1}/s, ratio {ratio:.3}");
    // The edges of its second are known to a tenth of a second, and the rate moves by a factor of three.
    assert!((ratio - 1.0).abs() < 0.3, "tare {ours}, pidstat {theirs} over {seconds:?}");
    // What is printed is what the record holds.
    let printed: f64 =
        threads.iter().map(|t| number(t, "/voluntary_hz") + number(t, "/involuntary_hz")).sum();
    // wrk ends before the window does; nobody looks at it after that.
    let columns = observation.columns.iter().filter(|c| c.metric == tasks::VOLUNTARY_SWITCHES.id);
    let last_ns =
        columns.filter_map(|c| Some(c.samples.last()?.at_ns)).filter(|at_ns| *at_ns < observation.end_ns);
    let whole = switches_of(observation, &(observation.begin_ns..last_ns.max().unwrap()));
    // The last tenth of a second of each thread's life is in no sample.
    assert!((printed / whole - 1.0).abs() < 0.1, "printed {printed}, recorded {whole}");
}

/// A generator that loads for some seconds, late, twice, or not as it was meant to: the window is that of the load it reports on, or the result
/// is not valid; and what it says of errors is shown.
#[test]
fn a_generators_report_is_held_against_the_window() {
    let _alone = alone();
    let server = Server::nginx();
    let url = server.url("/");
    let loaded = |command: &str| {
        let options = ["run", "-q", "--json", "--no-levels", "--no-reference", "--trials", "1"];
        let (result, _) =
            Tare::new().json(&[&options[..], &["--load-cpus", "1", "--load", command, &url]].concat());
        let ids: Vec<String> =
            result["warnings"].as_array().unwrap().iter().map(|w| w["id"].to_string()).collect();
        println!("{command}: valid {}, {ids:?}", result["valid"]);
        result
    };
    let warning = |result: &serde_json::Value, id: &str| {
        let all = result["warnings"].as_array().unwrap();
        all.iter()
            .find(|warning| warning["id"] == id)
            .map(|warning| warning["text"].as_str().unwrap().to_owned())
    };
    for late in ["", "sleep 2; "] {
        let result = loaded(&format!("{late}wrk -t1 -c16 -d3s {url}"));
        assert_eq!(warning(&result, "report-of-other-time"), None, "{:#}", result["warnings"]);
        assert!(number(&result, "/requests/count") > 100.0);
    }
    // Watched for the first of both, or for all of it.
    let twice = loaded(&format!("wrk -t1 -c16 -d1s {url}; sleep 3; wrk -t1 -c16 -d4s {url}"));
    let said = warning(&twice, "report-of-other-time").unwrap_or_else(|| panic!("{:#}", twice["warnings"]));
    assert!(twice["valid"] == false && said.contains("reports on 5."), "{said}");
    let fails_quietly = loaded(&format!("wrk -t1 -c16 -d3s -s missing.lua {url}"));
    let said = warning(&fails_quietly, "generator-complains");
    assert!(
        said.as_ref().is_some_and(|text| text.contains("missing.lua")),
        "{:#}",
        fails_quietly["warnings"]
    );
}

/// Switches per second of all threads of a process as pidstat tells them in `reports`, and the stretch of CLOCK_MONOTONIC that
/// those were about. The first report only starts the stretch.
fn pidstat_switches(pid: u32, reports: u32) -> (f64, std::ops::Range<u64>) {
    let count = (reports + 1).to_string();
    let mut pidstat = Command::new("stdbuf")
        .args(["-oL", "pidstat", "-wt", "-p", &pid.to_string(), "1", &count])
        .env("LC_ALL", "C")
        .stdout(Stdio::piped())
        .spawn()
        .expect("pidstat is installed by tests/run");
    // When each report came, and the sum of its rates: these are over its own second, which may be a longer one.
    let (mut came, mut time): (Vec<(u64, f64)>, _) = (Vec::new(), String::new());
    for line in BufReader::new(pidstat.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Rows of threads: "TIME UID TGID TID cswch/s nvcswch/s |__Command"; all of a report have one time.
        if !line.contains("|__") || line.starts_with("Average") {
            continue;
        }
        if fields[0] != time {
            time = fields[0].to_string();
            came.push((monotonic_ns(), 0.0));
        }
        let (_, rate) = came.last_mut().unwrap();
        *rate += fields[4].parse::<f64>().unwrap() + fields[5].parse::<f64>().unwrap();
    }
    pidstat.wait().unwrap();
    assert!(came.len() as u32 == reports + 1, "{} reports", came.len());
    let switched: f64 = came.windows(2).map(|pair| pair[1].1 * (pair[1].0 - pair[0].0) as f64).sum();
    let stretch = came[0].0..came[came.len() - 1].0;
    (switched / (stretch.end - stretch.start) as f64, stretch)
}

/// Switches per second of the generator's threads in a record, between two instants.
fn switches_of(observation: &Observation, stretch: &std::ops::Range<u64>) -> f64 {
    let of_load = |subject: &Subject| matches!(subject, Subject::Task(at) if observation.tasks[*at as usize].role == Role::Load);
    let switches = [tasks::VOLUNTARY_SWITCHES.id, tasks::INVOLUNTARY_SWITCHES.id];
    let columns = observation.columns.iter();
    let columns = columns.filter(|c| switches.contains(&c.metric.as_str()) && of_load(&c.subject));
    let grown: f64 =
        columns.map(|c| value_at(&c.samples, stretch.end) - value_at(&c.samples, stretch.start)).sum();
    grown * 1e9 / (stretch.end - stretch.start) as f64
}

/// A counter at an instant, on a straight line between the readings around it.
fn value_at(samples: &[Sample], at_ns: u64) -> f64 {
    let after = samples.partition_point(|sample| sample.at_ns <= at_ns);
    let (Some(one), Some(other)) = (samples.get(after.wrapping_sub(1)), samples.get(after)) else {
        return if after == 0 { samples[0].value } else { samples[samples.len() - 1].value };
    };
    let share = (at_ns - one.at_ns) as f64 / (other.at_ns - one.at_ns) as f64;
    one.value + share * (other.value - one.value)
}

/// What a generator's connections received stands beside its report, and only a report of more than that is wrong for sure.
#[test]
fn a_generators_counts_are_held_against_its_connections() {
    let _alone = alone();
    let server = Server::embedded();
    let url = server.url("/plaintext");
    let tare = Tare::new();
    let loaded = |command: &str| {
        let options = ["run", "-q", "--json", "--no-levels", "--trials", "1", "--load-cpus", "1", "--load"];
        tare.json(&[&options[..], &[command, &url]].concat()).0
    };
    let warns = |result: &serde_json::Value| {
        let all = result["warnings"].as_array().unwrap();
        all.iter().any(|warning| warning["id"] == "report-of-other-count")
    };
    let wrk = format!("wrk -t1 -c8 -d2s {url}");
    let result = loaded(&wrk);
    assert!(!warns(&result), "{:#}", result["warnings"]);
    let own = |name: &str| result.pointer(&format!("/own_count/{name}")).cloned().unwrap_or_default();
    // A connection that anybody else opened meanwhile makes it missing.
    if let (Some(segments), Some(answers)) = (own("segments").as_f64(), own("reported_answers").as_f64()) {
        assert!(segments > 0.1 * answers && segments <= 1.01 * answers, "{:#}", result["own_count"]);
    }
    let closing = loaded(&format!("wrk -t1 -c8 -d2s -H 'Connection: close' {url}"));
    assert!(!warns(&closing) && closing["own_count"]["segments"]["missing"].is_string(), "{closing:#}");
    let inflated = r#"/requests in/ {sub(/MB/, "", $5); printf "  %d requests in %s, %.2fMB read\n", 20*$1, $4, 20*$5; next} {print}"#;
    let script = tare.state.path().join("inflated.sh");
    std::fs::write(&script, format!("{wrk} | awk '{inflated}'")).unwrap();
    let result = loaded(&format!("sh {}", script.display()));
    let is_counted = result["own_count"]["segments"].is_number();
    assert_eq!(warns(&result), is_counted, "{result:#}");
    assert!(!is_counted || result["valid"] == false, "{result:#}");
}
