//! Programs whose run is timed: started without a copy of this process, with stamps taken directly around.
//!
//! The child shares our memory until it executes the program (`CLONE_VM | CLONE_VFORK`, as `posix_spawn` does): nothing is
//! copied that would have to be thrown away, and the calling thread goes on when the program has begun.

use crate::affinity::Mask;
use crate::process::{Confinement, check, die_with, go_without_thp, join_group};
use crate::time::monotonic_ns;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The stack that a child has until it executes the program. What is not used of it is never there.
const STACK_BYTES: usize = 256 << 10;

/// What is executed, with everything that needs memory made ready before.
#[derive(Debug)]
pub struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    groups: Vec<CString>,
    mask: Option<Box<Mask>>,
    no_thp: bool,
    terminal: bool,
}

impl Program {
    /// `path` is executed as it is (it is not searched for) with these words and our environment, in which `variables` are set.
    /// With `terminal`, its standard output becomes the terminal of a session of its own.
    ///
    /// # Errors
    /// A NUL byte in any of it, or a CPU that no mask can name.
    pub fn new(
        path: &std::path::Path,
        words: &[String],
        variables: &[(&str, &str)],
        confinement: &Confinement,
        terminal: bool,
    ) -> io::Result<Program> {
        let kept = std::env::vars_os().filter(|(name, _)| variables.iter().all(|(own, _)| name != own));
        let pair = |name: Vec<u8>, value: &[u8]| CString::new([&name, &b"="[..], value].concat());
        let own = variables.iter().map(|(name, value)| pair(name.as_bytes().to_vec(), value.as_bytes()));
        let environment = kept.map(|(name, value)| pair(name.into_vec(), value.as_bytes())).chain(own);
        let mask = match confinement.cpus.as_slice() {
            [] => None,
            cpus => Some(Box::new(Mask::new(cpus)?)),
        };
        let group = |path: &std::path::PathBuf| CString::new(path.as_os_str().as_bytes());
        Ok(Program {
            path: CString::new(path.as_os_str().as_bytes())?,
            arguments: words.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
            groups: confinement.cgroup_procs.iter().map(group).collect::<Result<_, _>>()?,
            mask,
            no_thp: confinement.no_thp,
            terminal,
        })
    }
}

/// A program that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// Its number; its process group has the same.
    pub pid: u32,
    /// Before its process was made.
    pub made_ns: u64,
    /// Just before it was executed.
    pub executed_ns: u64,
}

/// Starts programs one after another.
#[derive(Debug)]
pub struct Starter {
    stack: Vec<u128>,
}

impl Default for Starter {
    fn default() -> Starter {
        Starter { stack: Vec::with_capacity(STACK_BYTES / size_of::<u128>()) }
    }
}

/// What the child reads, and what it leaves behind.
struct Child<'p> {
    program: &'p Program,
    arguments: Vec<*const c_char>,
    /// The same for `/bin/sh`.
    through_shell: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    stdio: [c_int; 3],
    parent: u32,
    /// Signals that have a handler of ours, which must not run in the child.
    handled: Vec<c_int>,
    unblocked: libc::sigset_t,
    executed_ns: u64,
    error: Option<io::Error>,
}

