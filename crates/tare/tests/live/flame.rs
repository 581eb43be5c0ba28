//! Call stacks of real servers: against `perf`, between two architectures, and as other tools read them.

use crate::support::{Server, Tare, alone, eventually, free_port, go_program};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

/// Seconds that both sample: some 3,000 samples of a server that has a CPU to itself where the timer fires no oftener than 250
/// times a second, so that the difference of two shares of 20 % has a standard error of a point.
const WINDOW_S: u32 = 12;
/// How far two shares of a symbol may be apart, beside what so few samples tell: the two windows overlap and are not the same.
const APART_MAX: f64 = 0.05;

/// Stacks as `tare flame --folded` prints them: frames, outermost first, and values.
fn folded(tare: &Tare, arguments: &[&str]) -> Vec<(Vec<String>, Vec<u64>)> {
    let output = tare.run(&[&["flame"], arguments, &["--folded"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let line = |line: &str| {
        let columns = line.split(' ').rev().take_while(|word| word.parse::<u64>().is_ok()).count().min(2);
        let mut words: Vec<&str> = line.rsplitn(columns + 1, ' ').collect();
        let path = words.pop().unwrap().split(';').map(|name| name.trim_end_matches("_[k]").to_owned());
        words.reverse();
        (path.collect(), words.iter().map(|word| word.parse().unwrap()).collect())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

/// A symbol, or one word for code without a name: we tell its module, perf its address. Of names for the same place
/// (`writev`, `__writev`, `__GI___writev`) each may take another.
fn known(symbol: &str) -> String {
    let unnamed = symbol.starts_with("0x") || (symbol.starts_with('[') && symbol.ends_with(']'));
    let plain = symbol.trim_start_matches("__GI_").trim_start_matches('_');
    if unnamed { "(no name)".into() } else { plain.into() }
}

/// Share of each symbol's own samples.
fn own_shares(stacks: &[(Vec<String>, Vec<u64>)]) -> (BTreeMap<String, f64>, u64) {
    let total: u64 = stacks.iter().map(|(_, values)| values[0]).sum();
    let mut shares = BTreeMap::new();
    for (path, values) in stacks {
        *shares.entry(known(path.last().unwrap())).or_default() += values[0] as f64 / total as f64;
    }
    (shares, total)
}

/// What `perf report` says of these threads: share of each symbol's own samples, and how many there were. Threads are columns and not a filter,
/// which would drop symbols that another process was seen in first.
fn perf_shares(data: &Path, tids: &[u32]) -> (BTreeMap<String, f64>, u64) {
    let output = Command::new("perf")
        .args(["report", "--stdio", "--no-children", "-g", "none", "-F", "overhead,sample,pid,sym", "-i"])
        .arg(data)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut shares, mut samples) = (BTreeMap::new(), 0);
    for line in text.lines() {
        // `    12.34%          240     3536:serve-0          [k] finish_task_switch.isra.0`
        let Some((share, rest)) = line.trim().split_once('%') else { continue };
        let (Ok(share), Some((who, symbol))) = (share.parse::<f64>(), rest.split_once("] ")) else {
            continue;
        };
        let Some((count, who)) = who.trim().split_once(' ') else { continue };
        // The column is called pid and holds threads.
        let tid = who.trim().split(':').next().and_then(|tid| tid.parse::<u32>().ok());
        if tid.is_some_and(|tid| tids.contains(&tid)) {
            samples += count.parse::<u64>().unwrap_or(0);
            *shares.entry(known(symbol.trim())).or_default() += share;
        }
    }
    let all: f64 = shares.values().sum();
    shares.values_mut().for_each(|share| *share /= all);
    assert!(!shares.is_empty(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    (shares, samples)
}

/// Windows until perf has sampled as often as it was asked to. On a host that holds its timers up it was seen to take 800 samples of
/// 19,000, nearly half of them in a spin lock: that is no standard, whatever it says.
const WINDOWS_MAX: usize = 3;

/// Compares what tare and perf say of the largest symbols of a server, in a window that perf has sampled.
fn compare(name: &str, server: &Server) {
    assert!((0..WINDOWS_MAX).any(|_| is_compared(name, server)), "{name}: perf took too few samples");
}

/// Samples a server under a steady load with tare and with perf, at the same time; false where perf took less than half as many.
fn is_compared(name: &str, server: &Server) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let threads = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let tids = server.pids.iter().flat_map(threads).map(|task| task.file_name().to_str().unwrap().parse());
    let tids: Vec<u32> = tids.map(Result::unwrap).collect();
    let (record, data) = (folder.path().join("a.tare"), folder.path().join("perf.data"));
    let url = server.url(server.good_path);
    let mut wrk = Command::new("taskset")
        .args(["-c", "1", "wrk", "-t1", "-c16", &format!("-d{}s", WINDOW_S + 12), &url])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let tare = Tare::new();
    let (load, length) = (wrk.id().to_string(), format!("{WINDOW_S}s"));
    let mut ours = tare.command();
    ours.args(["run", "-q", "--stacks=999", "--trials", "1", "-d", &length, "--load-pid", &load, "-o"]);
    let mut ours = ours.arg(&record).arg(&url).stdout(Stdio::null()).spawn().unwrap();
    // On CPUs, as ours: a clock of a task begins anew at each of its switches, which then seem to take longer. At another rate than ours: of two
    // clocks with the same period and a busy CPU one was seen to lose three of four samples, for as long as both ran.
    let perf = Command::new("perf")
        .args(["record", "-q", "-F", "1061", "-e", "cpu-clock", "-g", "-a", "-o"])
        .arg(&data)
        .args(["--", "sleep", &WINDOW_S.to_string()])
        .output()
        .unwrap();
    ours.wait().unwrap();
    crate::support::terminate(&mut wrk);
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    let (ours, samples) = own_shares(&folded(&tare, &[record.to_str().unwrap()]));
    let (theirs, their_samples) = perf_shares(&data, &tids);
    println!("{name}: {samples} samples, by perf {their_samples}");
    if 2 * their_samples < samples {
        return false;
    }
    let top = |shares: &BTreeMap<String, f64>| {
        let mut all: Vec<(&String, &f64)> = shares.iter().collect();
        all.sort_by(|one, other| other.1.total_cmp(one.1));
        all.into_iter().take(10).map(|(symbol, _)| symbol.clone()).collect::<Vec<String>>()
    };
    println!("symbol, share by tare, by perf");
    let mut apart = Vec::new();
    for symbol in top(&theirs).into_iter().chain(top(&ours)).collect::<BTreeSet<String>>() {
        let share = |shares: &BTreeMap<String, f64>| shares.get(&symbol).copied().unwrap_or(0.0);
        let (our, their) = (share(&ours), share(&theirs));
        println!("{symbol:48} {:6.2} % {:6.2} %", our * 100.0, their * 100.0);
        // Five standard errors of the difference of two shares of so many samples.
        let share = our.max(their);
        let error = 5.0 * (2.0 * share * (1.0 - share) / samples as f64).sqrt();
        // A virtual CPU that waits for a lock waits for the host to run the one that has it, in one second and not in the next; and these are
        // not quite the same seconds.
        let is_the_hosts = symbol.starts_with("pv_queued_spin");
        if (our - their).abs() > APART_MAX + error && !is_the_hosts {
            apart.push(symbol);
        }
    }
    assert!(samples > 0 && apart.is_empty(), "{name}, of {samples} samples: {apart:?}");
    true
}

#[test]
fn the_largest_symbols_are_those_of_perf_report() {
    let _alone = alone();
    compare("nginx", &Server::nginx());
    compare("tare serve", &Server::embedded());
}

/// A record of the built-in server where each request is a new connection. It is built without frame pointers, so its callers are found by
/// DWARF.
fn measured(tare: &Tare, record: &Path, architecture: &str) {
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_tare");
    let start = format!("exec {program} serve --listen 127.0.0.1:{port} --arch {architecture} --threads 4");
    let url = format!("http://127.0.0.1:{port}/plaintext");
    let output = tare
        .command()
        .args(["run", "-q", "--stacks", "--stacks-off-cpu", "--no-levels", "--no-keepalive", "--trials", "2"])
        .args(["-w", "300ms", "-d", "2s", "-c", "16", "--sut", &start, "-o"])
        .arg(record)
        .args(if cfg!(target_arch = "x86_64") { &["--stacks-unwind", "dwarf"][..] } else { &[] })
        .arg(&url)
        .output()
        .unwrap();
    assert!(record.exists(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Inclusive shares of the frames whose name has this in it, in both columns.
fn inclusive(lines: &[(Vec<String>, Vec<u64>)], part: &str) -> [f64; 2] {
    [0, 1].map(|column: usize| {
        let of = |with: bool| {
            let has = |path: &[String]| !with || path.iter().any(|name| name.contains(part));
            lines.iter().filter(|(path, _)| has(path)).map(|(_, values)| values[column]).sum::<u64>()
        };
        of(true) as f64 / of(false).max(1) as f64
    })
}

#[test]
fn handing_over_shows_as_queue_and_eventfd_in_the_difference() {
    let _alone = alone();
    let (tare, folder) = (Tare::new(), tempfile::tempdir().unwrap());
    let [without, with] = ["shared-nothing", "dispatch"].map(|architecture| {
        let record = folder.path().join(format!("{architecture}.tare"));
        measured(&tare, &record, architecture);
        record.to_str().unwrap().to_owned()
    });
    let lines = folded(&tare, &[&without, &with]);
    for part in ["eventfd", "architecture::queue"] {
        let [before, after] = inclusive(&lines, part);
        println!("{part}: {:.2} % before, {:.2} % after", before * 100.0, after * 100.0);
        assert!(after > before + 0.005, "{part} did not grow: {before} {after}");
    }
    let waits = folded(&tare, &[&with, "--off-cpu"]);
    assert!(waits.iter().any(|(path, _)| path.iter().any(|name| name.contains("schedule"))), "{waits:?}");
    exported(&tare, &with, folder.path());
}

/// A real reader takes what is exported.
fn exported(tare: &Tare, record: &str, folder: &Path) {
    let (pprof, firefox, svg) = (folder.join("a.pb.gz"), folder.join("a.json"), folder.join("a.svg"));
    let output = tare
        .command()
        .args(["flame", record, "--export-pprof"])
        .arg(&pprof)
        .arg("--export-firefox")
        .arg(&firefox)
        .arg("-o")
        .arg(&svg)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("samples at 999 Hz"), "{said}");
    assert!(std::fs::read_to_string(&svg).unwrap().contains("interrupts off"));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&firefox).unwrap()).unwrap();
    assert!(json["threads"].as_array().unwrap().len() >= 2, "threads are apart");
    let go = ["/usr/local/go/bin/go", "/usr/bin/go"].into_iter().find(|go| Path::new(go).exists());
    let Some(go) = go else { return println!("no go here to read {} with", pprof.display()) };
    let output = Command::new(go).args(["tool", "pprof", "-top"]).arg(&pprof).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{}", text.lines().take(9).collect::<Vec<_>>().join("\n"));
    assert!(text.contains("do_syscall_64"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// A Go server that spends its time in a method of its own.
const SPINS: &str = r#"package main
import ("net/http"; "os")
type dealer struct { turns int }
//go:noinline
func (d *dealer) spin() { for i := 0; i < 1000000; i++ { d.turns += i } }
func main() {
	d := &dealer{}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { d.spin(); w.Write([]byte("ok")) })
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"#;

#[test]
fn go_functions_have_their_names_and_callers() {
    let _alone = alone();
    let (tare, folder) = (Tare::new(), tempfile::tempdir().unwrap());
    let program = go_program(folder.path(), SPINS);
    let port = free_port();
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(&program).arg(port.to_string());
    let server = Server::of(command, port);
    let record = folder.path().join("go.tare");
    let mut run = tare.command();
    run.args(["run", "-q", "--stacks", "--no-levels", "--trials", "2", "-d", "1s", "-c", "2", "-o"]);
    let output = run.arg(&record).arg(server.url("/")).output().unwrap();
    assert!(record.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = folded(&tare, &[record.to_str().unwrap()]);
    let spins = |path: &[String]| {
        let at = |part: &str| path.iter().position(|name| name.contains(part));
        at("net/http.").is_some_and(|caller| at("main.(*dealer).spin").is_some_and(|spin| caller < spin))
    };
    let of = |which: &dyn Fn(&[String]) -> bool| -> u64 {
        lines.iter().filter(|(path, _)| which(path)).map(|(_, values)| values[0]).sum()
    };
    let (spun, all) = (of(&spins), of(&|_| true));
    println!("{spun} of {all} samples in the method");
    assert!(all > 0 && spun as f64 > 0.5 * all as f64, "{lines:?}");
}

#[test]
fn without_the_right_there_is_a_reason_and_a_remedy() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let everybody = |path: &Path| {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, open).unwrap();
    };
    // Where nobody may start it, the folders of a build can be closed to others.
    let program = folder.path().join("tare");
    std::fs::copy(env!("CARGO_BIN_EXE_tare"), &program).unwrap();
    everybody(folder.path());
    everybody(&program);
    let record = folder.path().join("a.tare");
    let nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(&program)
            .args(arguments);
        command
            .env("TARE_STATE_DIR", folder.path().join("state"))
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let file = record.to_str().unwrap();
    let output = nobody(&["run", "-q", "--stacks", "--no-levels", "--trials", "1", "-d", "1s", "-o", file]);
    assert!(record.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = nobody(&["flame", file]);
    let said = String::from_utf8_lossy(&output.stderr);
    // Where the machine lets everybody sample, there is a drawing.
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim().parse::<i32>().unwrap() > 0 {
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("not permitted") && said.contains("kernel.perf_event_paranoid"), "{said}");
    }
}

#[test]
fn what_perf_script_printed_is_drawn() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("perf.txt");
    let script = "sh  12 [000] 5.5: 1 cpu-clock: \n\tffffffff81000010 vfs_read+0x10 ([kernel.kallsyms])\n\
        \t    55d000001234 main+0x14 (/bin/sh)\n\n";
    std::fs::write(&text, script).unwrap();
    let tare = Tare::new();
    let lines = folded(&tare, &["--import", text.to_str().unwrap()]);
    assert_eq!(lines, [(vec!["main".to_owned(), "vfs_read".to_owned()], vec![1])]);
    std::fs::write(&text, "no stacks\n").unwrap();
    let output = tare.run(&["flame", "--import", text.to_str().unwrap(), "--folded"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("perf script"));
}

/// Every trial is there by then: whoever waits no longer has a complete result, and is not said to have interrupted it.
#[test]
fn ctrl_c_while_the_profile_is_taken_leaves_a_complete_run() {
    let _alone = alone();
    let (tare, server) = (Tare::new(), Server::embedded());
    let record = tare.state.path().join("run.tare");
    let record = record.to_str().unwrap();
    let arguments =
        ["run", "-q", "--json", "--trials", "3", "-d", "500ms", "-w", "100ms", "--no-levels", "-o", record];
    let mut command = tare.command();
    command.args(arguments).arg(server.url("/plaintext")).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    eventually("all trials are kept", || {
        let shown = tare.run(&["show", "--json", record]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        shown["trials"].as_array().is_some_and(|trials| trials.len() == 3)
    });
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["trials"].as_array().map(Vec::len), Some(3));
    let warnings = result["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|warning| warning["id"] != "interrupted"), "{warnings:#?}");
}
