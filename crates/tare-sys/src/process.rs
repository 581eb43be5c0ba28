//! Child processes that end with us, signals, and what a process used.

use crate::affinity;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

/// Where a child runs.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    /// CPUs it may run on; empty: those of the calling thread.
    pub cpus: Vec<u32>,
    /// `cgroup.procs` files of the control groups that it joins before it runs anything.
    pub cgroup_procs: Vec<PathBuf>,
    /// It gets no transparent huge pages, and neither does what it starts (`PR_SET_THP_DISABLE`, prctl(2)).
    pub no_thp: bool,
}

/// Starts `command` as the leader of a process group of its own, which is killed by the kernel when the
/// *thread* that called this ends (`PR_SET_PDEATHSIG`): call it from one that lives as long as the child shall.
///
/// # Errors
/// What [`Command::spawn`] reports; a CPU or a control group that cannot be had is reported the same way, and
/// nothing runs then.
pub fn spawn(command: &mut Command, confinement: &Confinement) -> io::Result<Child> {
    let mask = match confinement.cpus.as_slice() {
        [] => None,
        cpus => Some(affinity::Mask::new(cpus)?),
    };
    let groups = confinement
        .cgroup_procs
        .iter()
        .map(|path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from))
        .collect::<io::Result<Vec<_>>>()?;
    let (parent, no_thp) = (std::process::id(), confinement.no_thp);
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls on memory that was prepared before
    // the fork (`mask`, `groups`); it allocates nothing and takes no lock. `io::Error` from an errno is a
    // plain number.
    unsafe {
        command.pre_exec(move || {
            die_with(parent)?;
            for group in &groups {
                join_group(group)?;
            }
            if no_thp {
                go_without_thp()?;
            }
            mask.as_ref().map_or(Ok(()), |mask| mask.apply(0))
        });
    }
    command.spawn()
}

/// Starts `command` in our own process group, so that the terminal's keys and its input are the command's too. Killed
/// by the kernel when the *thread* that called this ends, as with [`spawn`].
///
/// # Errors
/// What [`Command::spawn`] reports.
pub fn spawn_in_foreground(command: &mut Command) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: as in `spawn`; the closure captures one number.
    unsafe { command.pre_exec(move || die_with(parent)) };
    command.spawn()
}

/// No transparent huge pages for the calling process from now on, nor for what it executes and starts.
pub(crate) fn go_without_thp() -> io::Result<()> {
    // SAFETY: plain numbers; the calling process is one that is about to execute a program.
    check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) })
}

/// Asks to be killed with the parent, and notices a parent that died before the request was made.
pub(crate) fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    // SAFETY: takes no arguments, touches no memory.
    if unsafe { libc::getppid() } as u32 != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// Moves the calling process into the group whose `cgroup.procs` this is.
pub(crate) fn join_group(procs: &CString) -> io::Result<()> {
    // SAFETY: `procs` is a NUL-terminated string that lives through the call.
    let fd = unsafe { libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    check(fd)?;
    // SAFETY: the two bytes are static; `fd` was opened above.
    let written = unsafe { libc::write(fd, c"0\n".as_ptr().cast(), 2) };
    let outcome = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: `fd` is ours and is not used after this.
    unsafe { libc::close(fd) };
    outcome
}

/// Signals that are sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Please end.
    Term,
    /// As Ctrl-C does.
    Int,
    /// End now.
    Kill,
    /// Stop running until `Cont`.
    Stop,
    /// Go on.
    Cont,
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Signal::Term => libc::SIGTERM,
            Signal::Int => libc::SIGINT,
            Signal::Kill => libc::SIGKILL,
            Signal::Stop => libc::SIGSTOP,
            Signal::Cont => libc::SIGCONT,
        }
    }
}

/// Sends a signal to one process.
///
/// # Errors
/// `ESRCH` when it is gone, `EPERM`; `EINVAL` for pids that mean something else to `kill` (0, 1 and up to -1).
pub fn kill(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = target(pid)?;
    // SAFETY: plain numbers.
    check(unsafe { libc::kill(pid, signal.number()) })
}

/// Sends a signal to every process of a process group.
///
/// # Errors
/// As [`kill`].
pub fn kill_group(pgid: u32, signal: Signal) -> io::Result<()> {
    let pgid = target(pgid)?;
    // SAFETY: plain numbers.
    check(unsafe { libc::kill(-pgid, signal.number()) })
}

fn target(pid: u32) -> io::Result<libc::pid_t> {
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 1 => Ok(pid),
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// How a child ended and what it and the children it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its pid.
    pub pid: u32,
    /// Exit code; `None` when ended by a signal.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// User CPU time, nanoseconds (microsecond steps).
    pub user_ns: u64,
    /// Kernel CPU time, nanoseconds (microsecond steps).
    pub system_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Largest resident set, bytes.
    pub rss_bytes_max: u64,
}