impl Starter {
    /// Begins the program as the leader of a process group of its own, with `stdio` as its standard streams (none of which may
    /// be 0, 1 or 2 in another place than its own); the kernel kills it when the calling *thread* ends. Returns when it is executed.
    ///
    /// # Errors
    /// What making the process, confining it or executing the program reports; nothing runs then.
    pub fn start(&mut self, program: &Program, stdio: [BorrowedFd<'_>; 3]) -> io::Result<Begun> {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let arguments = pointers(&program.arguments);
        let rest = arguments.iter().skip(1).copied();
        let mut child = Child {
            program,
            through_shell: [c"sh".as_ptr(), program.path.as_ptr()].into_iter().chain(rest).collect(),
            arguments,
            environment: pointers(&program.environment),
            stdio: stdio.map(|fd| fd.as_raw_fd()),
            parent: std::process::id(),
            handled: handled(),
            unblocked: block_all()?,
            executed_ns: 0,
            error: None,
        };
        // The child has our memory until it executes the program, and what it asks for huge pages holds for that memory, and so for us.
        // SAFETY: plain numbers.
        let huge_pages = program.no_thp.then(|| unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) });
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let made_ns = monotonic_ns();
        // SAFETY: the stack is ours, aligned, and as large as its capacity; with CLONE_VFORK this thread does not run before the child
        // has executed the program or ended, so that `child` and the stack outlive it and nobody else touches them meanwhile.
        let pid = unsafe {
            let top = self.stack.as_mut_ptr().add(self.stack.capacity());
            libc::clone(become_program, top.cast(), flags, std::ptr::from_mut(&mut child).cast())
        };
        let failed = check(pid).err();
        if let Some(before) = huge_pages.filter(|before| *before >= 0) {
            // SAFETY: plain numbers.
            unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, before, 0, 0, 0) };
        }
        // SAFETY: the mask is a live local that the kernel filled; the last pointer may be null.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &child.unblocked, std::ptr::null_mut()) };
        if let Some(error) = failed {
            return Err(error);
        }
        match child.error {
            None => Ok(Begun { pid: pid as u32, made_ns, executed_ns: child.executed_ns }),
            Some(error) => {
                crate::process::wait4(pid as u32, true).ok();
                Err(error)
            }
        }
    }
}

/// The child's life until the program is executed: system calls on memory that was made ready, no allocation, no lock.
extern "C" fn become_program(child: *mut c_void) -> c_int {
    // SAFETY: `Starter::start` passes a pointer to its own `Child`, and does not run before this has ended.
    let child = unsafe { &mut *child.cast::<Child<'_>>() };
    if let Err(error) = child.become_it() {
        child.error = Some(error);
    }
    127
}

impl Child<'_> {
    /// Does not return where it succeeds.
    fn become_it(&mut self) -> io::Result<()> {
        let default = libc::SIG_DFL;
        for signal in &self.handled {
            // SAFETY: a number and the default action; the child has a table of handlers of its own.
            unsafe { libc::signal(*signal, default) };
        }
        die_with(self.parent)?;
        match self.program.terminal {
            // SAFETY: takes no arguments, touches no memory.
            true => check(unsafe { libc::setsid() })?,
            // SAFETY: plain numbers.
            false => check(unsafe { libc::setpgid(0, 0) })?,
        }
        self.program.groups.iter().try_for_each(join_group)?;
        if let Some(mask) = &self.program.mask {
            mask.apply(0)?;
        }
        if self.program.no_thp {
            go_without_thp()?;
        }
        for (target, fd) in (0..).zip(self.stdio) {
            // SAFETY: plain numbers; the child has a table of descriptors of its own.
            check(unsafe { libc::dup2(fd, target) })?;
        }
        if self.program.terminal {
            // SAFETY: plain numbers; the 0 takes nobody's terminal away.
            check(unsafe { libc::ioctl(1, libc::TIOCSCTTY, 0) })?;
        }
        // SAFETY: the mask is valid for the call; the last pointer may be null.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.unblocked, std::ptr::null_mut()) };
        self.executed_ns = monotonic_ns();
        let error = self.execute(&self.program.path, &self.arguments);
        // A script that does not name its interpreter is the shell's, as with `execvp`.
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            return Err(self.execute(c"/bin/sh", &self.through_shell));
        }
        Err(error)
    }

    /// Returns only where it fails.
    fn execute(&self, path: &CStr, arguments: &[*const c_char]) -> io::Error {
        // SAFETY: the path is NUL-terminated, both arrays end with a null pointer, and all they point to outlives the call.
        unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), self.environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Blocks every signal for this thread, and returns what was blocked before.
