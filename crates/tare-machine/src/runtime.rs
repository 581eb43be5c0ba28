//! Which runtime a process is, as far as that says how it gets warm: whether it compiles what has run often enough, for how long that
//! takes at least, and which of its threads do it.

use crate::procs;
use crate::root::Root;
use std::time::Duration;

/// Less code made at run time than this is a regular expression's or a trampoline, and is made once.
const MADE_BYTES_MIN: u64 = 1 << 20;

/// A runtime that makes code while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runtime {
    /// HotSpot, OpenJ9 or Graal.
    Jvm,
    /// Node, Deno or another program with V8.
    V8,
    /// Bun, or another program with JavaScriptCore.
    JavaScriptCore,
    /// CoreCLR.
    DotNet,
    /// Python with a tracing compiler.
    PyPy,
    /// Lua with a tracing compiler.
    LuaJit,
    /// Julia.
    Julia,
    /// Code that is in no file, by whatever made it.
    Other,
}

impl Runtime {
    /// What readers call it.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Jvm => "JVM",
            Runtime::V8 => "V8",
            Runtime::JavaScriptCore => "JavaScriptCore",
            Runtime::DotNet => ".NET",
            Runtime::PyPy => "PyPy",
            Runtime::LuaJit => "LuaJIT",
            Runtime::Julia => "Julia",
            Runtime::Other => "a runtime that compiles",
        }
    }

    /// Under load for less than this it is not taken for warm, whatever its figures say: its compilers wait for counts of calls, and its cost
    /// stands still for up to a second between two of their steps (a JVM on one CPU: at 52 µs a request from 2.3 to 3.5 s, at 23 µs
    /// from 4.2 s on; Node: at 150 µs from 1 to 2 s, at 138 µs from 2.3 s on).
    pub fn least_load(self) -> Duration {
        Duration::from_millis(match self {
            Runtime::Jvm | Runtime::V8 | Runtime::DotNet | Runtime::PyPy | Runtime::JavaScriptCore => 3000,
            Runtime::Other | Runtime::Julia => 1500,
            Runtime::LuaJit => 1000,
        })
    }

    /// Whether its compilers have threads of their own, so that it can be seen when they are done.
    pub fn shows_compiling(self) -> bool {
        matches!(self, Runtime::Jvm | Runtime::DotNet)
    }

    /// Of one process; `None` where its code was compiled before, or it cannot be read.
    pub fn of(root: &Root, pid: u32) -> Option<Runtime> {
        let maps = root.text(format!("/proc/{pid}/maps")).ok()?;
        let program = std::fs::read_link(root.path(format!("/proc/{pid}/exe"))).ok();
        let program = program.as_deref().and_then(|path| path.file_name()?.to_str());
        seen(program.unwrap_or_default(), &maps)
    }

    /// The one that takes longest to get warm, of several processes.
    pub fn of_any(root: &Root, pids: &[u32]) -> Option<Runtime> {
        pids.iter().filter_map(|pid| Runtime::of(root, *pid)).max_by_key(|runtime| runtime.least_load())
    }
}

/// By the program's name and its mappings.
fn seen(program: &str, maps: &str) -> Option<Runtime> {
    let program = program.strip_suffix(" (deleted)").unwrap_or(program);
    let by_name = match program {
        "java" => Some(Runtime::Jvm),
        "node" | "nodejs" | "deno" | "electron" => Some(Runtime::V8),
        "bun" => Some(Runtime::JavaScriptCore),
        "dotnet" => Some(Runtime::DotNet),
        "luajit" => Some(Runtime::LuaJit),
        "julia" => Some(Runtime::Julia),
        // BEAM compiles a module when it loads it, and never again.
        "beam.smp" | "beam" => return None,
        name if name.starts_with("pypy") => Some(Runtime::PyPy),
        _ => None,
    };
    let files = [
        ("libjvm.so", Runtime::Jvm),
        ("libj9jit", Runtime::Jvm),
        ("libnode.so", Runtime::V8),
        ("libcoreclr.so", Runtime::DotNet),
        ("libpypy", Runtime::PyPy),
        ("libjavascriptcoregtk", Runtime::JavaScriptCore),
        ("libjulia", Runtime::Julia),
    ];
    let by_file = || files.into_iter().find(|(file, _)| maps.contains(file)).map(|(_, runtime)| runtime);
    by_name.or_else(by_file).or_else(|| {
        let made: u64 = maps.lines().filter_map(made_at_run_time).sum();
        // A library alone does nothing: a proxy that could run scripts is not one that does.
        let lua = || if maps.contains("libluajit") { Runtime::LuaJit } else { Runtime::Other };
        (made >= MADE_BYTES_MIN).then(lua)
    })
}