/// Reaps child `pid` (`wait4`) if it has ended; with `block`, waits until it has. A [`Child`] that was reaped
/// so must not be waited for again.
///
/// # Errors
/// `ECHILD` when it is not our child or was reaped before.
pub fn wait4(pid: u32, block: bool) -> io::Result<Option<Ended>> {
    let pid = target(pid)?;
    let mut status: libc::c_int = 0;
    let mut usage = zeroed_rusage();
    let reaped = retry(|| {
        // SAFETY: both pointers are to live locals of the right types.
        unsafe { libc::wait4(pid, &mut status, if block { 0 } else { libc::WNOHANG }, &mut usage) }
    })?;
    if reaped == 0 {
        return Ok(None);
    }
    Ok(Some(Ended {
        pid: reaped as u32,
        exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw.max(0) as u64,
        involuntary_switches: usage.ru_nivcsw.max(0) as u64,
        rss_bytes_max: (usage.ru_maxrss.max(0) as u64).saturating_mul(1024),
    }))
}

/// Reaps all in group `pgid` who have ended and came to us as orphans ([`become_subreaper`]). The leader must have been reaped
/// before: what it ended with would be lost.
pub fn reap_group(pgid: u32) {
    let Ok(pgid) = target(pgid) else { return };
    // SAFETY: plain numbers, and a null pointer where no status is wanted. Each turn takes one who has ended.
    while unsafe { libc::waitpid(-pgid, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Whether child `pid` has ended, leaving it as a zombie whose `/proc` files can still be read
/// (`waitid(WNOWAIT)`); with `block`, waits until it has.
///
/// # Errors
/// `ECHILD` when it is not our child or was reaped before.
pub fn has_ended(pid: u32, block: bool) -> io::Result<bool> {
    let id = target(pid)? as libc::id_t;
    let flags = libc::WEXITED | libc::WNOWAIT | if block { 0 } else { libc::WNOHANG };
    // SAFETY: `siginfo_t` is plain old data; all zeroes is a valid value of it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    retry(|| {
        // SAFETY: `info` is a live local of the right type.
        unsafe { libc::waitid(libc::P_PID, id, &mut info, flags) }
    })?;
    // SAFETY: waitid filled the structure as for SIGCHLD, or left it zeroed when nothing has ended.
    Ok(unsafe { info.si_pid() } != 0)
}

/// What a child came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It has ended, and is a zombie until it is reaped.
    Ended,
    /// It was stopped when it used a terminal (SIGTTIN, SIGTTOU): nobody will let it go on.
    WantsTerminal,
}

/// Waits until child `pid` has ended, or was stopped when it used a terminal. It is not reaped.
///
/// # Errors
/// `ECHILD` when it is not our child or was reaped before.
pub fn wait_end(pid: u32) -> io::Result<End> {
    let id = target(pid)? as libc::id_t;
    let wait = |flags: libc::c_int| -> io::Result<libc::siginfo_t> {
        // SAFETY: `siginfo_t` is plain old data; all zeroes is a valid value of it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        retry(|| {
            // SAFETY: `info` is a live local of the right type.
            unsafe { libc::waitid(libc::P_PID, id, &mut info, flags) }
        })?;
        Ok(info)
    };
    loop {
        let info = wait(libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
        if info.si_code != libc::CLD_STOPPED {
            return Ok(End::Ended);
        }
        // Taken, so that the next call waits for what comes after it.
        wait(libc::WSTOPPED | libc::WNOHANG)?;
        // SAFETY: waitid filled the structure as for SIGCHLD.
        if matches!(unsafe { info.si_status() }, libc::SIGTTIN | libc::SIGTTOU) {
            return Ok(End::WantsTerminal);
        }
    }
}

/// Makes orphaned descendants children of this process, so that they can be found and reaped.
///
/// # Errors
/// None on Linux 3.4 or later.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) })
}