fn block_all() -> io::Result<libc::sigset_t> {
    // SAFETY: `sigset_t` is plain old data; all zeroes is a valid value of it.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both are live locals of the right type.
    let rc = unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before)
    };
    if rc == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(rc)) }
}

/// Signals with a handler, and `SIGPIPE`, which Rust ignores and a program expects at its default.
fn handled() -> Vec<c_int> {
    let is_handled = |signal: &c_int| {
        // SAFETY: `sigaction` is plain old data; with a null pointer for the new action nothing is changed.
        let action = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            (libc::sigaction(*signal, std::ptr::null(), &mut action) == 0).then_some(action)
        };
        let by_default = |action: libc::sigaction| {
            action.sa_sigaction == libc::SIG_DFL || action.sa_sigaction == libc::SIG_IGN
        };
        *signal == libc::SIGPIPE || !action.is_none_or(by_default)
    };
    (1..=libc::SIGRTMAX()).filter(is_handled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{End, wait_end, wait4};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::path::Path;

    fn begin(path: &str, words: &[&str], confinement: &Confinement) -> io::Result<Begun> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let program = Program::new(Path::new(path), &words, &[("TARE_TEST", "7")], confinement, false)?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        Starter::default().start(&program, [null.as_fd(); 3])
    }

    #[test]
    fn a_program_is_confined_and_stamped() {
        let cpus = crate::affinity::get(0).unwrap();
        let confinement = Confinement { cpus: cpus[..1].to_vec(), ..Confinement::default() };
        let begun = begin("/bin/sh", &["sh", "-c", "exit $TARE_TEST"], &confinement).unwrap();
        assert!(begun.made_ns <= begun.executed_ns && begun.executed_ns <= monotonic_ns());
        assert!(matches!(wait_end(begun.pid).unwrap(), End::Ended));
        assert_eq!(wait4(begun.pid, true).unwrap().unwrap().exit_code, Some(7));
    }

    #[test]
    fn nothing_starts_where_the_program_or_a_group_is_not_to_be_had() {
        let nowhere = Confinement { cgroup_procs: vec!["/no/such/group".into()], ..Confinement::default() };
        let error = begin("/bin/true", &["true"], &nowhere).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = begin("/no/such/program", &["x"], &Confinement::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_stop_for_the_terminal_is_an_end_and_another_is_not() {
        let begun =
            begin("/bin/sh", &["sh", "-c", "kill -TTOU $$; exit 3"], &Confinement::default()).unwrap();
        assert!(matches!(wait_end(begun.pid).unwrap(), End::WantsTerminal));
        crate::process::kill(begun.pid, crate::process::Signal::Cont).unwrap();
        assert!(matches!(wait_end(begun.pid).unwrap(), End::Ended));
        assert_eq!(wait4(begun.pid, true).unwrap().unwrap().exit_code, Some(3));
        let other = "(sleep 0.05; kill -CONT $$) & kill -STOP $$; wait";
        let begun = begin("/bin/sh", &["sh", "-c", other], &Confinement::default()).unwrap();
        assert!(matches!(wait_end(begun.pid).unwrap(), End::Ended));
        wait4(begun.pid, true).unwrap();
    }

    #[test]
    fn a_program_gets_a_terminal_of_its_own() {
        let terminal = crate::terminal::Terminal::open().unwrap();
        let words = ["sh", "-c", "stty -echo </dev/tty && test -t 0"].map(str::to_owned);
        let program = Program::new(Path::new("/bin/sh"), &words, &[], &Confinement::default(), true).unwrap();
        let begun = Starter::default().start(&program, [terminal.program.as_fd(); 3]).unwrap();
        assert!(matches!(wait_end(begun.pid).unwrap(), End::Ended));
        assert_eq!(wait4(begun.pid, true).unwrap().unwrap().exit_code, Some(0));
    }
}
