//! Names of code that runs: of symbols of C++ and Rust, of a stripped program with its debug file, of code made at run time.

use crate::support::alone;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tare_machine::Root;
use tare_model::observation::Role;
use tare_model::stacks::{FrameKind, Stacks};
use tare_observe::{LoadWatch, Names, Observers, StackWatch, Unwind, Watch};

/// Spins in a function that is named by its first argument. `jit` makes the code itself and tells its name as compilers
/// at run time do; its loop is one instruction.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
volatile unsigned long turns;
__attribute__((noinline)) void shown(void) __asm__("_ZN4tare5spins4loopEv");
__attribute__((noinline)) void shown(void) { for (;;) turns++; }
__attribute__((noinline)) void rust(void) __asm__("_RNvNtC4tare5spins4turn");
__attribute__((noinline)) void rust(void) { for (;;) turns++; }
__attribute__((noinline)) void older_rust(void) __asm__("_ZN4tare5spins5older17h0123456789abcdefE");
__attribute__((noinline)) void older_rust(void) { for (;;) turns++; }
static __attribute__((noinline)) void inner(void) { for (;;) turns++; }
static __attribute__((noinline)) void middle(void) { char room[99]; __asm__ volatile("" : : "r"(room) : "memory"); inner(); turns++; }
static __attribute__((noinline)) void hidden_spin(void) { for (;;) turns++; }
static void made(void) {
    unsigned char *code = mmap(0, 4096, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
#ifdef __x86_64__
    memcpy(code, "\xeb\xfe", 2);
#else
    memcpy(code, "\x00\x00\x00\x14", 4);
#endif
    __builtin___clear_cache((char *)code, (char *)code + 4);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx 1000 made_at_run_time\n", (unsigned long)code);
    fclose(map);
    ((void (*)(void))code)();
}
int main(int count, char **words) {
    if (!strcmp(words[1], "shown")) shown();
    if (!strcmp(words[1], "rust")) rust();
    if (!strcmp(words[1], "older rust")) older_rust();
    if (!strcmp(words[1], "deep")) middle();
    if (!strcmp(words[1], "hidden")) hidden_spin();
    made();
}
"#;

struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
        std::fs::remove_file(format!("/tmp/perf-{}.map", self.0.id())).ok();
    }
}

fn spin(program: &Path, word: &str) -> Spinner {
    Spinner(Command::new(program).arg(word).stdin(Stdio::null()).spawn().unwrap())
}

fn tool(name: &str, arguments: &[&str], folder: &Path) {
    let status = Command::new(name).args(arguments).current_dir(folder).status().unwrap();
    assert!(status.success(), "{name} {arguments:?}");
}

/// CPU time of a process, in ticks.
fn ran(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(11).unwrap().parse().unwrap()
}

/// Watches these until each has run for some 100 samples, of which a host that stops the machine may swallow most.
fn watched(spinners: &[Spinner], unwind: Unwind, off_cpu: bool) -> Stacks {
    let cpus = tare_sys::affinity::get(0).unwrap();
    let watch = Watch {
        server_port: None,
        sut_pids: spinners.iter().map(|spinner| spinner.0.id()).collect(),
        beside_pids: Vec::new(),
        load: LoadWatch::None,
        sut_cpus: cpus,
        load_cpus: Vec::new(),
        observer_cpus: Vec::new(),
        sample_hz: 20.0,
        clock: false,
        stacks: Some(StackWatch { hz: 999, unwind, off_cpu, names: Names::DebugFiles }),
        stacks_alone: false,
        trace: false,
    };
    let observers = Observers::start(watch, &Root::live()).unwrap();
    observers.begin();
    let before: Vec<u64> = spinners.iter().map(|spinner| ran(spinner.0.id())).collect();
    let deadline = Instant::now() + Duration::from_secs(60);
    while spinners.iter().zip(&before).any(|(spinner, before)| ran(spinner.0.id()) < before + 12) {
        assert!(Instant::now() < deadline, "they do not run");
        std::thread::sleep(Duration::from_millis(20));
    }
    *observers.end().stacks.unwrap()
}

