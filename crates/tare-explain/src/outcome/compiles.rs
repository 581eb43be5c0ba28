//! `go test` and `cargo bench` compile before they measure: what the compilers took is in the program's time and CPU time, and in no
//! benchmark's.

use crate::accounting::Thread;
use crate::capacity::levels::Accounting;
use std::collections::BTreeSet;
use tare_model::observation::Role;
use tare_model::plan::Workload;

/// From this share of the CPU time on it says more of the compilers than of the benchmarks.
const SHARE_MIN: f64 = 0.2;

/// Commands that compile first, and how to have it done beforehand.
const COMPILE_FIRST: [(&[&str], &str); 3] = [
    (
        &["go", "test"],
        "build it first, and measure the binary: go test -c -o bench.test, then ./bench.test -test.bench=.",
    ),
    (
        &["cargo", "bench"],
        "build it first: cargo bench --no-run, then measure again, or the binary that it names",
    ),
    (&["cargo", "test"], "build it first: cargo test --no-run, then measure again"),
];

/// Names of the processes of Go's and Rust's compilers and linkers. Whole: a test binary of Go is called `link.test` where its package is.
const COMPILERS: [&str; 16] = [
    "compile", "link", "asm", "cgo", "vet", "rustc", "cc", "gcc", "clang", "cc1", "cc1plus", "collect2",
    "ld", "ld.lld", "rust-lld", "mold",
];

/// Compilers that ran beside the benchmarks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Compiles {
    /// Of the program's CPU time.
    pub share: f64,
    pub hint: &'static str,
}

/// Of the first command; `None` where it compiles nothing, or little.
pub(crate) fn compiles(accounting: &Accounting) -> Option<Compiles> {
    let Workload::Command(commands) = &accounting.record.plan.workload else { return None };
    // `cargo +nightly bench`
    let words = commands.commands.first()?.split_whitespace().filter(|word| !word.starts_with('+'));
    let words: Vec<&str> = words.collect();
    let program = words.first().map(|path| path.rsplit('/').next().unwrap_or(path))?;
    let is_it = |first: &[&str]| first.first() == Some(&program) && first.get(1) == words.get(1);
    let (_, hint) = COMPILE_FIRST.into_iter().find(|(first, _)| is_it(first))?;
    let pool = &accounting.asked.pool;
    let threads = || pool.threads_of(Role::Sut);
    let is_named = |thread: &&Thread| COMPILERS.contains(&thread.id.name.as_str());
    // A compiler's threads have names of their own; those of a process that came and went unseen are known by its name alone.
    let mains: BTreeSet<u32> =
        threads().filter(|one| one.id.tid == one.id.pid).filter(is_named).map(|one| one.id.pid).collect();
    let is_compiler = |one: &&Thread| if one.is_one() { mains.contains(&one.id.pid) } else { is_named(one) };
    let run_s: f64 = threads().map(|thread| thread.run_s).sum();
    let compiled_s: f64 = threads().filter(is_compiler).map(|thread| thread.run_s).sum();
    let share = if run_s > 0.0 { compiled_s / run_s } else { 0.0 };
    (share >= SHARE_MIN).then_some(Compiles { share, hint })
}