/// The calling thread's id.
pub fn gettid() -> u32 {
    // SAFETY: takes no arguments, cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Whether this process acts with root's rights.
pub fn is_root() -> bool {
    user() == 0
}

/// The user with whose rights this process acts.
pub fn user() -> u32 {
    // SAFETY: takes no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Context switches of the calling thread so far: (voluntary, involuntary).
pub fn thread_switches() -> (u64, u64) {
    let mut usage = zeroed_rusage();
    // SAFETY: `usage` is a live local of the right type. RUSAGE_THREAD cannot fail with a valid pointer, and
    // leaves zeroes if it did.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    (usage.ru_nvcsw.max(0) as u64, usage.ru_nivcsw.max(0) as u64)
}

/// Size of a page of memory in bytes.
pub fn page_bytes() -> u64 {
    // SAFETY: takes a plain number and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Lifts the soft limit of open files to the hard one; observers keep files open for every thread they watch.
/// Returns the limit that holds afterwards.
///
/// # Errors
/// As `getrlimit` and `setrlimit`.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let mut limit = open_files()?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is a live local of the right type.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    }
    Ok(limit.rlim_cur)
}

/// The soft limit of open files: how many a table of descriptors may have ([`crate::descriptors`]).
///
/// # Errors
/// As `getrlimit`.
pub fn open_files_limit() -> io::Result<u64> {
    Ok(open_files()?.rlim_cur)
}

fn open_files() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live local of the right type.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    Ok(limit)
}

fn zeroed_rusage() -> libc::rusage {
    // SAFETY: `rusage` is plain old data; all zeroes is a valid value of it.
    unsafe { std::mem::zeroed() }
}

fn timeval_ns(time: libc::timeval) -> u64 {
    (time.tv_sec.max(0) as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add((time.tv_usec.max(0) as u64).saturating_mul(1000))
}

pub(crate) fn check(rc: libc::c_int) -> io::Result<()> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<libc::c_int> {
    loop {
        let rc = call();
        if rc >= 0 {
            return Ok(rc);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    #[expect(clippy::zombie_processes, reason = "reaped by wait4")]
    fn a_child_is_confined_leads_its_group_and_is_accounted_for() {
        let cpus = affinity::get(0).unwrap();
        let confinement = Confinement { cpus: cpus[..1].to_vec(), ..Confinement::default() };
        let mut command = Command::new("sh");
        command.args(["-c", "read line; exit 7"]).stdin(Stdio::piped());
        let mut child = spawn(&mut command, &confinement).unwrap();
        assert_eq!(affinity::get(child.id()).unwrap(), cpus[..1]);
        assert!(!has_ended(child.id(), false).unwrap());
        assert_eq!(wait4(child.id(), false).unwrap(), None);
        drop(child.stdin.take());
        assert!(has_ended(child.id(), true).unwrap());
        let zombie = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id())).unwrap();
        assert!(zombie.split_whitespace().next().unwrap().parse::<u64>().unwrap() > 0);
        let ended = wait4(child.id(), true).unwrap().unwrap();
        assert_eq!((ended.exit_code, ended.signal), (Some(7), None));
        assert!(ended.rss_bytes_max > 0);
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "reaped by wait4")]
    fn a_child_goes_without_huge_pages_where_it_is_to() {
        let line = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            status
                .lines()
                .find_map(|line| line.strip_prefix("THP_enabled:"))
                .map(|value| value.trim().to_owned())
        };
        // Linux before 5.0 does not show it.
        let Some(ours) = line(std::process::id()) else { return };
        let mut command = Command::new("sh");
        command.args(["-c", "read line"]).stdin(Stdio::piped());
        let mut child = spawn(&mut command, &Confinement { no_thp: true, ..Confinement::default() }).unwrap();
        assert_eq!(line(child.id()).as_deref(), Some("0"));
        assert_eq!(line(std::process::id()), Some(ours), "and the parent as before");
        drop(child.stdin.take());
        wait4(child.id(), true).unwrap();
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "reaped by wait4")]
    fn a_whole_group_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo; wait"]).stdout(Stdio::piped());
        let mut child = spawn(&mut command, &Confinement::default()).unwrap();
        kill_group(child.id(), Signal::Kill).unwrap();
        // The pipe reports its end only when the shell and the sleeper are both gone.
        let mut rest = Vec::new();
        io::Read::read_to_end(&mut child.stdout.take().unwrap(), &mut rest).unwrap();
        assert_eq!(wait4(child.id(), true).unwrap().unwrap().signal, Some(libc::SIGKILL));
    }

    #[test]
    fn nothing_starts_where_a_group_or_a_cpu_is_not_to_be_had() {
        let nowhere = Confinement { cgroup_procs: vec!["/no/such/group".into()], ..Confinement::default() };
        assert!(spawn(&mut Command::new("true"), &nowhere).is_err());
        let beyond = Confinement { cpus: vec![affinity::CPUS_MAX - 1], ..Confinement::default() };
        assert!(spawn(&mut Command::new("true"), &beyond).is_err());
    }

    #[test]
    fn pids_that_mean_everybody_are_refused() {
        for pid in [0, 1, u32::MAX] {
            assert!(kill(pid, Signal::Term).is_err());
            assert!(kill_group(pid, Signal::Term).is_err());
        }
    }
}