/// Bytes of a mapping that is code and in no file.
fn made_at_run_time(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let inode = fields.nth(2)?;
    let is_made = match fields.next() {
        None => inode == "0",
        Some(path) => path.starts_with("[anon:") || path.starts_with("/memfd:"),
    };
    let bytes =
        || Some(u64::from_str_radix(to, 16).ok()?.saturating_sub(u64::from_str_radix(from, 16).ok()?));
    if is_code && is_made { bytes() } else { None }
}

/// CPU time of the threads that compile, in these processes, nanoseconds; those that are there now.
pub fn compiling_ns(root: &Root, pids: &[u32]) -> u64 {
    let of_thread = |pid: u32, tid: u32| {
        let name = root.text(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
        if !compiles(name.trim_end()) {
            return None;
        }
        procs::schedstat(root, pid, tid).map(|[run_ns, _]| run_ns)
    };
    let threads = |pid: &u32| {
        let pid = *pid;
        procs::tasks_of(root, pid).into_iter().filter_map(move |tid| of_thread(pid, tid))
    };
    pids.iter().flat_map(threads).sum()
}

/// Names as the kernel cuts them.
fn compiles(thread: &str) -> bool {
    ["C1 CompilerThre", "C2 CompilerThre", "JVMCI", "JIT Compilation", ".NET Tiered Com"]
        .iter()
        .any(|name| thread.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &str =
        "55d0-55d4 r-xp 00000000 fe:00 77 /usr/sbin/nginx\n7ff0-7ff4 r-xp 00000000 00:00 0 [vdso]\n";

    #[test]
    fn what_is_compiled_ahead_gets_warm_by_itself() {
        assert_eq!(seen("nginx", FILES), None);
        let small = format!("{FILES}7f0000000000-7f0000010000 rwxp 00000000 00:00 0\n");
        assert_eq!(seen("nginx", &small), None, "a regular expression's code");
        let library = format!("{FILES}7f10-7f20 r-xp 00000000 fe:00 78 /usr/lib/libluajit-5.1.so.2\n");
        assert_eq!(seen("haproxy", &library), None, "it could run scripts, and runs none");
        assert_eq!(seen("beam.smp", "7f0000000000-7f0010000000 rwxp 00000000 00:00 0\n"), None);
    }

    #[test]
    fn a_runtime_is_known_by_its_name_its_library_or_the_code_it_made() {
        let made = "7f0000000000-7f0000400000 r-xp 00000000 00:00 0 \n";
        assert_eq!(seen("java", FILES), Some(Runtime::Jvm));
        assert_eq!(seen("node (deleted)", FILES), Some(Runtime::V8));
        let library = "7f10-7f20 r-xp 00000000 fe:00 9 /usr/lib/jvm/lib/server/libjvm.so\n";
        assert_eq!(seen("launcher", library), Some(Runtime::Jvm));
        assert_eq!(seen("pypy3.9", ""), Some(Runtime::PyPy));
        assert_eq!(seen("workerd", made), Some(Runtime::Other));
        let double = "7f0000000000-7f0000400000 r-xs 00000000 00:05 1026 /memfd:doublemapper (deleted)\n";
        assert_eq!(seen("api", double), Some(Runtime::Other));
        let scripts = format!("{made}7f10-7f20 r-xp 00000000 fe:00 78 /usr/lib/libluajit-5.1.so.2\n");
        assert_eq!(seen("nginx", &scripts), Some(Runtime::LuaJit));
    }

    #[test]
    fn threads_that_compile_are_known_by_their_names() {
        assert!(compiles("C2 CompilerThre") && compiles(".NET Tiered Com") && !compiles("pool-1-thread-1"));
        // Of this process, which has none.
        assert_eq!(compiling_ns(&Root::live(), &[std::process::id()]), 0);
        assert_eq!(Runtime::of(&Root::live(), std::process::id()), None);
        assert_eq!(Runtime::of(&Root::live(), 0x3fff_fff0), None);
    }
}