#[test]
fn functions_have_their_names() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("spin.c"), PROGRAM).unwrap();
    tool(
        "cc",
        &["-g", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", "spin", "spin.c"],
        folder.path(),
    );
    tool("objcopy", &["--only-keep-debug", "spin", "spin.debug"], folder.path());
    tool("objcopy", &["--strip-all", "--add-gnu-debuglink=spin.debug", "spin", "stripped"], folder.path());
    let words = ["shown", "rust", "older rust", "made"];
    let mut spinners: Vec<Spinner> = words.iter().map(|word| spin(&at("spin"), word)).collect();
    spinners.push(spin(&at("stripped"), "hidden"));
    let stacks = watched(&spinners, Unwind::FramePointers, true);
    let profile = match stacks.on_cpu.clone().ok() {
        Ok(profile) => profile,
        Err(missing) => return println!("not sampled here: {missing}"),
    };
    let mut own: BTreeMap<&str, (u64, FrameKind)> = BTreeMap::new();
    for stack in &profile.stacks {
        assert_eq!(stack.role, Role::Sut);
        let frame = stacks.frame(*stack.frames.last().unwrap()).unwrap();
        own.entry(&frame.symbol).or_insert((0, frame.kind)).0 += stack.value;
    }
    let seen = |symbol: &str, kind| own.get(symbol).is_some_and(|(count, of)| *count >= 20 && *of == kind);
    assert!(seen("tare::spins::loop()", FrameKind::User), "{own:?}");
    assert!(seen("tare::spins::turn", FrameKind::User), "{own:?}");
    assert!(seen("tare::spins::older", FrameKind::User), "{own:?}");
    assert!(seen("hidden_spin", FrameKind::User), "{own:?}");
    assert!(seen("made_at_run_time", FrameKind::Jit), "{own:?}");
    let module = stacks.modules.iter().find(|module| module.name() == "stripped").unwrap();
    assert!(module.build_id.as_ref().is_some_and(|id| id.len() == 40), "{module:?}");
    // Five that never sleep on fewer CPUs wait for their turn.
    let few = tare_sys::affinity::get(0).unwrap().len() < 5;
    if let (true, Ok(waiting)) = (few, stacks.off_cpu.clone().ok()) {
        let waits = |stack: &&tare_model::stacks::Stack| {
            stack.frames.iter().any(|index| stacks.frame(*index).unwrap().symbol == "[runnable]")
        };
        assert!(waiting.stacks.iter().filter(waits).map(|stack| stack.value).sum::<u64>() > 1_000_000);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_without_frame_pointers_has_its_callers_from_copies() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spin.c"), PROGRAM).unwrap();
    tool("cc", &["-O1", "-fomit-frame-pointer", "-o", "spin", "spin.c"], folder.path());
    let stacks = watched(&[spin(&folder.path().join("spin"), "deep")], Unwind::Dwarf, false);
    let profile = match stacks.on_cpu.clone().ok() {
        Ok(profile) => profile,
        Err(missing) => return println!("not sampled here: {missing}"),
    };
    let name = |index: &u32| stacks.frame(*index).unwrap().symbol.clone();
    let ends = |frames: &[u32]| {
        let names: Vec<String> = frames.iter().map(name).collect();
        names.iter().any(|name| name == "main") && names.ends_with(&["middle".into(), "inner".into()])
    };
    let whole: u64 = profile.stacks.iter().filter(|stack| ends(&stack.frames)).map(|stack| stack.value).sum();
    let all = profile.total(Role::Sut);
    // The rest was in the kernel, or in the middle of a call.
    assert!(all >= 20 && whole * 2 > all, "{whole} of {all}: {:?}", profile.stacks);
}
